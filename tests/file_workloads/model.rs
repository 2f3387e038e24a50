//! A file system as a map, which rejects operations that a workload must never issue.

use flashpath::expression::parse_term;
use flashpath::workload::files::{FileOperation, FileWorkload, Name, contents, file_workload};
use std::collections::{BTreeMap, BTreeSet};

/// Parses a workload.
pub fn workload(text: &str, seed: u64) -> FileWorkload {
    file_workload(&parse_term(text).unwrap(), seed).unwrap_or_else(|error| panic!("{error}"))
}

/// A small workload of every kind.
pub const SMALL: [&str; 16] = [
    "seq_write:file=100000",
    "seq_write:file=64K,append=4000,fsync-every=3,threads=3,sync",
    "rnd_write:file=100001,writes=300000",
    "rnd_write:file=1M,writes=0.5x,fsync-every=7,threads=2",
    "postmark",
    "postmark:files=50,transactions=2000,subdirectories=7,threads=4,buffered=off",
    "postmark:files=3,transactions=100,create-bias=0",
    "postmark:files=3,transactions=100,create-bias=10,read-bias=0,sync=on",
    "untar:files=1000",
    "untar:files=50,files-per-directory=1,fan-out=1,largest=30000,record=512",
    "compile:files=600,built=80%,headers-read=20",
    "compile:files=400,threads=3,temporaries=off,headers=0%",
    "varmail:files=300,loops=500",
    "varmail:files=2,threads=2,loops=100,shape=1.5,prealloc=0%",
    "tokubench:files=1000,children=5,threads=3",
    "tokubench:files=3,threads=8,count=3,iosize=100",
];

/// The files, and the operations so far.
#[derive(Default)]
pub struct Model {
    pub directories: BTreeSet<String>,
    /// The length of each file.
    pub files: BTreeMap<String, u64>,
    /// The bytes of each file, if they are kept.
    pub bytes: BTreeMap<String, Vec<u8>>,
    /// The operations by stage, in order: the lane, the operation and the path.
    pub asked: Vec<Vec<(usize, FileOperation, String)>>,
    /// The lane that changed each path in this stage.
    changed_by: BTreeMap<String, usize>,
    /// The lanes that read each path in this stage.
    seen_by: BTreeMap<String, BTreeSet<usize>>,
    open: BTreeMap<(usize, Name), String>,
    keeps_bytes: bool,
}

impl Model {
    /// Runs a workload to its end, the lanes in turn.
    pub fn of(workload: FileWorkload) -> Model {
        Model::with_bytes(workload, false)
    }

    /// The same, with the files' bytes if `keeps_bytes`.
    pub fn with_bytes(mut workload: FileWorkload, keeps_bytes: bool) -> Model {
        let mut model = Model { keeps_bytes, ..Model::default() };
        for stage in 0..workload.stages.len() {
            model.asked.push(Vec::new());
            model.changed_by.clear();
            model.seen_by.clear();
            let mut going = vec![true; workload.lanes.len()];
            while going.contains(&true) {
                for (lane, goes) in going.iter_mut().enumerate().filter(|(_, goes)| **goes) {
                    let mut operations = Vec::new();
                    *goes = workload.lanes[lane].step(stage, &mut operations).unwrap();
                    assert!(*goes || operations.is_empty(), "a stage that has ended asks for nothing");
                    for operation in operations {
                        let path = |name| {
                            let mut path = String::new();
                            workload.lanes[lane].write_path(name, &mut path);
                            path
                        };
                        model.apply(workload.seed, lane, operation, &path);
                    }
                }
            }
            model.check_lanes();
        }
        assert!(model.open.is_empty(), "left open: {:?}", model.open.values());
        model
    }

    /// Checks that no lane saw another's change in the same stage.
    fn check_lanes(&self) {
        for (path, lane) in &self.changed_by {
            let others = self.seen_by.get(path).into_iter().flatten().filter(|other| *other != lane);
            assert_eq!(others.count(), 0, "{path} is lane {lane}'s");
        }
    }

    fn change(&mut self, lane: usize, path: &str) {
        let changed_by = *self.changed_by.entry(path.to_string()).or_insert(lane);
        assert_eq!(changed_by, lane, "{path} is changed by two lanes");
        self.see(lane, path);
    }

    fn see(&mut self, lane: usize, path: &str) {
        self.seen_by.entry(path.to_string()).or_default().insert(lane);
    }

    fn is_there(&self, path: &str) -> bool {
        self.directories.contains(path) || self.files.contains_key(path)
    }

    fn check_parent(&self, path: &str) {
        if let Some((parent, _)) = path.rsplit_once('/') {
            assert!(self.directories.contains(parent), "{path} has no parent");
        }
        assert!(!self.is_there(path), "{path} is there already");
    }

    fn opened(&self, lane: usize, name: Name) -> String {
        self.open.get(&(lane, name)).unwrap_or_else(|| panic!("{name} is not open")).clone()
    }

    fn apply(&mut self, seed: u64, lane: usize, operation: FileOperation, path_of: &dyn Fn(Name) -> String) {
        let path = match operation {
            FileOperation::MakeDirectory(name) => {
                let path = path_of(name);
                self.check_parent(&path);
                self.directories.insert(path.clone());
                path
            }
            FileOperation::Create(name) => {
                let path = path_of(name);
                self.check_parent(&path);
                self.change(lane, &path);
                self.files.insert(path.clone(), 0);
                self.bytes.insert(path.clone(), Vec::new());
                self.open.insert((lane, name), path.clone());
                path
            }
            FileOperation::Open(name) => {
                let path = path_of(name);
                self.see(lane, &path);
                assert!(self.files.contains_key(&path), "{path} is opened and not there");
                assert!(self.open.insert((lane, name), path.clone()).is_none(), "{path} is open already");
                path
            }
            FileOperation::Stat(name) => {
                let path = path_of(name);
                self.see(lane, &path);
                assert!(self.files.contains_key(&path), "{path} is looked up and not there");
                path
            }
            FileOperation::Read { file, offset, length } => {
                let path = self.opened(lane, file);
                assert!(length > 0 && offset + length <= self.files[&path], "{path} is read beyond its end");
                path
            }
            FileOperation::Write { file, offset, length, version } => {
                let path = self.opened(lane, file);
                self.change(lane, &path);
                let size = self.files.get_mut(&path).unwrap();
                assert!(length > 0 && offset <= *size, "{path} gets a hole");
                *size = (*size).max(offset + length);
                if self.keeps_bytes {
                    let (from, to) = (offset as usize, (offset + length) as usize);
                    let bytes = self.bytes.get_mut(&path).unwrap();
                    bytes.resize(bytes.len().max(to), 0);
                    contents::fill(seed, file, version, offset, &mut bytes[from..to]);
                }
                path
            }
            FileOperation::RemoveDirectory(_)
            | FileOperation::SyncDirectory(_)
            | FileOperation::Link { .. }
            | FileOperation::Symlink { .. }
            | FileOperation::Truncate { .. }
            | FileOperation::Idle { .. } => unreachable!("only recordings have {operation:?}"),
            FileOperation::Fsync(name)
            | FileOperation::Fdatasync(name)
            | FileOperation::Fbarrier(name)
            | FileOperation::Fdatabarrier(name) => self.opened(lane, name),
            FileOperation::Close(name) => self.open.remove(&(lane, name)).expect("it is open"),
            FileOperation::Unlink(name) => {
                let path = path_of(name);
                self.change(lane, &path);
                assert!(!self.open.values().any(|open| *open == path), "{path} is unlinked while it is open");
                self.files.remove(&path).unwrap_or_else(|| panic!("{path} is unlinked and not there"));
                self.bytes.remove(&path);
                path
            }
            FileOperation::Rename { from, to } => {
                let (path, other) = (path_of(from), path_of(to));
                self.change(lane, &path);
                self.change(lane, &other);
                let size = self.files.remove(&path).unwrap_or_else(|| panic!("{path} is renamed and not there"));
                self.files.insert(other.clone(), size);
                let bytes = self.bytes.remove(&path).unwrap();
                self.bytes.insert(other, bytes);
                path
            }
            FileOperation::Preallocate { file, length } => {
                let path = self.opened(lane, file);
                self.files.insert(path.clone(), length);
                if self.keeps_bytes {
                    self.bytes.insert(path.clone(), vec![0; length as usize]);
                }
                path
            }
            FileOperation::Discard { file, offset, length } => {
                let path = self.opened(lane, file);
                assert!(length > 0 && offset + length <= self.files[&path], "{path} has no such bytes");
                if self.keeps_bytes {
                    self.bytes.get_mut(&path).unwrap()[offset as usize..(offset + length) as usize].fill(0);
                }
                path
            }
            FileOperation::Sync => String::new(),
        };
        self.asked.last_mut().unwrap().push((lane, operation, path));
    }

    /// The number of operations of a stage for which `which` is true.
    pub fn count(&self, stage: usize, which: impl Fn(&FileOperation) -> bool) -> usize {
        self.asked[stage].iter().filter(|(_, operation, _)| which(operation)).count()
    }

    /// The bytes written by a stage.
    pub fn written(&self, stage: usize) -> u64 {
        let length = |operation: &FileOperation| match operation {
            FileOperation::Write { length, .. } => *length,
            _ => 0,
        };
        self.asked[stage].iter().map(|(_, operation, _)| length(operation)).sum()
    }
}
