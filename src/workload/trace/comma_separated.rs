//! The published traces that are comma-separated: MSR Cambridge, SPC, Alibaba, Tencent, SYSTOR'17 and vscsiStats.

use super::fields::{
    Reason, SECTOR_BYTES, decimal, extent, extent_of_units, hexadecimal, number, take_field, take_number,
};
use super::intake::Request;
use super::lines::LineParser;
use super::numbering::Numbering;
use super::vscsi;
use crate::workload::Action;

/// The first `N` fields of a line and the rest; `None` if there are fewer.
#[inline]
fn fields<const N: usize>(line: &[u8]) -> Option<([&[u8]; N], &[u8])> {
    let mut rest = Some(line);
    let mut fields = [&b""[..]; N];
    for field in &mut fields {
        let mut text = rest?;
        let whole = text.len();
        *field = take_field(&mut text, b',');
        // A field of the whole text has no comma after it.
        rest = (field.len() < whole).then_some(text);
    }
    Some((fields, rest.unwrap_or_default()))
}

/// As [`fields`], for a line of exactly `N`.
#[inline]
fn all_fields<const N: usize>(line: &[u8]) -> Option<[&[u8]; N]> {
    fields::<N>(line).filter(|(_, rest)| rest.is_empty()).map(|(fields, _)| fields)
}

fn is_header(line: &[u8], first_columns: &str) -> bool {
    line.get(..first_columns.len()).is_some_and(|start| start.eq_ignore_ascii_case(first_columns.as_bytes()))
}

/// MSR Cambridge: `Timestamp,Hostname,DiskNumber,Type,Offset,Size,ResponseTime`. The time counts 100 ns since 1601 (a
/// Windows FILETIME); offset and size are bytes. A device is a disk of a host.
#[derive(Debug, Default)]
pub(super) struct Msr {
    devices: Numbering<Vec<u8>>,
}

impl LineParser for Msr {
    fn parse(&mut self, line: &[u8]) -> Result<Option<Request>, Reason> {
        if is_header(line, "timestamp,hostname") {
            return Ok(None);
        }
        let [time, host, disk, kind, offset, size, _response] =
            all_fields(line).ok_or("there are not seven fields: time, host, disk, type, offset, size, response")?;
        let ticks = number(time).ok_or("the time is not a whole number of 100 ns")?;
        let time_ns = ticks.checked_mul(100).ok_or("the time does not fit 64 bits")?;
        number(disk).ok_or("the disk is not a whole number")?;
        let action = match kind {
            b"Read" => Action::Read,
            b"Write" => Action::Write,
            _ => return Err("the type is not Read or Write"),
        };
        let offset = number(offset).ok_or("the offset is not a whole number of bytes")?;
        let size = number(size).ok_or("the size is not a whole number of bytes")?;
        let request = Request::new(time_ns, action, extent(offset, size)?);
        // The host and the disk are adjacent in the line, and name the device together.
        let name = &line[time.len() + 1..][..host.len() + 1 + disk.len()];
        Ok(Some(request.on(self.devices.number(name)?)))
    }
}

/// SPC: `ASU,LBA,Size,Opcode,Timestamp` and optional fields. The address counts sectors of 512 bytes, the size bytes, the
/// time seconds. A device is an application storage unit, with addresses of its own.
#[derive(Debug, Default)]
pub(super) struct Spc {
    devices: Numbering<u64>,
}

impl LineParser for Spc {
    fn parse(&mut self, line: &[u8]) -> Result<Option<Request>, Reason> {
        let ([unit, address, size, opcode, time], _) =
            fields(line).ok_or("there are not five fields: ASU, LBA, size, opcode, time")?;
        let unit = number(unit).ok_or("the ASU is not a whole number")?;
        let address = number(address).ok_or("the LBA is not a whole number")?;
        let size = number(size).ok_or("the size is not a whole number of bytes")?;
        let action = match opcode.trim_ascii() {
            b"r" | b"R" => Action::Read,
            b"w" | b"W" => Action::Write,
            _ => return Err("the opcode is not r or w"),
        };
        let time_ns = decimal(time, 9).ok_or("the time is not a number of seconds")?;
        let offset = address.checked_mul(SECTOR_BYTES).ok_or("the address in bytes does not fit 64 bits")?;
        let request = Request::new(time_ns, action, extent(offset, size)?);
        Ok(Some(request.on(self.devices.number(&unit)?)))
    }
}

/// Alibaba: `device_id,opcode,offset,length,timestamp`, in bytes and microseconds.
#[derive(Debug, Default)]
pub(super) struct Alibaba {
    devices: Numbering<u64>,
}

impl LineParser for Alibaba {
    #[inline]
    fn parse(&mut self, line: &[u8]) -> Result<Option<Request>, Reason> {
        if is_header(line, "device_id,opcode") {
            return Ok(None);
        }
        let [device, opcode, offset, length, time] =
            all_fields(line).ok_or("there are not five fields: device, opcode, offset, length, time")?;
        let device = number(device).ok_or("the device is not a whole number")?;
        let action = match opcode {
            b"R" => Action::Read,
            b"W" => Action::Write,
            _ => return Err("the opcode is not R or W"),
        };
        let offset = number(offset).ok_or("the offset is not a whole number of bytes")?;
        let length = number(length).ok_or("the length is not a whole number of bytes")?;
        let time_us = number(time).ok_or("the time is not a whole number of microseconds")?;
        let time_ns = time_us.checked_mul(1000).ok_or("the time does not fit 64 bits")?;
        let request = Request::new(time_ns, action, extent(offset, length)?);
        Ok(Some(request.on(self.devices.number(&device)?)))
    }
}

/// Tencent: `Timestamp,Offset,Size,IOType,VolumeID`, in seconds and sectors of 512 bytes; type 0 reads, 1 writes.
#[derive(Debug, Default)]
pub(super) struct Tencent {
    devices: Numbering<u64>,
}

impl LineParser for Tencent {
    #[inline]
    fn parse(&mut self, line: &[u8]) -> Result<Option<Request>, Reason> {
        if is_header(line, "timestamp,offset") {
            return Ok(None);
        }
        let [time, offset, size, kind, volume] =
            all_fields(line).ok_or("there are not five fields: time, offset, size, type, volume")?;
        let time_s = number(time).ok_or("the time is not a whole number of seconds")?;
        let time_ns = time_s.checked_mul(1_000_000_000).ok_or("the time does not fit 64 bits")?;
        let offset = number(offset).ok_or("the offset is not a whole number of sectors")?;
        let size = number(size).ok_or("the size is not a whole number of sectors")?;
        let action = match kind {
            b"0" => Action::Read,
            b"1" => Action::Write,
            _ => return Err("the type is not 0 (read) or 1 (write)"),
        };
        let volume = number(volume).ok_or("the volume is not a whole number")?;
        let request = Request::new(time_ns, action, extent_of_units(offset, size, SECTOR_BYTES)?);
        Ok(Some(request.on(self.devices.number(&volume)?)))
    }
}

/// SYSTOR'17: `Timestamp,Response,IOType,LUN,Offset,Size`, in seconds and bytes. Lines with a blank type are rejected.
#[derive(Debug, Default)]
pub(super) struct Systor {
    devices: Numbering<u64>,
}

impl LineParser for Systor {
    fn parse(&mut self, line: &[u8]) -> Result<Option<Request>, Reason> {
        if is_header(line, "timestamp,response") {
            return Ok(None);
        }
        let [time, response, kind, lun, offset, size] =
            all_fields(line).ok_or("there are not six fields: time, response, type, LUN, offset, size")?;
        let time_ns = decimal(time, 9).ok_or("the time is not a number of seconds")?;
        if !response.is_empty() {
            decimal(response, 9).ok_or("the response time is not a number of seconds")?;
        }
        let action = match kind.trim_ascii() {
            b"R" => Action::Read,
            b"W" => Action::Write,
            b"" => return Err("the type is blank"),
            _ => return Err("the type is not R or W"),
        };
        let lun = number(lun).ok_or("the LUN is not a whole number")?;
        let offset = number(offset).ok_or("the offset is not a whole number of bytes")?;
        let size = number(size).ok_or("the size is not a whole number of bytes")?;
        let request = Request::new(time_ns, action, extent(offset, size)?);
        Ok(Some(request.on(self.devices.number(&lun)?)))
    }
}

/// vscsiStats as CSV: `version,time,op,size,lbn`, with version 1, whole seconds, the SCSI command in hexadecimal, the
/// size in bytes and the address in sectors of 512 bytes. One device.
#[derive(Debug, Default)]
pub(super) struct VscsiCsv;

impl LineParser for VscsiCsv {
    fn parse(&mut self, line: &[u8]) -> Result<Option<Request>, Reason> {
        if is_header(line, "version,time") {
            return Ok(None);
        }
        let [mut version, time, command, size, address] =
            all_fields(line).ok_or("there are not five fields: version, time, command, size, address")?;
        if take_number(&mut version) != Some(1) || !version.is_empty() {
            return Err("the version is not 1");
        }
        let time_s = number(time).ok_or("the time is not a whole number of seconds")?;
        let time_ns = time_s.checked_mul(1_000_000_000).ok_or("the time does not fit 64 bits")?;
        let command = hexadecimal(command).ok_or("the command is not a hexadecimal number")?;
        let size = number(size).ok_or("the size is not a whole number of bytes")?;
        let address = number(address).ok_or("the address is not a whole number of sectors")?;
        vscsi::request(time_ns, command, address, size)
    }
}

#[cfg(test)]
mod tests {
    use super::super::lines::{Lines, Parsed};
    use super::super::samples;
    use super::super::testing::{operation, read_sample};
    use super::*;

    #[test]
    fn a_line_of_msr_cambridge_is_read_field_by_field() {
        let mut expected = vec![
            operation(0, Action::Write, 3_201_662_976, 20_480),
            operation(7_000, Action::Read, 4096, 512),
            operation(7_100, Action::Write, 0, 4096),
        ];
        expected[1].device = 1;
        assert_eq!(read_sample(samples::MSR, "msr"), expected);
    }

    #[test]
    fn a_line_of_spc_is_read_field_by_field() {
        let mut expected = vec![
            operation(0, Action::Write, 303_567 * 512, 3584),
            operation(26_214_000, Action::Read, 55_590 * 512, 3072),
        ];
        expected[1].device = 1;
        assert_eq!(read_sample(samples::SPC, "spc"), expected);
    }

    #[test]
    fn a_line_of_alibaba_is_read_field_by_field() {
        let mut expected =
            vec![operation(0, Action::Write, 8_792_731_648, 16_384), operation(25_000, Action::Read, 8192, 4096)];
        expected[1].device = 1;
        assert_eq!(read_sample(samples::ALIBABA, "alibaba"), expected);
    }

    #[test]
    fn a_line_of_tencent_is_read_field_by_field() {
        let mut expected = vec![
            operation(0, Action::Write, 6_338_688 * 512, 4096),
            operation(1_000_000_000, Action::Read, 16 * 512, 512),
        ];
        expected[1].device = 1;
        assert_eq!(read_sample(samples::TENCENT, "tencent"), expected);
    }

    #[test]
    fn a_line_of_systor_is_read_field_by_field() {
        let mut expected =
            vec![operation(0, Action::Read, 899_056_122_368, 131_072), operation(1_000_000, Action::Write, 512, 1024)];
        expected[1].device = 1;
        assert_eq!(read_sample(samples::SYSTOR, "systor17"), expected);
    }

    #[test]
    fn a_line_of_vscsi_stats_is_read_field_by_field() {
        let expected =
            [operation(0, Action::Write, 42_932_745 * 512, 512), operation(2_000_000_000, Action::Read, 8 * 512, 4096)];
        assert_eq!(read_sample(samples::VSCSI_CSV, "vscsi-csv"), expected);
    }

    #[test]
    fn lines_with_too_few_too_many_or_wrong_fields_are_rejected() {
        let parsers: [(&mut dyn Lines, &[&str]); 6] = [
            (
                &mut Parsed(Msr::default()),
                &["1,a,0,Write,0,512", "1,a,0,write,0,512,1", "1,a,x,Read,0,512,1", "1,a,0,Read,0,0,1"],
            ),
            (
                &mut Parsed(Spc::default()),
                &["0,1,512,w", "0,1,512,x,0.1", "0,1,0,w,0.1", "0,36028797018963968,512,w,0.1"],
            ),
            (
                &mut Parsed(Alibaba::default()),
                &["1,W,0,512", "1,W,0,512,7,8", "1,D,0,512,7", "1,W,18446744073709551615,1,7"],
            ),
            (
                &mut Parsed(Tencent::default()),
                &["1,0,8,2,7", "1,0,0,1,7", "18446744073709551615,0,8,1,7", "1.5,0,8,1,7"],
            ),
            (&mut Parsed(Systor::default()), &["1.0,0.1,,0,0,512", "1.0,0.1,X,0,0,512", "1.0,x,R,0,0,512"]),
            (&mut Parsed(VscsiCsv), &["2,1,2a,512,1", "1,1,zz,512,1", "1,1,2a,0,1", "1,1,2a,512"]),
        ];
        for (parser, lines) in parsers {
            for line in lines {
                assert!(!parser.fits(line.as_bytes()), "{line}");
            }
        }
    }
}
