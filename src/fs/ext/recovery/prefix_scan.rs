//! The scan of an optimistic log, in which no flush stands between transactions: a cut of power may have kept any of the blocks
//! that were written since the last flush. So transactions count up to the first one that is not whole, and those behind it do
//! not, whole or not.
//!
//! Each commit says up to which transaction the log was durable when it was written. If a transaction that was durable is not
//! whole, it is damaged: then the log is scanned as any other, up to the last transaction that was durable.

use super::log_scan::{Copy, Reader, Record, Scanned, record, scan};
use crate::fs::ext::format::log::{Dialect, head, kind};
use crate::fs::ext::journal::TransactionId;
use crate::fs::volume::VolumeError;

/// The records of a transaction.
struct Whole {
    copies: Vec<Copy>,
    revoked: Vec<u64>,
    /// The last transaction that was durable when it was committed.
    durable: TransactionId,
}

/// Scans an optimistic log that is not empty.
pub fn scan_prefix(reader: &Reader<'_>) -> Result<Scanned, VolumeError> {
    let dialect = Dialect::of(reader.log_superblock());
    let first = TransactionId(reader.log_superblock().sequence());
    let mut found = Scanned::up_to(first);
    let (mut ahead, mut durable) = (reader.clone(), TransactionId(first.0.wrapping_sub(1)));
    loop {
        let mut behind = ahead.clone();
        let Some(whole) = whole(&dialect, &mut behind, found.end)? else { break };
        let id = found.end;
        found.copies.extend(whole.copies);
        found.revoked.extend(whole.revoked.into_iter().map(|block| (block, id)));
        found.committed.push(id);
        found.end = id.next();
        durable = later(durable, whole.durable);
        ahead = behind;
    }
    let mut newest = found.end;
    while let Some(at) = ahead.go_on() {
        let block = ahead.read(at)?;
        let Some((kind, number)) = head(&block) else { continue };
        let number = TransactionId(number);
        // Records of older rounds of the log have lower numbers.
        if found.end.is_after(number) || record(&dialect, &block, number).is_err() {
            continue;
        }
        newest = later(newest, number);
        if kind == kind::COMMIT {
            durable = later(durable, TransactionId(Dialect::durable_of_commit(&block)));
        }
    }
    if !found.end.is_after(durable) {
        found = scan(reader)?;
        found.end_behind(durable);
    }
    found.newest = later(newest, found.newest);
    Ok(found)
}

fn later(one: TransactionId, other: TransactionId) -> TransactionId {
    if other.is_after(one) { other } else { one }
}

/// The next transaction, of this number; `None` if a block of it is not as it was written.
fn whole(dialect: &Dialect, reader: &mut Reader<'_>, id: TransactionId) -> Result<Option<Whole>, VolumeError> {
    let mut whole = Whole { copies: Vec::new(), revoked: Vec::new(), durable: id };
    while let Some(at) = reader.go_on() {
        let block = reader.read(at)?;
        match record(dialect, &block, id) {
            Ok(Record::Descriptor(tags)) => {
                for tag in tags {
                    let Some(at) = reader.go_on() else { return Ok(None) };
                    if !dialect.is_copy(&tag, &reader.read(at)?, id.0) {
                        return Ok(None);
                    }
                    whole.copies.push(Copy { at, tag, id });
                }
            }
            Ok(Record::Revokes(revoked)) => whole.revoked.extend(revoked),
            Ok(Record::Commit) => {
                whole.durable = TransactionId(Dialect::durable_of_commit(&block));
                return Ok(Some(whole));
            }
            Err(_) => return Ok(None),
        }
    }
    Ok(None)
}
