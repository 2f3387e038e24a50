//! Parses one call of strace's output: `name(argument, ...) = result`.

use super::fields::{decimal, number, take_number};
use memchr::memmem;

const MOST_ARGUMENTS: usize = 6;

/// A parsed call.
pub(super) struct Call<'a> {
    pub name: &'a [u8],
    arguments: [&'a [u8]; MOST_ARGUMENTS],
    result: &'a [u8],
    /// The duration in nanoseconds, if strace ran with `-T`.
    pub duration_ns: Option<u64>,
}

/// A descriptor with strace's annotation.
#[derive(Debug, PartialEq)]
pub(super) enum Descriptor<'a> {
    /// A file or a block device, and its path.
    File(u64, &'a [u8]),
    /// A number alone: strace ran without `-y`.
    Bare,
    /// A socket, a pipe, a terminal, or no descriptor at all.
    Other,
}

impl<'a> Call<'a> {
    /// The argument of this number, from 0; empty if there are fewer.
    pub fn argument(&self, number: usize) -> &'a [u8] {
        self.arguments.get(number).copied().unwrap_or_default()
    }

    /// True if it returned an error, or never returned.
    pub fn failed(&self) -> bool {
        !self.result.first().is_some_and(u8::is_ascii_digit)
    }

    /// The return value, if it is a number.
    pub fn result_number(&self) -> Option<u64> {
        let mut rest = self.result;
        take_number(&mut rest)
    }

    /// The path in the annotation of an argument, such as that of a descriptor or of AT_FDCWD.
    pub fn annotated(&self, number: usize) -> Option<&'a [u8]> {
        let argument = self.argument(number);
        let open = argument.iter().position(|byte| *byte == b'<')?;
        argument[open + 1..].strip_suffix(b">").filter(|path| path.starts_with(b"/"))
    }

    /// The descriptor argument.
    pub fn descriptor(&self) -> Descriptor<'a> {
        descriptor(self.arguments[0])
    }

    /// The returned descriptor.
    pub fn opened(&self) -> Descriptor<'a> {
        descriptor(self.result)
    }

    /// True if an argument other than texts and paths has this flag.
    pub fn has_flag(&self, flag: &[u8]) -> bool {
        self.arguments.iter().any(|argument| {
            let plain = !argument.starts_with(b"\"") && !argument.contains(&b'<');
            plain && memmem::find(argument, flag).is_some()
        })
    }

    /// The size returned by fstat, or by newfstatat on the descriptor itself.
    pub fn stat_size(&self) -> Option<u64> {
        let structure = match self.name {
            b"fstat" => self.arguments[1],
            b"newfstatat" if self.arguments[1] == b"\"\"" => self.arguments[2],
            _ => return None,
        };
        let found = memmem::find(structure, b"st_size=")?;
        take_number(&mut &structure[found + b"st_size=".len()..])
    }
}

/// Parses `5</path>`, optionally with `(deleted)` or a device's numbers after the path.
fn descriptor(text: &[u8]) -> Descriptor<'_> {
    let mut rest = text;
    let Some(descriptor) = take_number(&mut rest) else { return Descriptor::Other };
    if number(text).is_some() {
        return Descriptor::Bare;
    }
    let Some(inside) = rest.strip_prefix(b"<") else { return Descriptor::Other };
    let end = inside.iter().rposition(|byte| *byte == b'>').unwrap_or(inside.len());
    let mut path = &inside[..end];
    if let Some(device) = path.iter().position(|byte| *byte == b'<') {
        if !path[device..].starts_with(b"<block") {
            return Descriptor::Other;
        }
        path = &path[..device];
    }
    if path.starts_with(b"/") { Descriptor::File(descriptor, path) } else { Descriptor::Other }
}

/// The result of a call, and the duration that `-T` appends: ` <0.000123>`.
fn split_duration(text: &[u8]) -> (&[u8], Option<u64>) {
    let split = || {
        let inside = text.strip_suffix(b">")?;
        let open = inside.iter().rposition(|byte| *byte == b'<')?;
        let seconds = &inside[open + 1..];
        let duration_ns = decimal(seconds, 9).filter(|_| seconds.contains(&b'.'))?;
        Some((text[..open].trim_ascii_end(), Some(duration_ns)))
    };
    split().unwrap_or((text, None))
}

/// Splits a call at the commas outside texts, brackets and paths. `None` if it has no result.
pub(super) fn split_call(text: &[u8]) -> Option<Call<'_>> {
    let open = text.iter().position(|byte| *byte == b'(')?;
    let name = &text[..open];
    if name.is_empty() || !name.iter().all(|byte| byte.is_ascii_alphanumeric() || *byte == b'_') {
        return None;
    }
    let mut arguments = [&b""[..]; MOST_ARGUMENTS];
    let mut count = 0;
    let mut scan = Scan::default();
    let mut start = open + 1;
    for at in open + 1..text.len() {
        let ends_argument = match scan.step(text, at) {
            Mark::None => continue,
            Mark::Comma => false,
            Mark::Close => true,
        };
        if let Some(argument) = arguments.get_mut(count) {
            *argument = text[start..at].trim_ascii();
        }
        count += 1;
        start = at + 1;
        if ends_argument {
            let result = text[start..].trim_ascii_start().strip_prefix(b"=")?.trim_ascii();
            let (result, duration_ns) = split_duration(result);
            return Some(Call { name, arguments, result, duration_ns });
        }
    }
    None
}

/// The meaning of a byte for the arguments.
enum Mark {
    None,
    Comma,
    Close,
}

/// The state of a scan of arguments.
#[derive(Default)]
struct Scan {
    in_text: bool,
    escaped: bool,
    brackets: usize,
    angles: usize,
}

impl Scan {
    fn step(&mut self, text: &[u8], at: usize) -> Mark {
        let byte = text[at];
        let before = at.checked_sub(1).map_or(0, |before| text[before]);
        if self.escaped {
            self.escaped = false;
            return Mark::None;
        }
        match byte {
            b'\\' if self.in_text => self.escaped = true,
            b'"' if self.angles == 0 => self.in_text = !self.in_text,
            _ if self.in_text => {}
            // A path follows a descriptor or AT_FDCWD; a device annotation is nested in it.
            b'<' if self.angles > 0 || before.is_ascii_digit() || before == b'D' => self.angles += 1,
            // The arrow in the addresses of a socket is no bracket.
            b'>' if self.angles > 0 && before != b'-' => self.angles -= 1,
            _ if self.angles > 0 => {}
            b'(' | b'[' | b'{' => self.brackets += 1,
            b')' if self.brackets == 0 => return Mark::Close,
            b')' | b']' | b'}' => self.brackets = self.brackets.saturating_sub(1),
            b',' if self.brackets == 0 => return Mark::Comma,
            _ => {}
        }
        Mark::None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commas_and_brackets_in_text_and_paths_part_nothing() {
        let call = split_call(br#"writev(3</a (1), b>, [{iov_base="x)\",", iov_len=2}], 1) = 2"#).unwrap();
        assert_eq!(call.name, b"writev");
        assert_eq!(call.descriptor(), Descriptor::File(3, b"/a (1), b"));
        assert_eq!(call.argument(2), b"1");
        assert_eq!(call.result_number(), Some(2));
    }

    #[test]
    fn sockets_terminals_and_bare_numbers_are_no_files() {
        assert_eq!(descriptor(b"3<TCP:[10.0.0.1:1->10.0.0.2:2]>"), Descriptor::Other);
        assert_eq!(descriptor(b"0</dev/null<char 1:3>>"), Descriptor::Other);
        assert_eq!(descriptor(b"0</dev/sda<block 8:0>>"), Descriptor::File(0, b"/dev/sda"));
        assert_eq!(descriptor(b"7</x>(deleted)"), Descriptor::File(7, b"/x"));
        assert_eq!(descriptor(b"7"), Descriptor::Bare);
        assert_eq!(descriptor(b"AT_FDCWD</x>"), Descriptor::Other);
    }

    #[test]
    fn a_socket_s_arrow_does_not_end_its_description() {
        let call = split_call(b"write(8<TCP:[a:1->b:2]>, \"y\", 5) = 5").unwrap();
        assert_eq!((call.argument(1), call.argument(2)), (&b"\"y\""[..], &b"5"[..]));
    }

    #[test]
    fn a_call_without_a_result_is_none() {
        for text in ["", "write", "write(", "write(1, 2)", "wri te(1) = 0", "(1) = 0"] {
            assert!(split_call(text.as_bytes()).is_none(), "{text}");
        }
        assert!(split_call(b"read(3</f>, 0x7ff, 5) = -1 EBADF (Bad file descriptor)").unwrap().failed());
        assert!(split_call(b"exit_group(0) = ?").unwrap().failed());
    }
}
