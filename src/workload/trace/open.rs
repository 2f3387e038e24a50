//! Input: decompression, and a buffer of lines and records.

use memchr::memchr;
use std::fmt;
use std::io::{self, BufRead, BufReader, Cursor, Read};

/// The longest line accepted, in bytes. Longer ones are rejected and skipped: a file without line ends takes no memory.
pub(super) const LONGEST_LINE: usize = 64 << 10;
/// Large enough for the longest line and the largest record, small enough for the CPU's cache.
const BUFFER_BYTES: usize = 256 << 10;
/// The largest window of `zstd --long`: 2 GiB.
const ZSTD_WINDOW_LOG: u32 = 31;

/// The compression of a file, recognised by its first bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Compression {
    /// Nothing.
    None,
    /// gzip, of one or several members.
    Gzip,
    /// zstd, of one or several frames.
    Zstd,
}

impl Compression {
    fn of(head: &[u8]) -> Compression {
        match head {
            [0x1f, 0x8b, ..] => Compression::Gzip,
            [0x28, 0xb5, 0x2f, 0xfd, ..] => Compression::Zstd,
            // Seekable zstd files may begin with a skippable frame.
            [0x50..=0x5f, 0x2a, 0x4d, 0x18, ..] => Compression::Zstd,
            _ => Compression::None,
        }
    }

    /// The name in reports.
    pub fn name(self) -> &'static str {
        match self {
            Compression::None => "none",
            Compression::Gzip => "gzip",
            Compression::Zstd => "zstd",
        }
    }
}

impl fmt::Display for Compression {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.pad(self.name())
    }
}

/// One line, without its end.
pub(super) enum Line<'a> {
    /// The bytes, which need not be text.
    Bytes(&'a [u8]),
    /// Longer than [`LONGEST_LINE`], and skipped.
    TooLong,
}

/// Decompressed bytes, as lines or as records.
pub(super) struct Input {
    source: Box<dyn Read + Send>,
    compression: Compression,
    buffer: Vec<u8>,
    start: usize,
    end: usize,
    at_end: bool,
    consumed_bytes: u64,
    lines: u64,
}

impl Input {
    /// Opens `raw` with the decompressor for its first bytes.
    pub fn new(mut raw: Box<dyn Read + Send>) -> io::Result<Input> {
        let mut head = Vec::with_capacity(4);
        raw.by_ref().take(4).read_to_end(&mut head)?;
        let compression = Compression::of(&head);
        let whole = Cursor::new(head).chain(raw);
        let source: Box<dyn Read + Send> = match compression {
            Compression::None => Box::new(whole),
            Compression::Gzip => Box::new(flate2::bufread::MultiGzDecoder::new(buffered(whole))),
            Compression::Zstd => {
                let mut decoder = zstd::stream::read::Decoder::with_buffer(buffered(whole))?;
                decoder.window_log_max(ZSTD_WINDOW_LOG)?;
                Box::new(decoder)
            }
        };
        Ok(Input {
            source,
            compression,
            buffer: vec![0; BUFFER_BYTES],
            start: 0,
            end: 0,
            at_end: false,
            consumed_bytes: 0,
            lines: 0,
        })
    }

    /// The compression of the file.
    pub fn compression(&self) -> Compression {
        self.compression
    }

    /// The number of decompressed bytes before the next line or record.
    pub fn consumed_bytes(&self) -> u64 {
        self.consumed_bytes
    }

    /// The number of the last line returned, from 1.
    pub fn line_number(&self) -> u64 {
        self.lines
    }

    /// The number of bytes decompressed so far, which places an error.
    pub fn decompressed_bytes(&self) -> u64 {
        self.consumed_bytes + (self.end - self.start) as u64
    }

    /// The next bytes: at least `wanted`, fewer at the end of the file. `wanted` is at most the buffer's size.
    pub fn peek(&mut self, wanted: usize) -> io::Result<&[u8]> {
        while self.end - self.start < wanted && !self.at_end {
            self.fill()?;
        }
        Ok(&self.buffer[self.start..self.end])
    }

    /// True if the file ends after the bytes of the last [`peek`](Input::peek).
    pub fn shows_the_end(&self) -> bool {
        self.at_end
    }

    /// Consumes `count` bytes of the last [`peek`](Input::peek).
    pub fn consume(&mut self, count: usize) {
        let count = count.min(self.end - self.start);
        self.start += count;
        self.consumed_bytes += count as u64;
    }

    /// The next line; `None` at the end of the file. A line ends with LF or CR LF.
    #[inline]
    pub fn line(&mut self) -> io::Result<Option<Line<'_>>> {
        let mut searched = 0;
        loop {
            let window = &self.buffer[self.start..self.end];
            let length = match memchr(b'\n', &window[searched..]) {
                Some(found) => searched + found,
                None if window.len() > LONGEST_LINE => {
                    self.skip_line()?;
                    return Ok(Some(Line::TooLong));
                }
                None if self.at_end && window.is_empty() => return Ok(None),
                None if self.at_end => window.len(),
                None => {
                    searched = window.len();
                    self.fill()?;
                    continue;
                }
            };
            let start = self.start;
            self.lines += 1;
            self.consume(length + 1);
            if length > LONGEST_LINE {
                return Ok(Some(Line::TooLong));
            }
            let line = &self.buffer[start..start + length];
            return Ok(Some(Line::Bytes(line.strip_suffix(b"\r").unwrap_or(line))));
        }
    }

    /// The rest of the input, if it is at most `limit` bytes.
    pub fn read_to_end(mut self, limit: u64) -> io::Result<Option<Vec<u8>>> {
        let mut bytes = self.buffer[self.start..self.end].to_vec();
        self.source.by_ref().take(limit.saturating_add(1)).read_to_end(&mut bytes)?;
        Ok((bytes.len() as u64 <= limit).then_some(bytes))
    }

    fn skip_line(&mut self) -> io::Result<()> {
        self.lines += 1;
        loop {
            let window = &self.buffer[self.start..self.end];
            match memchr(b'\n', window) {
                Some(length) => {
                    self.consume(length + 1);
                    return Ok(());
                }
                None => self.consume(window.len()),
            }
            if self.at_end {
                return Ok(());
            }
            self.fill()?;
        }
    }

    #[cold]
    fn fill(&mut self) -> io::Result<()> {
        self.buffer.copy_within(self.start..self.end, 0);
        self.end -= self.start;
        self.start = 0;
        if self.end == self.buffer.len() {
            return Ok(());
        }
        loop {
            match self.source.read(&mut self.buffer[self.end..]) {
                Ok(count) => {
                    self.end += count;
                    self.at_end = count == 0;
                    return Ok(());
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
    }
}

fn buffered(raw: impl Read + Send + 'static) -> impl BufRead + Send {
    BufReader::with_capacity(128 << 10, raw)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(bytes: Vec<u8>) -> Vec<Option<Vec<u8>>> {
        let mut input = Input::new(Box::new(Cursor::new(bytes))).unwrap();
        let mut lines = Vec::new();
        while let Some(line) = input.line().unwrap() {
            lines.push(match line {
                Line::Bytes(bytes) => Some(bytes.to_vec()),
                Line::TooLong => None,
            });
        }
        assert_eq!(input.line_number(), lines.len() as u64);
        lines
    }

    fn text(line: &str) -> Option<Vec<u8>> {
        Some(line.as_bytes().to_vec())
    }

    #[test]
    fn lines_end_with_either_kind_of_end_and_the_last_needs_none() {
        assert_eq!(lines(b"a\r\n\nb".to_vec()), [text("a"), text(""), text("b")]);
        assert_eq!(lines(Vec::new()), []);
    }

    #[test]
    fn a_line_that_is_too_long_is_skipped_and_the_next_is_read() {
        for length in [LONGEST_LINE + 1, BUFFER_BYTES - 1, BUFFER_BYTES, 5 * BUFFER_BYTES + 3] {
            let mut bytes = b"first\n".to_vec();
            bytes.resize(6 + length, b'x');
            bytes.extend(b"\nlast\n");
            assert_eq!(lines(bytes), [text("first"), None, text("last")], "{length}");
        }
        let mut bytes = vec![b'x'; LONGEST_LINE];
        bytes.push(b'\n');
        assert_eq!(lines(bytes.clone()), [Some(bytes[..LONGEST_LINE].to_vec())]);
    }

    #[test]
    fn lines_are_whole_across_many_buffers() {
        let expected: Vec<String> = (0..200_000).map(|number| format!("line {number}")).collect();
        let found = lines(expected.join("\n").into_bytes());
        assert_eq!(found.len(), expected.len());
        assert!(found.iter().zip(&expected).all(|(found, expected)| found.as_deref() == Some(expected.as_bytes())));
    }

    #[test]
    fn compression_is_told_by_the_first_bytes() {
        use std::io::Write;
        let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        gzip.write_all(b"one\n").unwrap();
        let gzip = gzip.finish().unwrap();
        assert_eq!(lines([gzip.clone(), gzip].concat()), [text("one"), text("one")]);
        let zstd = zstd::encode_all(&b"two\n"[..], 1).unwrap();
        assert_eq!(lines([zstd.clone(), zstd].concat()), [text("two"), text("two")]);
    }
}
