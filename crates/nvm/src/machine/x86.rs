//! The instructions of x86-64. All accesses to a region are made here, in assembly: the compiler neither reorders nor
//! divides them, and accesses of threads at the same time are the processor's affair.

use crate::LINE_BYTES;
use crate::method::Method;
use std::arch::asm;
use std::arch::x86_64::__cpuid_count;
use std::sync::OnceLock;

/// A fence brings lines that were written back to memory.
pub const REACHES_MEMORY: bool = true;

/// The widest non-temporal store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Width {
    Avx512,
    Avx2,
    Sse2,
}

/// The instruction that writes a line back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum WriteBack {
    Clwb,
    ClflushOpt,
    Clflush,
}

/// The way in which bytes are stored. It exists only for instructions that the processor has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Way {
    /// Stores of whole lines past the caches; `None`: plainly.
    streams: Option<Width>,
    /// The way in which other lines are written back.
    back: WriteBack,
}

impl Way {
    /// For reports.
    pub fn instructions(self) -> &'static str {
        match (self.streams, self.back) {
            (Some(Width::Avx512), _) => "AVX-512 non-temporal stores",
            (Some(Width::Avx2), _) => "AVX2 non-temporal stores",
            (Some(Width::Sse2), _) => "SSE2 non-temporal stores",
            (None, WriteBack::Clwb) => "plain stores and clwb",
            (None, WriteBack::ClflushOpt) => "plain stores and clflushopt",
            (None, WriteBack::Clflush) => "plain stores and clflush",
        }
    }
}

/// True if the processor has this instruction: bits 23 and 24 of EBX in leaf 7 of CPUID. SSE2, which all processors of
/// x86-64 have, implies `clflush`.
fn has(instruction: WriteBack) -> bool {
    static LEAF: OnceLock<u32> = OnceLock::new();
    #[allow(unsafe_code, unused_unsafe, reason = "CPUID is an unsafe function up to Rust 1.93")]
    // SAFETY: all processors of x86-64 have CPUID; leaf 7 is read only if leaf 0 names it.
    let leaf = || unsafe {
        match __cpuid_count(0, 0).eax {
            0..7 => 0,
            _ => __cpuid_count(7, 0).ebx,
        }
    };
    let bits = *LEAF.get_or_init(leaf);
    match instruction {
        WriteBack::Clwb => bits & 1 << 24 != 0,
        WriteBack::ClflushOpt => bits & 1 << 23 != 0,
        WriteBack::Clflush => true,
    }
}

/// The way of a method, if the processor has its instruction.
pub fn way(method: Method) -> Option<Way> {
    let plain = |back| has(back).then_some(Way { streams: None, back });
    match method {
        Method::NonTemporal => {
            let width = match () {
                () if is_x86_feature_detected!("avx512f") => Width::Avx512,
                () if is_x86_feature_detected!("avx2") => Width::Avx2,
                () => Width::Sse2,
            };
            let back = [WriteBack::Clwb, WriteBack::ClflushOpt, WriteBack::Clflush].into_iter().find(|back| has(*back));
            Some(Way { streams: Some(width), back: back? })
        }
        Method::WriteBack => plain(WriteBack::Clwb),
        Method::FlushOptimised => plain(WriteBack::ClflushOpt),
        Method::Flush => plain(WriteBack::Clflush),
    }
}

/// Copies bytes into a region, such that they are in memory after the next fence of this thread.
///
/// # Safety
///
/// `to` is valid for writes of as many bytes, and memory of a mapping, which is accessed by this file alone.
#[allow(unsafe_code, reason = "the region is memory that no reference of Rust covers")]
pub unsafe fn store(to: *mut u8, from: &[u8], way: Way) {
    let Some(width) = way.streams else {
        // SAFETY: that of this function.
        return unsafe { store_plainly(to, from, way.back) };
    };
    let head = to.align_offset(LINE_BYTES).min(from.len());
    let (head, rest) = from.split_at(head);
    let (lines, tail) = rest.split_at(rest.len() / LINE_BYTES * LINE_BYTES);
    // SAFETY: the three ranges are parts of the caller's; the middle one begins at a line and has whole lines.
    unsafe {
        store_plainly(to, head, way.back);
        let to = to.add(head.len());
        match width {
            Width::Avx512 => stream_512(to, lines),
            Width::Avx2 => stream_256(to, lines),
            Width::Sse2 => stream_128(to, lines),
        }
        store_plainly(to.add(lines.len()), tail, way.back);
    }
}

macro_rules! stream {
    ($(#[$about:meta])* $name:ident, $($instruction:literal),+) => {
        $(#[$about])*
        ///
        /// # Safety
        ///
        /// As [`store`]; the range begins at a line, and has whole lines.
        #[allow(unsafe_code, reason = "non-temporal stores")]
        unsafe fn $name(to: *mut u8, lines: &[u8]) {
            if lines.is_empty() {
                return;
            }
            // SAFETY: each step reads a line of `lines`, and writes the same line of a range that the caller may write.
            // The width was detected. All registers of vectors are given as overwritten.
            unsafe {
                asm!(
                    "2:",
                    $($instruction,)+
                    "add rsi, 64",
                    "add rdi, 64",
                    "dec rcx",
                    "jnz 2b",
                    inout("rsi") lines.as_ptr() => _,
                    inout("rdi") to => _,
                    inout("rcx") lines.len() / LINE_BYTES => _,
                    clobber_abi("sysv64"),
                    options(nostack),
                );
            }
        }
    };
}

stream! {
    /// Stores lines past the caches, 64 bytes at once. Register 16 needs no `vzeroupper` behind it.
    stream_512, "vmovdqu64 zmm16, [rsi]", "vmovntdq [rdi], zmm16"
}
stream! {
    /// Stores lines past the caches, 32 bytes at once.
    stream_256,
    "vmovdqu ymm0, [rsi]", "vmovdqu ymm1, [rsi + 32]",
    "vmovntdq [rdi], ymm0", "vmovntdq [rdi + 32], ymm1",
    "vzeroupper"
}
stream! {
    /// Stores lines past the caches, 16 bytes at once.
    stream_128,
    "movdqu xmm0, [rsi]", "movdqu xmm1, [rsi + 16]",
    "movdqu xmm2, [rsi + 32]", "movdqu xmm3, [rsi + 48]",
    "movntdq [rdi], xmm0", "movntdq [rdi + 16], xmm1",
    "movntdq [rdi + 32], xmm2", "movntdq [rdi + 48], xmm3"
}

/// Stores bytes in the caches, and writes their lines back.
///
/// # Safety
///
/// As [`store`]; the processor has the instruction.
#[allow(unsafe_code, reason = "stores, and instructions that write lines back")]
unsafe fn store_plainly(to: *mut u8, from: &[u8], back: WriteBack) {
    if from.is_empty() {
        return;
    }
    // SAFETY: the range is the caller's. A `Way` has only instructions that were detected; they access no byte beyond the
    // lines of the range, which lie in its pages.
    unsafe {
        copy(from.as_ptr(), to, from.len());
        let first = to.sub(to as usize % LINE_BYTES);
        let lines = (to.add(from.len()) as usize - first as usize).div_ceil(LINE_BYTES);
        for line in (0..lines).map(|line| first.add(line * LINE_BYTES)) {
            match back {
                WriteBack::Clwb => asm!("clwb [{}]", in(reg) line, options(nostack, preserves_flags)),
                WriteBack::ClflushOpt => asm!("clflushopt [{}]", in(reg) line, options(nostack, preserves_flags)),
                WriteBack::Clflush => asm!("clflush [{}]", in(reg) line, options(nostack, preserves_flags)),
            }
        }
    }
}

/// Copies bytes out of a region.
///
/// # Safety
///
/// `from` is valid for reads of as many bytes, and memory of a mapping, which is accessed by this file alone.
#[allow(unsafe_code, reason = "the region is memory that no reference of Rust covers")]
pub unsafe fn read(from: *const u8, into: &mut [u8]) {
    // SAFETY: the caller's range is read, and all of `into` is written.
    unsafe { copy(from, into.as_mut_ptr(), into.len()) }
}

/// Copies bytes in an order that the processor selects.
///
/// # Safety
///
/// `from` is valid for reads, and `to` for writes, of as many bytes; they do not overlap.
#[allow(unsafe_code, reason = "one side of the copy is memory that no reference of Rust covers")]
unsafe fn copy(from: *const u8, to: *mut u8, bytes: usize) {
    // SAFETY: `rep movsb` copies as many bytes upwards; the direction flag is clear by the rules of `asm!`.
    unsafe {
        asm!(
            "rep movsb",
            inout("rcx") bytes => _,
            inout("rsi") from => _,
            inout("rdi") to => _,
            options(nostack, preserves_flags),
        );
    }
}

/// Waits until all stores of this thread that passed the caches, or were written back, are in memory.
#[allow(unsafe_code, reason = "an instruction that only orders stores")]
pub fn fence() {
    // SAFETY: `sfence` is an instruction of SSE, and accesses nothing. Without the option `nomem`, the compiler moves no
    // access across it.
    unsafe { asm!("sfence", options(nostack, preserves_flags)) }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Each width is tested on any processor that has it, not the widest alone.
    #[test]
    fn every_width_of_non_temporal_stores_stores_the_same_bytes() {
        let bytes: Vec<u8> = (0..1000u32).map(|at| (at * 7 % 251) as u8).collect();
        let widths = [
            (Width::Avx512, is_x86_feature_detected!("avx512f")),
            (Width::Avx2, is_x86_feature_detected!("avx2")),
            (Width::Sse2, true),
        ];
        for (width, _) in widths.into_iter().filter(|(_, is_present)| *is_present) {
            for (at, length) in [(0, 0), (0, 64), (64, 640), (1, 1), (63, 2), (5, 59), (7, 900), (64, 1000), (0, 130)] {
                let mut region = vec![0u8; 2048 + LINE_BYTES];
                let start = region.as_ptr().align_offset(LINE_BYTES);
                let way = Way { streams: Some(width), back: WriteBack::Clflush };
                #[allow(unsafe_code, reason = "it calls what is tested")]
                // SAFETY: the range lies in `region`, which nobody else accesses.
                unsafe {
                    store(region.as_mut_ptr().add(start + at), &bytes[..length], way);
                }
                fence();
                let mut expected = vec![0u8; region.len()];
                expected[start + at..start + at + length].copy_from_slice(&bytes[..length]);
                assert_eq!(region, expected, "{width:?}: {length} bytes at {at}");
            }
        }
    }
}
