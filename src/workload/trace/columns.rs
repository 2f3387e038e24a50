//! The formats with fields separated by blanks: FIU, and those of the simulators DiskSim, MQSim, SSDsim and MiDAS.

use super::fields::{
    Reason, SECTOR_BYTES, decimal, extent, extent_of_units, hexadecimal, number, take_last_word, take_word,
};
use super::intake::Request;
use super::lines::LineParser;
use super::numbering::Numbering;
use crate::units::BLOCK_BYTES;
use crate::workload::Action;

/// The words of a line of exactly `N`.
#[inline]
fn words<const N: usize>(line: &[u8]) -> Option<[&[u8]; N]> {
    let mut rest = line;
    let mut words = [&b""[..]; N];
    for word in &mut words {
        *word = take_word(&mut rest);
    }
    let complete = words.last().is_none_or(|word| !word.is_empty());
    (complete && rest.trim_ascii_start().is_empty()).then_some(words)
}

const FIVE: &str = "there are not five fields: time, device, sector, number of sectors, flags";

/// FIU: `time pid process lba size W|R major minor hash`, in nanoseconds and sectors of 512 bytes. The hash of the data
/// is not used. A device is a pair of major and minor number.
#[derive(Debug, Default)]
pub(super) struct Fiu {
    devices: Numbering<u64>,
}

impl LineParser for Fiu {
    fn parse(&mut self, line: &[u8]) -> Result<Option<Request>, Reason> {
        let mut rest = line;
        let time_ns = number(take_word(&mut rest)).ok_or("the time is not a whole number of nanoseconds")?;
        number(take_word(&mut rest)).ok_or("the process number is not a whole number")?;
        // A process may have blanks in its name, so the other fields are counted from the end.
        let hash = take_last_word(&mut rest);
        if hash.len() != 32 || !hash.iter().all(u8::is_ascii_hexdigit) {
            return Err("the last field is not an MD5 of 32 hexadecimal digits");
        }
        let minor = number(take_last_word(&mut rest)).ok_or("the minor number is not a whole number")?;
        let major = number(take_last_word(&mut rest)).ok_or("the major number is not a whole number")?;
        let action = match take_last_word(&mut rest) {
            b"R" => Action::Read,
            b"W" => Action::Write,
            _ => return Err("the operation is not R or W"),
        };
        let sectors = number(take_last_word(&mut rest)).ok_or("the size is not a whole number of sectors")?;
        let sector = number(take_last_word(&mut rest)).ok_or("the address is not a whole number of sectors")?;
        if major >> 32 != 0 || minor >> 32 != 0 {
            return Err("the device number does not fit 32 bits");
        }
        let request = Request::new(time_ns, action, extent_of_units(sector, sectors, SECTOR_BYTES)?);
        Ok(Some(request.on(self.devices.number(&(major << 32 | minor))?)))
    }
}

/// DiskSim's ASCII format: `time device sector sectors flags`, in milliseconds and sectors of 512 bytes. The flags are
/// hexadecimal; bit 0 reads.
#[derive(Debug, Default)]
pub(super) struct DiskSim {
    devices: Numbering<u64>,
}

impl LineParser for DiskSim {
    fn parse(&mut self, line: &[u8]) -> Result<Option<Request>, Reason> {
        let [time, device, sector, sectors, flags] = words(line).ok_or(FIVE)?;
        let time_ns = decimal(time, 6).ok_or("the time is not a number of milliseconds")?;
        let device = number(device).ok_or("the device is not a whole number")?;
        let sector = number(sector).ok_or("the sector is not a whole number")?;
        let sectors = number(sectors).ok_or("the number of sectors is not a whole number")?;
        let flags = hexadecimal(flags).ok_or("the flags are not a hexadecimal number")?;
        let action = if flags & 1 == 1 { Action::Read } else { Action::Write };
        let request = Request::new(time_ns, action, extent_of_units(sector, sectors, SECTOR_BYTES)?);
        Ok(Some(request.on(self.devices.number(&device)?)))
    }
}

/// MQSim and SSDsim: `time device sector sectors type`, in nanoseconds and sectors of 512 bytes; 0 writes, 1 reads.
/// MQSim's unit of time is set in its workload file, and is the nanosecond by default.
#[derive(Debug, Default)]
pub(super) struct Mqsim {
    devices: Numbering<u64>,
}

impl LineParser for Mqsim {
    fn parse(&mut self, line: &[u8]) -> Result<Option<Request>, Reason> {
        let [time, device, sector, sectors, kind] = words(line).ok_or(FIVE)?;
        let time_ns = number(time).ok_or("the time is not a whole number of nanoseconds")?;
        let device = number(device).ok_or("the device is not a whole number")?;
        let sector = number(sector).ok_or("the sector is not a whole number")?;
        let sectors = number(sectors).ok_or("the number of sectors is not a whole number")?;
        let action = match kind {
            b"0" => Action::Write,
            b"1" => Action::Read,
            _ => return Err("the type is not 0 (write) or 1 (read)"),
        };
        let request = Request::new(time_ns, action, extent_of_units(sector, sectors, SECTOR_BYTES)?);
        Ok(Some(request.on(self.devices.number(&device)?)))
    }
}

/// MiDAS: `time type block bytes`, in seconds, blocks of 4 KiB and bytes; type 0 reads, 1 writes, 3 discards, and 2 is not
/// used. One device.
#[derive(Debug, Default)]
pub(super) struct Midas;

impl LineParser for Midas {
    fn parse(&mut self, line: &[u8]) -> Result<Option<Request>, Reason> {
        let [time, kind, block, bytes] = words(line).ok_or("there are not four fields: time, type, block, bytes")?;
        let time_ns = decimal(time, 9).ok_or("the time is not a number of seconds")?;
        let action = match kind {
            b"0" => Action::Read,
            b"1" => Action::Write,
            b"2" => return Err("type 2 has no meaning"),
            b"3" => Action::Discard,
            _ => return Err("the type is not 0 (read), 1 (write) or 3 (discard)"),
        };
        let block = number(block).ok_or("the address is not a whole number of 4 KiB blocks")?;
        let bytes = number(bytes).ok_or("the size is not a whole number of bytes")?;
        let offset = block.checked_mul(BLOCK_BYTES).ok_or("the address in bytes does not fit 64 bits")?;
        Ok(Some(Request::new(time_ns, action, extent(offset, bytes)?)))
    }
}

#[cfg(test)]
mod tests {
    use super::super::samples;
    use super::super::testing::{operation, read_sample};
    use super::*;

    #[test]
    fn a_line_of_fiu_is_read_field_by_field() {
        let mut expected =
            vec![operation(0, Action::Read, 283_193_184 * 512, 4096), operation(40, Action::Write, 16 * 512, 8192)];
        expected[1].device = 1;
        assert_eq!(read_sample(samples::FIU, "fiu"), expected);
    }

    #[test]
    fn a_line_of_disksim_is_read_field_by_field() {
        let mut expected = vec![
            operation(0, Action::Write, 20_228_336 * 512, 4096),
            operation(500_000, Action::Read, 576_560 * 512, 2560),
        ];
        expected[1].device = 1;
        assert_eq!(read_sample(samples::DISKSIM, "disksim"), expected);
    }

    #[test]
    fn a_line_of_mqsim_or_ssdsim_is_read_field_by_field() {
        let mut expected = vec![
            operation(0, Action::Write, 264_719_034 * 512, 8192),
            operation(315_000, Action::Read, 197_570_570 * 512, 8192),
        ];
        expected[1].device = 1;
        assert_eq!(read_sample(samples::MQSIM, "mqsim"), expected);
        assert_eq!(read_sample(samples::MQSIM, "ssdsim"), expected);
    }

    #[test]
    fn a_line_of_midas_is_read_field_by_field() {
        let expected = [
            operation(0, Action::Write, 4096, 4096),
            operation(91_077_000, Action::Read, 5 * 4096, 8192),
            operation(91_083_000, Action::Discard, 6 * 4096, 8192),
        ];
        assert_eq!(read_sample(samples::MIDAS, "midas"), expected);
    }

    #[test]
    fn lines_with_wrong_fields_are_rejected() {
        let hash = "56f11b711d91a065a2b6458eca924523";
        let fiu =
            [format!("1 2 gzip 8 8 X 6 0 {hash}"), format!("1 2 gzip 8 0 W 6 0 {hash}"), "1 2 a 8 8 W 6 0 x".into()];
        assert!(fiu.iter().all(|line| Fiu::default().parse(line.as_bytes()).is_err()));
        for line in ["1.0 0 8 8", "1.0 0 8 0 0", "1.0 0 8 8 0 0", "-1.0 0 8 8 0", "1.0 0 8 8 g"] {
            assert!(DiskSim::default().parse(line.as_bytes()).is_err(), "{line}");
        }
        for line in ["1 0 8 8 2", "1.5 0 8 8 0", "1 0 8 0 0", "1 0 18446744073709551615 8 0"] {
            assert!(Mqsim::default().parse(line.as_bytes()).is_err(), "{line}");
        }
        for line in ["0.1 2 0 4096", "0.1 4 0 4096", "0.1 1 0 0", "0.1 1 4503599627370496 4096"] {
            assert!(Midas.parse(line.as_bytes()).is_err(), "{line}");
        }
    }
}
