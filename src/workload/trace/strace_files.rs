//! Calls of `strace -f -ttt -yy -T` as a recording of calls to a file system: the second source of these
//! (docs/recordings.md).
//!
//! Positions and sizes are followed as for a replay by addresses. An inode number is given to each path. A file that is opened with
//! O_CREAT is taken for new unless bytes of it are read before they are written, or its size is seen.

use super::fields::{Reason, number};
use super::open::{Input, LONGEST_LINE, Line};
use super::rejected::{Place, Rejected, Rejections};
use super::strace::{Joined, Strace};
use super::strace_call::{Call, Descriptor, split_call};
use crate::workload::files::recorded::format::{Call as Recorded, LARGEST, Record, RecordingWriter};
use crate::workload::{Action, WorkloadError};
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, BufWriter, Read, Write};
use std::path::Path;

/// The inode number of the root.
const ROOT: u64 = 1;

/// The result of a conversion.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RecordingSummary {
    /// Calls in the recording.
    pub calls: u64,
    /// Rejected lines.
    pub rejected: u64,
    /// The first of them.
    pub first_rejected: Vec<Rejected>,
    /// Calls with relative paths, which cannot be resolved without the working directory.
    pub relative: u64,
}

/// A file of the trace.
#[derive(Clone, Debug, Default)]
struct FileState {
    /// The size as far as it is known.
    size: u64,
    /// The place of its first record, and the least length that it must have had before.
    first: Option<(usize, u64)>,
}

/// The calls so far.
#[derive(Default)]
struct Calls {
    strace: Strace,
    records: Vec<Record>,
    inodes: BTreeMap<Vec<u8>, u64>,
    files: BTreeMap<u64, FileState>,
    /// Paths that were renamed or removed: the inode number, and when that ended. A call that began before names them still.
    former: BTreeMap<Vec<u8>, (u64, u64)>,
    /// The begin and the end of the current call.
    times: (u64, u64),
    last_inode: u64,
    began_ns: Option<u64>,
    relative: u64,
}

/// Converts the trace at `input` to a recording at `output`, which is replaced.
///
/// Fails if a file cannot be read or written, or if no line is a call to a file.
pub fn convert_calls(input: &Path, output: &Path) -> Result<RecordingSummary, WorkloadError> {
    let failed = |path: &Path| {
        let file = path.display().to_string();
        move |source: io::Error| WorkloadError::Read { file: file.clone(), source }
    };
    let trace = File::open(input).map_err(failed(input))?;
    let (records, summary) = read_calls(Box::new(trace)).map_err(failed(input))?;
    if records.is_empty() {
        let reason = "no line is a call to a file as strace -f -ttt -yy prints it".to_string();
        return Err(WorkloadError::Unusable { file: input.display().to_string(), reason });
    }
    File::create(output).and_then(|file| write_calls(&records, BufWriter::new(file))).map_err(failed(output))?;
    Ok(summary)
}

fn write_calls(records: &[Record], file: impl Write) -> io::Result<()> {
    let mut writer = RecordingWriter::new(file)?;
    records.iter().try_for_each(|record| writer.add(record))?;
    writer.finish().map(drop)
}

/// The calls of a trace, in the order in which they ended.
fn read_calls(raw: Box<dyn Read + Send>) -> io::Result<(Vec<Record>, RecordingSummary)> {
    let mut input = Input::new(raw)?;
    let (mut calls, mut rejections) = (Calls { last_inode: ROOT, ..Calls::default() }, Rejections::default());
    loop {
        let number = input.line_number() + 1;
        match input.line()? {
            None => break,
            Some(Line::TooLong) => {
                rejections.add(Place::Line(number), &format!("longer than {} KiB", LONGEST_LINE >> 10), b"");
            }
            Some(Line::Bytes(line)) if line.trim_ascii_start().is_empty() => {}
            Some(Line::Bytes(line)) => {
                if let Err(reason) = calls.add(line) {
                    rejections.add(Place::Line(number), reason, line);
                }
            }
        }
    }
    let (relative, records) = (calls.relative, calls.finish());
    let (rejected, first_rejected) = (rejections.count, rejections.first);
    let summary = RecordingSummary { calls: records.len() as u64, rejected, first_rejected, relative };
    Ok((records, summary))
}

impl Calls {
    /// Adds the call that a line ends.
    fn add(&mut self, line: &[u8]) -> Result<(), Reason> {
        let Some(joined) = self.strace.join(line)? else { return Ok(()) };
        let Joined { process, begin_ns, time_ns, text } = joined;
        let request = self.strace.parse_call(process, time_ns, &text)?;
        let Some(call) = split_call(&text).filter(|call| !call.failed()) else { return Ok(()) };
        let began_ns = *self.began_ns.get_or_insert(begin_ns);
        let begin_ns = begin_ns.saturating_sub(began_ns);
        let duration_ns = match call.duration_ns {
            Some(duration_ns) => duration_ns,
            None => time_ns.saturating_sub(began_ns).saturating_sub(begin_ns),
        };
        self.times = (begin_ns, recordable(begin_ns.saturating_add(duration_ns))?);
        let mut by = |recorded| Record { thread: process, begin_ns, duration_ns, call: recorded };
        if let Some(request) = request {
            let Descriptor::File(_, path) = call.descriptor() else { return Ok(()) };
            let inode = self.file(path, &mut by)?;
            let (offset, length) = (request.operation.offset_bytes, request.operation.length_bytes);
            recordable(request.operation.end_bytes())?;
            let recorded = match request.operation.action {
                Action::Read => {
                    self.saw(inode, offset + length);
                    Recorded::Read { inode, offset, length }
                }
                Action::Write => {
                    self.grow(inode, offset + length);
                    Recorded::Write { inode, offset, length }
                }
                Action::Discard => Recorded::Punch { inode, offset, length },
                Action::Flush if call.name == b"fdatasync" => Recorded::Fdatasync { inode },
                Action::Flush => Recorded::Fsync { inode },
            };
            self.records.push(by(recorded));
            return Ok(());
        }
        self.add_other(&call, &mut by)
    }

    /// Adds a call that moves no bytes.
    fn add_other(&mut self, call: &Call<'_>, by: &mut dyn FnMut(Recorded) -> Record) -> Result<(), Reason> {
        match call.name {
            b"open" | b"openat" | b"openat2" | b"creat" => {
                let Descriptor::File(_, path) = call.opened() else { return Ok(()) };
                if call.has_flag(b"O_DIRECTORY") || call.has_flag(b"O_PATH") {
                    return Ok(());
                }
                let is_known = self.inodes.contains_key(path);
                let inode = self.file(path, by)?;
                let cuts = call.name == b"creat" || call.has_flag(b"O_TRUNC");
                if !is_known && (cuts || call.has_flag(b"O_CREAT")) {
                    self.may_be_new(inode);
                } else if cuts && self.files[&inode].size > 0 {
                    self.cut(inode, 0);
                    self.records.push(by(Recorded::Truncate { inode, length: 0 }));
                }
            }
            b"ftruncate" | b"fallocate" | b"fstat" | b"newfstatat" | b"lseek" => {
                let Descriptor::File(_, path) = call.descriptor() else { return Ok(()) };
                match call.name {
                    b"ftruncate" => {
                        let length = number(call.argument(1)).ok_or("the length is not a whole number")?;
                        let length = recordable(length)?;
                        let inode = self.file(path, by)?;
                        self.cut(inode, length);
                        self.records.push(by(Recorded::Truncate { inode, length }));
                    }
                    b"fallocate" if !call.has_flag(b"FALLOC_FL_KEEP_SIZE") => {
                        let offset = number(call.argument(2)).ok_or("the offset is not a whole number")?;
                        let length = number(call.argument(3)).ok_or("the length is not a whole number")?;
                        let end = recordable(offset.saturating_add(length))?;
                        let inode = self.file(path, by)?;
                        self.grow(inode, end);
                        self.records.push(by(Recorded::Reserve { inode, offset, length }));
                    }
                    _ => {
                        if let (Some(size), Some(inode)) = (call.stat_size(), self.inodes.get(path).copied()) {
                            self.saw(inode, recordable(size)?);
                        }
                    }
                }
            }
            b"mkdir" | b"mkdirat" | b"rmdir" | b"unlink" | b"unlinkat" | b"symlink" | b"symlinkat" => {
                let at = match call.name {
                    b"mkdirat" | b"unlinkat" => (Some(0), 1),
                    b"symlinkat" => (Some(1), 2),
                    b"symlink" => (None, 1),
                    _ => (None, 0),
                };
                let Some(path) = self.path(call, at) else { return Ok(()) };
                let (parent, name) = self.parent(&path, by)?;
                let removes_directory = call.name == b"rmdir" || call.has_flag(b"AT_REMOVEDIR");
                let recorded = match call.name {
                    b"mkdir" | b"mkdirat" => Recorded::MakeDirectory { parent, inode: self.new_inode(&path), name },
                    b"symlink" | b"symlinkat" => {
                        let length = call.argument(0).len().saturating_sub(2) as u64;
                        Recorded::Symlink { parent, inode: self.new_inode(&path), length, name }
                    }
                    _ => {
                        // A file that was not used before is none of the recording.
                        let Some(inode) = self.inodes.remove(&path) else { return Ok(()) };
                        self.former.insert(path, (inode, self.times.1));
                        match removes_directory {
                            true => Recorded::RemoveDirectory { parent, name },
                            false => Recorded::Unlink { parent, name },
                        }
                    }
                };
                self.records.push(by(recorded));
            }
            b"rename" | b"renameat" | b"renameat2" | b"link" | b"linkat" => {
                let (from, to) = match call.name {
                    b"rename" | b"link" => ((None, 0), (None, 1)),
                    _ => ((Some(0), 1), (Some(2), 3)),
                };
                let Some(from) = self.path(call, from) else { return Ok(()) };
                let Some(to) = self.path(call, to) else { return Ok(()) };
                let links = call.name.starts_with(b"link");
                let inode = self.file(&from, by)?;
                let (parent, name) = self.parent(&from, by)?;
                let (new_parent, new_name) = self.parent(&to, by)?;
                let recorded = match links {
                    true => Recorded::Link { inode, parent: new_parent, name: new_name },
                    false => Recorded::Rename { parent, name, new_parent, new_name },
                };
                if !links {
                    self.move_below(&from, &to);
                    self.former.insert(from, (inode, self.times.1));
                }
                self.inodes.insert(to, inode);
                self.records.push(by(recorded));
            }
            _ => {}
        }
        Ok(())
    }

    /// A path argument, relative to the directory of another argument; `None` if that is not known.
    fn path(&mut self, call: &Call<'_>, (directory, at): (Option<usize>, usize)) -> Option<Vec<u8>> {
        let path = unquoted(call.argument(at))?;
        let absolute = match (path.first(), directory) {
            (Some(b'/'), _) => path,
            (_, Some(directory)) => {
                let base = call.annotated(directory)?;
                [base, b"/", &path].concat()
            }
            (_, None) => {
                self.relative += 1;
                return None;
            }
        };
        normal(&absolute)
    }

    fn new_inode(&mut self, path: &[u8]) -> u64 {
        self.last_inode += 1;
        self.inodes.insert(path.to_vec(), self.last_inode);
        self.last_inode
    }

    /// The directory and the name of a path. Directories that are new to the recording existed before.
    fn parent(&mut self, path: &[u8], by: &mut dyn FnMut(Recorded) -> Record) -> Result<(u64, Vec<u8>), Reason> {
        let end = path.iter().rposition(|byte| *byte == b'/').ok_or("a path is not absolute")?;
        let (directory, name) = (&path[..end], path[end + 1..].to_vec());
        if name.is_empty() || name.len() > 255 {
            return Err("a name has no bytes, or more than 255");
        }
        if directory.is_empty() {
            return Ok((ROOT, name));
        }
        if let Some(inode) = self.inodes.get(directory) {
            return Ok((*inode, name));
        }
        let (parent, own) = self.parent(directory, by)?;
        let inode = self.new_inode(directory);
        let mut found = by(Recorded::FoundDirectory { parent, inode, name: own });
        found.duration_ns = 0;
        self.records.push(found);
        Ok((inode, name))
    }

    /// The inode number of a file. One that is new to the recording existed before.
    fn file(&mut self, path: &[u8], by: &mut dyn FnMut(Recorded) -> Record) -> Result<u64, Reason> {
        if let Some(inode) = self.inodes.get(path) {
            self.files.entry(*inode).or_default();
            return Ok(*inode);
        }
        if let Some((inode, _)) = self.former.get(path).filter(|(_, gone)| self.times.0 < *gone) {
            return Ok(*inode);
        }
        let (parent, name) = self.parent(path, by)?;
        let inode = self.new_inode(path);
        self.files.insert(inode, FileState { size: 0, first: Some((self.records.len(), 0)) });
        let mut found = by(Recorded::FoundFile { parent, inode, length: 0, name });
        found.duration_ns = 0;
        self.records.push(found);
        Ok(inode)
    }

    /// A file that an open may have made: it is created where it was found, unless it had bytes before.
    fn may_be_new(&mut self, inode: u64) {
        let Some((first, _)) = self.files.get(&inode).and_then(|file| file.first) else { return };
        if let Recorded::FoundFile { parent, name, .. } = &self.records[first].call {
            self.records[first].call = Recorded::Create { parent: *parent, inode, name: name.clone() };
            self.records[first].duration_ns = self.times.1 - self.times.0;
        }
    }

    /// A file has this length at least: it had it before, unless writes made it so long.
    fn saw(&mut self, inode: u64, length: u64) {
        let Some(file) = self.files.get_mut(&inode).filter(|file| file.size < length) else { return };
        file.size = length;
        if let Some((_, before)) = &mut file.first {
            *before = (*before).max(length);
        }
    }

    fn grow(&mut self, inode: u64, end: u64) {
        if let Some(file) = self.files.get_mut(&inode) {
            file.size = file.size.max(end);
        }
    }

    fn cut(&mut self, inode: u64, length: u64) {
        if let Some(file) = self.files.get_mut(&inode) {
            file.size = length;
        }
    }

    /// What lies in a renamed directory has other paths.
    fn move_below(&mut self, from: &[u8], to: &[u8]) {
        let mut within = from.to_vec();
        within.push(b'/');
        let moved: Vec<Vec<u8>> = self
            .inodes
            .range(within.clone()..)
            .map(|(path, _)| path.clone())
            .take_while(|path| path.starts_with(&within))
            .collect();
        for path in moved {
            let inode = self.inodes.remove(&path).expect("it was just listed");
            self.inodes.insert([to, &path[from.len()..]].concat(), inode);
        }
        self.inodes.remove(from);
    }

    /// All records, with the lengths that files had before.
    fn finish(mut self) -> Vec<Record> {
        for (inode, file) in &self.files {
            let Some((first, before)) = file.first.filter(|(_, before)| *before > 0) else { continue };
            let (parent, name) = match &self.records[first].call {
                Recorded::FoundFile { parent, name, .. } | Recorded::Create { parent, name, .. } => {
                    (*parent, name.clone())
                }
                _ => continue,
            };
            self.records[first].call = Recorded::FoundFile { parent, inode: *inode, length: before, name };
        }
        self.records
    }
}

/// A number, if a recording can hold it.
fn recordable(number: u64) -> Result<u64, Reason> {
    if number < LARGEST { Ok(number) } else { Err("a time, an offset or a length is 2^62 or more") }
}

/// A text in quotes, with strace's escapes; `None` if it is none, or was cut off.
fn unquoted(argument: &[u8]) -> Option<Vec<u8>> {
    let inside = argument.strip_prefix(b"\"")?.strip_suffix(b"\"")?;
    let (mut bytes, mut rest) = (Vec::new(), inside);
    while let Some((byte, after)) = rest.split_first() {
        rest = after;
        if *byte != b'\\' {
            bytes.push(*byte);
            continue;
        }
        let (escaped, after) = rest.split_first()?;
        rest = after;
        bytes.push(match escaped {
            b'n' => b'\n',
            b't' => b'\t',
            b'r' => b'\r',
            b'v' => 0x0b,
            b'f' => 0x0c,
            b'0'..=b'7' => {
                let mut value = u32::from(escaped - b'0');
                while let Some((digit @ b'0'..=b'7', after)) = rest.split_first().filter(|_| value < 0o40) {
                    (value, rest) = (value * 8 + u32::from(digit - b'0'), after);
                }
                value as u8
            }
            other => *other,
        });
    }
    Some(bytes)
}

/// A path without empty names, `.` and `..`.
fn normal(path: &[u8]) -> Option<Vec<u8>> {
    let mut names: Vec<&[u8]> = Vec::new();
    for name in path.split(|byte| *byte == b'/') {
        match name {
            b"" | b"." => {}
            b".." => drop(names.pop()),
            name => names.push(name),
        }
    }
    let joined: Vec<u8> = names.iter().flat_map(|name| [b"/", *name].concat()).collect();
    (!joined.is_empty()).then_some(joined)
}

#[cfg(test)]
mod tests {
    use super::super::samples;
    use super::*;
    use crate::workload::files::recorded::RecordedCalls;

    fn calls(text: &'static [u8]) -> (Vec<String>, RecordingSummary) {
        let (records, summary) = read_calls(Box::new(text)).unwrap();
        let shown = records.iter().map(|record| {
            format!("{} {}+{} {:?}", record.thread, record.begin_ns, record.duration_ns, record.call)
                .replace(" { ", " ")
                .replace(" }", "")
        });
        (shown.collect(), summary)
    }

    #[test]
    fn the_sample_is_a_recording() {
        let (records, summary) = read_calls(Box::new(samples::STRACE)).unwrap();
        assert_eq!((summary.rejected, summary.relative), (0, 0));
        let is_found = |inode_length: u64| {
            records.iter().any(|it| matches!(it.call, Recorded::FoundFile { length, .. } if length == inode_length))
        };
        assert!(is_found(1000), "the size of the log was seen: {records:?}");
        let is_created = |it: &Record| matches!(it.call, Recorded::Create { .. });
        assert_eq!(records.iter().filter(|it| is_created(it)).count(), 1, "the other was opened with O_CREAT");
        let mut bytes = Vec::new();
        write_calls(&records, &mut bytes).unwrap();
        assert!(RecordedCalls::read(&bytes[..], "sample".to_string()).is_ok());
    }

    /// Sums of them overflowed, and a recording with such a number cannot be read.
    #[test]
    fn numbers_that_a_recording_cannot_hold_are_rejected() {
        let text = br#"7 1.0 openat(AT_FDCWD</w>, "/f", O_RDWR|O_CREAT, 0600) = 3</f> <0.000001>
7 1.1 write(3</f>, "x", 10) = 10 <18446744073.0>
7 18446744073.0 write(3</f>, "x", 10) = 10
7 1.2 pwrite64(3</f>, "x", 10, 9223372036854775000) = 10
7 1.3 ftruncate(3</f>, 9223372036854775807) = 0
7 1.4 fallocate(3</f>, 0, 9223372036854775807, 9223372036854775807) = 0
7 1.5 fstat(3</f>, {st_mode=S_IFREG|0644, st_size=18446744073709551615, ...}) = 0
7 1.6 fsync(3</f>) = 0
"#;
        let (records, summary) = read_calls(Box::new(&text[..])).unwrap();
        assert_eq!((summary.rejected, records.len()), (6, 2), "{:?}", summary.first_rejected);
        let mut bytes = Vec::new();
        write_calls(&records, &mut bytes).unwrap();
        assert!(RecordedCalls::read(&bytes[..], "large numbers".to_string()).is_ok());
    }

    #[test]
    fn names_and_lengths_are_followed() {
        let (shown, summary) = calls(
            br#"7 10.0 mkdir("/d", 0777) = 0 <0.000005>
7 10.1 openat(AT_FDCWD</w>, "/d/f", O_RDWR|O_CREAT|O_EXCL, 0600) = 3</d/f> <0.000001>
7 10.2 write(3</d/f>, "x", 10) = 10
8 10.3 fsync(3</d/f> <unfinished ...>
7 10.4 renameat2(AT_FDCWD</d>, "f", AT_FDCWD</d>, "a\"b\40c", 0) = 0
8 10.5 <... fsync resumed>) = 0
7 10.6 rename("relative", "other") = 0
7 10.7 fallocate(3</d/a"b c>, 0, 0, 4096) = 0
7 10.8 ftruncate(3</d/a"b c>, 5) = 0
7 10.9 rename("/d", "/e") = 0
7 11.0 unlink("/e/a\"b c") = 0
7 11.1 rmdir("/e") = 0
7 11.2 unlink("/never/seen") = 0
"#,
        );
        assert_eq!((summary.relative, summary.rejected), (1, 0), "{:?}", summary.first_rejected);
        let of = |bytes: &str| format!("{:?}", bytes.as_bytes());
        let expected = [
            format!("7 0+5000 MakeDirectory parent: 1, inode: 2, name: {}", of("d")),
            format!("7 100000000+1000 Create parent: 2, inode: 3, name: {}", of("f")),
            "7 200000000+0 Write inode: 3, offset: 0, length: 10".to_string(),
            format!("7 400000000+0 Rename parent: 2, name: {}, new_parent: 2, new_name: {}", of("f"), of("a\"b c")),
            "8 300000000+200000000 Fsync inode: 3".to_string(),
            "7 700000000+0 Reserve inode: 3, offset: 0, length: 4096".to_string(),
            "7 800000000+0 Truncate inode: 3, length: 5".to_string(),
            format!("7 900000000+0 Rename parent: 1, name: {}, new_parent: 1, new_name: {}", of("d"), of("e")),
            format!("7 1000000000+0 Unlink parent: 2, name: {}", of("a\"b c")),
            format!("7 1100000000+0 RemoveDirectory parent: 1, name: {}", of("e")),
        ];
        let places: Vec<&str> = shown.iter().map(String::as_str).filter(|line| !line.contains("/never")).collect();
        assert_eq!(places[..10], expected, "{shown:#?}");
    }
}
