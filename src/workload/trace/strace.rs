//! File calls of `strace -f -ttt -yy -e trace=desc`. Each file is a device with its own addresses.
//!
//! Calls without an offset use the position of their descriptor, so positions are tracked through open, read, write,
//! lseek and dup. strace does not show which processes share descriptors. A process that uses a descriptor it did not
//! open is assumed to share the last one opened under that number for that file, as a thread or a child would. Writes
//! through mmap, io_uring, sendfile or copy_file_range are not traced.

use super::fields::{Reason, decimal, extent, number, take_number, take_word};
use super::intake::Request;
use super::lines::LineParser;
use super::numbering::Numbering;
use super::strace_call::{Call, Descriptor, split_call};
use crate::workload::Action;
use memchr::memmem;
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

const UNFINISHED: &[u8] = b"<unfinished ...>";
const RESUMED: &[u8] = b" resumed>";
/// The longest call joined from an unfinished and a resumed line, in bytes.
const LONGEST_CALL: usize = 64 << 10;

/// An open file description, shared by descriptors that were duplicated or inherited.
#[derive(Debug, Default)]
struct Description {
    position: AtomicU64,
    appends: bool,
}

/// The parser, with the descriptors of all processes.
#[derive(Debug, Default)]
pub(super) struct Strace {
    files: Numbering<Vec<u8>>,
    /// By file: its size, as far as known.
    sizes: Vec<u64>,
    devices: Numbering<u64>,
    /// By process and descriptor: the file and the description that the process itself opened.
    opened: BTreeMap<(u64, u64), (u32, Arc<Description>)>,
    /// By descriptor and file: the last description opened by any process.
    latest: BTreeMap<(u64, u32), Arc<Description>>,
    /// By process: the time and the text of the first part.
    unfinished: BTreeMap<u64, (u64, Vec<u8>)>,
    unknown_positions: u64,
}

impl Strace {
    fn file(&mut self, path: &[u8]) -> Result<u32, Reason> {
        let file = self.files.number(path)?;
        if file as usize >= self.sizes.len() {
            self.sizes.resize(file as usize + 1, 0);
        }
        Ok(file)
    }

    fn remember(&mut self, process: u64, descriptor: u64, file: u32, description: Arc<Description>) {
        self.latest.insert((descriptor, file), description.clone());
        self.opened.insert((process, descriptor), (file, description));
    }

    fn description(&mut self, process: u64, descriptor: u64, file: u32) -> Arc<Description> {
        if let Some((opened, description)) = self.opened.get(&(process, descriptor))
            && *opened == file
        {
            return description.clone();
        }
        if let Some(description) = self.latest.get(&(descriptor, file)) {
            return description.clone();
        }
        self.unknown_positions += 1;
        let description = Arc::new(Description::default());
        self.latest.insert((descriptor, file), description.clone());
        description
    }

    fn grow(&mut self, file: u32, size: u64) {
        if let Some(known) = self.sizes.get_mut(file as usize) {
            *known = (*known).max(size);
        }
    }

    fn size(&self, file: u32) -> u64 {
        self.sizes.get(file as usize).copied().unwrap_or(0)
    }

    fn set_size(&mut self, file: u32, size: u64) {
        if let Some(known) = self.sizes.get_mut(file as usize) {
            *known = size;
        }
    }

    fn open(&mut self, process: u64, call: &Call<'_>) -> Result<Option<Request>, Reason> {
        // A directory has no bytes to read or write.
        if call.has_flag(b"O_DIRECTORY") || call.has_flag(b"O_PATH") {
            return Ok(None);
        }
        let (descriptor, path) = match call.opened() {
            Descriptor::File(descriptor, path) => (descriptor, path),
            Descriptor::Bare => return Err("the descriptor has no path: run strace with -yy"),
            Descriptor::Other => return Ok(None),
        };
        let file = self.file(path)?;
        if call.name == b"creat" || call.has_flag(b"O_TRUNC") {
            self.set_size(file, 0);
        }
        let description = Description { position: AtomicU64::new(0), appends: call.has_flag(b"O_APPEND") };
        self.remember(process, descriptor, file, Arc::new(description));
        Ok(None)
    }

    /// A read or a write of `length` bytes, at the offset in the fourth argument or at the descriptor's position.
    fn transfer(
        &mut self,
        (process, descriptor, file): (u64, u64, u32),
        time_ns: u64,
        action: Action,
        call: &Call<'_>,
    ) -> Result<Option<Request>, Reason> {
        let length = match call.result_number() {
            None | Some(0) => return Ok(None),
            Some(length) => length,
        };
        // preadv2 and pwritev2 use the position if the offset is -1.
        let positional = call.name.starts_with(b"p") && call.argument(3) != b"-1";
        let description = self.description(process, descriptor, file);
        let offset = if action == Action::Write && description.appends {
            // With O_APPEND, Linux ignores the offset.
            self.size(file)
        } else if positional {
            number(call.argument(3)).ok_or("the offset is not a whole number")?
        } else {
            description.position.load(Ordering::Relaxed)
        };
        let request = Request::new(time_ns, action, extent(offset, length)?);
        let end = request.operation.end_bytes();
        if !positional {
            description.position.store(end, Ordering::Relaxed);
        }
        if action == Action::Write {
            self.grow(file, end);
        }
        Ok(Some(request.on(self.devices.number(&u64::from(file))?)))
    }

    pub(super) fn parse_call(&mut self, process: u64, time_ns: u64, text: &[u8]) -> Result<Option<Request>, Reason> {
        let call = split_call(text).ok_or("not a call with a result")?;
        if call.failed() {
            return Ok(None);
        }
        match call.name {
            b"open" | b"openat" | b"openat2" | b"creat" => return self.open(process, &call),
            b"read" | b"readv" | b"pread64" | b"pread" | b"preadv" | b"preadv2" | b"write" | b"writev"
            | b"pwrite64" | b"pwrite" | b"pwritev" | b"pwritev2" | b"lseek" | b"close" | b"dup" | b"dup2" | b"dup3"
            | b"fcntl" | b"fsync" | b"fdatasync" | b"ftruncate" | b"fstat" | b"newfstatat" | b"fallocate" => {}
            _ => return Ok(None),
        }
        let (descriptor, path) = match call.descriptor() {
            Descriptor::File(descriptor, path) => (descriptor, path),
            Descriptor::Bare if matches!(call.name, b"fstat" | b"newfstatat" | b"close" | b"fcntl") => return Ok(None),
            Descriptor::Bare => return Err("the descriptor has no path: run strace with -yy"),
            Descriptor::Other => return Ok(None),
        };
        let file = self.file(path)?;
        let whom = (process, descriptor, file);
        match call.name {
            b"read" | b"readv" | b"pread64" | b"pread" | b"preadv" | b"preadv2" => {
                self.transfer(whom, time_ns, Action::Read, &call)
            }
            b"write" | b"writev" | b"pwrite64" | b"pwrite" | b"pwritev" | b"pwritev2" => {
                self.transfer(whom, time_ns, Action::Write, &call)
            }
            b"fsync" | b"fdatasync" => {
                let device = self.devices.number(&u64::from(file))?;
                Ok(Some(Request::flush(time_ns).on(device)))
            }
            b"fallocate" => self.allocate(file, time_ns, &call),
            _ => {
                self.follow(whom, &call);
                Ok(None)
            }
        }
    }

    /// Tracks calls that move no bytes but affect later ones.
    fn follow(&mut self, (process, descriptor, file): (u64, u64, u32), call: &Call<'_>) {
        match call.name {
            b"lseek" => {
                if let Some(position) = call.result_number() {
                    self.description(process, descriptor, file).position.store(position, Ordering::Relaxed);
                    if call.argument(2) == b"SEEK_END" && call.argument(1) == b"0" {
                        self.grow(file, position);
                    }
                }
            }
            b"close" => {
                self.opened.remove(&(process, descriptor));
            }
            b"dup" | b"dup2" | b"dup3" | b"fcntl" => {
                let copies = call.name != b"fcntl" || call.argument(1).starts_with(b"F_DUPFD");
                if let (true, Descriptor::File(copy, _)) = (copies, call.opened()) {
                    let description = self.description(process, descriptor, file);
                    self.remember(process, copy, file, description);
                }
            }
            b"ftruncate" => {
                if let Some(size) = number(call.argument(1)) {
                    self.set_size(file, size);
                }
            }
            _ => {
                if let Some(size) = call.stat_size() {
                    self.set_size(file, size);
                }
            }
        }
    }

    /// fallocate: punching a hole is a discard; other modes only change the size.
    fn allocate(&mut self, file: u32, time_ns: u64, call: &Call<'_>) -> Result<Option<Request>, Reason> {
        let offset = number(call.argument(2)).ok_or("the offset is not a whole number")?;
        let length = number(call.argument(3)).ok_or("the length is not a whole number")?;
        let request = Request::new(time_ns, Action::Discard, extent(offset, length)?);
        if call.has_flag(b"FALLOC_FL_PUNCH_HOLE") {
            return Ok(Some(request.on(self.devices.number(&u64::from(file))?)));
        }
        if !call.has_flag(b"FALLOC_FL_KEEP_SIZE") {
            self.grow(file, request.operation.end_bytes());
        }
        Ok(None)
    }

    /// Joins the second part of a call that strace split with the first.
    fn resume(&mut self, process: u64, text: &[u8]) -> Result<Option<(u64, Vec<u8>)>, Reason> {
        let end = memmem::find(text, RESUMED).ok_or("a resumed call has no name")? + RESUMED.len();
        let Some((begin_ns, mut call)) = self.unfinished.remove(&process) else { return Ok(None) };
        if call.len() + text.len() > LONGEST_CALL {
            return Err("the call is longer than 64 KiB");
        }
        call.extend_from_slice(&text[end..]);
        Ok(Some((begin_ns, call)))
    }

    /// The call that a line ends; `None` for a line that ends none.
    pub(super) fn join<'l>(&mut self, line: &'l [u8]) -> Result<Option<Joined<'l>>, Reason> {
        let mut rest = line;
        let process = take_process(&mut rest).ok_or("the process is not a whole number")?;
        let time = take_word(&mut rest);
        let time_ns = decimal(time, 9)
            .filter(|_| time.contains(&b'.'))
            .ok_or("the time is not seconds with a fraction: run strace with -ttt")?;
        let text = rest.trim_ascii();
        if text.starts_with(b"+++ ") {
            self.unfinished.remove(&process);
            return Ok(None);
        }
        if text.starts_with(b"--- ") {
            return Ok(None);
        }
        if text.starts_with(b"<... ") {
            let resumed = self.resume(process, text)?;
            return Ok(resumed.map(|(begin_ns, text)| Joined { process, begin_ns, time_ns, text: text.into() }));
        }
        if let Some(beginning) = text.strip_suffix(UNFINISHED) {
            if !beginning.contains(&b'(') {
                return Err("not a call");
            }
            self.unfinished.insert(process, (time_ns, beginning.to_vec()));
            return Ok(None);
        }
        Ok(Some(Joined { process, begin_ns: time_ns, time_ns, text: text.into() }))
    }
}

/// A whole call.
pub(super) struct Joined<'l> {
    pub process: u64,
    /// The time of the line that begins it.
    pub begin_ns: u64,
    /// The time of the line that ends it.
    pub time_ns: u64,
    pub text: Cow<'l, [u8]>,
}

/// Takes the process number: 0 if strace did not follow children.
fn take_process(text: &mut &[u8]) -> Option<u64> {
    let mut rest = *text;
    let word = take_word(&mut rest);
    if word == b"[pid" {
        let process = take_word(&mut rest).strip_suffix(b"]").and_then(number);
        *text = rest;
        return process;
    }
    let mut digits = word;
    match (take_number(&mut digits), digits) {
        (Some(process), b"") => {
            *text = rest;
            Some(process)
        }
        _ => Some(0),
    }
}

impl LineParser for Strace {
    fn parse(&mut self, line: &[u8]) -> Result<Option<Request>, Reason> {
        match self.join(line)? {
            Some(Joined { process, time_ns, text, .. }) => self.parse_call(process, time_ns, &text),
            None => Ok(None),
        }
    }

    fn notes(&self) -> Vec<String> {
        if self.unknown_positions == 0 {
            return Vec::new();
        }
        vec![format!(
            "{} descriptors were open before the trace began or were inherited untraced: their positions are assumed to begin at 0",
            self.unknown_positions
        )]
    }
}

#[cfg(test)]
mod tests {
    use super::super::samples;
    use super::super::testing::{operation, read_sample};
    use super::*;

    #[test]
    fn calls_are_read_field_by_field_and_positions_are_followed() {
        let mut expected = vec![
            operation(0, Action::Write, 40_960, 8192),
            operation(100_000, Action::Write, 0, 100),
            operation(300_000, Action::Read, 4096, 8192),
            operation(400_000, Action::Write, 12_288, 10),
            operation(694_000, Action::Flush, 0, 0),
            operation(700_000, Action::Write, 1000, 50),
            operation(744_000, Action::Write, 1050, 5),
            operation(844_000, Action::Discard, 0, 512),
        ];
        for call in &mut expected[5..] {
            call.device = 1;
        }
        assert_eq!(read_sample(samples::STRACE, "strace"), expected);
    }

    fn offsets(lines: &[&str]) -> Vec<u64> {
        let mut parser = Strace::default();
        let requests = lines.iter().filter_map(|line| parser.parse(line.as_bytes()).unwrap());
        requests.map(|request| request.operation.offset_bytes).collect()
    }

    #[test]
    fn threads_share_the_position_of_what_one_of_them_opened() {
        let lines = [
            r#"1 1.0 openat(AT_FDCWD, "f", O_RDWR) = 3</f>"#,
            r#"2 1.1 write(3</f>, "", 10) = 10"#,
            r#"1 1.2 write(3</f>, "", 10) = 10"#,
            r#"3 1.3 write(3</f>, "", 10) = 10"#,
        ];
        assert_eq!(offsets(&lines), [0, 10, 20]);
    }

    #[test]
    fn processes_that_open_a_file_themselves_have_positions_of_their_own() {
        let lines = [
            r#"1 1.0 open("/f", O_RDWR) = 3</f>"#,
            r#"2 1.1 open("/f", O_RDWR) = 3</f>"#,
            r#"1 1.2 write(3</f>, "", 10) = 10"#,
            r#"2 1.3 write(3</f>, "", 7) = 7"#,
            r#"1 1.4 write(3</f>, "", 10) = 10"#,
        ];
        assert_eq!(offsets(&lines), [0, 0, 10]);
    }

    #[test]
    fn a_file_that_is_opened_again_begins_at_zero_and_one_cut_short_appends_at_zero() {
        let lines = [
            r#"1 1.0 open("/f", O_WRONLY|O_CREAT|O_APPEND, 0644) = 3</f>"#,
            r#"1 1.1 pwrite64(3</f>, "", 10, 500) = 10"#,
            r#"1 1.2 write(3</f>, "", 10) = 10"#,
            r#"1 1.3 close(3</f>) = 0"#,
            r#"1 1.4 open("/f", O_RDWR) = 3</f>"#,
            r#"1 1.5 read(3</f>, "", 10) = 10"#,
            r#"1 1.6 open("/f", O_WRONLY|O_TRUNC|O_APPEND) = 4</f>"#,
            r#"1 1.7 write(4</f>, "", 10) = 10"#,
        ];
        assert_eq!(offsets(&lines), [0, 10, 0, 0]);
    }

    #[test]
    fn lines_without_what_is_needed_are_rejected_with_the_option_to_use() {
        let mut parser = Strace::default();
        let no_path = parser.parse(br#"1 1.0 write(3, "", 10) = 10"#);
        assert_eq!(no_path, Err("the descriptor has no path: run strace with -yy"));
        let no_time = parser.parse(br#"1 12:00:01 write(3</f>, "", 10) = 10"#);
        assert_eq!(no_time, Err("the time is not seconds with a fraction: run strace with -ttt"));
        for wrong in ["1 1.0 hello", "1 1.0 write(3</f>", "[pid x] 1.0 a() = 0", "1 1.0 <unfinished ...>", ""] {
            assert!(parser.parse(wrong.as_bytes()).is_err(), "{wrong}");
        }
        assert_eq!(parser.parse(b"[pid 7] 1.0 --- SIGCHLD {} ---"), Ok(None));
    }
}
