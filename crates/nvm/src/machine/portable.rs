//! Processors other than x86-64: plain stores, of which the order alone is ensured. Nothing writes lines back, so bytes
//! survive the end of the process, and no loss of power.

use crate::method::Method;
use std::sync::atomic::{AtomicU8, Ordering, fence as ordered};

/// No instruction that is known here writes lines back.
pub const REACHES_MEMORY: bool = false;

/// The way in which bytes are stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Way;

impl Way {
    /// For reports.
    pub fn instructions(self) -> &'static str {
        "plain stores, never written back"
    }
}

/// The way of a method: the preferred method stands for plain stores, the others need their instruction.
pub fn way(method: Method) -> Option<Way> {
    (method == Method::NonTemporal).then_some(Way)
}

/// Copies bytes into a region.
///
/// # Safety
///
/// `to` is valid for writes of as many bytes, and memory of a mapping, which is accessed by this file alone.
#[allow(unsafe_code, reason = "the region is memory that no reference of Rust covers")]
pub unsafe fn store(to: *mut u8, from: &[u8], _: Way) {
    for (at, byte) in from.iter().enumerate() {
        // SAFETY: the caller promises that these bytes are mapped; all accesses to them are atomic.
        unsafe { AtomicU8::from_ptr(to.add(at)) }.store(*byte, Ordering::Relaxed);
    }
}

/// Copies bytes out of a region.
///
/// # Safety
///
/// `from` is valid for reads of as many bytes, and memory of a mapping, which is accessed by this file alone.
#[allow(unsafe_code, reason = "the region is memory that no reference of Rust covers")]
pub unsafe fn read(from: *const u8, into: &mut [u8]) {
    for (at, byte) in into.iter_mut().enumerate() {
        // SAFETY: the caller promises that these bytes are mapped; all accesses to them are atomic.
        *byte = unsafe { AtomicU8::from_ptr(from.add(at).cast_mut()) }.load(Ordering::Relaxed);
    }
}

/// Orders the stores before it and those after it.
pub fn fence() {
    ordered(Ordering::SeqCst);
}
