//! The journal in non-volatile memory, with all of `ext` above it: threads change, free, commit and checkpoint. After each
//! call that makes something durable, the power is cut in a copy of the devices, while the others go on in the original:
//! the next mount finds what was promised.

use crate::power_cut::{Disk, Power};
use crate::{run, schedules, together};
use flashpath::device::Medium;
use flashpath::device::nvm::lines::Lines;
use flashpath::expression::parse_term;
use flashpath::fs::ext::ExtSettings;
use flashpath::fs::in_process::InProcess;
use flashpath::fs::station::{Access, Mounting, StoredVolumes, VolumeSettings};
use flashpath::fs::volume::{Call, Volume};
use flashpath::fs::{Durable, FileSystem};
use flashpath::random::Random;
use flashpath::task::Task;
use flashpath::time::Time;
use shuttle::scheduler::{PctScheduler, RandomScheduler};
use std::sync::Arc;

/// The least that `ext` needs, and the smallest region with so many partitions.
const DISK_BLOCKS: u64 = 16 << 8;
const PARTITION_BYTES: u64 = 784 * (4096 + 64);

/// The devices of a volume, which lose power together.
struct Machine {
    settings: ExtSettings,
    disk: Disk,
    memory: Lines,
}

impl Machine {
    fn new(scheme: &str, partitions: u64) -> Machine {
        let term = parse_term(&format!("ext:journal=nvm,scheme={scheme},partitions={partitions}")).unwrap();
        let disk = Disk::new(&Power::new(), DISK_BLOCKS, 0);
        let memory = Lines::new(16_384 + partitions * PARTITION_BYTES);
        Machine { settings: ExtSettings::read(&term).unwrap(), disk, memory }
    }

    fn media(&self) -> Vec<Medium> {
        vec![Medium::Blocks(Box::new(self.disk.clone())), Medium::Memory(Box::new(self.memory.clone()))]
    }

    fn volume(&self) -> Arc<dyn Volume> {
        self.settings.create(self.media(), &Mounting::at(1, 0)).unwrap()
    }

    /// A machine with what the devices would have if the power failed now: of what is not durable, nothing or all.
    fn after_a_cut(&self, keeps_unfenced: bool) -> Machine {
        // No other thread runs in here: nothing waits for a lock of the checker.
        let disk = self.disk.copy(&Power::new());
        disk.lose_power(&mut Random::new(u64::from(keeps_unfenced), "cut"));
        let memory = Lines::of(self.memory.crash(|_| keeps_unfenced));
        Machine { settings: self.settings.clone(), disk, memory }
    }

    fn recovered(&self) -> InProcess {
        let volume = self.settings.open(self.media(), &Mounting::at(1, 0), Access::IfWhole);
        InProcess::new(volume.unwrap_or_else(|error| panic!("{error}")))
    }
}

/// The bytes of a file: which thread has written it, and in which round.
fn bytes(number: u64, round: u64) -> Vec<u8> {
    vec![(1 + 16 * number + round) as u8; 3000 + 2000 * round as usize]
}

fn name(number: u64, round: u64) -> String {
    format!("file {number} {round}")
}

fn assert_holds(files: &InProcess, task: &Task<'_>, number: u64, round: u64) {
    let wanted = bytes(number, round);
    let file = files.open(task, &name(number, round)).unwrap_or_else(|error| panic!("{error}"));
    let mut found = vec![0; wanted.len() + 1];
    let length = files.read_at(task, &file, 0, &mut found).unwrap();
    assert!(found[..length] == wanted, "{number} {round}: {length} bytes, the first {}", found[0]);
    files.close(task, file).unwrap();
}

/// Each thread makes a file durable, frees the one before, and makes that durable, with checkpoints in between.
fn threads_share_a_journal(scheme: &str, partitions: u64, threads: u64) {
    const ROUNDS: u64 = 2;
    let machine = Arc::new(Machine::new(scheme, partitions));
    let volume = machine.volume();
    let files = Arc::new(InProcess::new(Arc::clone(&volume)));
    let (shared, shared_files) = (Arc::clone(&machine), Arc::clone(&files));
    together(threads, move |number| {
        let (machine, files) = (&shared, &shared_files);
        let task = Task::at(Time::ZERO);
        for round in 0..ROUNDS {
            let file = files.create(&task, &name(number, round)).unwrap();
            files.write_at(&task, &file, 0, &bytes(number, round)).unwrap();
            files.sync_file(&task, &file, Durable::All).unwrap();
            assert_holds(&machine.after_a_cut(round == 1).recovered(), &task, number, round);
            files.close(&task, file).unwrap();
            volume.work(&Call::by_root(&task)).unwrap();
            if let Some(before) = round.checked_sub(1) {
                files.unlink(&task, &name(number, before)).unwrap();
                files.sync(&task).unwrap();
                let after = machine.after_a_cut(number == 1).recovered();
                assert!(after.open(&task, &name(number, before)).is_err(), "it was removed durably");
                assert_holds(&after, &task, number, round);
            }
        }
    });
    let task = Task::at(Time::ZERO);
    (0..threads).for_each(|number| assert_holds(&files, &task, number, ROUNDS - 1));
    let cut = machine.after_a_cut(false);
    drop(cut.recovered());
    let damage = cut.settings.check(cut.media()).unwrap();
    assert!(damage.is_empty(), "{damage:?}");
}

#[test]
fn what_threads_made_durable_in_partitions_is_there_after_a_cut() {
    for (scheme, partitions) in [("helping", 2), ("paper", 2), ("paper", 1)] {
        run(RandomScheduler::new(schedules() / 10), move || threads_share_a_journal(scheme, partitions, 2));
        run(PctScheduler::new(3, schedules() / 10), move || threads_share_a_journal(scheme, partitions, 3));
    }
}
