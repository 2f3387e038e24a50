//! MCAM, the Markov-chain model of write amplification: a block's state is its group. It enters the first one, stays for
//! the time in which the group is written over once, and then dies, or moves on with the probability that its interval is
//! longer. The last group keeps its survivors.
//!
//! For the last group the paper solves the chain's equation; here its victims' valid share p follows from its live share u
//! by u = (1 - p) / -ln p, which holds where blocks of one rate are cleaned first in, first out (Menon 1995). So cold
//! blocks, which never die, take part of its space, as on a real volume.

/// An observed load.
pub struct Load {
    /// The share of written blocks that live longer than 1, 2, ... units.
    pub survival: Vec<f64>,
    /// A unit, in host writes.
    pub unit: f64,
    /// The share of host writes that the hot filter takes.
    pub hot_share: f64,
    /// Blocks of all groups.
    pub capacity: f64,
    /// Live blocks.
    pub live: f64,
}

/// A configuration of the groups before the last one, and what the model says of it.
#[derive(Clone, Debug, PartialEq)]
pub struct Groups {
    /// Blocks of each.
    pub sizes: Vec<f64>,
    /// The valid share of their victims, and of those of the last group.
    pub valid: Vec<f64>,
    /// Blocks written per host write.
    pub amplification: f64,
}

/// Sizes tried for a group, as powers of this part of the capacity.
const STEP: f64 = 0.75;
/// Sizes tried.
const SIZES: i32 = 24;
/// The gain for which a group is added.
const GAIN: f64 = 0.995;

impl Groups {
    /// One group.
    pub fn one() -> Groups {
        Groups { sizes: Vec::new(), valid: vec![1.0], amplification: f64::INFINITY }
    }

    /// The best groups for a load, at most `most`: groups are added as long as one with the best size gains.
    pub fn best(load: &Load, most: usize) -> Groups {
        let mut best = Groups::of(load, Vec::new());
        while best.sizes.len() + 1 < most {
            let with = |power: i32| {
                let size = load.capacity * STEP.powi(power);
                Groups::of(load, best.sizes.iter().copied().chain([size]).collect())
            };
            let tried = (1..=SIZES).map(with).min_by(|one, other| one.amplification.total_cmp(&other.amplification));
            match tried.filter(|tried| tried.amplification < GAIN * best.amplification) {
                Some(better) => best = better,
                None => break,
            }
        }
        best
    }

    /// The model of groups of these sizes.
    fn of(load: &Load, sizes: Vec<f64>) -> Groups {
        let (mut inflow, mut age) = (1.0 - load.hot_share, 0.0);
        let (mut copied, mut live, mut valid) = (0.0, 0.0, Vec::new());
        for size in &sizes {
            let stays = size / f64::max(inflow, 1e-9);
            let (young, old) = (load.alive(age), load.alive(age + stays));
            let share = if young > 0.0 { old / young } else { 0.0 };
            if young > 0.0 {
                live += inflow * load.lived(age, age + stays) / young;
            }
            copied += inflow * share;
            inflow *= share;
            age += stays;
            valid.push(share);
        }
        // The hot group holds its blocks as long as the first group does, and few of them are live.
        let hot = load.hot_share * sizes.first().map_or(0.0, |first| first / f64::max(1.0 - load.hot_share, 0.01));
        let capacity = load.capacity - hot - sizes.iter().sum::<f64>();
        let full = (load.live - live).max(0.0) / capacity;
        let (share, amplification) = match capacity > 0.0 && full < 1.0 {
            true => {
                let share = share_of_victims(full);
                (share, 1.0 + copied + inflow * share / (1.0 - share))
            }
            false => (1.0, f64::INFINITY),
        };
        valid.push(share);
        Groups { sizes, valid, amplification }
    }
}

impl Load {
    /// The integral of the share alive between two ages, in host writes.
    fn lived(&self, from: f64, to: f64) -> f64 {
        let (first, last) = ((from / self.unit) as usize, (to / self.unit) as usize);
        if last - first > self.survival.len() + 1 {
            // Behind the longest interval, the share stays.
            let end = (self.survival.len() + 1) as f64 * self.unit;
            return self.lived(from, from.max(end)) + (to - from.max(end)) * self.alive(to);
        }
        let whole: f64 = (first..last).map(|units| self.alive(units as f64 * self.unit)).sum::<f64>() * self.unit;
        let rest = |at: f64| at % self.unit * self.alive(at);
        whole - rest(from) + rest(to)
    }

    /// The share of written blocks alive after this many host writes.
    fn alive(&self, writes: f64) -> f64 {
        match (writes / self.unit) as usize {
            0 => 1.0,
            units => self.survival.get(units - 1).or(self.survival.last()).copied().unwrap_or(1.0),
        }
    }
}

/// p of u = (1 - p) / -ln p, by bisection.
fn share_of_victims(full: f64) -> f64 {
    let (mut low, mut high) = (0.0, 1.0);
    for _ in 0..50 {
        let middle: f64 = (low + high) / 2.0;
        if (1.0 - middle) / -middle.ln() < full { low = middle } else { high = middle }
    }
    low
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_group_has_the_closed_form() {
        let load = Load { survival: vec![], unit: 1.0, hot_share: 0.0, capacity: 1000.0, live: 800.0 };
        let one = Groups::of(&load, Vec::new());
        // u = 0.8: p = 0.629.
        assert!((2.6..2.8).contains(&one.amplification), "{one:?}");
    }

    #[test]
    fn where_all_blocks_die_at_random_one_group_suffices() {
        let live = 850.0;
        let survival = (1..8000).map(|at| f64::exp(-f64::from(at) / live)).collect();
        let load = Load { survival, unit: 1.0, hot_share: 0.0, capacity: 1000.0, live };
        let best = Groups::best(&load, 15);
        assert!(best.amplification > 0.9 * Groups::of(&load, Vec::new()).amplification, "{best:?}");
    }

    #[test]
    fn blocks_that_die_soon_get_a_group_of_their_own() {
        // Half of the writes die after 50 writes; the others live for 4000.
        let survival = (1..4000).map(|at| if at <= 50 { 1.0 } else { 0.5 }).collect();
        let load = Load { survival, unit: 1.0, hot_share: 0.0, capacity: 1000.0, live: 850.0 };
        let best = Groups::best(&load, 15);
        assert!(!best.sizes.is_empty() && best.valid[0] == 0.5, "{best:?}");
        assert!(best.amplification < 0.8 * Groups::of(&load, Vec::new()).amplification, "{best:?}");
    }

    #[test]
    fn the_integral_of_survival_is_that_of_its_steps() {
        let load = Load { survival: vec![0.5, 0.2], unit: 10.0, hot_share: 0.0, capacity: 1.0, live: 1.0 };
        let lived = [(0.0, 10.0), (0.0, 20.0), (5.0, 15.0), (0.0, 100.0), (50.0, 60.0)].map(|(a, b)| load.lived(a, b));
        for (found, right) in lived.into_iter().zip([10.0, 15.0, 7.5, 31.0, 2.0]) {
            assert!((found - right).abs() < 1e-9, "{lived:?}");
        }
    }

    #[test]
    fn what_cannot_hold_the_live_blocks_is_never_chosen() {
        let load = Load { survival: vec![], unit: 1.0, hot_share: 0.0, capacity: 1000.0, live: 999.0 };
        assert!(Groups::best(&load, 15).sizes.iter().sum::<f64>() < 1000.0);
        assert_eq!(Groups::of(&load, vec![600.0, 500.0]).amplification, f64::INFINITY);
    }
}
