//! The gates under a model checker: the code that runs with system threads, under every interleaving that the checker
//! finds. Built with the feature `checked-gates`, which replaces the locks below the gates by the checker's.
//!
//! `CHECKED_SCHEDULES` is the number of interleavings of each program: few in `make test`, many in `make crash`.

#[path = "checked_gates/nvm_journal.rs"]
mod nvm_journal;
mod power_cut;

use flashpath::device::conv::Conventional;
use flashpath::device::{BlockDevice, Lba, Medium};
use flashpath::expression::parse_term;
use flashpath::fs::ext::ExtSettings;
use flashpath::fs::in_process::InProcess;
use flashpath::fs::sfs::SfsSettings;
use flashpath::fs::station::{Mounting, VolumeSettings};
use flashpath::fs::{Durable, FileSystem};
use flashpath::label::{Content, Label};
use flashpath::task::{Gate, SharedGate, Task};
use flashpath::time::Time;
use flashpath::units::BLOCK_BYTES;
use shuttle::scheduler::{PctScheduler, RandomScheduler, Scheduler};
use shuttle::{Config, Runner, thread};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::SeqCst};

fn schedules() -> usize {
    std::env::var("CHECKED_SCHEDULES").ok().map_or(300, |text| text.parse().expect("CHECKED_SCHEDULES is a number"))
}

/// Runs a program under random interleavings, and under ones with few context switches, which show most faults.
fn check(program: impl Fn() + Send + Sync + Clone + 'static) {
    run(RandomScheduler::new(schedules()), program.clone());
    run(PctScheduler::new(3, schedules()), program);
}

/// Runs a program under one kind of orders. A volume needs more than the 32 KiB of stack that the checker gives a thread.
fn run(scheduler: impl Scheduler + 'static, program: impl Fn() + Send + Sync + 'static) {
    let mut config = Config::new();
    config.stack_size = 1 << 20;
    Runner::new(scheduler, config).run(program);
}

/// Runs `threads` threads to their end.
fn together(threads: u64, work: impl Fn(u64) + Send + Sync + 'static) {
    let work = Arc::new(work);
    let threads: Vec<_> = (0..threads)
        .map(|number| {
            let work = Arc::clone(&work);
            thread::spawn(move || work(number))
        })
        .collect();
    threads.into_iter().for_each(|thread| thread.join().unwrap());
}

#[test]
fn one_task_at_a_time_holds_a_gate_and_continues_when_it_becomes_free() {
    check(|| {
        let gate = Arc::new(Gate::new("one", Vec::new()));
        let inside = Arc::clone(&gate);
        together(3, move |number| {
            let task = Task::at(Time(number));
            for _ in 0..2 {
                let mut stays = inside.enter(&task);
                let from = task.now();
                thread::yield_now();
                task.wait_until(from + 10);
                stays.push((from, task.now()));
            }
        });
        let stays = Arc::into_inner(gate).unwrap().into_inner();
        assert_eq!(stays.len(), 6, "no stay is lost");
        assert!(stays.windows(2).all(|two| two[0].1 <= two[1].0), "two overlap in time: {stays:?}");
    });
}

#[test]
fn readers_share_a_gate_and_a_writer_excludes_them() {
    check(|| {
        let (gate, readers) = (SharedGate::new("one", 0u64), AtomicUsize::new(0));
        together(4, move |number| {
            let task = Task::at(Time(number));
            if number < 2 {
                let value = gate.read(&task);
                readers.fetch_add(1, SeqCst);
                let before = *value;
                thread::yield_now();
                assert_eq!(*value, before, "the value changes under a reader");
                readers.fetch_sub(1, SeqCst);
            } else {
                let mut value = gate.write(&task);
                let before = *value;
                thread::yield_now();
                assert_eq!((readers.load(SeqCst), *value), (0, before), "a writer is alone");
                *value += 1;
                task.wait_until(task.now() + 10);
            }
            if number == 3 {
                let late = Task::at(Time(0));
                drop(gate.read(&late));
                assert!(late.now() >= task.now(), "the reader waited for the writers");
            }
        });
    });
}

/// A log on a device: a gate protects its tail, but not its blocks.
struct Log {
    device: Conventional,
    tail: Gate<u64>,
    /// For each record, true if it is written completely.
    written: SharedGate<Vec<bool>>,
    takes_gate: bool,
}

impl Log {
    fn new(takes_gate: bool) -> Log {
        let device = Conventional::in_memory(64, BLOCK_BYTES as usize);
        Log { device, tail: Gate::new("tail", 0), written: SharedGate::new("written", vec![false; 64]), takes_gate }
    }

    /// Appends a record, and returns its address.
    fn add(&self, task: &Task<'_>, record: u8) -> u64 {
        let place = if self.takes_gate {
            let mut tail = self.tail.enter(task);
            *tail += 1;
            *tail - 1
        } else {
            let seen = *self.tail.enter(task);
            *self.tail.enter(task) = seen + 1;
            seen
        };
        let label = Label::host(Content::Data);
        task.ask(|at| self.device.write(Lba(place), &[record; BLOCK_BYTES as usize], label, at)).unwrap();
        self.written.write(task)[place as usize] = true;
        place
    }

    /// Number of complete records from the start.
    fn whole(&self, task: &Task<'_>) -> usize {
        self.written.read(task).iter().take_while(|written| **written).count()
    }
}

fn fill_a_log(takes_gate: bool) {
    let log = Arc::new(Log::new(takes_gate));
    let shared = Arc::clone(&log);
    together(3, move |number| {
        let task = Task::at(Time::ZERO);
        for round in 0..2 {
            let record = (1 + 2 * number + round) as u8;
            let place = shared.add(&task, record);
            let mut bytes = vec![0; BLOCK_BYTES as usize];
            task.ask(|at| shared.device.read(Lba(place), &mut bytes, at)).unwrap();
            assert!(bytes.iter().all(|byte| *byte == record), "record {record} is whole");
            let whole = shared.whole(&task);
            thread::yield_now();
            assert!(whole <= shared.whole(&task), "complete records stay complete");
        }
    });
    assert_eq!(log.whole(&Task::at(Time::ZERO)), 6, "no gap remains");
}

#[test]
fn records_of_a_log_do_not_overlap() {
    check(|| fill_a_log(true));
}

/// Shows that the checker finds a missing gate, so that the test above can fail.
#[test]
#[should_panic]
fn a_log_that_reads_its_tail_and_sets_it_later_is_detected() {
    check(|| fill_a_log(false));
}

/// A new volume of 16 MiB, in memory.
fn volume(settings: &dyn VolumeSettings) -> InProcess {
    let device = Medium::Blocks(Box::new(Conventional::in_memory(4096, BLOCK_BYTES as usize)));
    InProcess::new(settings.create(vec![device], &Mounting::at(1, 0)).unwrap())
}

/// Both file systems that lie on blocks, as small as they can be.
fn on_each_volume(schedules: usize, program: impl Fn(InProcess) + Copy + Send + Sync + 'static) {
    let kinds: [Arc<dyn VolumeSettings>; 2] = [
        Arc::new(SfsSettings::read(&parse_term("sfs:segment=256K").unwrap()).unwrap()),
        Arc::new(ExtSettings::read(&parse_term("ext:journal-size=4M").unwrap()).unwrap()),
    ];
    for settings in kinds {
        run(RandomScheduler::new(schedules), move || program(volume(&*settings)));
    }
}

#[test]
fn threads_share_a_volume_and_each_reads_its_own_writes() {
    on_each_volume(schedules() / 10, |files| {
        let done = AtomicU64::new(0);
        together(3, move |number| {
            let task = Task::at(Time::ZERO);
            let (name, renamed) = (format!("new {number}"), format!("file {number}"));
            let file = files.create(&task, &name).unwrap();
            files.write_at(&task, &file, 0, &[number as u8 + 1; 5000]).unwrap();
            files.sync_file(&task, &file, Durable::All).unwrap();
            files.rename(&task, &name, &renamed).unwrap();
            let mut bytes = [0; 5000];
            assert_eq!(files.read_at(&task, &file, 0, &mut bytes).unwrap(), 5000);
            assert!(bytes.iter().all(|byte| *byte == number as u8 + 1));
            files.close(&task, file).unwrap();
            if done.fetch_add(1, SeqCst) == 2 {
                for number in 0..3 {
                    assert_eq!(files.length(&task, &format!("file {number}")).unwrap(), 5000);
                }
            }
        });
    });
}

/// `ext` gave the inode of a removed file back before it took the file out of its own tables by that number: a thread that
/// made a file in between had the inode, and lost its bytes.
#[test]
fn a_file_made_while_another_is_freed_keeps_its_bytes() {
    on_each_volume(schedules() * 10, |files| {
        together(3, move |number| {
            let task = Task::at(Time::ZERO);
            let name = format!("file {number}");
            for round in 0..3 {
                let file = files.create(&task, &name).unwrap();
                files.write_at(&task, &file, 0, &[number as u8 + 1; 100]).unwrap();
                files.close(&task, file).unwrap();
                let file = files.open(&task, &name).unwrap();
                let mut bytes = [0; 100];
                assert_eq!(files.read_at(&task, &file, 0, &mut bytes).unwrap(), 100);
                assert_eq!(bytes, [number as u8 + 1; 100], "round {round}");
                files.close(&task, file).unwrap();
                files.unlink(&task, &name).unwrap();
            }
        });
    });
}

/// `ext` knows names without the gates of their directories.
#[test]
fn a_name_leads_to_the_file_that_has_it_while_names_move() {
    /// The lengths of the files that have the names, after each step of the thread that moves them.
    const LENGTHS: [[Option<u64>; 2]; 6] = [
        [Some(100), None],
        [None, Some(100)],
        [None, None],
        [Some(200), None],
        [Some(200), Some(300)],
        [None, Some(200)],
    ];
    fn make(files: &InProcess, task: &Task<'_>, name: &str, length: usize) {
        let file = files.create(task, name).unwrap();
        files.write_at(task, &file, 0, &vec![1; length]).unwrap();
        files.close(task, file).unwrap();
    }
    on_each_volume(schedules() * 3, |files| {
        make(&files, &Task::at(Time::ZERO), "a", 100);
        // Even between steps, and odd within one.
        let step = AtomicUsize::new(0);
        together(3, move |number| {
            let task = Task::at(Time::ZERO);
            if number == 0 {
                let mut take_step = |act: &dyn Fn()| {
                    step.fetch_add(1, SeqCst);
                    act();
                    step.fetch_add(1, SeqCst);
                };
                take_step(&|| files.rename(&task, "a", "b").unwrap());
                take_step(&|| files.unlink(&task, "b").unwrap());
                take_step(&|| make(&files, &task, "a", 200));
                take_step(&|| make(&files, &task, "b", 300));
                take_step(&|| files.rename(&task, "a", "b").unwrap());
                return;
            }
            for round in 0..8 {
                let (before, which) = (step.load(SeqCst), round % 2);
                let found = files.length(&task, ["a", "b"][which]).ok();
                if before.is_multiple_of(2) && before == step.load(SeqCst) {
                    assert_eq!(found, LENGTHS[before / 2][which], "name {which} after step {}", before / 2);
                }
            }
        });
    });
}
