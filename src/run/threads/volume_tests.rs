//! Simulated threads on a mounted volume whose device takes long: who waits for whom.

use super::{Work, run_threads};
use crate::device::conv::Conventional;
use crate::device::{Abilities, Account, BlockDevice, DeviceError, Lba, Medium};
use crate::expression::parse_term;
use crate::fs::Durable;
use crate::fs::ext::ExtSettings;
use crate::fs::sfs::SfsSettings;
use crate::fs::station::{Mounting, VolumeSettings};
use crate::fs::volume::{Call, FileKind, Hold, InodeNumber, NewFile, Volume};
use crate::label::Label;
use crate::random::Random;
use crate::task::{Costs, Task};
use crate::time::Time;
use crate::units::BLOCK_BYTES;
use std::cell::Cell;
use std::sync::Arc;

/// Each request takes so long; any number of them are served at once.
const DEVICE_NS: u64 = 20_000_000;
/// Longer than this nobody waits for background work, beyond the device's own time.
const MOST_NS: u64 = 5_000_000;
const FILE_BLOCKS: u64 = 1200;

/// A device that takes long for each request.
struct Slow(Conventional);

impl BlockDevice for Slow {
    fn blocks(&self) -> u64 {
        self.0.blocks()
    }

    fn block_width(&self) -> usize {
        self.0.block_width()
    }

    fn read(&self, first: Lba, buffer: &mut [u8], at: Time) -> Result<Time, DeviceError> {
        self.0.read(first, buffer, at).map(|_| at + DEVICE_NS)
    }

    fn write(&self, first: Lba, buffer: &[u8], label: Label, at: Time) -> Result<Time, DeviceError> {
        self.0.write(first, buffer, label, at).map(|_| at + DEVICE_NS)
    }

    fn discard(&self, first: Lba, blocks: u64, at: Time) -> Result<Time, DeviceError> {
        self.0.discard(first, blocks, at).map(|_| at + DEVICE_NS)
    }

    fn flush(&self, at: Time) -> Result<Time, DeviceError> {
        self.0.flush(at).map(|_| at + DEVICE_NS)
    }

    fn account(&self) -> Account {
        self.0.account()
    }
}

impl Abilities for Slow {
    fn wrapped(&self) -> Option<&dyn BlockDevice> {
        None
    }
}

fn make(volume: &dyn Volume, call: &Call, name: &[u8]) -> InodeNumber {
    let new = NewFile {
        kind: FileKind::Regular,
        permissions: 0o644,
        user: 0,
        group: 0,
        device: 0,
        target: b"",
        attributes: &[],
    };
    volume.make(call, (InodeNumber::ROOT, name), &new, Hold::No, None).unwrap().inode
}

fn write(volume: &dyn Volume, call: &Call, file: InodeNumber, block: u64) {
    volume.write(call, file, block * BLOCK_BYTES, &[7; BLOCK_BYTES as usize], None).unwrap();
}

/// A volume that is so full that it is cleaned all the time; one thread writes and syncs, one does what is due in the
/// background, and one only looks. A lookup used to wait until a checkpoint was stored.
#[test]
fn nobody_who_looks_waits_for_writers_cleaning_or_a_checkpoint() {
    let device = Medium::Blocks(Box::new(Slow(Conventional::in_memory(65 * 64, BLOCK_BYTES as usize))));
    let settings = SfsSettings::read(&parse_term("sfs:segment=256K").unwrap()).unwrap();
    let volume: Arc<dyn Volume> = settings.create(vec![device], &Mounting::at(1, 0)).unwrap();
    let filling = Task::at(Time::ZERO);
    let call = Call::by_root(&filling);
    let file = make(&*volume, &call, b"file");
    (0..FILE_BLOCKS).for_each(|block| write(&*volume, &call, file, block));
    volume.sync(&call).unwrap();
    let (begin, ended) = (filling.now(), Cell::new(0));
    let (longest_look, longest_read, looks) = (Cell::new(0), Cell::new(0), Cell::new(0));

    let writer: Work = Box::new(|task| {
        let (call, mut random) = (Call::by_root(task), Random::new(1, "writer"));
        for round in 0..6000 {
            write(&*volume, &call, file, random.below(FILE_BLOCKS));
            if round % 50 == 0 {
                volume.sync_file(&call, file, Durable::Data).unwrap();
            }
        }
        ended.set(ended.get() + 1);
    });
    let background: Work = Box::new(|task| {
        while ended.get() == 0 {
            let next = volume.work(&Call::by_root(task)).unwrap();
            task.wait_until(next.unwrap_or(Time::ZERO).max(task.now() + 100_000_000).min(task.now() + 1_000_000_000));
        }
    });
    let looker: Work = Box::new(|task| {
        let (call, mut random) = (Call::by_root(task), Random::new(2, "looker"));
        while ended.get() == 0 {
            let began = task.now();
            volume.lookup(&call, (InodeNumber::ROOT, b"file"), Hold::No).unwrap();
            volume.attributes(&call, file).unwrap();
            volume.list(&call, InodeNumber::ROOT, 0, &mut |_| true).unwrap();
            longest_look.set((task.now().0 - began.0).max(longest_look.get()));
            let began = task.now();
            let mut block = [0; BLOCK_BYTES as usize];
            volume.read(&call, file, random.below(FILE_BLOCKS) * BLOCK_BYTES, &mut block).unwrap();
            assert_eq!(block, [7; BLOCK_BYTES as usize]);
            longest_read.set((task.now().0 - began.0).max(longest_read.get()));
            looks.set(looks.get() + 1);
            task.wait_until(task.now() + 3_000_000);
        }
    });
    run_threads(begin, &Costs::none(), vec![writer, background, looker]).unwrap();

    let account = volume.account(&call).unwrap();
    let count = |name: &str| account.events.iter().find(|event| event.0 == name).unwrap().1;
    assert!(looks.get() > 100, "{} looks", looks.get());
    assert!(count("segments cleaned") > 50 && count("checkpoints") > 5, "{:?}", account.events);
    assert!(longest_look.get() <= MOST_NS, "a look took {} ns", longest_look.get());
    // A block that is moved meanwhile is read again, and then behind the gate.
    assert!(longest_read.get() <= DEVICE_NS + MOST_NS, "a read took {} ns", longest_read.get());
}

/// A volume whose journal is small, so that a checkpoint is due again and again. A sync used to wait until all committed
/// blocks were written home.
#[test]
fn nobody_who_syncs_waits_for_a_checkpoint_while_the_log_has_room() {
    let device = Medium::Blocks(Box::new(Slow(Conventional::in_memory(64 << 8, BLOCK_BYTES as usize))));
    let settings = ExtSettings::read(&parse_term("ext:data=journal,journal-size=4M").unwrap()).unwrap();
    let volume: Arc<dyn Volume> = settings.create(vec![device], &Mounting::at(1, 0)).unwrap();
    let filling = Task::at(Time::ZERO);
    let call = Call::by_root(&filling);
    let file = make(&*volume, &call, b"file");
    (0..FILE_BLOCKS).for_each(|block| write(&*volume, &call, file, block));
    volume.sync(&call).unwrap();
    let count = |name: &str| {
        let account = volume.account(&call).unwrap();
        account.events.iter().find(|event| event.0 == name).map(|event| event.1)
    };
    let waited = || count("commits that waited for room in the log");
    let (begin, ended, longest, waited_before) = (filling.now(), Cell::new(0), Cell::new(0), waited());
    let writer: Work = Box::new(|task| {
        let (call, mut random) = (Call::by_root(task), Random::new(1, "writer"));
        for _ in 0..1500 {
            write(&*volume, &call, file, random.below(FILE_BLOCKS));
            let began = task.now();
            volume.sync_file(&call, file, Durable::Data).unwrap();
            longest.set((task.now().0 - began.0).max(longest.get()));
        }
        ended.set(1);
    });
    let background: Work = Box::new(|task| {
        while ended.get() == 0 {
            let next = volume.work(&Call::by_root(task)).unwrap();
            task.wait_until(next.unwrap_or(Time::ZERO).max(task.now() + 50_000_000).min(task.now() + 100_000_000));
        }
    });
    run_threads(begin, &Costs::none(), vec![writer, background]).unwrap();
    assert!(count("checkpoints") > Some(15), "{:?} checkpoints", count("checkpoints"));
    // Records, the flush before the commit record, that, the flush behind it; a commit of the background worker before.
    assert!(longest.get() <= 10 * DEVICE_NS + MOST_NS, "a sync took {} ns", longest.get());
    assert!(waited_before.is_some());
    assert_eq!(waited(), waited_before, "no commit has waited for room");
}
