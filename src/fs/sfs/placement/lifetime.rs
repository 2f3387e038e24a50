//! Our grouping: by the lifetime that is expected of a block.
//!
//! | group | blocks |
//! |---|---|
//! | 0 to 2 | expected to be overwritten within a class of times: each is four times as long as the one before |
//! | 3 | expected to live longer; new, of a file about which nothing is known; all blocks as long as they seem to die alike |
//!
//! **The estimate.** A block keeps one byte: the mean of the logarithms of its lifetimes, in which the last one counts
//! half, the one before a quarter, and so on. SepBIT's predictor is the last lifetime alone, which says little where
//! blocks die at random: of two blocks with equal rates, the logarithms of their last lifetimes often differ by a factor
//! of ten, those of this mean by three. SFS's hotness, writes over the time since the last one, has no bound where the
//! last write was just now. Here no lifetime, however short or long, moves a block by more than half the way.
//!
//! **A host write** goes by the estimate with the lifetime that it ends. **A new block** goes by what it is said to be
//! (a [`Hint`]), apart from all blocks of which nothing is said as long as these are in one group. One behind the end of its file goes by the mean lifetime of the file's other blocks, or to the last
//! group. One in a hole was not written as long as the file is known, and is expected to live at least as long. **A cleaned
//! block** goes by its estimate and its age together: the longer it lived beyond what was expected, the longer it will;
//! if it was written once only, by its age.
//!
//! **One group**, the last, is used as long as all blocks seem to die alike: estimates foretell nothing
//! (`Foresight`), and lifetimes spread no more than those of one rate (`Spread`). There, groups would only cost open segments
//! and summaries.
//!
//! **The classes** are relative to the size of the volume: lifetimes matter to a log by the share of it that is written
//! meanwhile. The first class ends at a 64th of the volume, the third at a quarter of it. Blocks of shorter
//! lifetimes are dead before their segment is cleaned, and those of longer ones are alive: to separate them saves little, and
//! each group costs an open segment, and the syncs a summary. Ticks are converted by the observed number of ticks per written block.

use super::{BlockView, Grouping, GroupingSettings, Hint, Tick, VolumeShape, hotness};

/// Groups, one for each class of lifetimes.
const CLASSES: usize = 4;
/// The group of the longest lifetimes, of new blocks of which nothing is known, and of all blocks as long as they seem to die alike.
const LAST: usize = CLASSES - 1;
/// The parts of a volume: within the time in which one is written, lifetimes are not distinguished.
const FINEST: f64 = 256.0;
/// The doublings of lifetimes per class.
const DOUBLINGS: f64 = 2.0;
/// The steps of a stored estimate per doubling: 255 of them reach 2^42 ticks.
const STEPS: f64 = 6.0;
/// The weight of the last lifetime among those of a block.
const WEIGHT: f64 = 0.5;
/// Files whose blocks' lifetimes are remembered, by the low bits of their inode numbers.
const FILES: usize = 4096;
/// The weight of the last lifetime among those of a file's blocks.
const WEIGHT_IN_FILE: f64 = 1.0 / 64.0;
/// Overwritten blocks after which the past of [`Foresight`] and [`Spread`] counts half, and the fewest that say something.
const FORESEEN: f64 = 65_536.0;
const FEWEST_FORESEEN: f64 = 1024.0;
/// The doublings that estimates have to tell apart for groups to pay: docs/decisions/0015-heads.md.
const TOLD_APART: f64 = 0.1;
/// The squared coefficient of variation of lifetimes where all blocks die at random at one rate is 1, as that of all exponential
/// distributions; a fifth more is not chance.
const ONE_RATE: f64 = 1.2;
/// The parts of a volume after which the ticks per block are measured anew.
const MEASURED: u64 = 64;

/// The grouping has no options.
#[derive(Clone, Copy, Debug)]
pub struct LifetimeSettings;

impl GroupingSettings for LifetimeSettings {
    fn start(&self, volume: VolumeShape) -> Box<dyn Grouping> {
        Box::new(Lifetime::new(volume))
    }

    fn uses_hints(&self) -> bool {
        true
    }
}

/// What is known of the lifetimes of a file's blocks.
#[derive(Clone, Copy, Debug, Default)]
struct FileLives {
    inode: u64,
    /// The mean of their logarithms, in doublings; `None` before the first block was overwritten.
    doublings: Option<f64>,
    /// When its first block was written, as far as is known.
    since: Tick,
    /// The place after its last block, as far as is known.
    end: u64,
}

/// How well estimates foretell lifetimes: sums over overwritten blocks of the estimate x before and of the lifetime y, both in
/// doublings.
#[derive(Clone, Copy, Debug, Default)]
struct Foresight {
    count: f64,
    x: f64,
    y: f64,
    xx: f64,
    xy: f64,
}

impl Foresight {
    /// Counts an overwritten block.
    fn count(&mut self, estimate: f64, lived: f64) {
        if self.count >= FORESEEN {
            let Foresight { count, x, y, xx, xy } = *self;
            *self = Foresight { count: count / 2.0, x: x / 2.0, y: y / 2.0, xx: xx / 2.0, xy: xy / 2.0 };
        }
        self.count += 1.0;
        self.x += estimate;
        self.y += lived;
        self.xx += estimate * estimate;
        self.xy += estimate * lived;
    }

    /// The doublings by which estimates tell lifetimes apart: the slope of the regression of y on x, times the standard
    /// deviation of x. With uniform writes about 0, with Zipf writes 0.5 to 5. 0 before enough is known.
    fn told_apart(&self) -> f64 {
        if self.count < FEWEST_FORESEEN {
            return 0.0;
        }
        let variance = self.xx / self.count - (self.x / self.count).powi(2);
        let covariance = self.xy / self.count - self.x / self.count * self.y / self.count;
        if variance > 0.0 { covariance / variance.sqrt() } else { 0.0 }
    }
}

/// How far lifetimes spread: sums over overwritten blocks of their lifetimes and of the squares of these, in ticks.
///
/// Where few blocks take most writes, nearly all lifetimes that end are of these, and differ by chance alone: [`Foresight`] needs
/// two lifetimes of many cold blocks. The squares are mostly those of the cold blocks, from their first overwrite on.
#[derive(Clone, Copy, Debug, Default)]
struct Spread {
    count: f64,
    lives: f64,
    squares: f64,
}

impl Spread {
    /// Counts an overwritten block that lived so many ticks.
    fn count(&mut self, ticks: f64) {
        if self.count >= FORESEEN {
            let Spread { count, lives, squares } = *self;
            *self = Spread { count: count / 2.0, lives: lives / 2.0, squares: squares / 2.0 };
        }
        self.count += 1.0;
        self.lives += ticks;
        self.squares += ticks * ticks;
    }

    /// The squared coefficient of variation: the variance over the square of the mean. 0 if all lifetimes are the same, about 1
    /// with uniform writes, 1 to 5 with Zipf writes. 0 before enough is known.
    fn variation(&self) -> f64 {
        if self.count < FEWEST_FORESEEN {
            return 0.0;
        }
        // A lifetime is at least a tick, so that the sum of them is not 0.
        self.squares * self.count / (self.lives * self.lives) - 1.0
    }
}

/// The grouping by lifetime.
#[derive(Clone, Debug)]
pub struct Lifetime {
    volume_blocks: f64,
    ticks_per_block: f64,
    /// The begin of the present measurement of it, and the blocks written since; `None` before the first write.
    measured_since: Option<Tick>,
    blocks: u64,
    files: Vec<FileLives>,
    foresight: Foresight,
    spread: Spread,
}

impl Lifetime {
    /// A grouping for a volume.
    pub fn new(volume: VolumeShape) -> Lifetime {
        Lifetime {
            volume_blocks: volume.blocks().max(1) as f64,
            ticks_per_block: 1.0,
            measured_since: None,
            blocks: 0,
            files: vec![FileLives::default(); FILES],
            foresight: Foresight::default(),
            spread: Spread::default(),
        }
    }

    /// True if nothing is known by which blocks live differently.
    fn is_all_alike(&self) -> bool {
        self.foresight.told_apart() < TOLD_APART && self.spread.variation() <= ONE_RATE
    }

    /// The class of a lifetime in doublings of a tick.
    fn class_of(&self, doublings: f64) -> usize {
        let finest = (self.ticks_per_block * self.volume_blocks / FINEST).log2();
        (((doublings - finest) / DOUBLINGS).max(0.0) as usize).min(CLASSES - 1)
    }

    /// The group of a new block.
    fn group_of_new(&self, block: &BlockView, now: Tick) -> usize {
        let file = &self.files[block.inode as usize % FILES];
        if file.inode != block.inode || file.end == 0 {
            return LAST;
        }
        let is_in_hole = block.place < file.end;
        let age = is_in_hole.then(|| (hotness::age(file.since, now) as f64).log2());
        match (file.doublings, age) {
            (None, None) => LAST,
            (doublings, age) => self.class_of(doublings.unwrap_or(0.0).max(age.unwrap_or(0.0))),
        }
    }

    /// Counts a block written by the host: the ticks per block, and the lifetime that it ends.
    fn count(&mut self, block: &BlockView, now: Tick) {
        let since = *self.measured_since.get_or_insert(now);
        self.blocks += 1;
        if self.blocks >= (self.volume_blocks as u64 / MEASURED).max(1) {
            let measured = now.0.saturating_sub(since.0).max(1) as f64 / self.blocks as f64;
            self.ticks_per_block = (self.ticks_per_block + measured) / 2.0;
            (self.measured_since, self.blocks) = (Some(now), 0);
        }
        let file = &mut self.files[block.inode as usize % FILES];
        if file.inode != block.inode {
            *file = FileLives { inode: block.inode, doublings: None, since: now, end: 0 };
        }
        file.end = file.end.max(block.place.saturating_add(1));
        if block.block.writes > 0 {
            let lived = lived(block, now);
            self.spread.count(hotness::age(block.block.modified, now) as f64);
            file.doublings = Some(file.doublings.map_or(lived, |mean| mean + (lived - mean) * WEIGHT_IN_FILE));
            if let Some(estimate) = estimate(block) {
                self.foresight.count(estimate, lived);
            }
        }
    }
}

/// The time since the last write of a block, in doublings of a tick.
fn lived(block: &BlockView, now: Tick) -> f64 {
    (hotness::age(block.block.modified, now) as f64).log2()
}

/// The stored estimate of a block, in doublings.
fn estimate(block: &BlockView) -> Option<f64> {
    (block.memory > 0).then(|| f64::from(block.memory - 1) / STEPS)
}

/// The estimate with the lifetime that a write ends.
fn renewed(block: &BlockView, now: Tick) -> f64 {
    let lived = lived(block, now);
    estimate(block).map_or(lived, |before| before + (lived - before) * WEIGHT)
}

impl Grouping for Lifetime {
    fn groups(&self) -> usize {
        CLASSES
    }

    fn group_of(&mut self, block: &BlockView, now: Tick) -> usize {
        let is_new = block.block.writes == 0;
        let is_hinted = is_new && !matches!(block.hint, Hint::None | Hint::Unhinted);
        let is_all_alike = self.is_all_alike();
        if !is_hinted && is_all_alike {
            return LAST;
        }
        match (block.cleaned_from, block.hint) {
            (Some(_), _) => {
                let age = lived(block, now);
                let expected = estimate(block).map_or(age, |doublings| (doublings.exp2() + age.exp2()).log2());
                self.class_of(expected)
            }
            (None, Hint::Short) if is_new => 0,
            (None, Hint::Medium) if is_new => 1,
            (None, Hint::Long) if is_new => 2,
            // The last group holds all that nothing is said of.
            (None, Hint::Extreme) if is_new && is_all_alike => LAST - 1,
            (None, Hint::Extreme) if is_new => LAST,
            (None, _) if is_new => self.group_of_new(block, now),
            (None, _) => self.class_of(renewed(block, now)),
        }
    }

    fn written(&mut self, block: &BlockView, _group: Option<u8>, now: Tick) -> u8 {
        if block.cleaned_from.is_some() {
            return block.memory;
        }
        self.count(block, now);
        match block.block.writes {
            0 => 0,
            _ => (renewed(block, now) * STEPS).round().min(254.0) as u8 + 1,
        }
    }

    /// The ticks per block, the sums of the foresight, and those of the spread.
    fn state(&self) -> Vec<f64> {
        let Foresight { count, x, y, xx, xy } = self.foresight;
        let Spread { count: ended, lives, squares } = self.spread;
        vec![self.ticks_per_block, count, x, y, xx, xy, ended, lives, squares]
    }

    fn restore(&mut self, memory: &[f64]) {
        let Some((ticks_per_block, sums)) = memory.split_first() else { return };
        if (1e-9..=u64::MAX as f64).contains(ticks_per_block) {
            self.ticks_per_block = *ticks_per_block;
        }
        // Doublings of ticks are below 64, and squares below 4096.
        if let Some(&[count, x, y, xx, xy]) = sums.first_chunk()
            && (0.0..=FORESEEN).contains(&count)
            && [x, y].iter().all(|sum| (0.0..=64.0 * count).contains(sum))
            && [xx, xy].iter().all(|sum| (0.0..=4096.0 * count).contains(sum))
        {
            self.foresight = Foresight { count, x, y, xx, xy };
        }
        // Lifetimes are 1 to 2^64 ticks. A volume of an earlier program does not know them.
        let ticks = u64::MAX as f64;
        if let Some(&[count, lives, squares]) = sums.get(5..).and_then(<[f64]>::first_chunk)
            && (0.0..=FORESEEN).contains(&count)
            && (count..=count * ticks).contains(&lives)
            && (lives..=lives * ticks).contains(&squares)
        {
            self.spread = Spread { count, lives, squares };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::views::block;
    use super::*;

    const NOW: Tick = Tick(10_000_000);

    /// A volume of 2^20 blocks: classes end at 2^14, 2^16, ... ticks. Estimates have foretold lifetimes well.
    fn grouping() -> Lifetime {
        let mut groups = Lifetime::new(VolumeShape { seed: 1, segments: 1024, segment_blocks: 1024 });
        (0..2000).for_each(|at| groups.foresight.count(f64::from(at % 40), f64::from(at % 40)));
        (0..2000).for_each(|_| groups.spread.count(1000.0));
        groups
    }

    /// Writes a block anew at these intervals, and returns its view after the last one.
    fn overwritten(groups: &mut Lifetime, intervals: &[u64]) -> BlockView {
        let mut view = block(1, NOW.0 - intervals.iter().sum::<u64>());
        for interval in intervals {
            let now = Tick(view.block.modified.0 + interval);
            view.memory = groups.written(&view, Some(0), now);
            view.block.writes += 1;
            view.block.modified = now;
        }
        view
    }

    #[test]
    fn a_block_goes_to_the_class_of_its_lifetimes() {
        let mut groups = grouping();
        let classes = [10, 1 << 13, 1 << 15, 1 << 17, 1 << 19, 1 << 20].map(|interval| {
            let view = overwritten(&mut groups, &[interval; 2]);
            groups.group_of(&view, Tick(NOW.0 + interval))
        });
        assert_eq!(classes, [0, 0, 1, 2, 3, 3]);
    }

    #[test]
    fn one_unusual_lifetime_moves_a_block_half_the_way() {
        let mut groups = grouping();
        let cold = overwritten(&mut groups, &[1 << 20; 3]);
        assert_eq!(groups.group_of(&cold, Tick(NOW.0 + 1)), 0, "1 tick beside 2^20: 2^10");
        assert_eq!(groups.group_of(&cold, Tick(NOW.0 + (1 << 10))), 1, "2^10 beside 2^20: 2^15");
        let hot = overwritten(&mut groups, &[16; 3]);
        assert_eq!(groups.group_of(&hot, Tick(NOW.0 + (1 << 26))), 1, "2^26 beside 2^4: 2^15");
    }

    #[test]
    fn a_cleaned_block_is_grouped_by_its_estimate_and_its_age() {
        let mut groups = grouping();
        let cleaned = |view| BlockView { cleaned_from: Some(0), ..view };
        let hot = cleaned(overwritten(&mut groups, &[16; 3]));
        let later = |ticks| Tick(NOW.0 + ticks);
        assert_eq!((groups.group_of(&hot, later(16)), groups.group_of(&hot, later(1 << 19))), (0, 3));
        let cold = cleaned(overwritten(&mut groups, &[1 << 19; 3]));
        assert_eq!(groups.group_of(&cold, later(16)), 3);
        assert_eq!(groups.written(&cold, Some(4), later(16)), cold.memory, "cleaning is no write");
        let once = cleaned(block(1, NOW.0 - (1 << 14)));
        assert_eq!(groups.group_of(&once, NOW), 1, "written once: its age");
    }

    #[test]
    fn a_new_block_goes_by_hint_then_file_then_to_the_last_group() {
        let mut groups = grouping();
        let new = block(0, 0);
        assert_eq!(groups.group_of(&new, NOW), LAST);
        let hinted = [Hint::Unhinted, Hint::Short, Hint::Medium, Hint::Long, Hint::Extreme]
            .map(|hint| groups.group_of(&BlockView { hint, ..new }, NOW));
        assert_eq!(hinted, [LAST, 0, 1, 2, LAST]);
        // The file's only block, at place 0, is known since 2^15 ticks.
        overwritten(&mut groups, &[1 << 14; 3]);
        let at = |place| BlockView { place, ..new };
        assert_eq!(groups.group_of(&at(1), NOW), 1, "behind the end: as its file's other blocks");
        assert_eq!(groups.group_of(&BlockView { inode: 1 + FILES as u64, ..new }, NOW), LAST, "another file");
        let later = Tick(NOW.0 + (1 << 19));
        assert_eq!(
            (groups.group_of(&at(0), later), groups.group_of(&at(1), later)),
            (3, 1),
            "a hole was not written for long"
        );
    }

    #[test]
    fn one_group_is_used_unless_estimates_foretell_lifetimes() {
        let (mut groups, known) = (grouping(), grouping());
        let warm = overwritten(&mut groups, &[1 << 17; 3]);
        let later = Tick(NOW.0 + (1 << 17));
        assert!(groups.foresight.told_apart() > 5.0);
        assert_eq!(groups.group_of(&warm, later), 2);
        // Lifetimes that have nothing to do with estimates.
        (groups.foresight, groups.spread) = Default::default();
        assert_eq!(groups.group_of(&warm, later), LAST, "nothing is known");
        (0..200_000).for_each(|at| groups.foresight.count(f64::from(at % 40), f64::from(at % 7)));
        assert!(groups.foresight.told_apart().abs() < TOLD_APART, "{:?}", groups.foresight);
        assert!(groups.foresight.count <= FORESEEN);
        assert_eq!(groups.group_of(&warm, later), LAST);
        let new = |hint| BlockView { hint, ..block(0, 0) };
        assert_eq!([Hint::None, Hint::Unhinted].map(|hint| groups.group_of(&new(hint), later)), [LAST, LAST]);
        let hinted = [Hint::Short, Hint::Long, Hint::Extreme].map(|hint| groups.group_of(&new(hint), later));
        assert_eq!(hinted, [0, 2, 2], "what is said of a new block keeps it apart from all others");
        groups.restore(&known.state());
        assert_eq!(groups.group_of(&warm, later), 2, "the next mount knows it");
        for wrong in [f64::NAN, -1.0, f64::INFINITY, 1e300] {
            (1..9).for_each(|at| {
                let mut state = known.state();
                state[at] = wrong;
                let mut groups = grouping();
                groups.restore(&state);
                assert_eq!(groups.foresight.told_apart(), known.foresight.told_apart(), "{at}: {wrong} is ignored");
                assert_eq!(groups.spread.variation(), known.spread.variation(), "{at}: {wrong} is ignored");
            });
        }
    }

    #[test]
    fn lifetimes_that_spread_more_than_those_of_one_rate_are_separated() {
        let warm = overwritten(&mut grouping(), &[1 << 17; 3]);
        let later = Tick(NOW.0 + (1 << 17));
        let with = |lifetimes: &dyn Fn(u32) -> f64| {
            let mut groups = grouping();
            groups.foresight = Foresight::default();
            (0..200_000).for_each(|at| groups.spread.count(lifetimes(at)));
            assert!(groups.spread.count <= FORESEEN);
            groups
        };
        let mut alike = with(&|_| 1000.0);
        assert_eq!((alike.spread.variation(), alike.group_of(&warm, later)), (0.0, LAST));
        // The quantiles of an exponential distribution.
        let mut one_rate = with(&|at| -1000.0 * ((f64::from(at % 1000) + 0.5) / 1000.0).ln());
        let variation = one_rate.spread.variation();
        assert!((0.95..1.05).contains(&variation), "{variation}");
        assert_eq!(one_rate.group_of(&warm, later), LAST);
        // One in ten is a cold block's.
        let mut two_rates = with(&|at| if at % 10 == 0 { 9000.0 } else { 100.0 });
        assert!(two_rates.spread.variation() > 5.0, "{:?}", two_rates.spread);
        assert_eq!(two_rates.group_of(&warm, later), 2);
        let mut next_mount = grouping();
        next_mount.restore(&two_rates.state());
        assert_eq!(next_mount.group_of(&warm, later), 2);
        assert_eq!(next_mount.spread.variation(), two_rates.spread.variation());
    }

    #[test]
    fn classes_follow_the_ticks_per_block() {
        let mut groups = grouping();
        // A thousand ticks for each block, as with a clock of microseconds.
        let blocks = (groups.volume_blocks as u64 / MEASURED) * 12;
        for at in 0..blocks {
            groups.written(&block(0, 0), Some(0), Tick(at * 1000));
        }
        assert!((900.0..1001.0).contains(&groups.ticks_per_block), "{}", groups.ticks_per_block);
        let mut later = grouping();
        later.restore(&groups.state());
        assert_eq!(later.class_of(26.5), groups.class_of(26.5));
        assert_eq!((groups.class_of(20.5), grouping().class_of(20.5)), (0, 3));
    }
}
