//! Selection of the next block to collect.
//!
//! Candidates are the closed blocks. Each policy keeps them in the one order it needs, so that neither an invalidated
//! page nor a choice scans the drive: lists by the number of invalid pages (greedy, cost-benefit), one list by the time
//! of closing (fifo), an array (random, d-choices), or an array with all that a policy of the caller may look at.

use super::victim_policy::{Candidate, VictimChooser, VictimPolicy};
use crate::device::nand::EraseBlock;
use crate::random::Random;
use crate::tables::prefetch;

const UNLISTED: u32 = u32::MAX;

/// A block, or the head of a list, in a ring.
#[derive(Clone, Copy)]
struct Node {
    previous: u32,
    next: u32,
    /// Invalid pages of the block.
    invalid: u32,
}

/// A policy of the caller, and its candidates.
struct Chosen {
    chooser: Box<dyn VictimChooser>,
    candidates: Vec<Candidate>,
}

/// The candidates, and the number of invalid pages of each block.
pub struct Victims {
    policy: VictimPolicy,
    pages_per_block: u32,
    /// One node for each block, then one for each list; a list is a ring through its head.
    nodes: Vec<Node>,
    blocks: u32,
    /// For greedy: lists above this one are empty.
    fullest: u32,
    /// For random and d-choices: the candidates in any order. A candidate's node holds its index here in `next`.
    array: Vec<u32>,
    /// For a policy of the caller, the same.
    chosen: Option<Chosen>,
    random: Random,
    /// For cost-benefit: the time at which a page of the block was last invalidated, or the block was closed.
    touched: Vec<u64>,
    invalid_in_candidates: u64,
    candidates: u32,
}

impl Victims {
    /// No candidates, no invalid pages.
    pub fn new(policy: VictimPolicy, blocks: u32, pages_per_block: u32, seed: u64) -> Victims {
        let lists = match policy {
            VictimPolicy::Greedy | VictimPolicy::CostBenefit => pages_per_block + 1,
            VictimPolicy::Fifo => 1,
            VictimPolicy::Random | VictimPolicy::DChoices(_) | VictimPolicy::Chosen(_) => 0,
        };
        let has_ages = matches!(policy, VictimPolicy::CostBenefit);
        let chosen = match &policy {
            VictimPolicy::Chosen(settings) => Some(Chosen { chooser: settings.start(seed), candidates: Vec::new() }),
            _ => None,
        };
        let mut nodes = vec![Node { previous: UNLISTED, next: UNLISTED, invalid: 0 }; blocks as usize];
        nodes.extend((blocks..blocks + lists).map(|head| Node { previous: head, next: head, invalid: 0 }));
        Victims {
            policy,
            pages_per_block,
            nodes,
            blocks,
            fullest: 0,
            array: Vec::new(),
            random: Random::new(seed, "victims"),
            touched: if has_ages { vec![0; blocks as usize] } else { Vec::new() },
            chosen,
            invalid_in_candidates: 0,
            candidates: 0,
        }
    }

    /// Invalid pages of all candidates.
    pub fn invalid_in_candidates(&self) -> u64 {
        self.invalid_in_candidates
    }

    /// The number of candidates.
    pub fn candidates(&self) -> u32 {
        self.candidates
    }

    /// Invalid pages of a block, candidate or open.
    pub fn invalid(&self, block: EraseBlock) -> u32 {
        self.nodes[block.index()].invalid
    }

    /// Prefetches the number of invalid pages of a block into the processor's cache.
    #[inline]
    pub fn prefetch(&self, block: EraseBlock) {
        prefetch(&self.nodes, block.index());
    }

    #[inline]
    fn unlink(&mut self, block: u32) {
        let Node { previous, next, .. } = self.nodes[block as usize];
        self.nodes[previous as usize].next = next;
        self.nodes[next as usize].previous = previous;
    }

    #[inline]
    fn append(&mut self, list: u32, block: u32) {
        let head = self.blocks + list;
        let last = std::mem::replace(&mut self.nodes[head as usize].previous, block);
        self.nodes[last as usize].next = block;
        let node = &mut self.nodes[block as usize];
        (node.previous, node.next) = (last, head);
    }

    /// Makes `block`, which is full and was erased this many times, a candidate. `now` counts the pages written so far.
    pub fn close(&mut self, block: EraseBlock, now: u64, erases: u32) {
        let invalid = self.nodes[block.index()].invalid;
        debug_assert!(!self.is_candidate(block), "block {} is closed once", block.0);
        debug_assert!(invalid <= self.pages_per_block, "block {} has {invalid} invalid pages", block.0);
        match &self.policy {
            VictimPolicy::Greedy | VictimPolicy::CostBenefit => {
                self.append(invalid, block.0);
                self.fullest = self.fullest.max(invalid);
                if let Some(touched) = self.touched.get_mut(block.index()) {
                    *touched = now;
                }
            }
            VictimPolicy::Fifo => self.append(0, block.0),
            VictimPolicy::Random | VictimPolicy::DChoices(_) => {
                let node = &mut self.nodes[block.index()];
                (node.previous, node.next) = (0, self.array.len() as u32);
                self.array.push(block.0);
            }
            VictimPolicy::Chosen(_) => {
                let candidates = &mut self.chosen.as_mut().expect("made with the policy").candidates;
                let node = &mut self.nodes[block.index()];
                (node.previous, node.next) = (0, candidates.len() as u32);
                let valid = self.pages_per_block - invalid;
                candidates.push(Candidate { block, valid, invalid, erases, touched: now });
            }
        }
        self.invalid_in_candidates += u64::from(invalid);
        self.candidates += 1;
    }

    /// Counts one more invalid page of `block`.
    #[inline]
    pub fn invalidate(&mut self, block: EraseBlock, now: u64) {
        let node = &mut self.nodes[block.index()];
        node.invalid += 1;
        debug_assert!(node.invalid <= self.pages_per_block, "block {} has more invalid pages than pages", block.0);
        if node.previous == UNLISTED {
            return;
        }
        let (invalid, place) = (node.invalid, node.next);
        self.invalid_in_candidates += 1;
        if let Some(chosen) = &mut self.chosen {
            let candidate = &mut chosen.candidates[place as usize];
            debug_assert_eq!(candidate.block, block, "a candidate's node holds its place");
            candidate.invalid += 1;
            candidate.valid -= 1;
            candidate.touched = now;
            return;
        }
        if matches!(self.policy, VictimPolicy::Greedy | VictimPolicy::CostBenefit) {
            self.unlink(block.0);
            self.append(invalid, block.0);
            self.fullest = self.fullest.max(invalid);
            if let Some(touched) = self.touched.get_mut(block.index()) {
                *touched = now;
            }
        }
    }

    /// Removes a candidate, which is being collected.
    pub fn remove(&mut self, block: EraseBlock) {
        assert!(self.is_candidate(block), "block {} is collected, and is not a candidate", block.0);
        match &self.policy {
            VictimPolicy::Random | VictimPolicy::DChoices(_) => {
                let place = self.nodes[block.index()].next;
                debug_assert_eq!(self.array[place as usize], block.0, "a candidate's node holds its place");
                self.array.swap_remove(place as usize);
                if let Some(&moved) = self.array.get(place as usize) {
                    self.nodes[moved as usize].next = place;
                }
            }
            VictimPolicy::Chosen(_) => {
                let place = self.nodes[block.index()].next as usize;
                let candidates = &mut self.chosen.as_mut().expect("made with the policy").candidates;
                debug_assert_eq!(candidates[place].block, block, "a candidate's node holds its place");
                candidates.swap_remove(place);
                if let Some(moved) = candidates.get(place) {
                    self.nodes[moved.block.index()].next = place as u32;
                }
            }
            VictimPolicy::Greedy | VictimPolicy::Fifo | VictimPolicy::CostBenefit => self.unlink(block.0),
        }
        let node = &mut self.nodes[block.index()];
        node.previous = UNLISTED;
        self.invalid_in_candidates -= u64::from(node.invalid);
        self.candidates -= 1;
    }

    /// Resets an erased block: it has no invalid pages.
    pub fn erased(&mut self, block: EraseBlock) {
        self.set_invalid(block, 0);
    }

    /// Sets the number of invalid pages of `block`, which must not be a candidate.
    pub fn set_invalid(&mut self, block: EraseBlock, invalid: u32) {
        let node = &mut self.nodes[block.index()];
        debug_assert_eq!(node.previous, UNLISTED, "block {} has left the candidates", block.0);
        debug_assert!(invalid <= self.pages_per_block, "block {} has {invalid} invalid pages", block.0);
        node.invalid = invalid;
    }

    /// True if `block` is a candidate.
    #[inline]
    pub fn is_candidate(&self, block: EraseBlock) -> bool {
        self.nodes[block.index()].previous != UNLISTED
    }

    fn first_of(&self, list: u32) -> Option<EraseBlock> {
        let head = self.blocks + list;
        let first = self.nodes[head as usize].next;
        (first != head).then_some(EraseBlock(first))
    }

    /// The block to collect at time `now`, if there is a candidate. It stays a candidate until it is removed.
    pub fn choose(&mut self, now: u64) -> Option<EraseBlock> {
        if self.candidates == 0 {
            return None;
        }
        match self.policy {
            VictimPolicy::Fifo => self.first_of(0),
            VictimPolicy::Greedy => loop {
                match self.first_of(self.fullest) {
                    Some(block) => break Some(block),
                    None => {
                        debug_assert!(self.fullest > 0, "a candidate is in one of the lists");
                        self.fullest -= 1;
                    }
                }
            },
            VictimPolicy::Random => Some(self.draw()),
            VictimPolicy::DChoices(choices) => {
                let mut best = self.draw();
                for _ in 1..choices {
                    let other = self.draw();
                    if self.invalid(other) > self.invalid(best) {
                        best = other;
                    }
                }
                Some(best)
            }
            VictimPolicy::CostBenefit => self.best_benefit(now),
            VictimPolicy::Chosen(_) => {
                let Chosen { chooser, candidates } = self.chosen.as_mut().expect("made with the policy");
                let choice = chooser.choose(candidates, now);
                assert!(choice < candidates.len(), "the policy chose candidate {choice} of {}", candidates.len());
                Some(candidates[choice].block)
            }
        }
    }

    /// The block that will most likely be chosen next, if that costs nothing to know. Changes nothing.
    pub fn likely_next(&self) -> Option<EraseBlock> {
        match self.policy {
            VictimPolicy::Fifo => self.first_of(0),
            VictimPolicy::Greedy => self.first_of(self.fullest).or_else(|| self.first_of(self.fullest.checked_sub(1)?)),
            _ => None,
        }
    }

    fn draw(&mut self) -> EraseBlock {
        EraseBlock(self.array[self.random.below(self.array.len() as u64) as usize])
    }

    /// Of blocks with equally many invalid pages the oldest is best, and it is the first of its list: an invalidation
    /// moves a block to the end of another list. So the first blocks of all lists contain the best.
    fn best_benefit(&self, now: u64) -> Option<EraseBlock> {
        if let Some(empty) = self.first_of(self.pages_per_block) {
            return Some(empty);
        }
        let score = |block: EraseBlock| {
            debug_assert!(now >= self.touched[block.index()], "the clock of written pages does not go back");
            let age = (now - self.touched[block.index()] + 1) as f64;
            let invalid = f64::from(self.invalid(block));
            age * invalid / (2.0 * (f64::from(self.pages_per_block) - invalid))
        };
        (0..self.pages_per_block)
            .filter_map(|list| self.first_of(list))
            .map(|block| (score(block), block))
            .max_by(|a, b| a.0.total_cmp(&b.0))
            .map(|(_, block)| block)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;

    const BLOCKS: u32 = 40;
    const PAGES: u32 = 8;

    /// `greedy`, as a caller would write it.
    #[derive(Clone, Debug)]
    struct OwnGreedy;

    impl VictimChooser for OwnGreedy {
        fn choose(&mut self, candidates: &[Candidate], now: u64) -> usize {
            for candidate in candidates {
                assert_eq!(candidate.valid + candidate.invalid, PAGES);
                assert_eq!(candidate.erases, candidate.block.0 + 100);
                assert!(candidate.touched <= now);
            }
            (0..candidates.len()).max_by_key(|&index| candidates[index].invalid).unwrap()
        }
    }

    /// A reference that inspects every candidate.
    struct Model {
        candidates: Vec<(u32, u32, u64)>, // block, invalid, touched; in the order of closing
    }

    fn churn(policy: VictimPolicy, mut check: impl FnMut(&Model, EraseBlock, u64)) {
        let mut victims = Victims::new(policy, BLOCKS, PAGES, 7);
        let mut model = Model { candidates: Vec::new() };
        let mut random = Random::new(1, "test");
        for now in 1..4000u64 {
            let block = random.below(u64::from(BLOCKS)) as u32;
            match model.candidates.iter().position(|candidate| candidate.0 == block) {
                None => {
                    victims.close(EraseBlock(block), now, block + 100);
                    model.candidates.push((block, 0, now));
                }
                Some(at) if model.candidates[at].1 < PAGES => {
                    victims.invalidate(EraseBlock(block), now);
                    let candidate = &mut model.candidates[at];
                    (candidate.1, candidate.2) = (candidate.1 + 1, now);
                }
                Some(_) => {}
            }
            let invalid: u32 = model.candidates.iter().map(|candidate| candidate.1).sum();
            assert_eq!(victims.invalid_in_candidates(), u64::from(invalid));
            if random.below(10) == 0 {
                let chosen = victims.choose(now).unwrap();
                check(&model, chosen, now);
                victims.remove(chosen);
                victims.erased(chosen);
                model.candidates.retain(|candidate| candidate.0 != chosen.0);
            }
        }
    }

    #[test]
    fn greedy_takes_a_block_with_the_most_invalid_pages() {
        for policy in [VictimPolicy::Greedy, VictimPolicy::Chosen(Arc::new(OwnGreedy))] {
            churn(policy, |model, chosen, _| {
                let most = model.candidates.iter().map(|candidate| candidate.1).max().unwrap();
                assert!(model.candidates.iter().any(|candidate| candidate.0 == chosen.0 && candidate.1 == most));
            });
        }
    }

    #[test]
    fn fifo_takes_the_block_that_was_closed_first() {
        churn(VictimPolicy::Fifo, |model, chosen, _| assert_eq!(model.candidates[0].0, chosen.0));
    }

    #[test]
    fn random_policies_take_candidates_only() {
        for policy in [VictimPolicy::Random, VictimPolicy::DChoices(3)] {
            churn(policy, |model, chosen, _| {
                assert!(model.candidates.iter().any(|candidate| candidate.0 == chosen.0));
            });
        }
    }

    #[test]
    fn cost_benefit_takes_the_best_of_all_candidates() {
        churn(VictimPolicy::CostBenefit, |model, chosen, now| {
            let score = |&(_, invalid, touched): &(u32, u32, u64)| {
                if invalid == PAGES {
                    return f64::INFINITY;
                }
                (now - touched + 1) as f64 * f64::from(invalid) / (2.0 * f64::from(PAGES - invalid))
            };
            let best = model.candidates.iter().map(score).fold(0.0, f64::max);
            let ours = model.candidates.iter().find(|candidate| candidate.0 == chosen.0).map(score).unwrap();
            assert_eq!(ours, best);
        });
    }
}
