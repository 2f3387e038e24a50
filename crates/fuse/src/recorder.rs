//! A recording of the successful requests to a mounted volume, with their callers and times, and without their data.

use flashpath::fs::volume::{Allocation, Attributes, FileKind};
use flashpath::time::Time;
use flashpath::workload::files::recorded::format::{Call, Record, RecordingWriter};
use std::collections::HashSet;
use std::fs::File;
use std::io::{self, BufWriter};
use std::path::Path;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// The bytes that a file is written with at once.
const BUFFER: usize = 1 << 20;

/// A recording in progress. Requests are added as they end, before they are answered.
pub struct Recorder {
    state: Mutex<State>,
}

struct State {
    /// None after a failure, and at the end.
    writer: Option<RecordingWriter<BufWriter<File>>>,
    /// The inode numbers that the recording has named: others existed before it.
    known: HashSet<u64>,
    failure: Option<io::Error>,
}

impl std::fmt::Debug for Recorder {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Recorder").finish_non_exhaustive()
    }
}

impl Recorder {
    /// Begins a recording in a new file.
    ///
    /// # Errors
    ///
    /// If the file exists, or cannot be written.
    pub fn create(file: &Path) -> io::Result<Recorder> {
        let writer = RecordingWriter::new(BufWriter::with_capacity(BUFFER, File::create_new(file)?))?;
        let state = State { writer: Some(writer), known: HashSet::from([1]), failure: None };
        Ok(Recorder { state: Mutex::new(state) })
    }

    /// Ends the recording.
    ///
    /// # Errors
    ///
    /// The first error in writing it: then it ends before it.
    pub fn finish(&self) -> io::Result<()> {
        let mut state = self.state();
        let finished = state.writer.take().map_or(Ok(()), |writer| writer.finish().map(drop));
        state.failure.take().map_or(finished, Err)
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // Each record is whole, whoever panicked.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds calls that one request made.
    pub fn add(&self, thread: u32, (began, ended): (Time, Time), calls: impl IntoIterator<Item = Call>) {
        let mut state = self.state();
        for call in calls {
            let (begin_ns, duration_ns) = (began.0, ended.0.saturating_sub(began.0));
            state.add(&Record { thread: thread.into(), begin_ns, duration_ns, call });
        }
    }

    /// Notes a file or directory that a request has found, if the recording has not named it.
    pub fn found(&self, thread: u32, at: Time, (parent, name): (u64, &[u8]), attributes: &Attributes) {
        let mut state = self.state();
        let inode = attributes.inode.0;
        if state.known.contains(&inode) {
            return;
        }
        let name = name.to_vec();
        let call = match attributes.kind {
            FileKind::Directory => Call::FoundDirectory { parent, inode, name },
            FileKind::Regular => Call::FoundFile { parent, inode, length: attributes.size, name },
            _ => Call::FoundFile { parent, inode, length: 0, name },
        };
        state.add(&Record { thread: thread.into(), begin_ns: at.0, duration_ns: 0, call });
    }
}

impl State {
    fn add(&mut self, record: &Record) {
        if let Call::MakeDirectory { inode, .. }
        | Call::Create { inode, .. }
        | Call::Symlink { inode, .. }
        | Call::FoundDirectory { inode, .. }
        | Call::FoundFile { inode, .. } = record.call
        {
            self.known.insert(inode);
        }
        let added = self.writer.as_mut().map_or(Ok(()), |writer| writer.add(record));
        if let Err(error) = added {
            // The volume goes on; the end of the mount tells it.
            (self.writer, self.failure) = (None, Some(error));
        }
    }
}

/// The call that makes a file of a kind, if recordings have one.
pub fn making(kind: FileKind, (parent, name): (u64, &[u8]), inode: u64, target: &[u8]) -> Call {
    let name = name.to_vec();
    match kind {
        FileKind::Directory => Call::MakeDirectory { parent, inode, name },
        FileKind::Symlink => Call::Symlink { parent, inode, length: target.len() as u64, name },
        _ => Call::Create { parent, inode, name },
    }
}

/// The call of an allocation; none if it changes neither bytes nor the length.
pub fn allocating(inode: u64, (offset, length): (u64, u64), how: Allocation) -> Option<Call> {
    match how {
        Allocation::Reserve { keep_size: true } => None,
        Allocation::Reserve { keep_size: false } => Some(Call::Reserve { inode, offset, length }),
        Allocation::Punch | Allocation::Zero { .. } => Some(Call::Punch { inode, offset, length }),
    }
}

/// The calls of a rename. An exchange takes three.
pub fn renaming((parent, name): (u64, &[u8]), (new_parent, new_name): (u64, &[u8]), is_exchange: bool) -> Vec<Call> {
    let rename = |parent, name: &[u8], new_parent, new_name: &[u8]| Call::Rename {
        parent,
        name: name.to_vec(),
        new_parent,
        new_name: new_name.to_vec(),
    };
    const ASIDE: &[u8] = b".exchanged-by-recording";
    match is_exchange {
        false => vec![rename(parent, name, new_parent, new_name)],
        true => vec![
            rename(parent, name, parent, ASIDE),
            rename(new_parent, new_name, parent, name),
            rename(parent, ASIDE, new_parent, new_name),
        ],
    }
}
