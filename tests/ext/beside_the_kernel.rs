//! The same random calls on a volume of this program and on the kernel's own ext4: both answer alike, and hold the same.

use crate::image::{Image, call, can_mount};
use crate::walk::{Tree, of_directory, of_volume};
use crate::work::Work;
use crate::writing::made;
use flashpath::fs::station::Access;
use flashpath::fs::volume::{
    Allocation, Change, ExtendedChange, FileKind, Hold, IfExists, InodeNumber, Locked, NewFile, Renaming, Timestamp,
    Volume, VolumeError,
};
use flashpath::random::Random;
use rustix::fs::{AtFlags, CWD, FallocateFlags, Mode, RenameFlags, Timespec, Timestamps, XattrFlags};
use rustix::io::Errno;
use std::borrow::Cow;
use std::fs::{self, File};
use std::os::unix::fs::{FileExt, PermissionsExt};
use std::path::PathBuf;
use std::sync::Arc;

/// Times that the calls set lie before this one; those of a clock behind it.
const SET_BEFORE_NS: i64 = 1_000_000_000_000_000_000;

/// A call, by paths below the root.
#[derive(Debug)]
enum Step {
    Make(FileKind, String),
    Link(String, String),
    Remove(String),
    RemoveDirectory(String),
    Rename(String, String, IfExists),
    Write(String, u64, Vec<u8>),
    Resize(String, u64),
    Allocate(String, Allocation, u64, u64),
    Permit(String, u16),
    SetTime(String, i64),
    SetAttribute(String, u8, Option<Vec<u8>>),
}

impl Step {
    /// The paths that it names.
    fn paths(&self) -> Vec<&str> {
        match self {
            Step::Link(from, to) | Step::Rename(from, to, _) => vec![from, to],
            Step::Make(_, at)
            | Step::Remove(at)
            | Step::RemoveDirectory(at)
            | Step::Write(at, ..)
            | Step::Resize(at, _)
            | Step::Allocate(at, ..)
            | Step::Permit(at, _)
            | Step::SetTime(at, _)
            | Step::SetAttribute(at, ..) => vec![at],
        }
    }
}

/// Draws calls. Few names: many are there already, and of another kind.
fn drawn(random: &mut Random) -> Step {
    let path = |random: &mut Random, least: u64| {
        let depth = [1, 1, 1, 2, 2, 3][random.below(6) as usize];
        let names = (0..depth).map(|level| match (level + 1 == depth, least + random.below(24 - least)) {
            (false, number) => format!("d{}", number % 4),
            (true, number @ 0..4) => format!("d{number}"),
            (true, number) => format!("f{number}{}", "y".repeat((number as usize % 5) * 40)),
        });
        names.collect::<Vec<_>>().join("/")
    };
    let what = random.below(100);
    // Names of directories, which few files have, are among those of calls for names alone.
    let at = path(random, if (12..46).contains(&what) { 0 } else { 4 });
    match what {
        0..12 => Step::Make(FileKind::Regular, at),
        12..19 => Step::Make(FileKind::Directory, at),
        19..21 => Step::Make(FileKind::Symlink, at),
        21..22 => Step::Make(FileKind::Fifo, at),
        22..29 => Step::Link(at, path(random, 0)),
        29..35 => Step::Remove(at),
        35..38 => Step::RemoveDirectory(at),
        38..46 => {
            let how = [IfExists::Replace, IfExists::Refuse, IfExists::Exchange][random.below(3) as usize];
            Step::Rename(at, path(random, 0), how)
        }
        46..68 => {
            let most = if random.below(8) == 0 { 60_000 } else { 5000 };
            let length = 1 + random.below(most);
            Step::Write(at, random.below(150_000), (0..length).map(|_| random.below(256) as u8).collect())
        }
        68..75 => Step::Resize(at, random.below(160_000)),
        75..82 => {
            let how = match random.below(3) {
                0 => Allocation::Reserve { keep_size: random.below(2) == 0 },
                1 => Allocation::Punch,
                _ => Allocation::Zero { keep_size: random.below(2) == 0 },
            };
            Step::Allocate(at, how, random.below(120_000), 1 + random.below(60_000))
        }
        82..86 => Step::Permit(at, random.below(0o10000) as u16),
        86..92 => Step::SetTime(at, random.below(SET_BEFORE_NS as u64) as i64),
        _ => {
            // Small ones, and ones for which the inode and the block do not always have room.
            let most = [180, 1100, 4200][random.below(3) as usize];
            let value = vec![random.below(256) as u8; random.below(most) as usize];
            Step::SetAttribute(at, random.below(4) as u8, (random.below(3) > 0).then_some(value))
        }
    }
}

/// The calls in a directory of the kernel.
struct Theirs(PathBuf);

impl Theirs {
    fn at(&self, path: &str) -> PathBuf {
        self.0.join(path)
    }

    /// True if a call to this path goes through a symbolic link, which the calls of a volume do not follow.
    fn follows(&self, path: &str) -> bool {
        let directories = path.match_indices('/').map(|(at, _)| &path[..at]);
        directories.into_iter().any(|at| fs::symlink_metadata(self.at(at)).is_ok_and(|found| found.is_symlink()))
    }

    /// True if a call takes a directory to another depth: after many of them, paths would be too long for the kernel.
    fn deepens(&self, step: &Step) -> bool {
        let Step::Rename(from, to, _) = step else { return false };
        let is_directory = |path| fs::symlink_metadata(self.at(path)).is_ok_and(|found| found.is_dir());
        let depth = |path: &str| path.matches('/').count();
        depth(from) != depth(to) && (is_directory(from) || is_directory(to))
    }

    /// A regular file, opened; what is none is refused before, as the volume's calls are never asked for it.
    fn open(&self, path: &str) -> Result<File, Errno> {
        let error = |error: std::io::Error| Errno::from_io_error(&error).expect("it has a number");
        if !fs::symlink_metadata(self.at(path)).map_err(error)?.is_file() {
            return Err(Errno::INVAL);
        }
        File::options().read(true).write(true).open(self.at(path)).map_err(error)
    }

    fn take(&self, step: &Step) -> Result<(), Errno> {
        let error = |error: std::io::Error| Errno::from_io_error(&error).expect("it has a number");
        match step {
            Step::Make(FileKind::Regular, at) => {
                let made = File::options().write(true).create_new(true).open(self.at(at)).map_err(error)?;
                made.set_permissions(fs::Permissions::from_mode(0o640)).map_err(error)
            }
            Step::Make(FileKind::Directory, at) => rustix::fs::mkdir(self.at(at), Mode::from_bits_truncate(0o750)),
            Step::Make(FileKind::Symlink, at) => rustix::fs::symlink("x".repeat(at.len() * 2), self.at(at)),
            Step::Make(_, at) => {
                let mode = Mode::from_bits_truncate(0o600);
                rustix::fs::mknodat(CWD, self.at(at), rustix::fs::FileType::Fifo, mode, 0)
            }
            Step::Link(from, to) => rustix::fs::linkat(CWD, self.at(from), CWD, self.at(to), AtFlags::empty()),
            Step::Remove(at) => rustix::fs::unlink(self.at(at)),
            Step::RemoveDirectory(at) => rustix::fs::rmdir(self.at(at)),
            Step::Rename(from, to, how) => {
                let flags = match how {
                    IfExists::Replace => RenameFlags::empty(),
                    IfExists::Refuse => RenameFlags::NOREPLACE,
                    IfExists::Exchange => RenameFlags::EXCHANGE,
                };
                rustix::fs::renameat_with(CWD, self.at(from), CWD, self.at(to), flags)
            }
            Step::Write(at, offset, bytes) => self.open(at)?.write_all_at(bytes, *offset).map_err(error),
            Step::Resize(at, size) => self.open(at)?.set_len(*size).map_err(error),
            Step::Allocate(at, how, offset, length) => {
                let kept = |keep| if keep { FallocateFlags::KEEP_SIZE } else { FallocateFlags::empty() };
                let flags = match *how {
                    Allocation::Reserve { keep_size } => kept(keep_size),
                    Allocation::Punch => FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE,
                    Allocation::Zero { keep_size } => FallocateFlags::ZERO_RANGE | kept(keep_size),
                };
                rustix::fs::fallocate(self.open(at)?, flags, *offset, *length)
            }
            Step::Permit(at, permissions) => {
                self.open(at)?.set_permissions(fs::Permissions::from_mode(u32::from(*permissions))).map_err(error)
            }
            Step::SetTime(at, ns) => {
                let time = Timespec { tv_sec: ns / 1_000_000_000, tv_nsec: ns % 1_000_000_000 };
                let times = Timestamps { last_access: time, last_modification: time };
                rustix::fs::utimensat(CWD, self.at(at), &times, AtFlags::SYMLINK_NOFOLLOW)
            }
            Step::SetAttribute(at, number, value) => {
                let (file, name) = (self.open(at)?, format!("user.{number}"));
                match value {
                    Some(value) => rustix::fs::fsetxattr(file, name, value, XattrFlags::empty()),
                    // The volume's call is not refused if there is none.
                    None => match rustix::fs::fremovexattr(file, name) {
                        Err(Errno::NODATA) => Ok(()),
                        removed => removed,
                    },
                }
            }
        }
    }
}

/// The same on a volume of this program.
struct Ours(Arc<dyn Volume>);

impl Ours {
    fn find(&self, path: &str) -> Result<InodeNumber, VolumeError> {
        let mut found = InodeNumber::ROOT;
        for name in path.split('/').filter(|name| !name.is_empty()) {
            found = call(|call| self.0.lookup(call, (found, name.as_bytes()), Hold::No))?.inode;
        }
        Ok(found)
    }

    /// A directory and a name in it. The kernel looks if it is one before it looks for any name of the call.
    fn place<'p>(&self, path: &'p str) -> Result<(InodeNumber, &'p [u8]), VolumeError> {
        let (directory, name) = path.rsplit_once('/').unwrap_or(("", path));
        let inode = self.find(directory)?;
        match call(|call| self.0.attributes(call, inode))?.kind {
            FileKind::Directory => Ok((inode, name.as_bytes())),
            _ => Err(VolumeError::NotDirectory),
        }
    }

    fn change(&self, inode: InodeNumber, change: &Change<'_>) -> Result<(), VolumeError> {
        call(|call| self.0.change(call, inode, &mut |_: &mut dyn Locked| Ok(Some(change.clone())))).map(drop)
    }

    fn regular(&self, path: &str) -> Result<InodeNumber, Errno> {
        let inode = self.find(path).map_err(|error| error.errno())?;
        let found = call(|call| self.0.attributes(call, inode)).map_err(|error| error.errno())?;
        if found.kind == FileKind::Regular { Ok(inode) } else { Err(Errno::INVAL) }
    }

    fn take(&self, step: &Step) -> Result<(), Errno> {
        let numbered = |result: Result<(), VolumeError>| result.map_err(|error| error.errno());
        let change = |at: &str, change: Change<'_>| numbered(self.change(self.regular(at)?, &change));
        match step {
            Step::Make(kind, at) => numbered(self.make(*kind, at)),
            Step::Link(from, to) => numbered(self.find(from).and_then(|from| {
                let place = self.place(to)?;
                call(|call| self.0.link(call, from, place, Hold::No, None)).map(drop)
            })),
            Step::Remove(at) => {
                numbered(self.place(at).and_then(|place| call(|call| self.0.unlink(call, place, None)).map(drop)))
            }
            Step::RemoveDirectory(at) => numbered(
                self.place(at).and_then(|place| call(|call| self.0.remove_directory(call, place, None)).map(drop)),
            ),
            Step::Rename(from, to, how) => numbered(self.place(from).and_then(|from| {
                let to = self.place(to)?;
                let how = Renaming { if_exists: *how, whiteout: None };
                call(|call| self.0.rename(call, from, to, how, None)).map(drop)
            })),
            Step::Write(at, offset, bytes) => {
                let inode = self.regular(at)?;
                numbered(call(|call| self.0.write(call, inode, *offset, bytes, None)).map(drop))
            }
            Step::Resize(at, size) => change(at, Change { size: Some(*size), ..Change::default() }),
            Step::Allocate(at, how, offset, length) => {
                let inode = self.regular(at)?;
                numbered(call(|call| self.0.allocate(call, inode, (*offset, *length), *how, None)).map(drop))
            }
            Step::Permit(at, permissions) => {
                change(at, Change { permissions: Some(*permissions), ..Change::default() })
            }
            Step::SetTime(at, ns) => {
                let time = Some(Timestamp(*ns));
                let inode = self.find(at).map_err(|error| error.errno())?;
                numbered(self.change(inode, &Change { accessed: time, modified: time, ..Change::default() }))
            }
            Step::SetAttribute(at, number, value) => {
                let name = format!("user.{number}");
                let value = value.as_deref().map(Cow::Borrowed);
                let extended = vec![ExtendedChange { name: name.as_bytes(), value }];
                change(at, Change { extended, ..Change::default() })
            }
        }
    }

    fn make(&self, kind: FileKind, at: &str) -> Result<(), VolumeError> {
        let place = self.place(at)?;
        let target = "x".repeat(at.len() * 2);
        let (permissions, target) = match kind {
            FileKind::Directory => (0o750, &b""[..]),
            FileKind::Symlink => (0o777, target.as_bytes()),
            FileKind::Fifo => (0o600, &b""[..]),
            _ => (0o640, &b""[..]),
        };
        let new = NewFile { kind, permissions, user: 0, group: 0, device: 0, target, attributes: &[] };
        call(|call| self.0.make(call, place, &new, Hold::No, None)).map(drop)
    }
}

/// What both must have in common: not the blocks, nor the size of a directory, which hang on where names lie; of times that
/// a clock gave, only that it did.
fn comparable(tree: Tree) -> Tree {
    let rows = tree.into_iter().filter(|(path, _)| path != b"/lost+found");
    rows.map(|(path, mut seen)| {
        seen.blocks = 0;
        if seen.kind == FileKind::Directory {
            seen.size = 0;
        }
        seen.times = seen.times.map(|time| time.min(SET_BEFORE_NS));
        (path, seen)
    })
    .collect()
}

/// Takes so many steps on both, compares all, and has both checked.
fn side_by_side(mke2fs: &[&str], options: &str, kernels: &str, seed: u64, steps: u64) {
    let what = format!("{mke2fs:?}{options}, seed {seed}");
    let (here, there) = (Image::of_bytes(256 << 20), Image::of_bytes(256 << 20));
    here.mke2fs(mke2fs);
    there.mke2fs(mke2fs);
    let mounted = there.mount(kernels);
    let (ours, theirs) = (Ours(here.volume(options, Access::IfWhole)), Theirs(mounted.directory.clone()));
    let mut random = Random::new(seed, "beside the kernel");
    let (mut done, mut refused) = (0u64, 0u64);
    let same = |at: u64| {
        crate::walk::assert_same(
            &comparable(of_volume(&*ours.0)),
            &comparable(of_directory(&theirs.0)),
            &format!("{what}, after {at} steps"),
        );
    };
    for number in 0..steps {
        let step = drawn(&mut random);
        if step.paths().iter().any(|path| theirs.follows(path)) || theirs.deepens(&step) {
            continue;
        }
        let (here, there) = (ours.take(&step), theirs.take(&step));
        // Above a volume, the kernel looks at both names before it asks; which of two reasons it tells is not the volume's.
        let is_of_names = matches!(step, Step::Link(..) | Step::Rename(..));
        if !(is_of_names && here.is_err() && there.is_err()) {
            assert_eq!(here, there, "{what}, step {number}: {step:?}");
        }
        if here.is_ok() {
            done += 1
        } else {
            refused += 1
        }
        if number % 20_000 == 19_999 {
            same(number);
        }
    }
    same(steps);
    assert!(done > steps / 8 && refused > 0, "{what}: {done} done, {refused} refused");
    // Bytes that have no place yet count for more blocks.
    call(|call| ours.0.sync(call)).unwrap();
    let left = of_volume(&*ours.0);
    call(|call| ours.0.unmount(call)).unwrap();
    drop(ours);
    drop(mounted);
    here.check();
    there.check();
    let by_the_kernel = here.mount(",ro");
    crate::walk::assert_same(&left, &of_directory(&by_the_kernel.directory), &format!("{what}, read by the kernel"));
}

/// The steps of a campaign, shared by its cases.
fn steps(variable: &str, usual: u64) -> u64 {
    std::env::var(variable).ok().map_or(usual, |text| text.parse().unwrap_or_else(|_| panic!("{variable}={text}")))
}

#[test]
fn the_kernels_ext4_answers_the_same_calls_alike_and_holds_the_same() {
    if !can_mount() {
        return;
    }
    let cases: [(&[&str], &str, &str); 4] = [
        (&["-t", "ext4"], "", ""),
        (&["-t", "ext4"], ":data=journal", ",data=journal"),
        (&["-t", "ext4", "-b", "1024"], ":data=writeback,dirty=1M", ",data=writeback"),
        (&["-t", "ext4", "-O", "^64bit,^metadata_csum", "-b", "2048"], "", ""),
    ];
    let steps = steps("EXT_CALLS", 16_000) / cases.len() as u64;
    for (seed, (mke2fs, options, kernels)) in (31..).zip(cases) {
        side_by_side(mke2fs, options, kernels, seed, steps);
    }
}

#[test]
fn a_volume_that_was_filled_and_emptied_by_random_calls_again_and_again_is_clean() {
    if !crate::image::has_e2fsprogs() {
        return;
    }
    const ROUND: u64 = 8000;
    let image = made(256, "");
    let rounds = steps("EXT_CALLS", 2 * ROUND).div_ceil(ROUND);
    for round in 0..rounds {
        let options = ["", ":data=journal", ":data=writeback,dirty=1M"][round as usize % 3];
        let volume = image.volume(options, Access::IfWhole);
        let mut work = Work::new(100 + round);
        (0..ROUND).for_each(|_| work.step(&*volume));
        work.compare(&*volume);
        // The next round begins on a volume without files, and with all that these have left in its blocks.
        if round + 1 < rounds {
            empty(&*volume, InodeNumber::ROOT);
        }
        call(|call| volume.unmount(call)).unwrap();
        drop(volume);
        if round % 16 == 0 || round + 1 == rounds {
            image.check();
        }
    }
}

/// Removes all that is in a directory.
fn empty(volume: &dyn Volume, directory: InodeNumber) {
    let mut names = Vec::new();
    let listed = call(|call| {
        volume.list(call, directory, 0, &mut |entry| {
            if !entry.is_dot() {
                names.push((entry.name.to_vec(), entry.inode, entry.kind));
            }
            true
        })
    });
    listed.unwrap();
    for (name, inode, kind) in names.into_iter().filter(|(name, ..)| name != b"lost+found") {
        if kind == FileKind::Directory {
            empty(volume, inode);
            call(|call| volume.remove_directory(call, (directory, &name), None)).unwrap();
        } else {
            call(|call| volume.unlink(call, (directory, &name), None)).unwrap();
        }
    }
}
