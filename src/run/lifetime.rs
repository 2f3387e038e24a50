//! Lifetimes beside that in bytes of the host: in bytes of applications, in drive writes a day, at a rate.

use super::accounts::lifetime_tib;
use crate::device::Account;
use crate::report::{RateResult, RunResult};
use crate::units::BLOCK_BYTES;

/// The years over which drive writes per day are told, as data sheets do.
const YEARS: f64 = 5.0;
const DAYS_OF_YEAR: f64 = 365.25;

/// Adds to a result what its wear means for applications: `since` is the account of the count, and `stored_bytes` what the
/// media stored in it. Flash of which nothing was erased has no lifetime.
pub(super) fn add(result: &mut RunResult, since: &Account, stored_bytes: u64) {
    let exported = result.flash.exported_bytes as f64;
    let wear = &mut result.wear;
    wear.drive_writes_per_day = wear
        .lifetime_host_tib
        .filter(|_| exported > 0.0)
        .map(|tib| tib * (1u64 << 40) as f64 / exported / (YEARS * DAYS_OF_YEAR));
    let Some(blocks) = result.workload.application_blocks.filter(|blocks| *blocks > 0) else { return };
    let bytes = blocks * BLOCK_BYTES;
    result.write_amplification.application = Some(stored_bytes as f64 / bytes as f64);
    wear.lifetime_application_tib = wear.lifetime_host_tib.and_then(|host_tib| lifetime_tib(since, bytes, host_tib));
}

/// The life at a rate, of the bytes of applications where they are known.
pub(super) fn at_rate(result: &RunResult, bytes_per_day: u64) -> RateResult {
    let (of, tib) = match result.write_amplification.application {
        Some(_) => ("application", result.wear.lifetime_application_tib),
        None => ("host", result.wear.lifetime_host_tib),
    };
    let rate = bytes_per_day as f64;
    let exported = Some(result.flash.exported_bytes as f64).filter(|bytes| *bytes > 0.0);
    RateResult {
        bytes_per_day,
        of,
        years: tib.map(|tib| tib * (1u64 << 40) as f64 / rate / DAYS_OF_YEAR),
        drive_writes_per_day: exported.map(|exported| rate / exported),
    }
}
