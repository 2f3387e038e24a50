//! Copy: ranges of blocks are read, and written one after the other to one place.
//!
//! All is read before the first write, so that ranges may overlap their destination; the limit is that of other commands.

use crate::blocks::{check_range, check_writable, read, write};
use crate::bytes::{u16_at, u64_at};
use crate::command::Command;
use crate::identify::{MOST_COPIED, MOST_SOURCES};
use crate::namespace::Namespace;
use crate::status::Status;
use flashpath::device::NO_HINT;
use flashpath::time::Time;
use flashpath::units::BLOCK_BYTES;

/// Bytes of a source range of format 0.
const SOURCE: usize = 32;

/// The bytes of the data of a copy, after checks of its fields.
pub fn length(namespace: &Namespace, command: &Command) -> Result<usize, Status> {
    let (sources, format) = ((command.word(12) & 0xff) as usize + 1, command.word(12) >> 8 & 15);
    if format != 0 || command.word(12) >> 20 & 15 != 0 {
        return Err(Status::INVALID_FIELD);
    }
    if sources > MOST_SOURCES {
        return Err(Status::SIZE_LIMIT);
    }
    check_range(namespace, command.long(), 1)?;
    check_writable(namespace)?;
    Ok(sources * SOURCE)
}

/// Copies the ranges in `input`. All are checked before the first is read.
pub fn copy(
    namespace: &Namespace,
    command: &Command,
    durable: bool,
    input: &[u8],
    scratch: &mut Vec<u8>,
) -> Result<Time, Status> {
    let sources = || input.chunks_exact(SOURCE).map(|source| (u64_at(source, 8), u64::from(u16_at(source, 16)) + 1));
    let blocks = sources().map(|(_, blocks)| blocks).sum();
    if blocks > MOST_COPIED {
        return Err(Status::SIZE_LIMIT);
    }
    check_range(namespace, command.long(), blocks)?;
    sources().try_for_each(|(first, blocks)| check_range(namespace, first, blocks))?;
    scratch.resize(scratch.len().max((blocks * BLOCK_BYTES) as usize), 0);
    let mut rest = &mut scratch[..(blocks * BLOCK_BYTES) as usize];
    let mut done = namespace.drive.now();
    for (first, blocks) in sources() {
        let (place, behind) = rest.split_at_mut((blocks * BLOCK_BYTES) as usize);
        done = done.max(read(&namespace.drive, first, place)?);
        rest = behind;
    }
    let data = &scratch[..(blocks * BLOCK_BYTES) as usize];
    Ok(done.max(write(&namespace.drive, command.long(), data, (NO_HINT, durable))?))
}
