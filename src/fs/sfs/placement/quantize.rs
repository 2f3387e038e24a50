//! Segment quantization (section 3.4): k values of hotness, one for each group, that represent the hotness of all
//! segments.
//!
//! The values, called centres, are in ascending order: group 0 is the coldest. Distances are linear, as in the paper.
//! Hotness is finite and non-negative.

use crate::random::Random;

/// Rounds of refinement per writeback (step 3).
pub const ROUNDS: usize = 3;

/// The group of the nearest centre; 0 if there are no centres.
///
/// The paper leaves ties open. Halfway between two centres, the lower group is chosen. Where centres coincide, hotness
/// above all of them goes to the highest of these groups, and other hotness to the lowest, so that they separate again.
#[inline]
pub fn nearest(centres: &[f64], hotness: f64) -> usize {
    centres.windows(2).filter(|pair| hotness > middle(pair)).count()
}

/// The border between two neighbouring centres.
#[inline]
fn middle(pair: &[f64]) -> f64 {
    pair[0] + (pair[1] - pair[0]) / 2.0
}

/// Initial centres (step 1): the hotness of randomly drawn segments. Segments are drawn without replacement as long as
/// possible, since two groups with equal centres are one. Empty without segments.
///
/// Reorders `hotness`.
pub fn draw(hotness: &mut [f64], groups: usize, random: &mut Random) -> Vec<f64> {
    if hotness.is_empty() {
        return Vec::new();
    }
    let mut centres: Vec<f64> = (0..groups)
        .map(|group| {
            let drawn = group % hotness.len();
            let other = drawn + random.below((hotness.len() - drawn) as u64) as usize;
            hotness.swap(drawn, other);
            hotness[drawn]
        })
        .collect();
    centres.sort_unstable_by(f64::total_cmp);
    centres
}

/// Iterative quantization (steps 2 and 3): each centre moves to the mean of its nearest segments, until all are stable
/// or after [`ROUNDS`].
///
/// The paper's mean of a group without segments is 0 / 0. Here it is 0, as in the port of SFS by SepBIT's authors: the
/// group starts again at the cold end. A centre that kept its value could be lost for good: one that was set by a few
/// freshly written segments, and that no segment is near to any more.
pub fn refine(centres: &mut [f64], hotness: &[f64]) {
    let mut borders = Vec::with_capacity(centres.len());
    let mut sums = vec![(0.0, 0u32); centres.len()];
    for _ in 0..ROUNDS {
        borders.clear();
        borders.extend(centres.windows(2).map(middle));
        sums.fill((0.0, 0));
        for hotness in hotness {
            let (sum, count) = &mut sums[borders.iter().filter(|border| hotness > border).count()];
            *sum += hotness;
            *count += 1;
        }
        let mut moved = false;
        for (centre, (sum, count)) in centres.iter_mut().zip(&sums) {
            let mean = sum / f64::from((*count).max(1));
            moved |= mean != *centre;
            *centre = mean;
        }
        if !moved {
            break;
        }
        // Means are in order except for rounding.
        centres.sort_unstable_by(f64::total_cmp);
    }
}

/// The paper's equi-height partitioning, usually called equi-width: the range of hotness is divided into equal
/// intervals, whose midpoints are the centres. Empty without segments.
pub fn equi_height(hotness: &[f64], groups: usize) -> Vec<f64> {
    let (low, high) =
        hotness.iter().fold((f64::INFINITY, 0.0f64), |(low, high), hotness| (low.min(*hotness), high.max(*hotness)));
    if hotness.is_empty() {
        return Vec::new();
    }
    (0..groups).map(|group| low + (high - low) * ((group as f64 + 0.5) / groups as f64)).collect()
}

/// The paper's equi-width partitioning, usually called equi-height or equi-depth: the segments, ordered by hotness, are
/// divided into parts of equal size, whose means are the centres. With fewer segments than groups, some groups share
/// one. Empty without segments.
///
/// Reorders `hotness`.
pub fn equi_width(hotness: &mut [f64], groups: usize) -> Vec<f64> {
    if hotness.is_empty() {
        return Vec::new();
    }
    hotness.sort_unstable_by(f64::total_cmp);
    let mut centres: Vec<f64> = (0..groups)
        .map(|group| {
            let from = group * hotness.len() / groups;
            let end = ((group + 1) * hotness.len() / groups).max(from + 1);
            hotness[from..end].iter().sum::<f64>() / (end - from) as f64
        })
        .collect();
    // Means are in order except for rounding.
    centres.sort_unstable_by(f64::total_cmp);
    centres
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn random(seed: u64) -> Random {
        Random::new(seed, "test of quantize")
    }

    /// 30 segments near 1, 20 near 50, 10 near 400, shuffled.
    fn three_clusters() -> Vec<f64> {
        let cluster = |centre: f64, count: i32| {
            (0..count).map(move |i| centre * (0.9 + 0.2 * f64::from(i) / f64::from(count - 1)))
        };
        let mut all: Vec<f64> = cluster(1.0, 30).chain(cluster(50.0, 20)).chain(cluster(400.0, 10)).collect();
        draw(&mut all, 60, &mut random(9));
        all
    }

    fn assert_close(found: &[f64], expected: &[f64]) {
        let close = |(a, b): (&f64, &f64)| (a - b).abs() <= 1e-9 * b.abs();
        assert!(found.len() == expected.len() && found.iter().zip(expected).all(close), "{found:?}, not {expected:?}");
    }

    #[test]
    fn hotness_between_centres_goes_to_the_nearest_group() {
        let centres = [1.0, 5.0, 6.0];
        assert_eq!(
            [0.0, 2.9, 3.0, 3.1, 5.4, 5.6, 1e18].map(|hotness| nearest(&centres, hotness)),
            [0, 0, 0, 1, 1, 2, 2]
        );
        assert_eq!((nearest(&[], 3.0), nearest(&[7.0], 3.0)), (0, 0));
    }

    #[test]
    fn distance_is_linear_not_logarithmic() {
        assert_eq!(nearest(&[1.0, 100.0], 40.0), 0);
    }

    #[test]
    fn groups_with_equal_centres_separate_at_the_first_difference() {
        let mut centres = [2.0; 3];
        refine(&mut centres, &[1.0, 2.0, 3.0, 3.0]);
        assert_eq!(centres, [0.0, 1.5, 3.0]);
    }

    #[test]
    fn refinement_finds_three_clear_clusters() {
        let mut centres = vec![5.0, 30.0, 300.0];
        refine(&mut centres, &three_clusters());
        assert_close(&centres, &[1.0, 50.0, 400.0]);
    }

    #[test]
    fn refinement_finds_clear_clusters_from_most_draws() {
        let mut hotness = three_clusters();
        let found = (0..100)
            .filter(|seed| {
                let mut centres = draw(&mut hotness, 3, &mut random(*seed));
                // Three writebacks.
                (0..3).for_each(|_| refine(&mut centres, &hotness));
                (centres[0] - 1.0).abs() < 0.01 && (centres[1] - 50.0).abs() < 0.01
            })
            .count();
        assert!(found > 50, "{found} of 100");
    }

    #[test]
    fn one_writeback_refines_exactly_three_times() {
        // Computed by hand: the borders are 0.5, 2.75 and 3.75, then 4.25. A fourth round would give 2 and 7.5.
        let hotness: Vec<f64> = (0..=10).map(f64::from).collect();
        let mut centres = [0.0, 1.0];
        refine(&mut centres, &hotness);
        assert_eq!(centres, [1.5, 7.0]);
        refine(&mut centres, &hotness);
        assert_eq!(centres, [2.0, 7.5]);
    }

    #[test]
    fn a_group_without_segments_restarts_at_the_cold_end() {
        // Two of four groups stayed empty for a whole run: their centres came from the first segments, which had just
        // been written.
        let mut centres = vec![1.0, 20.0, 1000.0];
        refine(&mut centres, &[2.0, 4.0, 30.0]);
        assert_eq!(centres, [0.0, 3.0, 30.0]);
        refine(&mut centres, &[1.0, 4.0, 30.0]);
        assert_eq!(centres, [1.0, 4.0, 30.0]);
    }

    #[test]
    fn segments_of_equal_hotness_fall_in_one_group() {
        let mut hotness = vec![0.1; 1000];
        let mut centres = draw(&mut hotness, 4, &mut random(1));
        refine(&mut centres, &hotness);
        assert_close(&centres, &[0.0, 0.0, 0.0, 0.1]);
        for centres in [equi_height(&hotness.clone(), 4), equi_width(&mut hotness, 4)] {
            assert_close(&centres, &[0.1; 4]);
        }
    }

    #[test]
    fn with_as_many_segments_as_groups_every_one_is_drawn() {
        assert_eq!(draw(&mut [3.0, 1.0, 2.0], 3, &mut random(5)), [1.0, 2.0, 3.0]);
    }

    #[test]
    fn with_fewer_segments_than_groups_every_one_is_drawn_and_some_twice() {
        for seed in 0..20 {
            let mut centres = draw(&mut [3.0, 1.0], 4, &mut random(seed));
            assert_eq!((centres.len(), centres[0], centres[3]), (4, 1.0, 3.0));
            centres.dedup();
            assert_eq!(centres, [1.0, 3.0]);
        }
    }

    #[test]
    fn the_seed_determines_the_draw() {
        let drawn = |seed| draw(&mut three_clusters(), 4, &mut random(seed));
        assert_eq!(drawn(1), drawn(1));
        assert!((2..20).any(|seed| drawn(seed) != drawn(1)));
    }

    #[test]
    fn equi_height_divides_the_range_into_equal_intervals() {
        assert_close(&equi_height(&[2.0, 2.0, 2.0, 3.0, 10.0], 4), &[3.0, 5.0, 7.0, 9.0]);
    }

    #[test]
    fn equi_width_gives_every_group_the_same_number_of_segments() {
        assert_close(&equi_width(&mut [10.0, 1.0, 100.0, 2.0, 3.0, 20.0], 3), &[1.5, 6.5, 60.0]);
        assert_close(&equi_width(&mut [5.0, 1.0, 3.0, 2.0, 4.0], 2), &[1.5, 4.0]);
        assert_close(&equi_width(&mut [7.0, 1.0], 4), &[1.0, 1.0, 7.0, 7.0]);
    }

    #[test]
    fn with_mostly_cold_segments_refinement_fits_better_than_equal_parts() {
        // The shape of figure 4: most segments are cold. The error is the mean distance to the centre.
        let mut hotness: Vec<f64> =
            (0..1000).map(|i| if i < 900 { 1.0 + f64::from(i % 10) / 10.0 } else { f64::from(i - 880) }).collect();
        let error = |centres: &[f64], hotness: &[f64]| {
            hotness.iter().map(|h| (h - centres[nearest(centres, *h)]).abs()).sum::<f64>() / hotness.len() as f64
        };
        let mut centres = draw(&mut hotness, 4, &mut random(3));
        (0..20).for_each(|_| refine(&mut centres, &hotness));
        let iterative = error(&centres, &hotness);
        let (height, width) =
            (error(&equi_height(&hotness, 4), &hotness), error(&equi_width(&mut hotness.clone(), 4), &hotness));
        assert!(iterative < height && height.min(width) > 1.5 * iterative, "{iterative} {height} {width}");
    }

    proptest! {
        #[test]
        fn no_other_centre_is_nearer(
            mut centres in proptest::collection::vec(0.0..1e6f64, 1..17),
            hotness in proptest::collection::vec(0.0..1e6f64, 1..40),
        ) {
            centres.sort_unstable_by(f64::total_cmp);
            refine(&mut centres, &hotness);
            for hotness in hotness {
                let found = (hotness - centres[nearest(&centres, hotness)]).abs();
                prop_assert!(centres.iter().all(|centre| found <= (hotness - centre).abs() + 1e-6));
            }
        }

        #[test]
        fn centres_are_in_order_and_within_the_range(
            hotness in proptest::collection::vec(prop_oneof![Just(0.0), Just(u64::MAX as f64), 0.0..3.0f64], 1..200),
            groups in 1..17usize,
            seed in any::<u64>(),
        ) {
            let mut hotness = hotness;
            let mut drawn = draw(&mut hotness, groups, &mut random(seed));
            refine(&mut drawn, &hotness);
            let (low, high) = hotness.iter().fold((f64::MAX, 0.0f64), |(l, h), x| (l.min(*x), h.max(*x)));
            let cut = [equi_height(&hotness, groups), equi_width(&mut hotness, groups)];
            // After refinement, a group without segments is at 0.
            for (centres, low) in std::iter::once((drawn, 0.0)).chain(cut.map(|centres| (centres, low))) {
                prop_assert_eq!(centres.len(), groups);
                prop_assert!(centres.is_sorted());
                prop_assert!(centres[0] >= low * (1.0 - 1e-12) && centres[groups - 1] <= high * (1.0 + 1e-12));
            }
        }
    }
}
