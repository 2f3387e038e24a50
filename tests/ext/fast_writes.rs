//! Fast commits that this program writes: the kernel, e2fsck and this program replay them alike; what they cannot have is
//! committed in full, and counted by its reason.

use crate::fast_commits::{area, block_of, check, comparable, le16, mounted_tree, put_block, read_only, tags};
use crate::image::{Image, call, can_mount, has_e2fsprogs, program};
use crate::pair::Pair;
use crate::replay::copied;
use crate::walk::{Tree, assert_same, of_directory, of_volume};
use flashpath::expression::parse_term;
use flashpath::fs::Durable;
use flashpath::fs::ext::ExtSettings;
use flashpath::fs::station::Access;
use flashpath::fs::volume::{
    Allocation, Change, ExtendedChange, FileKind, Hold, IfExists, InodeNumber, Locked, NewFile, Renaming, Volume,
};
use flashpath::run::{Path, make_volume};
use std::borrow::Cow;

const ROOT: InodeNumber = InodeNumber::ROOT;
const HEAD: u16 = 9;
const ON: &str = ":fast-commit=on";

/// The calls of a program, which must succeed.
struct Calls<'v>(&'v dyn Volume);

impl Calls<'_> {
    fn make(&self, directory: InodeNumber, name: &str, kind: FileKind) -> InodeNumber {
        let target: &[u8] = if kind == FileKind::Symlink { b"target" } else { b"" };
        let new = NewFile { kind, permissions: 0o644, user: 3, group: 4, device: 0, target, attributes: &[] };
        call(|call| self.0.make(call, (directory, name.as_bytes()), &new, Hold::No, None)).unwrap().inode
    }

    fn file(&self, name: &str, bytes: &[u8]) -> InodeNumber {
        let file = self.make(ROOT, name, FileKind::Regular);
        self.write(file, 0, bytes);
        file
    }

    fn write(&self, file: InodeNumber, at: u64, bytes: &[u8]) {
        call(|call| self.0.write(call, file, at, bytes, None)).unwrap();
    }

    fn sync(&self, file: InodeNumber) {
        call(|call| self.0.sync_file(call, file, Durable::All)).unwrap();
    }

    fn sync_all(&self) {
        call(|call| self.0.sync(call)).unwrap();
    }

    fn find(&self, directory: InodeNumber, name: &str) -> InodeNumber {
        call(|call| self.0.lookup(call, (directory, name.as_bytes()), Hold::No)).unwrap().inode
    }

    fn unlink(&self, directory: InodeNumber, name: &str) {
        call(|call| self.0.unlink(call, (directory, name.as_bytes()), None)).unwrap();
    }

    fn link(&self, file: InodeNumber, directory: InodeNumber, name: &str) {
        call(|call| self.0.link(call, file, (directory, name.as_bytes()), Hold::No, None)).unwrap();
    }

    fn rename(&self, from: &str, to: &str, if_exists: IfExists, whiteout: Option<(u32, u32)>) {
        let how = Renaming { if_exists, whiteout };
        call(|call| self.0.rename(call, (ROOT, from.as_bytes()), (ROOT, to.as_bytes()), how, None)).unwrap();
    }

    fn change(&self, file: InodeNumber, change: &Change<'_>) {
        let mut rule = |_: &mut dyn Locked| Ok(Some(change.clone()));
        call(|call| self.0.change(call, file, &mut rule)).unwrap();
    }

    fn allocate(&self, file: InodeNumber, range: (u64, u64), how: Allocation) {
        call(|call| self.0.allocate(call, file, range, how, None)).unwrap();
    }

    /// A count of the account; 0 if it is not there.
    fn count(&self, event: &str) -> u64 {
        let events = call(|call| self.0.account(call)).unwrap().events;
        events.iter().find(|(name, _)| *name == event).map_or(0, |(_, count)| *count)
    }

    /// Syncs that took a full commit, for this reason.
    fn full(&self, reason: &str) -> u64 {
        self.count(&format!("syncs with a full commit: {reason}"))
    }
}

fn made_by_us(options: &str, bytes: &str) -> Image {
    let image = Image::of_bytes(0);
    let path = Path::read(&format!("ext{options}/conv:image={},size={bytes}", image.text())).unwrap();
    let now = std::time::SystemTime::UNIX_EPOCH.elapsed().unwrap().as_nanos() as i64;
    make_volume(&path, true, 9, now, None).unwrap();
    image
}

/// Files that are home or in the log, in full.
fn begin(calls: &Calls<'_>) -> InodeNumber {
    for number in 0..20 {
        calls.file(&format!("old{number}"), &vec![number as u8 + 1; 9000]);
    }
    let directory = calls.make(ROOT, "d", FileKind::Directory);
    calls.sync_all();
    directory
}

/// One of everything that fast commits have; `sync` is called for each.
fn everything(calls: &Calls<'_>, directory: InodeNumber, sync: &mut dyn FnMut(InodeNumber)) {
    let made = calls.file("made", &[1; 10_000]);
    sync(made);
    calls.link(made, directory, "link");
    calls.unlink(ROOT, "old1");
    calls.write(made, 300_000, &[2; 70_000]);
    sync(made);
    let cut = calls.find(ROOT, "old2");
    calls.change(cut, &Change { size: Some(5000), ..Change::default() });
    calls.rename("old3", "old4", IfExists::Replace, None);
    calls.rename("old5", "moved", IfExists::Refuse, None);
    calls.change(calls.find(ROOT, "old6"), &Change { permissions: Some(0o4711), ..Change::default() });
    sync(cut);
    // Space that is not written, and a part of it that is then; a hole.
    let space = calls.make(ROOT, "space", FileKind::Regular);
    calls.allocate(space, (0, 400_000), Allocation::Reserve { keep_size: false });
    sync(space);
    calls.write(space, 100_000, &[3; 9000]);
    calls.allocate(space, (20_000, 30_000), Allocation::Punch);
    sync(space);
    // A map that does not fit into its inode, and files without a sync of their own.
    let holes = calls.make(ROOT, "holes", FileKind::Regular);
    (0..40).for_each(|number| calls.write(holes, number * 50_000, &[4; 100]));
    for number in 0..8 {
        calls.make(directory, &format!("one of several names, number {number}"), FileKind::Regular);
    }
    sync(holes);
    // Numbers of inodes that are used again, and files that nobody ever sees.
    calls.unlink(ROOT, "old7");
    calls.unlink(ROOT, "made");
    let again = calls.file("old7", &[5; 3000]);
    calls.file("passing", &[6; 3000]);
    calls.unlink(ROOT, "passing");
    calls.rename("moved", "old7", IfExists::Replace, None);
    assert!(call(|call| calls.0.attributes(call, again)).is_err());
    let last = calls.file("last", &[7; 5000]);
    sync(last);
    // The names in a directory, of a file that is not synced itself.
    calls.make(directory, "named", FileKind::Regular);
    calls.unlink(directory, "link");
    sync(directory);
}

fn kernels(image: &Image) -> Tree {
    comparable(of_directory(&image.mount("").directory))
}

#[test]
fn the_kernel_e2fsck_and_this_program_replay_our_fast_commits_alike() {
    if !can_mount() {
        return;
    }
    let by_mke2fs = |arguments: &[&str]| {
        let image = Image::of_bytes(64 << 20);
        image.mke2fs(&[&["-t", "ext4", "-O", "fast_commit"], arguments].concat());
        image
    };
    for (what, image, options) in [
        ("ours", made_by_us(ON, "64M"), ""),
        ("ours of 1K", made_by_us(":fast-commit=on,block=1K", "64M"), ":data=writeback"),
        ("1K", by_mke2fs(&["-b", "1024"]), ON),
        ("2K without checksums", by_mke2fs(&["-b", "2048", "-O", "^metadata_csum,^64bit"]), ""),
        ("4K", by_mke2fs(&["-b", "4096", "-O", "^orphan_file,^metadata_csum_seed"]), ""),
    ] {
        let volume = image.volume(options, Access::IfWhole);
        let calls = Calls(&*volume);
        let directory = begin(&calls);
        let mut crashed = Vec::new();
        everything(&calls, directory, &mut |file| {
            calls.sync(file);
            crashed.push((copied(&image), comparable(of_volume(&*volume))));
        });
        assert_eq!(calls.count("fast commits"), crashed.len() as u64, "{what}: {:?}", {
            call(|call| volume.account(call)).unwrap().events
        });
        drop(volume);
        for (number, (crashed, ours)) in (1..).zip(&crashed) {
            let what = format!("{what}, sync {number}");
            let (blocks, size) = area(crashed);
            assert_eq!(le16(&block_of(crashed, blocks[0], size), 0), HEAD, "{what}");
            let (tree, damage) = read_only(crashed);
            assert!(damage.is_empty(), "{what}: {damage:?}");
            assert_same(&tree, ours, &format!("{what}, in memory"));
            let findings = check(crashed);
            assert!(findings.is_empty(), "{what}: {findings:?}");
            let (for_kernel, for_e2fsck) = (copied(crashed), copied(crashed));
            assert_same(&kernels(&for_kernel), ours, &format!("{what}, by the kernel"));
            for_kernel.check();
            let mended = program("e2fsck").args(["-fy", &for_e2fsck.text()]).output().unwrap();
            assert!(mended.status.code().is_some_and(|code| code <= 1), "{what}: {mended:?}");
            for_e2fsck.check();
            assert_same(&without_lost(kernels(&for_e2fsck)), ours, &format!("{what}, by e2fsck"));
            assert_same(&mounted_tree(crashed, Access::IfWhole), ours, &format!("{what}, replayed"));
            crashed.check();
        }
    }
}

/// The files but those that e2fsck has put into `lost+found`: it removes the last name of a file, and not the file.
fn without_lost(tree: Tree) -> Tree {
    tree.into_iter().filter(|(path, _)| !path.starts_with(b"/lost+found/")).collect()
}

#[test]
fn fast_commits_on_a_journal_of_its_own_are_replayed_by_the_kernel_too() {
    if !can_mount() {
        return;
    }
    let pair = Pair::of_ours("64M", "8M", ON);
    let volume = pair.opened("", Access::IfWhole);
    let calls = Calls(&*volume);
    let directory = begin(&calls);
    let mut crashed = Vec::new();
    everything(&calls, directory, &mut |file| {
        calls.sync(file);
        crashed.push((pair.copied(), comparable(of_volume(&*volume))));
    });
    assert_eq!(calls.count("fast commits"), crashed.len() as u64);
    drop(volume);
    for (number, (crashed, ours)) in (1..).zip(&crashed) {
        let what = format!("sync {number}");
        let by_kernel = crashed.copied();
        let theirs = comparable(of_directory(&by_kernel.mount("").volume.directory));
        assert_same(&theirs, ours, &format!("{what}, by the kernel"));
        by_kernel.check();
        let volume = crashed.opened("", Access::IfWhole);
        assert_same(&comparable(of_volume(&*volume)), ours, &format!("{what}, replayed"));
        call(|call| volume.unmount(call)).unwrap();
        drop(volume);
        crashed.check();
    }
}

#[test]
fn what_no_fast_commit_can_have_is_committed_in_full_and_counted_by_its_reason() {
    if !has_e2fsprogs() {
        return;
    }
    let image = made_by_us(ON, "64M");
    let volume = image.volume(ON, Access::IfWhole);
    let calls = Calls(&*volume);
    let directory = begin(&calls);
    let file = calls.file("file", &[1; 100]);
    calls.sync(file);
    let acts: [(&str, &dyn Fn()); 10] = [
        ("extended attributes", &|| {
            let extended = vec![ExtendedChange { name: b"user.a", value: Some(Cow::Borrowed(b"value")) }];
            calls.change(file, &Change { extended, ..Change::default() });
        }),
        ("directories", &|| _ = calls.make(ROOT, "new", FileKind::Directory)),
        ("directories", &|| calls.rename("new", "newer", IfExists::Refuse, None)),
        ("directories", &|| {
            calls.change(directory, &Change { permissions: Some(0o700), ..Change::default() });
        }),
        ("directories that got a block", &|| {
            (0..20).for_each(|number| _ = calls.make(directory, &format!("{number:0220}"), FileKind::Regular));
        }),
        ("links, devices, pipes and sockets", &|| _ = calls.make(ROOT, "symbolic", FileKind::Symlink)),
        ("links, devices, pipes and sockets", &|| _ = calls.make(ROOT, "pipe", FileKind::Fifo)),
        ("exchanged names", &|| calls.rename("old1", "old2", IfExists::Exchange, None)),
        ("whiteouts", &|| calls.rename("old3", "old30", IfExists::Refuse, Some((0, 0)))),
        ("times before the volume was made", &|| {
            calls.change(file, &Change { changed: Some(flashpath::fs::volume::Timestamp(7)), ..Change::default() });
        }),
    ];
    for (reason, act) in acts {
        let (full, fast) = (calls.full(reason), calls.count("fast commits"));
        act();
        calls.write(file, 0, &[2; 50]);
        if reason.starts_with("times") {
            act();
        }
        calls.sync(file);
        assert_eq!((calls.full(reason), calls.count("fast commits")), (full + 1, fast), "{reason}");
        calls.write(file, 0, &[3; 50]);
        calls.sync(file);
        assert_eq!((calls.full(reason), calls.count("fast commits")), (full + 1, fast + 1), "after {reason}");
    }
    // A file that lost its last name in a transaction before the one that frees it.
    let held = calls.find(ROOT, "old8");
    call(|call| volume.hold(call, held)).unwrap();
    calls.unlink(ROOT, "old8");
    calls.sync_all();
    call(|call| volume.forget(call, held, 1)).unwrap();
    calls.write(file, 0, &[4; 50]);
    calls.sync(file);
    assert_eq!(calls.full("files that had lost their names before"), 1);
    // Nothing changed: nothing is written.
    let fast = calls.count("fast commits");
    calls.sync(file);
    assert_eq!(calls.count("fast commits"), fast);
    call(|call| volume.unmount(call)).unwrap();
    drop(volume);
    image.check();
}

#[test]
fn a_full_area_begins_anew_behind_a_full_commit() {
    if !can_mount() {
        return;
    }
    let image = made_by_us(ON, "64M");
    let volume = image.volume("", Access::IfWhole);
    let calls = Calls(&*volume);
    let file = calls.file("file", &[1; 100]);
    let most = area(&image).0.len() as u64 - 1;
    calls.sync_all();
    for number in 0..2 * most + 10 {
        calls.write(file, number * 10, &[number as u8; 10]);
        calls.sync(file);
    }
    let full = calls.full("no room for a fast one");
    assert_eq!((full, calls.count("blocks of fast commits")), (2, 2 * most + 8), "of {most} blocks");
    let (crashed, ours) = (copied(&image), comparable(of_volume(&*volume)));
    drop(volume);
    assert_same(&kernels(&copied(&crashed)), &ours, "by the kernel");
    assert_same(&mounted_tree(&crashed, Access::IfWhole), &ours, "replayed");
    crashed.check();
}

#[test]
fn options_and_features_say_whether_fast_commits_are_written() {
    if !has_e2fsprogs() {
        return;
    }
    let read = |options: &str| ExtSettings::read(&parse_term(&format!("ext{options}")).unwrap());
    for refused in [":fast-commit=on,data=journal", ":fast-commit=on,journal=nvm", ":fast-commit=on,journal=vmm"] {
        assert!(read(refused).is_err(), "{refused}");
    }
    let without = made_by_us("", "64M");
    let error = without.open(ON, Access::IfWhole).err().expect("it has not the feature").to_string();
    assert!(error.contains("tune2fs -O fast_commit"), "{error}");
    assert!(without.open(":fast-commit=off", Access::IfWhole).is_ok());
    without.check();
    let set = Image::of_bytes(64 << 20);
    set.mke2fs(&["-t", "ext4", "-J", "size=8"]);
    crate::image::run("tune2fs", &["-O", "fast_commit", &set.text()]);
    for (image, options, written) in [
        (&made_by_us(ON, "64M"), "", true),
        (&made_by_us(ON, "64M"), ":fast-commit=off", false),
        (&made_by_us(ON, "64M"), ":data=journal", false),
        (&made_by_us("", "64M"), "", false),
        (&set, ON, true),
    ] {
        let volume = image.volume(options, Access::IfWhole);
        let calls = Calls(&*volume);
        let file = calls.file("file", &[1; 9000]);
        calls.sync(file);
        assert_eq!(calls.count("fast commits") == 1, written, "{options}");
        call(|call| volume.unmount(call)).unwrap();
        drop(volume);
        image.check();
        assert!(read_only(image).0.contains_key(&b"/file"[..]), "{options}");
    }
}

/// A damaged tag, and fast commits of an older transaction where those of this one should be.
#[test]
fn our_damaged_and_our_old_fast_commits_are_told_or_are_none() {
    if !can_mount() {
        return;
    }
    let image = made_by_us(":fast-commit=on,block=1K", "32M");
    let volume = image.volume("", Access::IfWhole);
    let calls = Calls(&*volume);
    begin(&calls);
    for number in 0..6 {
        let file = calls.file(&format!("f{number}"), &vec![number as u8 + 100; 5000]);
        calls.unlink(ROOT, &format!("old{number}"));
        calls.sync(file);
    }
    let crashed = copied(&image);
    let (blocks, size) = area(&crashed);
    let has = |tree: &Tree, name: &str| tree.contains_key(format!("/{name}").as_bytes());
    let whole = block_of(&crashed, blocks[3], size);
    for (kind, at, length) in tags(&whole) {
        let value = at + 4..at + 4 + length.min(12);
        for (what, range, bits) in [
            ("kind", at..at + 2, 0x40),
            ("length", at + 2..at + 4, 0x10),
            ("value", value.clone(), 4),
            ("all", at..value.end, 0),
        ] {
            let mut bytes = whole.clone();
            match bits {
                0 => bytes[range].fill(0),
                bits => bytes[range.start] ^= bits,
            }
            put_block(&crashed, blocks[3], &bytes);
            let (tree, damage) = read_only(&crashed);
            let what = format!("{what} of tag {kind} at byte {at}: {damage:?}");
            assert!(has(&tree, "f2") && !has(&tree, "f3") && !has(&tree, "old2") && has(&tree, "old3"), "{what}");
            assert!(damage.len() == 1 && damage[0].contains("2 fast commits of transaction"), "{what}");
        }
    }
    put_block(&crashed, blocks[3], &whole);
    assert!(has(&read_only(&crashed).0, "f5"));
    // A full commit, and what the area held before it.
    let old: Vec<Vec<u8>> = blocks.iter().map(|block| block_of(&image, *block, size)).collect();
    calls.unlink(ROOT, "f5");
    calls.sync_all();
    let ours = comparable(of_volume(&*volume));
    let later = copied(&image);
    assert_ne!(le16(&block_of(&later, blocks[0], size), 0), HEAD, "the area begins with none of an older transaction");
    for (block, bytes) in blocks.iter().zip(&old) {
        put_block(&later, *block, bytes);
    }
    let (tree, damage) = read_only(&later);
    assert!(damage.is_empty(), "{damage:?}");
    assert_same(&tree, &ours, "fast commits of the transaction before");
    assert_same(&kernels(&copied(&later)), &ours, "the same, by the kernel");
    // One of this transaction, and behind it one of the transaction before.
    let file = calls.file("g", &[9; 5000]);
    calls.sync(file);
    let ours = comparable(of_volume(&*volume));
    drop(volume);
    let later = copied(&image);
    assert_eq!(le16(&block_of(&later, blocks[0], size), 0), HEAD);
    put_block(&later, blocks[1], &old[1]);
    let (tree, damage) = read_only(&later);
    assert!(damage.is_empty(), "{damage:?}");
    assert_same(&tree, &ours, "one of the transaction before behind it");
    assert_same(&kernels(&copied(&later)), &ours, "the same, by the kernel");
}

/// Threads that make, write, rename, remove and sync files of their own, beside a thread of background work.
#[test]
fn threads_that_sync_at_the_same_time_share_fast_commits_and_lose_nothing() {
    if !can_mount() {
        return;
    }
    const FILES: usize = 60;
    for options in ["", ":commit-thread=on,commit=50ms", ":commit=20ms"] {
        let image = made_by_us(ON, "128M");
        let volume = image.volume(options, Access::IfWhole);
        let is_done = std::sync::atomic::AtomicUsize::new(0);
        std::thread::scope(|scope| {
            for background in [false, true] {
                let (volume, is_done) = (&volume, &is_done);
                scope.spawn(move || {
                    while is_done.load(std::sync::atomic::Ordering::SeqCst) < 4 {
                        let more = match background {
                            true => call(|call| volume.work(call)).map(drop).is_ok(),
                            false => call(|call| volume.watch(call)),
                        };
                        if !more || background {
                            std::thread::sleep(std::time::Duration::from_millis(1));
                        }
                    }
                });
            }
            for thread in 0..4 {
                let (volume, is_done) = (&volume, &is_done);
                scope.spawn(move || {
                    let calls = Calls(&**volume);
                    for number in 0..FILES {
                        let name = format!("{thread} {number}");
                        let file = calls.file(&name, &vec![thread as u8 + 1; 3000 + 500 * number]);
                        calls.sync(file);
                        calls.write(file, 3000 + 500 * number as u64, &[9; 2000]);
                        calls.rename(&name, &format!("{name} renamed"), IfExists::Refuse, None);
                        calls.sync(file);
                        if number >= 10 && number % 2 == 0 {
                            calls.unlink(ROOT, &format!("{thread} {} renamed", number - 10));
                        }
                    }
                    is_done.fetch_add(1, std::sync::atomic::Ordering::SeqCst);
                });
            }
        });
        let calls = Calls(&*volume);
        calls.sync(calls.file("end", b"end"));
        let (fast, full) = (calls.count("fast commits"), calls.count("commits"));
        assert!(fast > 50 && fast + full < 8 * FILES as u64 + 300, "{options}: {fast} fast commits, {full} commits");
        let (crashed, ours) = (copied(&image), comparable(of_volume(&*volume)));
        drop(volume);
        for thread in 0..4 {
            for number in 0..FILES {
                let seen = ours.get(format!("/{thread} {number} renamed").as_bytes());
                let is_gone = number % 2 == 0 && number + 10 < FILES;
                assert_eq!(seen.is_none(), is_gone, "{options}: {thread} {number}");
            }
        }
        let (tree, damage) = read_only(&crashed);
        assert!(damage.is_empty(), "{options}: {damage:?}");
        assert_same(&tree, &ours, &format!("{options}, in memory"));
        let by_kernel = copied(&crashed);
        assert_same(&kernels(&by_kernel), &ours, &format!("{options}, by the kernel"));
        by_kernel.check();
        assert_same(&mounted_tree(&crashed, Access::IfWhole), &ours, &format!("{options}, replayed"));
        crashed.check();
    }
}
