//! Segment quantization (section 3.4): k values of hotness, one a group, that stand for the hotness of all segments.
//!
//! The values, the groups' centres, are always in ascending order: group 0 is the coldest. Distances are linear, as in the
//! paper. Hotness is finite and not below 0 here.

use crate::random::Random;

/// Rounds of refinement at one segment writing (step 3).
pub const ROUNDS: usize = 3;

/// The group whose centre is nearest; 0 if there are no centres.
///
/// The paper leaves open what is as near to several. Between two centres it is of the lower group; where centres coincide,
/// what lies above all of them is of the highest of these groups, and what does not, of the lowest: so they part again.
#[inline]
pub fn nearest(centres: &[f64], hotness: f64) -> usize {
    centres.windows(2).filter(|pair| hotness > middle(pair)).count()
}

/// The border between two neighbours.
#[inline]
fn middle(pair: &[f64]) -> f64 {
    pair[0] + (pair[1] - pair[0]) / 2.0
}

/// Centres to begin with (step 1): the hotness of segments drawn at random. Segments are drawn without replacement as long
/// as there are any, since two groups that begin at the same place are one. None without segments.
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

/// Iterative quantization (step 2 and 3): each centre moves to the mean of the segments that are nearest to it, until none
/// moves any more or [`ROUNDS`] are done.
///
/// The paper's mean of a group without segments is 0 / 0. It is 0 here, as in the port of SFS that SepBIT's authors compare with: the group
/// begins anew at the cold end. Were it to keep its centre, one that a few segments set when they had just been written, and that none
/// comes near again, would be lost for good.
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
        // Means are in order but for their rounding.
        centres.sort_unstable_by(f64::total_cmp);
    }
}

/// The paper's equi-height partitioning, elsewhere called equi-width: the range from the coldest to the hottest segment is
/// cut into equal parts, and the centres are their middles. None without segments.
pub fn equi_height(hotness: &[f64], groups: usize) -> Vec<f64> {
    let (low, high) =
        hotness.iter().fold((f64::INFINITY, 0.0f64), |(low, high), hotness| (low.min(*hotness), high.max(*hotness)));
    if hotness.is_empty() {
        return Vec::new();
    }
    (0..groups).map(|group| low + (high - low) * ((group as f64 + 0.5) / groups as f64)).collect()
}

/// The paper's equi-width partitioning, elsewhere called equi-height or equi-depth: the segments are cut, by hotness, into
/// parts of equal numbers, and the centres are their means. With fewer segments than groups, some groups share one. None
/// without segments.
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
    // Means are in order but for their rounding.
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

    /// 30 segments about 1, 20 about 50, 10 about 400, mixed.
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
    fn what_is_between_centres_is_of_the_nearest_group() {
        let centres = [1.0, 5.0, 6.0];
        assert_eq!(
            [0.0, 2.9, 3.0, 3.1, 5.4, 5.6, 1e18].map(|hotness| nearest(&centres, hotness)),
            [0, 0, 0, 1, 1, 2, 2]
        );
        assert_eq!((nearest(&[], 3.0), nearest(&[7.0], 3.0)), (0, 0));
    }

    #[test]
    fn nearness_is_linear_not_logarithmic() {
        assert_eq!(nearest(&[1.0, 100.0], 40.0), 0);
    }

    #[test]
    fn groups_that_coincide_part_at_the_first_difference() {
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
                // Three segment writings.
                (0..3).for_each(|_| refine(&mut centres, &hotness));
                (centres[0] - 1.0).abs() < 0.01 && (centres[1] - 50.0).abs() < 0.01
            })
            .count();
        assert!(found > 50, "{found} of 100");
    }

    #[test]
    fn one_writing_refines_three_times_and_no_more() {
        // By hand: the borders are 0.5, 2.75 and 3.75, then 4.25. A fourth round would give 2 and 7.5.
        let hotness: Vec<f64> = (0..=10).map(f64::from).collect();
        let mut centres = [0.0, 1.0];
        refine(&mut centres, &hotness);
        assert_eq!(centres, [1.5, 7.0]);
        refine(&mut centres, &hotness);
        assert_eq!(centres, [2.0, 7.5]);
    }

    #[test]
    fn a_group_without_segments_begins_anew_where_it_is_coldest() {
        // Two of four groups once stayed empty for a whole run: their centres were of the first segments, seen when just written.
        let mut centres = vec![1.0, 20.0, 1000.0];
        refine(&mut centres, &[2.0, 4.0, 30.0]);
        assert_eq!(centres, [0.0, 3.0, 30.0]);
        refine(&mut centres, &[1.0, 4.0, 30.0]);
        assert_eq!(centres, [1.0, 4.0, 30.0]);
    }

    #[test]
    fn segments_that_are_equally_hot_all_fall_in_one_group() {
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
    fn with_fewer_segments_than_groups_each_is_drawn_and_some_again() {
        for seed in 0..20 {
            let mut centres = draw(&mut [3.0, 1.0], 4, &mut random(seed));
            assert_eq!((centres.len(), centres[0], centres[3]), (4, 1.0, 3.0));
            centres.dedup();
            assert_eq!(centres, [1.0, 3.0]);
        }
    }

    #[test]
    fn the_draw_is_the_seeds() {
        let drawn = |seed| draw(&mut three_clusters(), 4, &mut random(seed));
        assert_eq!(drawn(1), drawn(1));
        assert!((2..20).any(|seed| drawn(seed) != drawn(1)));
    }

    #[test]
    fn equi_height_cuts_the_range_into_equal_parts() {
        assert_close(&equi_height(&[2.0, 2.0, 2.0, 3.0, 10.0], 4), &[3.0, 5.0, 7.0, 9.0]);
    }

    #[test]
    fn equi_width_gives_every_group_as_many_segments() {
        assert_close(&equi_width(&mut [10.0, 1.0, 100.0, 2.0, 3.0, 20.0], 3), &[1.5, 6.5, 60.0]);
        assert_close(&equi_width(&mut [5.0, 1.0, 3.0, 2.0, 4.0], 2), &[1.5, 4.0]);
        assert_close(&equi_width(&mut [7.0, 1.0], 4), &[1.0, 1.0, 7.0, 7.0]);
    }

    #[test]
    fn where_most_segments_are_cold_the_equal_parts_fit_badly_and_refinement_fits_well() {
        // Figure 4's shape: most segments are not hot. The error is the mean distance to the centre.
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
            // Refined, a group without segments is at 0.
            for (centres, low) in std::iter::once((drawn, 0.0)).chain(cut.map(|centres| (centres, low))) {
                prop_assert_eq!(centres.len(), groups);
                prop_assert!(centres.is_sorted());
                prop_assert!(centres[0] >= low * (1.0 - 1e-12) && centres[groups - 1] <= high * (1.0 + 1e-12));
            }
        }
    }
}
