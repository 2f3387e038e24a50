//! Runs in a bitmap. Bit `n` is bit `n % 8` of byte `n / 8`; one that is set is in use.

use std::ops::Range;

pub fn is_set(bits: &[u8], at: u32) -> bool {
    bits[at as usize / 8] >> (at % 8) & 1 == 1
}

/// Sets a range of bits, or clears it.
pub fn put(bits: &mut [u8], range: Range<u32>, is_used: bool) {
    if range.is_empty() {
        return;
    }
    let (first, last) = (range.start as usize / 8, range.end as usize / 8);
    let (from, below) = (0xFF_u8 << (range.start % 8), !(0xFF_u8 << (range.end % 8)));
    let mut put_some = |byte: usize, mask: u8| match is_used {
        true => bits[byte] |= mask,
        false => bits[byte] &= !mask,
    };
    if first == last {
        return put_some(first, from & below);
    }
    put_some(first, from);
    if below != 0 {
        put_some(last, below);
    }
    bits[first + 1..last].fill(if is_used { 0xFF } else { 0 });
}

/// The first bit from `from` to `end` that is clear, or set.
fn next(bits: &[u8], from: u32, end: u32, is_used: bool) -> Option<u32> {
    let skipped: u64 = if is_used { 0 } else { u64::MAX };
    let mut at = from;
    while at < end {
        let byte = at as usize / 8;
        let word = bits.get(byte..byte + 8).filter(|_| at.is_multiple_of(8));
        if word.is_some_and(|word| word == skipped.to_le_bytes()) {
            at += 64;
            continue;
        }
        let looked_for = (bits[byte] ^ skipped as u8) >> (at % 8);
        if looked_for != 0 {
            let found = at + looked_for.trailing_zeros();
            return (found < end).then_some(found);
        }
        at = (at / 8 + 1) * 8;
    }
    None
}

/// The first clear bit from `from` to `end`.
pub fn next_clear(bits: &[u8], from: u32, end: u32) -> Option<u32> {
    next(bits, from, end, false)
}

/// The first set bit from `from` to `end`.
pub fn next_used(bits: &[u8], from: u32, end: u32) -> Option<u32> {
    next(bits, from, end, true)
}

/// The number of clear bits.
pub fn count_clear(bits: &[u8], end: u32) -> u32 {
    let whole = &bits[..end as usize / 8];
    let rest = (end / 8 * 8..end).filter(|at| !is_set(bits, *at)).count() as u32;
    whole.iter().map(|byte| byte.count_zeros()).sum::<u32>() + rest
}

/// The run of at most `count` clear bits that begins at `at`, if that is clear.
pub fn run_at(bits: &[u8], at: u32, end: u32, count: u32) -> Option<Range<u32>> {
    let end = end.min(at.saturating_add(count));
    (at < end && !is_set(bits, at)).then(|| at..next(bits, at, end, true).unwrap_or(end))
}

/// The first run of `count` clear bits from `from` to `end`; if there is none, the longest.
pub fn find_run(bits: &[u8], from: u32, end: u32, count: u32) -> Option<Range<u32>> {
    let mut longest: Option<Range<u32>> = None;
    let mut at = from;
    while let Some(first) = next_clear(bits, at, end) {
        let behind = next(bits, first, end.min(first.saturating_add(count)), true);
        let run = first..behind.unwrap_or(end.min(first.saturating_add(count)));
        if run.end - run.start >= count {
            return Some(run);
        }
        at = run.end;
        if longest.as_ref().is_none_or(|longest| run.end - run.start > longest.end - longest.start) {
            longest = Some(run);
        }
    }
    longest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_range_of_bits_is_put_and_no_other_bit() {
        for (start, end) in (0..=40).flat_map(|start| (start..=40).map(move |end| (start, end))) {
            for is_used in [true, false] {
                let mut bits = if is_used { [0; 5] } else { [0xFF; 5] };
                put(&mut bits, start..end, is_used);
                assert!(
                    (0..40).all(|at| (is_set(&bits, at) == is_used) == (start..end).contains(&at)),
                    "{start}..{end}"
                );
            }
        }
    }

    #[test]
    fn a_run_is_the_first_that_is_long_enough_or_the_longest() {
        let mut bits = [0u8; 16];
        put(&mut bits, 0..128, true);
        for range in [3..5, 20..47, 60..100] {
            put(&mut bits, range, false);
        }
        assert_eq!(count_clear(&bits, 128), 2 + 27 + 40);
        assert_eq!(find_run(&bits, 0, 128, 2), Some(3..5));
        assert_eq!(find_run(&bits, 0, 128, 20), Some(20..40));
        assert_eq!(find_run(&bits, 21, 128, 27), Some(60..87));
        assert_eq!(find_run(&bits, 0, 128, 50), Some(60..100));
        assert_eq!((find_run(&bits, 100, 128, 1), next_clear(&bits, 5, 20)), (None, None));
        assert_eq!((run_at(&bits, 22, 128, 99), run_at(&bits, 22, 128, 3)), (Some(22..47), Some(22..25)));
        assert_eq!((run_at(&bits, 47, 128, 1), run_at(&bits, 128, 128, 1)), (None, None));
        put(&mut bits, 61..63, true);
        assert_eq!(find_run(&bits, 47, 128, 2), Some(63..65));
    }
}
