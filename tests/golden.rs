//! Golden images: a small volume of each on-disk format that was released, as the program of that time left it. Each opens for
//! ever, with all of its files.
//!
//! `GOLDEN_STORE=1` has the tests make what is missing in tests/fixtures/golden, by the program of today: a new format gets an
//! image before it is released. What is there is never made again. Those of sfs before version 4 are in tests/sfs/space.rs, those of the kernel's
//! dm-zoned in tests/dm_zoned.rs.

use flashpath::expression::parse_term;
use flashpath::fs::Durable;
use flashpath::fs::station::{Access, Mounting};
use flashpath::fs::volume::{
    Call, Change, ExtendedChange, FileKind, Hold, IfExists, InodeNumber, Locked, Name, NewFile, Renaming, Volume,
    VolumeError,
};
use flashpath::report::RequestLog;
use flashpath::run::{
    BlockWork, Job, Logging, NoMachine, Path as StationPath, Place, RunOptions, Work, check_file_system, make_volume,
    open_file_system, run,
};
use flashpath::task::Task;
use flashpath::time::Time;
use flashpath::workload::generator::generator;
use parquet::basic::Type;
use parquet::file::reader::{FileReader, SerializedFileReader};
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The time on the wall clock at which an image is made, and used again.
const MADE_AT: i64 = 1_700_000_000_000_000_000;
const USED_AT: i64 = MADE_AT + 86_400_000_000_000;
const ROOT: InodeNumber = InodeNumber::ROOT;

/// A volume: its station with the options of its making, and the sizes of its images. `{0}` and `{1}` stand for them.
struct Golden {
    name: &'static str,
    made: &'static str,
    opened: &'static str,
    below: &'static str,
    sizes: &'static [&'static str],
}

const GOLDEN: [Golden; 8] = [
    Golden { name: "sfs-4", made: "sfs:segment=64K", opened: "sfs", below: "conv:image={0}", sizes: &["8M"] },
    Golden { name: "ext", made: "ext", opened: "ext", below: "conv:image={0}", sizes: &["16M"] },
    Golden { name: "ext-1k", made: "ext:block=1K", opened: "ext", below: "conv:image={0}", sizes: &["12M"] },
    Golden { name: "ext-2k", made: "ext:block=2K", opened: "ext", below: "conv:image={0}", sizes: &["16M"] },
    Golden {
        name: "ext-data-journal",
        made: "ext:data=journal",
        opened: "ext:data=journal",
        below: "conv:image={0}",
        sizes: &["16M"],
    },
    Golden {
        name: "ext-fast-commit",
        made: "ext:fast-commit=on",
        opened: "ext",
        below: "conv:image={0}",
        sizes: &["16M"],
    },
    Golden {
        name: "ext-journal-device",
        made: "ext",
        opened: "ext",
        below: "conv:image={0}+conv:image={1}",
        sizes: &["16M", "8M"],
    },
    Golden {
        name: "ext-nvm-region",
        made: "ext:partitions=2",
        opened: "ext",
        below: "conv:image={0}+nvm:image={1}",
        sizes: &["16M", "16M"],
    },
];

/// How an image was left.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Left {
    Unmounted,
    /// The process was killed after an fsync: what is synced is in the log or the journal.
    Killed,
}

fn fixture(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/golden").join(name)
}

fn stores() -> bool {
    std::env::var_os("GOLDEN_STORE").is_some()
}

fn call<T>(act: impl FnOnce(&Call) -> Result<T, VolumeError>) -> T {
    act(&Call::by_root(&Task::at(Time::ZERO))).unwrap()
}

impl Golden {
    fn images(&self, folder: &Path) -> Vec<PathBuf> {
        (0..self.sizes.len()).map(|number| folder.join(format!("image{number}"))).collect()
    }

    /// The path of the images in a folder; `new`: with the sizes that they get.
    fn path(&self, station: &str, folder: &Path, new: bool) -> StationPath {
        let mut text = format!("{station}/{}", self.below);
        for (number, (image, size)) in self.images(folder).iter().zip(self.sizes).enumerate() {
            let size = if new { format!(",size={size}") } else { String::new() };
            text = text.replace(&format!("{{{number}}}"), &format!("{}{size}", image.display()));
        }
        StationPath::read(&text).unwrap_or_else(|error| panic!("{text}: {error}"))
    }

    fn mount(&self, station: &str, folder: &Path, at: i64) -> Arc<dyn Volume> {
        let opened = open_file_system(&self.path(station, folder, false), &Mounting::at(7, at), Access::IfWhole);
        opened.unwrap_or_else(|error| panic!("{}: {error}", self.name))
    }

    fn findings(&self, folder: &Path) -> String {
        let found = check_file_system(&self.path(self.opened, folder, false));
        found.unwrap_or_else(|error| panic!("{}: {error}", self.name)).iter().map(|one| format!("{one:?}\n")).collect()
    }

    fn stored(&self, left: Left, number: usize) -> PathBuf {
        let state = if left == Left::Killed { "-killed" } else { "" };
        fixture(&format!("{}{state}.{number}.zst", self.name))
    }

    /// Makes the volume, fills it, leaves it, and stores its images.
    fn store(&self, left: Left) {
        let folder = tempfile::tempdir().unwrap();
        let path = self.path(self.made, folder.path(), true);
        make_volume(&path, false, 0x601d, MADE_AT, None).unwrap_or_else(|error| panic!("{}: {error}", self.name));
        let volume = self.mount(self.opened, folder.path(), MADE_AT);
        fill(&*volume);
        match left {
            Left::Unmounted => call(|call| volume.unmount(call)),
            Left::Killed => write(&*volume, (ROOT, b"synced"), 40_000, 9),
        }
        drop(volume);
        for (number, image) in self.images(folder.path()).iter().enumerate() {
            let packed = zstd::encode_all(File::open(image).unwrap(), 19).unwrap();
            fs::write(self.stored(left, number), packed).unwrap();
        }
    }

    /// The stored images, in a folder.
    fn unpack(&self, left: Left, folder: &Path) {
        for (number, image) in self.images(folder).iter().enumerate() {
            let stored = self.stored(left, number);
            let file = File::open(&stored)
                .unwrap_or_else(|error| panic!("{}: {error}; GOLDEN_STORE=1 makes it", stored.display()));
            assert!(file.metadata().unwrap().len() < 24 << 10, "{}: it is small", stored.display());
            fs::write(image, zstd::decode_all(file).unwrap()).unwrap();
        }
    }
}

const NEW: NewFile =
    NewFile { kind: FileKind::Regular, permissions: 0o640, user: 5, group: 6, device: 0, target: b"", attributes: &[] };

/// Bytes that no other file has.
fn bytes(length: usize, of: u8) -> Vec<u8> {
    (0..length).map(|at| of.wrapping_add((at / 100) as u8)).collect()
}

fn make(volume: &dyn Volume, name: Name, new: &NewFile) -> InodeNumber {
    call(|call| volume.make(call, name, new, Hold::No, None)).inode
}

fn found(volume: &dyn Volume, name: Name) -> InodeNumber {
    call(|call| volume.lookup(call, name, Hold::No)).inode
}

/// A file that an fsync has made durable.
fn write(volume: &dyn Volume, name: Name, length: usize, of: u8) {
    let file = make(volume, name, &NEW);
    call(|call| volume.write(call, file, 0, &bytes(length, of), None));
    call(|call| volume.sync_file(call, file, Durable::All));
}

fn read(volume: &dyn Volume, file: InodeNumber) -> Vec<u8> {
    let mut read = vec![0; 400_000];
    let length = call(|call| volume.read(call, file, 0, &mut read)).length;
    read.truncate(length);
    read
}

/// Files of each kind, with what a format stores of them: holes, links, names of all lengths, attributes.
fn fill(volume: &dyn Volume) {
    let directory =
        make(volume, (ROOT, b"directory"), &NewFile { kind: FileKind::Directory, permissions: 0o755, ..NEW });
    for number in 0..40_u8 {
        let name = vec![b'a' + number % 26; 1 + usize::from(number) * 6];
        write(volume, (directory, &name), usize::from(number) * 300, number);
    }
    let sparse = make(volume, (ROOT, b"sparse"), &NEW);
    call(|call| volume.write(call, sparse, 300_000, &bytes(5000, 77), None));
    call(|call| volume.link(call, sparse, (directory, b"link"), Hold::No, None));
    make(volume, (ROOT, b"symlink"), &NewFile { kind: FileKind::Symlink, target: b"directory/link", ..NEW });
    make(volume, (ROOT, b"device"), &NewFile { kind: FileKind::CharacterDevice, device: 0x0103, ..NEW });
    let value: &[u8] = b"a value of an attribute";
    let extended = [ExtendedChange { name: b"user.golden", value: Some(Cow::Borrowed(value)) }];
    let mut rule = |_: &mut dyn Locked| Ok(Some(Change { extended: extended.to_vec(), ..Change::default() }));
    call(|call| volume.change(call, sparse, &mut rule));
    write(volume, (ROOT, b"old"), 9000, 5);
    let how = Renaming { if_exists: IfExists::Refuse, whiteout: None };
    call(|call| volume.rename(call, (ROOT, b"old"), (directory, b"new"), how, None));
    write(volume, (ROOT, b"gone"), 9000, 6);
    call(|call| volume.unlink(call, (ROOT, b"gone"), None));
    call(|call| volume.sync(call));
}

fn assert_filled(volume: &dyn Volume, what: &str) {
    let directory = found(volume, (ROOT, b"directory"));
    for number in 0..40_u8 {
        let name = vec![b'a' + number % 26; 1 + usize::from(number) * 6];
        let file = found(volume, (directory, &name));
        assert_eq!(read(volume, file), bytes(usize::from(number) * 300, number), "{what}: file {number}");
    }
    let sparse = call(|call| volume.lookup(call, (ROOT, b"sparse"), Hold::No));
    assert_eq!((sparse.links, sparse.size, sparse.permissions), (2, 305_000, 0o640), "{what}");
    assert_eq!((sparse.user, sparse.group), (5, 6), "{what}");
    assert_eq!(found(volume, (directory, b"link")), sparse.inode, "{what}");
    let content = read(volume, sparse.inode);
    assert!(content[..300_000].iter().all(|byte| *byte == 0), "{what}: a hole");
    assert_eq!(content[300_000..], bytes(5000, 77), "{what}");
    let attribute = call(|call| volume.extended_attribute(call, sparse.inode, b"user.golden"));
    assert_eq!(attribute, b"a value of an attribute", "{what}");
    let symlink = found(volume, (ROOT, b"symlink"));
    assert_eq!(call(|call| volume.target(call, symlink)).0, b"directory/link", "{what}");
    let device = call(|call| volume.lookup(call, (ROOT, b"device"), Hold::No));
    assert_eq!((device.kind, device.device), (FileKind::CharacterDevice, 0x0103), "{what}");
    assert_eq!(read(volume, found(volume, (directory, b"new"))), bytes(9000, 5), "{what}");
    for name in [&b"old"[..], b"gone"] {
        let task = Task::at(Time::ZERO);
        let absent = volume.lookup(&Call::by_root(&task), (ROOT, name), Hold::No);
        assert!(matches!(absent, Err(VolumeError::NotFound)), "{what}: {absent:?}");
    }
}

#[test]
fn a_golden_volume_opens_with_all_its_files_and_can_be_used() {
    for golden in &GOLDEN {
        for left in [Left::Unmounted, Left::Killed] {
            if stores() && !golden.stored(left, 0).exists() {
                golden.store(left);
            }
            let folder = tempfile::tempdir().unwrap();
            golden.unpack(left, folder.path());
            let what = format!("{}{}", golden.name, if left == Left::Killed { ", killed" } else { "" });
            if left == Left::Unmounted {
                assert_eq!(golden.findings(folder.path()), "", "{what}");
            }
            let volume = golden.mount(golden.opened, folder.path(), USED_AT);
            assert_filled(&*volume, &what);
            if left == Left::Killed {
                assert_eq!(read(&*volume, found(&*volume, (ROOT, b"synced"))), bytes(40_000, 9), "{what}");
            }
            write(&*volume, (ROOT, b"today"), 70_000, 33);
            call(|call| volume.unmount(call));
            drop(volume);
            assert_eq!(golden.findings(folder.path()), "", "{what}, used");
            let volume = golden.mount(golden.opened, folder.path(), USED_AT);
            assert_filled(&*volume, &what);
            assert_eq!(read(&*volume, found(&*volume, (ROOT, b"today"))), bytes(70_000, 33), "{what}");
            call(|call| volume.unmount(call));
        }
    }
}

/// The columns of a log of requests, and its rows.
fn columns(file: &Path) -> (BTreeMap<String, Type>, usize) {
    let log = File::open(file).unwrap_or_else(|error| panic!("{}: {error}; GOLDEN_STORE=1 makes it", file.display()));
    let log = SerializedFileReader::new(log).unwrap();
    let schema = log.metadata().file_metadata().schema_descr();
    let column =
        |column: &Arc<parquet::schema::types::ColumnDescriptor>| (column.name().to_string(), column.physical_type());
    let rows = log.get_row_iter(None).unwrap().inspect(|row| assert!(row.is_ok(), "{row:?}"));
    (schema.columns().iter().map(column).collect(), rows.count())
}

fn log_requests(file: &Path) {
    let path = StationPath::read("page/nand:size=64M,pages-per-block=64").unwrap();
    let term = parse_term("uniform:writes=256K,reads=30%").unwrap();
    let open = Box::new(move |bytes| Ok(generator(&term, bytes, 5).unwrap()));
    let work = Work::Blocks(BlockWork { name: "blocks".to_string(), has_times: false, open });
    let log = Logging::new(Some(RequestLog::create(file).unwrap()), false);
    let options = RunOptions { log: Some(log.clone()), ..RunOptions::default() };
    run(Job { work, place: Place::Path(&path), seed: 5, options }, &NoMachine, &mut |_| true).unwrap();
    log.finish().unwrap();
}

/// Whoever has queries over old logs finds each of their columns in a new one, with its type.
#[test]
fn a_golden_log_of_requests_is_read_and_has_columns_that_are_still_written() {
    let stored = fixture("request-log-1.parquet");
    if stores() && !stored.exists() {
        log_requests(&stored);
    }
    let (old, rows) = columns(&stored);
    assert!(rows > 60 && old.len() >= 17, "{rows} rows of {} columns", old.len());
    let folder = tempfile::tempdir().unwrap();
    let today = folder.path().join("log.parquet");
    log_requests(&today);
    let (new, _) = columns(&today);
    for (name, of) in old {
        assert_eq!(new.get(&name), Some(&of), "column {name}");
    }
}
