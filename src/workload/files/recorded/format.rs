//! The format of recordings (docs/recordings.md): a header, then calls compressed with zstd.
//!
//! No field is used before it was checked, and an error names the call and the byte of the uncompressed calls.

use std::io::{self, BufReader, Read, Write};

/// The first bytes of a recording.
pub const MAGIC: [u8; 8] = *b"\x89FPCALLS";
/// The version that is written, and the only one that is read.
pub const VERSION: u32 = 1;
/// The longest name, in bytes.
const LONGEST_NAME: u64 = 255;
/// Offsets, lengths and times are less than this: sums of two do not overflow.
pub(crate) const LARGEST: u64 = 1 << 62;
/// The kind that ends a recording.
const END: u8 = 0;
/// The level of compression: calls repeat each other, and a mount must not wait for them.
const LEVEL: i32 = 3;

/// A successful call to a file system, by inode number and name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Call {
    /// A directory that existed before the recording is used for the first time.
    FoundDirectory {
        /// The inode number of the directory.
        parent: u64,
        /// The inode number.
        inode: u64,
        /// The name in it.
        name: Vec<u8>,
    },
    /// The same, for a file of this length.
    FoundFile {
        /// The inode number of the directory.
        parent: u64,
        /// The inode number.
        inode: u64,
        /// The number of bytes.
        length: u64,
        /// The name in it.
        name: Vec<u8>,
    },
    /// Makes a directory.
    MakeDirectory {
        /// The inode number of the directory.
        parent: u64,
        /// The inode number.
        inode: u64,
        /// The name in it.
        name: Vec<u8>,
    },
    /// Makes an empty file.
    Create {
        /// The inode number of the directory.
        parent: u64,
        /// The inode number.
        inode: u64,
        /// The name in it.
        name: Vec<u8>,
    },
    /// Makes a symbolic link with a target of this length.
    Symlink {
        /// The inode number of the directory.
        parent: u64,
        /// The inode number.
        inode: u64,
        /// The number of bytes.
        length: u64,
        /// The name in it.
        name: Vec<u8>,
    },
    /// Gives a file another name.
    Link {
        /// The inode number.
        inode: u64,
        /// The inode number of the directory.
        parent: u64,
        /// The name in it.
        name: Vec<u8>,
    },
    /// Removes a name of a file.
    Unlink {
        /// The inode number of the directory.
        parent: u64,
        /// The name in it.
        name: Vec<u8>,
    },
    /// Removes an empty directory.
    RemoveDirectory {
        /// The inode number of the directory.
        parent: u64,
        /// The name in it.
        name: Vec<u8>,
    },
    /// Renames a file or directory, replacing what has the new name.
    Rename {
        /// The inode number of the directory.
        parent: u64,
        /// The name in it.
        name: Vec<u8>,
        /// The inode number of the new directory.
        new_parent: u64,
        /// The name there.
        new_name: Vec<u8>,
    },
    /// Reads so many bytes, which exist.
    Read {
        /// The inode number.
        inode: u64,
        /// The first byte.
        offset: u64,
        /// The number of bytes.
        length: u64,
    },
    /// Writes bytes.
    Write {
        /// The inode number.
        inode: u64,
        /// The first byte.
        offset: u64,
        /// The number of bytes.
        length: u64,
    },
    /// Sets the length of a file.
    Truncate {
        /// The inode number.
        inode: u64,
        /// The number of bytes.
        length: u64,
    },
    /// Makes a file or directory durable.
    Fsync {
        /// The inode number.
        inode: u64,
    },
    /// Makes the data of a file durable.
    Fdatasync {
        /// The inode number.
        inode: u64,
    },
    /// Puts a file or directory in order before all that follows.
    Fbarrier {
        /// The inode number.
        inode: u64,
    },
    /// Puts the data of a file in order before all that follows.
    Fdatabarrier {
        /// The inode number.
        inode: u64,
    },
    /// Reserves bytes, and extends the file to their end.
    Reserve {
        /// The inode number.
        inode: u64,
        /// The first byte.
        offset: u64,
        /// The number of bytes.
        length: u64,
    },
    /// Frees the space of bytes.
    Punch {
        /// The inode number.
        inode: u64,
        /// The first byte.
        offset: u64,
        /// The number of bytes.
        length: u64,
    },
}

/// The code, the numbers and the names of a call.
type Fields<'c> = (u8, Vec<u64>, Vec<&'c [u8]>);

/// Numbers and names of each kind of call, by its code.
const SHAPES: [(usize, usize); 19] = [
    (0, 0),
    (2, 1),
    (3, 1),
    (2, 1),
    (2, 1),
    (3, 1),
    (2, 1),
    (1, 1),
    (1, 1),
    (2, 2),
    (3, 0),
    (3, 0),
    (2, 0),
    (1, 0),
    (1, 0),
    (3, 0),
    (3, 0),
    (1, 0),
    (1, 0),
];

impl Call {
    fn fields(&self) -> Fields<'_> {
        match self {
            Call::FoundDirectory { parent, inode, name } => (1, vec![*parent, *inode], vec![name]),
            Call::FoundFile { parent, inode, length, name } => (2, vec![*parent, *inode, *length], vec![name]),
            Call::MakeDirectory { parent, inode, name } => (3, vec![*parent, *inode], vec![name]),
            Call::Create { parent, inode, name } => (4, vec![*parent, *inode], vec![name]),
            Call::Symlink { parent, inode, length, name } => (5, vec![*parent, *inode, *length], vec![name]),
            Call::Link { inode, parent, name } => (6, vec![*inode, *parent], vec![name]),
            Call::Unlink { parent, name } => (7, vec![*parent], vec![name]),
            Call::RemoveDirectory { parent, name } => (8, vec![*parent], vec![name]),
            Call::Rename { parent, name, new_parent, new_name } => {
                (9, vec![*parent, *new_parent], vec![name, new_name])
            }
            Call::Read { inode, offset, length } => (10, vec![*inode, *offset, *length], vec![]),
            Call::Write { inode, offset, length } => (11, vec![*inode, *offset, *length], vec![]),
            Call::Truncate { inode, length } => (12, vec![*inode, *length], vec![]),
            Call::Fsync { inode } => (13, vec![*inode], vec![]),
            Call::Fdatasync { inode } => (14, vec![*inode], vec![]),
            Call::Reserve { inode, offset, length } => (15, vec![*inode, *offset, *length], vec![]),
            Call::Punch { inode, offset, length } => (16, vec![*inode, *offset, *length], vec![]),
            Call::Fbarrier { inode } => (17, vec![*inode], vec![]),
            Call::Fdatabarrier { inode } => (18, vec![*inode], vec![]),
        }
    }

    /// The call of a code that has a shape, with as many numbers and names as that says.
    fn of_fields(code: u8, numbers: &[u64], names: &[Vec<u8>]) -> Call {
        let name = || names[0].clone();
        let range = || (numbers[0], numbers[1], numbers[2]);
        match code {
            1 => Call::FoundDirectory { parent: numbers[0], inode: numbers[1], name: name() },
            2 => Call::FoundFile { parent: numbers[0], inode: numbers[1], length: numbers[2], name: name() },
            3 => Call::MakeDirectory { parent: numbers[0], inode: numbers[1], name: name() },
            4 => Call::Create { parent: numbers[0], inode: numbers[1], name: name() },
            5 => Call::Symlink { parent: numbers[0], inode: numbers[1], length: numbers[2], name: name() },
            6 => Call::Link { inode: numbers[0], parent: numbers[1], name: name() },
            7 => Call::Unlink { parent: numbers[0], name: name() },
            8 => Call::RemoveDirectory { parent: numbers[0], name: name() },
            9 => Call::Rename { parent: numbers[0], name: name(), new_parent: numbers[1], new_name: names[1].clone() },
            12 => Call::Truncate { inode: numbers[0], length: numbers[1] },
            13 => Call::Fsync { inode: numbers[0] },
            14 => Call::Fdatasync { inode: numbers[0] },
            17 => Call::Fbarrier { inode: numbers[0] },
            18 => Call::Fdatabarrier { inode: numbers[0] },
            _ => {
                let (inode, offset, length) = range();
                match code {
                    10 => Call::Read { inode, offset, length },
                    11 => Call::Write { inode, offset, length },
                    15 => Call::Reserve { inode, offset, length },
                    _ => Call::Punch { inode, offset, length },
                }
            }
        }
    }
}

/// A call with its caller and its times.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Record {
    /// The thread that made the call.
    pub thread: u64,
    /// Its begin, in nanoseconds since the recording began.
    pub begin_ns: u64,
    /// Its duration in nanoseconds.
    pub duration_ns: u64,
    /// The call.
    pub call: Call,
}

/// A recording that cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum RecordingError {
    /// The file cannot be read.
    #[error(transparent)]
    Read(#[from] io::Error),
    /// The file is no recording of a known version.
    #[error("{0}")]
    Header(String),
    /// A call cannot be read, or the file ends too early.
    #[error("call {call}, at byte {byte} of the uncompressed calls: {what}")]
    Call {
        /// The number of the call, from 1.
        call: u64,
        /// The first byte of the call.
        byte: u64,
        /// The fault.
        what: String,
    },
}

fn put(bytes: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        bytes.push(value as u8 | 0x80);
        value >>= 7;
    }
    bytes.push(value as u8);
}

/// Small numbers of either sign as small numbers.
fn zigzag(value: i64) -> u64 {
    (value << 1 ^ value >> 63) as u64
}

fn unzigzag(value: u64) -> i64 {
    (value >> 1) as i64 ^ -((value & 1) as i64)
}

/// Writes a recording.
pub struct RecordingWriter<W: Write> {
    calls: zstd::stream::write::Encoder<'static, W>,
    begin_ns: u64,
    count: u64,
    bytes: Vec<u8>,
}

impl<W: Write> RecordingWriter<W> {
    /// Writes the header.
    pub fn new(mut file: W) -> io::Result<RecordingWriter<W>> {
        file.write_all(&MAGIC)?;
        file.write_all(&VERSION.to_le_bytes())?;
        let mut calls = zstd::stream::write::Encoder::new(file, LEVEL)?;
        calls.include_checksum(true)?;
        Ok(RecordingWriter { calls, begin_ns: 0, count: 0, bytes: Vec::new() })
    }

    /// Writes a call. Calls come in the order in which they ended.
    pub fn add(&mut self, record: &Record) -> io::Result<()> {
        let (code, numbers, names) = record.call.fields();
        debug_assert_eq!(SHAPES[usize::from(code)], (numbers.len(), names.len()), "{:?} has its shape", record.call);
        self.bytes.clear();
        self.bytes.push(code);
        put(&mut self.bytes, record.thread);
        put(&mut self.bytes, zigzag(record.begin_ns.wrapping_sub(self.begin_ns) as i64));
        put(&mut self.bytes, record.duration_ns);
        numbers.iter().for_each(|number| put(&mut self.bytes, *number));
        for name in names {
            put(&mut self.bytes, name.len() as u64);
            self.bytes.extend_from_slice(name);
        }
        self.calls.write_all(&self.bytes)?;
        (self.begin_ns, self.count) = (record.begin_ns, self.count + 1);
        Ok(())
    }

    /// Ends the recording. One that was not ended is an error to its reader.
    pub fn finish(mut self) -> io::Result<W> {
        let mut end = vec![END];
        put(&mut end, self.count);
        self.calls.write_all(&end)?;
        let mut file = self.calls.finish()?;
        file.flush()?;
        Ok(file)
    }
}

/// Reads a recording.
pub struct RecordingReader<R: Read> {
    calls: BufReader<zstd::stream::read::Decoder<'static, BufReader<R>>>,
    /// Uncompressed bytes that were read.
    at: u64,
    /// The first byte of the current call.
    from: u64,
    begin_ns: u64,
    count: u64,
    has_ended: bool,
}

impl<R: Read> RecordingReader<R> {
    /// Reads the header.
    pub fn new(mut file: R) -> Result<RecordingReader<R>, RecordingError> {
        let (mut magic, mut version) = ([0; 8], [0; 4]);
        let cut = |error: io::Error| match error.kind() {
            io::ErrorKind::UnexpectedEof => RecordingError::Header("it ends within its header".to_string()),
            _ => error.into(),
        };
        file.read_exact(&mut magic).map_err(cut)?;
        if magic != MAGIC {
            return Err(RecordingError::Header("it does not begin as a recording does".to_string()));
        }
        file.read_exact(&mut version).map_err(cut)?;
        let version = u32::from_le_bytes(version);
        if version != VERSION {
            let what = format!("it is of version {version}, and this program reads version {VERSION}");
            return Err(RecordingError::Header(what));
        }
        let calls = BufReader::new(zstd::stream::read::Decoder::new(file)?);
        Ok(RecordingReader { calls, at: 0, from: 0, begin_ns: 0, count: 0, has_ended: false })
    }

    fn wrong(&self, what: impl ToString) -> RecordingError {
        RecordingError::Call { call: self.count + 1, byte: self.from, what: what.to_string() }
    }

    fn fill(&mut self, bytes: &mut [u8]) -> Result<(), RecordingError> {
        self.calls.read_exact(bytes).map_err(|error| match error.kind() {
            io::ErrorKind::UnexpectedEof => self.wrong("the recording ends here, without its end"),
            _ => self.wrong(format!("the compressed data is damaged: {error}")),
        })?;
        self.at += bytes.len() as u64;
        Ok(())
    }

    fn byte(&mut self) -> Result<u8, RecordingError> {
        let mut byte = [0];
        self.fill(&mut byte)?;
        Ok(byte[0])
    }

    fn number(&mut self) -> Result<u64, RecordingError> {
        let mut value = 0;
        for shift in (0..64).step_by(7) {
            let byte = self.byte()?;
            let part = u64::from(byte & 0x7f);
            if shift == 63 && part > 1 {
                break;
            }
            value |= part << shift;
            if byte & 0x80 == 0 {
                return Ok(value);
            }
        }
        Err(self.wrong("a number does not fit 64 bits"))
    }

    fn name(&mut self) -> Result<Vec<u8>, RecordingError> {
        let length = self.number()?;
        if !(1..=LONGEST_NAME).contains(&length) {
            return Err(self.wrong(format!("a name has {length} bytes")));
        }
        let mut name = vec![0; length as usize];
        self.fill(&mut name)?;
        if name.contains(&b'/') || name.contains(&0) || name == b"." || name == b".." {
            return Err(self.wrong("a name is . or .., or has a / or a zero byte"));
        }
        Ok(name)
    }

    fn end(&mut self) -> Result<(), RecordingError> {
        let count = self.number()?;
        if count != self.count {
            return Err(self.wrong(format!("the end counts {count} calls, and there are {}", self.count)));
        }
        let mut more = [0];
        match self.calls.read(&mut more) {
            Ok(0) => {}
            Ok(_) => return Err(self.wrong("bytes follow the end")),
            Err(error) => return Err(self.wrong(format!("the compressed data is damaged: {error}"))),
        }
        self.has_ended = true;
        Ok(())
    }

    /// The next call; `None` at the end.
    pub fn next_record(&mut self) -> Result<Option<Record>, RecordingError> {
        if self.has_ended {
            return Ok(None);
        }
        self.from = self.at;
        let code = self.byte()?;
        if code == END {
            self.end()?;
            return Ok(None);
        }
        let Some((numbers, names)) = SHAPES.get(usize::from(code)).copied() else {
            return Err(self.wrong(format!("there is no kind {code} of calls")));
        };
        let thread = self.number()?;
        let delta = unzigzag(self.number()?);
        let begin_ns = self.begin_ns.checked_add_signed(delta).filter(|begin| *begin < LARGEST);
        let Some(begin_ns) = begin_ns else { return Err(self.wrong("a time is before the recording, or too late")) };
        let duration_ns = self.number()?;
        let numbers = (0..numbers).map(|_| self.number()).collect::<Result<Vec<u64>, _>>()?;
        if numbers.iter().chain([&duration_ns]).any(|number| *number >= LARGEST) {
            return Err(self.wrong("an inode number, an offset, a length or a time is too large"));
        }
        let names = (0..names).map(|_| self.name()).collect::<Result<Vec<Vec<u8>>, _>>()?;
        (self.begin_ns, self.count) = (begin_ns, self.count + 1);
        Ok(Some(Record { thread, begin_ns, duration_ns, call: Call::of_fields(code, &numbers, &names) }))
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// A recording of these calls, a microsecond each, by one thread.
    pub fn recorded(calls: &[Call]) -> Vec<u8> {
        let records = calls.iter().zip(0..).map(|(call, at)| Record {
            thread: 1,
            begin_ns: at * 1000,
            duration_ns: 1000,
            call: call.clone(),
        });
        written(&records.collect::<Vec<_>>())
    }

    pub fn written(records: &[Record]) -> Vec<u8> {
        let mut writer = RecordingWriter::new(Vec::new()).unwrap();
        records.iter().for_each(|record| writer.add(record).unwrap());
        writer.finish().unwrap()
    }

    /// A call of each kind.
    pub fn all_calls() -> Vec<Call> {
        let name = |text: &str| text.as_bytes().to_vec();
        vec![
            Call::FoundDirectory { parent: 1, inode: 2, name: name("old") },
            Call::FoundFile { parent: 2, inode: 3, length: 9000, name: name("f") },
            Call::MakeDirectory { parent: 1, inode: 4, name: name("new") },
            Call::Create { parent: 4, inode: 5, name: name("g") },
            Call::Symlink { parent: 4, inode: 6, length: 20, name: name("s") },
            Call::Write { inode: 5, offset: 0, length: 5000 },
            Call::Read { inode: 3, offset: 4096, length: 4096 },
            Call::Link { inode: 5, parent: 1, name: name("h") },
            Call::Fsync { inode: 5 },
            Call::Fdatasync { inode: 3 },
            Call::Fbarrier { inode: 5 },
            Call::Fdatabarrier { inode: 3 },
            Call::Reserve { inode: 5, offset: 0, length: 65536 },
            Call::Punch { inode: 5, offset: 4096, length: 4096 },
            Call::Truncate { inode: 5, length: 100 },
            Call::Rename { parent: 4, name: name("g"), new_parent: 1, new_name: name("i") },
            Call::Unlink { parent: 4, name: name("s") },
            Call::RemoveDirectory { parent: 1, name: name("new") },
        ]
    }

    fn read(bytes: &[u8]) -> Result<Vec<Record>, RecordingError> {
        let mut reader = RecordingReader::new(bytes)?;
        let mut records = Vec::new();
        while let Some(record) = reader.next_record()? {
            records.push(record);
        }
        Ok(records)
    }

    #[test]
    fn each_kind_of_call_is_read_as_it_was_written() {
        let mut records: Vec<Record> = Vec::new();
        for (call, number) in all_calls().into_iter().zip(0..) {
            // Calls of several threads overlap, and the next one that ends may have begun earlier.
            let begin_ns = [50_000, 10, LARGEST - 1, 3][number as usize % 4];
            records.push(Record { thread: number * 1_000_000, begin_ns, duration_ns: number, call });
        }
        assert_eq!(records.len() + 1, SHAPES.len());
        assert_eq!(read(&written(&records)).unwrap(), records);
        assert_eq!(read(&written(&[])).unwrap(), []);
    }

    #[test]
    fn a_recording_cut_off_anywhere_is_an_error_with_its_place() {
        let bytes = recorded(&all_calls());
        for length in 0..bytes.len() {
            let error = read(&bytes[..length]).unwrap_err().to_string();
            assert!(error.contains("call ") && error.contains("at byte ") || length < 12, "{length}: {error}");
        }
    }

    #[test]
    fn a_flipped_bit_never_makes_another_recording() {
        let bytes = recorded(&all_calls());
        let records = read(&bytes).unwrap();
        for bit in 0..bytes.len() * 8 {
            let mut wrong = bytes.clone();
            wrong[bit / 8] ^= 1 << (bit % 8);
            // A frame has a checksum of its content; a bit of its header means nothing.
            assert!(read(&wrong).is_ok_and(|read| read == records) || read(&wrong).is_err(), "bit {bit}");
        }
    }

    /// A recording of these uncompressed bytes.
    fn packed(calls: &[u8]) -> Vec<u8> {
        [&MAGIC[..], &VERSION.to_le_bytes(), &zstd::encode_all(calls, 1).unwrap()].concat()
    }

    #[test]
    fn what_no_writer_writes_is_refused() {
        for (calls, expected) in [
            (&[99][..], "no kind 99"),
            (&[0, 5], "counts 5 calls"),
            (&[0, 0, 7], "bytes follow the end"),
            (&[13, 1, 1, 0, 2], "before the recording"),
            (&[13, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f], "64 bits"),
            (&[7, 1, 0, 0, 1, 0], "a name has 0 bytes"),
            (&[7, 1, 0, 0, 1, 2, b'.', b'.'], "is . or .."),
            (&[7, 1, 0, 0, 1, 3, b'a', b'/', b'b'], "a /"),
            (&[13, 1, 0, 0, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f], "too large"),
            (&[], "ends here"),
        ] {
            let error = read(&packed(calls)).unwrap_err().to_string();
            assert!(error.contains("call 1, at byte 0") && error.contains(expected), "{error}");
        }
        let future = [&MAGIC[..], &[2, 0, 0, 0]].concat();
        assert!(read(&future).unwrap_err().to_string().contains("version 2"));
        assert!(read(b"time_us,rwbs").unwrap_err().to_string().contains("does not begin as a recording"));
    }
}
