//! A memory for tests, which knows what a loss of power would leave.
//!
//! **The fault model.** A line of 64 bytes that was stored to, and that no thread has fenced since it stored there, keeps
//! its durable content or takes that of any store since: each line for itself, in any combination. A fence makes durable
//! the lines to which its thread has stored, with all that other threads had stored to them before. So a store of several
//! lines can be lost in part, and a later store can survive without an earlier one. A line is whole: all of its 64 bytes
//! are of one moment. [`Lines::torn_sample`] drops this promise, and keeps only that of words of 8 bytes.
//!
//! Not modelled: damage of lines that were not stored to, and errors of reads.
//!
//! A thread is one of the system. Tasks that a scheduler runs in one thread share their fences here.

use super::{LINE_BYTES, Nvm, Survival};
use crate::random::Random;
use crate::time::Time;
use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, ThreadId};

/// Bytes that a processor stores at once.
const WORD_BYTES: usize = 8;

type Line = [u8; LINE_BYTES];

/// The content of a line after a store that nobody has fenced.
#[derive(Clone, Debug)]
struct Version {
    thread: ThreadId,
    bytes: Line,
}

/// A memory whose lines survive a loss of power in any combination. Clones share it.
#[derive(Clone, Debug)]
pub struct Lines(Arc<Mutex<State>>);

#[derive(Debug)]
struct State {
    /// The content that survives at least.
    durable: Vec<u8>,
    /// The content that threads read.
    visible: Vec<u8>,
    /// By the number of the line: what may survive in place of its durable content, in the order of stores.
    unfenced: BTreeMap<u64, Vec<Version>>,
    /// Stores and fences so far.
    operations: u64,
    cut_before: Option<u64>,
}

impl State {
    fn is_cut(&self) -> bool {
        self.cut_before.is_some_and(|operation| self.operations > operation)
    }

    fn line(contents: &[u8], number: u64) -> Line {
        let start = number as usize * LINE_BYTES;
        contents[start..start + LINE_BYTES].try_into().expect("it is a line")
    }

    fn store(&mut self, at: u64, from: &[u8]) {
        let start = usize::try_from(at).expect("the region is in memory");
        let end = start.checked_add(from.len()).expect("the region is in memory");
        self.visible[start..end].copy_from_slice(from);
        self.operations += 1;
        if self.is_cut() || from.is_empty() {
            return;
        }
        let thread = thread::current().id();
        for number in (start / LINE_BYTES) as u64..end.div_ceil(LINE_BYTES) as u64 {
            let bytes = State::line(&self.visible, number);
            let versions = self.unfenced.entry(number).or_default();
            if versions.last().is_none_or(|last| last.bytes != bytes || last.thread != thread) {
                versions.push(Version { thread, bytes });
            }
        }
    }

    fn fence(&mut self) {
        self.operations += 1;
        if self.is_cut() {
            return;
        }
        let thread = thread::current().id();
        for (number, versions) in &mut self.unfenced {
            let Some(last) = versions.iter().rposition(|version| version.thread == thread) else { continue };
            let start = *number as usize * LINE_BYTES;
            self.durable[start..start + LINE_BYTES].copy_from_slice(&versions[last].bytes);
            versions.drain(..=last);
        }
        self.unfenced.retain(|_, versions| !versions.is_empty());
    }

    /// The durable contents, with the chosen version of each unfenced line; 0 is the durable one.
    fn with_versions(&self, mut choose: impl FnMut(u64, usize) -> usize) -> Vec<u8> {
        let mut contents = self.durable.clone();
        for (number, versions) in &self.unfenced {
            if let Some(version) = choose(*number, versions.len()).checked_sub(1) {
                let start = *number as usize * LINE_BYTES;
                contents[start..start + LINE_BYTES].copy_from_slice(&versions[version].bytes);
            }
        }
        contents
    }
}

impl Lines {
    /// Memory of zeros.
    ///
    /// # Panics
    ///
    /// If it has no whole lines.
    pub fn new(bytes: u64) -> Lines {
        Lines::of(vec![0; usize::try_from(bytes).expect("the region is in memory")])
    }

    /// Memory with these durable contents, such as those that a loss of power left.
    ///
    /// # Panics
    ///
    /// If they are no whole lines.
    pub fn of(contents: Vec<u8>) -> Lines {
        assert!(contents.len().is_multiple_of(LINE_BYTES), "{} bytes are no whole lines", contents.len());
        let (visible, unfenced) = (contents.clone(), BTreeMap::new());
        let state = State { durable: contents, visible, unfenced, operations: 0, cut_before: None };
        Lines(Arc::new(Mutex::new(state)))
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Cuts the power before this operation, numbered from 0 over all threads: each store and each fence is one. The
    /// threads go on, and read what they store, but nothing of it survives.
    pub fn cut_before(&self, operation: u64) {
        self.state().cut_before = Some(operation);
    }

    /// True if the power was cut.
    pub fn is_cut(&self) -> bool {
        self.state().is_cut()
    }

    /// Stores and fences so far: the number of the next one.
    pub fn operations(&self) -> u64 {
        self.state().operations
    }

    /// The number of each line that was stored to and not fenced, and how many contents may survive in place of its
    /// durable one.
    pub fn unfenced(&self) -> Vec<(u64, usize)> {
        self.state().unfenced.iter().map(|(number, versions)| (*number, versions.len())).collect()
    }

    /// The content that a loss of power leaves: the newest content of each unfenced line that `pick` answers `true` for, and the
    /// durable content of the others.
    pub fn crash(&self, mut pick: impl FnMut(u64) -> bool) -> Vec<u8> {
        self.crash_with(|line, versions| if pick(line) { versions } else { 0 })
    }

    /// The same; `choose` gets the number of a line and of its unfenced contents, and answers which of them survives: 0
    /// is the durable one, 1 the oldest of the others.
    ///
    /// # Panics
    ///
    /// If it answers a greater number.
    pub fn crash_with(&self, choose: impl FnMut(u64, usize) -> usize) -> Vec<u8> {
        self.state().with_versions(choose)
    }

    /// The number of different combinations that may survive, if it fits.
    pub fn combinations(&self) -> Option<u64> {
        let state = self.state();
        state.unfenced.values().try_fold(1u64, |all, versions| all.checked_mul(versions.len() as u64 + 1))
    }

    /// All combinations that may survive, if there are at most `most`.
    pub fn all_crashes(&self, most: u64) -> Option<impl Iterator<Item = Vec<u8>> + use<>> {
        let count = self.combinations().filter(|count| *count <= most)?;
        let lines = self.clone();
        Some((0..count).map(move |combination| {
            let mut rest = combination;
            lines.crash_with(|_, versions| {
                let choices = versions as u64 + 1;
                let chosen = rest % choices;
                rest /= choices;
                chosen as usize
            })
        }))
    }

    /// One combination at random. A third of them keep most lines as they were, and a third keep most newest contents:
    /// faults of an order of stores need a single line that is lost, or that alone survives.
    pub fn sample(&self, random: &mut Random) -> Vec<u8> {
        let kind = random.below(3);
        self.crash_with(|_, versions| match (kind, random.below(8)) {
            (1, 1..) => 0,
            (2, 1..) => versions,
            _ => random.below(versions as u64 + 1) as usize,
        })
    }

    /// The same, without the promise that a line is whole: each of its words of 8 bytes is of any store for itself, as
    /// when narrow stores to a line reach memory one by one.
    pub fn torn_sample(&self, random: &mut Random) -> Vec<u8> {
        let state = self.state();
        let mut contents = state.durable.clone();
        for (number, versions) in &state.unfenced {
            let start = *number as usize * LINE_BYTES;
            for word in (0..LINE_BYTES).step_by(WORD_BYTES) {
                let chosen = random.below(versions.len() as u64 + 1) as usize;
                if let Some(version) = chosen.checked_sub(1) {
                    let bytes = &versions[version].bytes[word..word + WORD_BYTES];
                    contents[start + word..start + word + WORD_BYTES].copy_from_slice(bytes);
                }
            }
        }
        contents
    }
}

impl Nvm for Lines {
    fn bytes(&self) -> u64 {
        self.state().visible.len() as u64
    }

    fn read(&self, at: u64, into: &mut [u8]) {
        let start = usize::try_from(at).expect("the region is in memory");
        into.copy_from_slice(&self.state().visible[start..start + into.len()]);
    }

    fn store(&self, at: u64, from: &[u8]) {
        self.state().store(at, from);
    }

    fn fence(&self) {
        self.state().fence();
    }

    fn stored_by(&self, at: Time, _: &mut dyn Iterator<Item = Range<u64>>) -> Time {
        at
    }

    fn read_by(&self, at: Time, _: &mut dyn Iterator<Item = Range<u64>>) -> Time {
        at
    }

    fn survival(&self) -> Survival {
        Survival::PowerLoss
    }

    fn is_timed(&self) -> bool {
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    /// The first byte of each of the first lines.
    fn heads(contents: &[u8], lines: usize) -> Vec<u8> {
        contents.iter().step_by(LINE_BYTES).take(lines).copied().collect()
    }

    fn all(lines: &Lines, count: usize) -> BTreeSet<Vec<u8>> {
        lines.all_crashes(1000).unwrap().map(|contents| heads(&contents, count)).collect()
    }

    fn on_another_thread(act: impl FnOnce() + Send) {
        thread::scope(|scope| scope.spawn(act).join().unwrap());
    }

    #[test]
    fn unfenced_lines_survive_in_any_combination_and_fenced_ones_always() {
        let lines = Lines::new(4 * 64);
        lines.store(0, &[1; 64]);
        lines.fence();
        lines.store(64, &[2; 128]);
        assert_eq!(lines.unfenced(), [(1, 1), (2, 1)]);
        let expected = [[1, 0, 0], [1, 2, 0], [1, 0, 2], [1, 2, 2]].map(Vec::from);
        assert_eq!(all(&lines, 3), BTreeSet::from(expected));
        assert_eq!(heads(&lines.crash(|line| line == 2), 4), [1, 0, 2, 0]);
        lines.fence();
        assert_eq!((lines.combinations(), all(&lines, 3)), (Some(1), BTreeSet::from([vec![1, 2, 2]])));
    }

    #[test]
    fn a_line_that_was_stored_several_times_survives_as_any_of_its_versions() {
        let lines = Lines::new(2 * 64);
        for value in 1..=3 {
            lines.store(0, &[value; 64]);
        }
        lines.store(64, &[9; 8]);
        assert_eq!(lines.combinations(), Some(4 * 2));
        let found = all(&lines, 2);
        assert_eq!(found.len(), 8);
        assert!((0..=3).all(|value| found.contains(&vec![value, 0]) && found.contains(&vec![value, 9])));
    }

    #[test]
    fn a_store_of_a_part_of_a_line_keeps_the_rest_of_it() {
        let lines = Lines::of(vec![5; 128]);
        lines.store(60, &[6; 8]);
        assert_eq!(lines.unfenced(), [(0, 1), (1, 1)]);
        let crashed = lines.crash(|line| line == 1);
        assert_eq!((&crashed[..64], &crashed[64..68], &crashed[68..]), (&[5; 64][..], &[6; 4][..], &[5; 60][..]));
        let mut read = [0; 8];
        lines.read(60, &mut read);
        assert_eq!(read, [6; 8], "a thread reads what it stored");
    }

    #[test]
    fn a_fence_covers_the_lines_of_its_thread_alone() {
        let lines = Lines::new(2 * 64);
        lines.store(0, &[1; 64]);
        on_another_thread(|| {
            lines.store(64, &[2; 64]);
            lines.fence();
        });
        assert_eq!(all(&lines, 2), BTreeSet::from([vec![0, 2], vec![1, 2]]));
        lines.fence();
        assert_eq!(all(&lines, 2), BTreeSet::from([vec![1, 2]]));
    }

    /// A line is written back as a whole: the other thread's bytes go with it, but not those that it stores later.
    #[test]
    fn a_fenced_line_has_what_other_threads_stored_to_it_before() {
        let lines = Lines::new(64);
        lines.store(0, &[1; 8]);
        on_another_thread(|| {
            lines.store(8, &[2; 8]);
            lines.fence();
        });
        assert!(lines.unfenced().is_empty());
        let durable = lines.crash(|_| false);
        assert_eq!((&durable[..8], &durable[8..16]), (&[1; 8][..], &[2; 8][..]));
        lines.store(0, &[3; 8]);
        assert_eq!(all(&lines, 1), BTreeSet::from([vec![1], vec![3]]));
    }

    /// A record that is stored and fenced behind its data: it never survives without them.
    #[test]
    fn at_every_cut_a_fenced_order_of_stores_is_kept_and_an_unfenced_one_is_not() {
        let record_without_data = |fences_data: bool| {
            let history = |lines: &Lines| {
                lines.store(0, &[1; 128]);
                if fences_data {
                    lines.fence();
                }
                lines.store(128, &[2; 64]);
                lines.fence();
            };
            let whole = Lines::new(3 * 64);
            history(&whole);
            let mut found = 0;
            for operation in 0..=whole.operations() {
                let lines = Lines::new(3 * 64);
                lines.cut_before(operation);
                history(&lines);
                assert_eq!(lines.is_cut(), operation < whole.operations());
                let mut read = [0; 64];
                lines.read(128, &mut read);
                assert_eq!(read, [2; 64], "the threads go on");
                found += all(&lines, 3).iter().filter(|heads| heads[2] == 2 && heads[..2] != [1, 1]).count();
            }
            found
        };
        assert_eq!(record_without_data(true), 0);
        assert_eq!(record_without_data(false), 3, "before the fence, with one line of data or none");
    }

    #[test]
    fn samples_are_crashes_and_find_all_of_a_small_history() {
        let lines = Lines::new(3 * 64);
        lines.store(0, &[1; 192]);
        lines.store(64, &[2; 64]);
        let mut random = Random::new(7, "test");
        let sampled: BTreeSet<Vec<u8>> = (0..500).map(|_| heads(&lines.sample(&mut random), 3)).collect();
        assert_eq!(sampled, all(&lines, 3));
        lines.store(0, &[1; 192]);
        assert!(lines.all_crashes(10).is_none(), "too many");
    }

    #[test]
    fn only_a_torn_sample_divides_a_line_and_it_keeps_words_whole() {
        let lines = Lines::new(64);
        lines.store(0, &[1; 64]);
        let mut random = Random::new(3, "test");
        assert!((0..100).all(|_| lines.sample(&mut random).iter().collect::<BTreeSet<_>>().len() == 1));
        let torn: Vec<Vec<u8>> = (0..100).map(|_| lines.torn_sample(&mut random)).collect();
        assert!(torn.iter().any(|line| line.contains(&0) && line.contains(&1)));
        assert!(torn.iter().all(|line| line.chunks(8).all(|word| word.iter().all(|byte| *byte == word[0]))));
    }
}
