//! Meta's Tectonic: requests to the blocks of a storage cluster (Baleen, FAST'24), in fields separated by blanks.
//!
//! `block_id io_offset io_size op_time op_name ...`: bytes, seconds, and the kind of request: 1, 2 and 5 get, 3, 4 and 6
//! put. The fields after them, three to five, differ between the years. Each block of the cluster, of some megabytes, is
//! a device. Source: the traces' headers, and the readers of CacheLib's cachebench.

use super::fields::{Reason, decimal, extent, number, take_word};
use super::intake::Request;
use super::lines::LineParser;
use super::numbering::Numbering;
use crate::workload::Action;

/// The numbers of fields after the first five.
const FURTHER: std::ops::RangeInclusive<usize> = 3..=5;

/// Lines of a trace.
#[derive(Debug, Default)]
pub(super) struct Tectonic {
    blocks: Numbering<u64>,
}

impl LineParser for Tectonic {
    fn parse(&mut self, line: &[u8]) -> Result<Option<Request>, Reason> {
        if line
            .trim_ascii_start()
            .strip_prefix(b"#")
            .unwrap_or(line)
            .trim_ascii_start()
            .starts_with(b"block_id io_offset")
        {
            return Ok(None);
        }
        let mut rest = line;
        let [block, offset, size, time, kind] = [(); 5].map(|()| take_word(&mut rest));
        let mut further = 0;
        while !take_word(&mut rest).is_empty() {
            further += 1;
        }
        if !FURTHER.contains(&further) {
            return Err("there are not eight to ten fields: block, offset, size, time, kind and others");
        }
        let block = number(block).ok_or("the block is not a whole number")?;
        let offset = number(offset).ok_or("the offset is not a whole number of bytes")?;
        let size = number(size).ok_or("the size is not a whole number of bytes")?;
        let time_ns = decimal(time, 9).ok_or("the time is not a number of seconds")?;
        let action = match kind {
            b"1" | b"2" | b"5" => Action::Read,
            b"3" | b"4" | b"6" => Action::Write,
            _ => return Err("the kind is not 1 to 6"),
        };
        let request = Request::new(time_ns, action, extent(offset, size)?);
        Ok(Some(request.on(self.blocks.number(&block)?)))
    }
}

#[cfg(test)]
mod tests {
    use super::super::samples;
    use super::super::testing::{operation, read_sample};
    use super::*;

    #[test]
    fn a_trace_of_either_year_is_read_field_by_field() {
        let mut expected = vec![
            operation(0, Action::Read, 4096, 131_072),
            operation(250_000_000, Action::Write, 0, 513),
            operation(250_000_000, Action::Read, 8192, 4096),
        ];
        expected[1].device = 1;
        assert_eq!(read_sample(samples::TECTONIC, "tectonic"), expected);
        let without_blanks = String::from_utf8(samples::TECTONIC.to_vec()).unwrap().replace("# ", "");
        assert_eq!(read_sample(without_blanks.as_bytes(), "tectonic"), expected);
    }

    #[test]
    fn lines_with_wrong_fields_are_rejected() {
        for wrong in [
            "1 0 512 1.0 1 7 8",
            "1 0 512 1.0 1 7 8 9 10 11 12",
            "x 0 512 1.0 1 7 8 9",
            "1 -1 512 1.0 1 7 8 9",
            "1 0 0 1.0 1 7 8 9",
            "1 0 512 x 1 7 8 9",
            "1 0 512 1.0 7 7 8 9",
        ] {
            assert!(Tectonic::default().parse(wrong.as_bytes()).is_err(), "{wrong}");
        }
    }
}
