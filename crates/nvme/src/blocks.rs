//! Commands on blocks: of NVM namespaces, and those that zoned ones have, too.

use crate::bytes::{u32_at, u64_at};
use crate::command::{Command, Transfer, io};
use crate::identify::{MOST_DATA, MOST_RANGES};
use crate::namespace::{Drive, Namespace};
use crate::placement;
use crate::status::Status;
use flashpath::device::Lba;
use flashpath::run::shared::ServeError;
use flashpath::time::Time;
use flashpath::units::BLOCK_BYTES;

const BLOCK: usize = BLOCK_BYTES as usize;
/// Bytes of a range of a dataset command.
const RANGE_BYTES: usize = 16;
/// Zeros that are written in one call of the device, so that other hosts are served in between.
const ZEROS_AT_ONCE: u64 = 4 << 20;
/// Bytes that a compare or a verify reads at once.
const PIECE: usize = 128 << 10;

/// The data of a command, after checks of its fields. `None` for a command that is none of these.
pub fn plan(namespace: &Namespace, command: &Command) -> Result<Option<Transfer>, Status> {
    let bytes = command.blocks() as usize * BLOCK;
    let transfer = match (command.opcode(), &namespace.drive) {
        (io::READ, _) => Transfer::ToHost(bytes),
        (io::WRITE | io::COMPARE, _) => Transfer::FromHost(bytes),
        (io::WRITE_ZEROES | io::VERIFY, _) => Transfer::None,
        (io::DATASET, Drive::Blocks(_)) => {
            let ranges = (command.word(10) & 0xff) as usize + 1;
            debug_assert!(ranges <= MOST_RANGES, "a field of 8 bits, counted from 0");
            check_writable(namespace)?;
            // Linux sends a whole page, whatever the number of ranges.
            return match command.described() {
                described if described < ranges * RANGE_BYTES => Err(Status::DATA_LENGTH_INVALID),
                described if described > MOST_RANGES * RANGE_BYTES => Err(Status::DATA_LENGTH_INVALID),
                described => Ok(Some(Transfer::FromHost(described))),
            };
        }
        _ => return Ok(None),
    };
    if command.opcode() != io::WRITE_ZEROES && bytes > MOST_DATA {
        return Err(Status::INVALID_FIELD);
    }
    if command.opcode() == io::WRITE {
        placement::check_directive(namespace, command)?;
    }
    check_range(namespace, command.long(), command.blocks())?;
    if matches!(command.opcode(), io::WRITE | io::WRITE_ZEROES) {
        check_writable(namespace)?;
    }
    Ok(Some(transfer))
}

/// An error if the range reaches beyond the end.
pub fn check_range(namespace: &Namespace, first: u64, blocks: u64) -> Result<(), Status> {
    match first.checked_add(blocks) {
        Some(end) if end <= namespace.blocks() => Ok(()),
        _ => Err(Status::OUT_OF_RANGE),
    }
}

/// An error if nothing may be written.
pub fn check_writable(namespace: &Namespace) -> Result<(), Status> {
    if namespace.is_read_only() { Err(Status::WRITE_PROTECTED) } else { Ok(()) }
}

/// Executes a planned command. `durable` is that of its data; `scratch` is memory for what is compared.
pub fn execute(
    namespace: &Namespace,
    command: &Command,
    durable: bool,
    input: &[u8],
    output: &mut [u8],
    scratch: &mut Vec<u8>,
) -> Result<Time, Status> {
    let (first, blocks) = (command.long(), command.blocks());
    match command.opcode() {
        io::READ => read(&namespace.drive, first, output),
        io::WRITE => write(&namespace.drive, first, input, (placement::hint(namespace, command), durable)),
        io::WRITE_ZEROES => write_zeroes(&namespace.drive, command, durable),
        io::COMPARE => compare(&namespace.drive, first, input, scratch),
        io::VERIFY => verify(&namespace.drive, first, blocks, scratch),
        io::DATASET => deallocate(namespace, command, input),
        _ => Err(Status::INVALID_OPCODE),
    }
}

fn failed(is_write: bool) -> impl Fn(ServeError) -> Status {
    move |error| Status::of(&error, is_write)
}

/// Reads blocks.
pub fn read(drive: &Drive, first: u64, output: &mut [u8]) -> Result<Time, Status> {
    let read = match drive {
        Drive::Blocks(device) => device.read(first * BLOCK_BYTES, output),
        Drive::Zones(zones) => zones.read(Lba(first), output),
    };
    read.map_err(failed(false))
}

/// Writes blocks, with a placement hint; in a zone, at its write pointer.
pub fn write(drive: &Drive, first: u64, input: &[u8], (hint, durable): (u8, bool)) -> Result<Time, Status> {
    let written = match drive {
        Drive::Blocks(device) => device.write_placed(first * BLOCK_BYTES, input, hint, durable),
        Drive::Zones(zones) => zones.write(Lba(first), input, durable),
    };
    written.map_err(failed(true))
}

/// Without the bit that asks for deallocation, zeros are written, and later writes find their room.
fn write_zeroes(drive: &Drive, command: &Command, durable: bool) -> Result<Time, Status> {
    let (first, blocks) = (command.long(), command.blocks());
    let may_deallocate = command.word(12) & 1 << 25 != 0;
    match drive {
        Drive::Zones(zones) => zones.write_zeroes(Lba(first), blocks, durable).map_err(failed(true)),
        Drive::Blocks(device) => {
            let (mut offset, mut left) = (first * BLOCK_BYTES, blocks * BLOCK_BYTES);
            let at_once = if may_deallocate { left } else { ZEROS_AT_ONCE };
            let mut done = device.now();
            while left > 0 {
                let piece = left.min(at_once);
                let is_last = piece == left;
                let written = device.write_zeroes(offset, piece, !may_deallocate, durable && is_last);
                done = done.max(written.map_err(failed(true))?);
                (offset, left) = (offset + piece, left - piece);
            }
            Ok(done)
        }
    }
}

fn compare(drive: &Drive, first: u64, input: &[u8], scratch: &mut Vec<u8>) -> Result<Time, Status> {
    scratch.resize(scratch.len().max(PIECE), 0);
    let mut done = drive.now();
    for (piece, expected) in (first..).step_by(PIECE / BLOCK).zip(input.chunks(PIECE)) {
        let found = &mut scratch[..expected.len()];
        done = done.max(read(drive, piece, found)?);
        if found != expected {
            return Err(Status::COMPARE_FAILURE);
        }
    }
    Ok(done)
}

fn verify(drive: &Drive, mut first: u64, mut blocks: u64, scratch: &mut Vec<u8>) -> Result<Time, Status> {
    scratch.resize(scratch.len().max(PIECE), 0);
    let mut done = drive.now();
    while blocks > 0 {
        let piece = blocks.min((PIECE / BLOCK) as u64);
        done = done.max(read(drive, first, &mut scratch[..piece as usize * BLOCK])?);
        (first, blocks) = (first + piece, blocks - piece);
    }
    Ok(done)
}

/// Deallocates ranges, if that is asked for. All are checked before the first: a command with a wrong one changes nothing.
fn deallocate(namespace: &Namespace, command: &Command, input: &[u8]) -> Result<Time, Status> {
    let Drive::Blocks(device) = &namespace.drive else { return Err(Status::INVALID_OPCODE) };
    let count = (command.word(10) & 0xff) as usize + 1;
    let input = &input[..input.len().min(count * RANGE_BYTES)];
    let ranges = || input.chunks_exact(RANGE_BYTES).map(|range| (u64_at(range, 8), u64::from(u32_at(range, 4))));
    ranges().try_for_each(|(first, blocks)| check_range(namespace, first, blocks))?;
    let mut done = device.now();
    if command.word(11) & 1 << 2 != 0 {
        for (first, blocks) in ranges() {
            let discarded = device.discard(first * BLOCK_BYTES, blocks * BLOCK_BYTES, false);
            done = done.max(discarded.map_err(failed(true))?);
        }
    }
    Ok(done)
}
