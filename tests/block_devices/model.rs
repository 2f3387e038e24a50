//! Random requests, compared with an array of blocks: a read returns the newest write, discarded blocks are zeros, and
//! a refused request changes nothing.

use crate::table::{Opened, rows};
use crate::{BLOCK, budget, check_account};
use flashpath::device::{DeviceError, Lba};
use flashpath::label::{Cause, Content, Label};
use flashpath::time::Time;
use proptest::prelude::*;
use proptest::test_runner::{Config, TestCaseError, TestRunner};

/// Requests go to this many blocks at the device's beginning and end, so that they overlap often.
const REACH: u64 = 96;

/// A request. Its place is within the reach; ranges beyond the end of the device are refused.
#[derive(Clone, Debug)]
enum Step {
    Read(u64, u64),
    Write(u64, u64, u8, Label),
    Discard(u64, u64),
    Flush,
    Work,
    /// Checks that unstored blocks are zeros.
    Extent(u64, u64),
}

fn step() -> impl Strategy<Value = Step> {
    let range = || (0..2 * REACH, 1..12u64);
    let cause = || (0..Cause::ORIGINS).prop_map(|number| Cause::ALL[number]);
    let label = (cause(), cause(), 0..Content::COUNT).prop_map(|(cause, origin, content)| Label {
        cause,
        origin,
        content: Content::ALL[content],
    });
    prop_oneof![
        4 => range().prop_map(|(place, count)| Step::Read(place, count)),
        6 => (range(), 1..255u8, label).prop_map(|((place, count), fill, label)| Step::Write(place, count, fill, label)),
        2 => range().prop_map(|(place, count)| Step::Discard(place, count)),
        1 => Just(Step::Flush),
        1 => Just(Step::Work),
        1 => range().prop_map(|(place, count)| Step::Extent(place, count)),
    ]
}

/// A device, its expected content, and the requests made.
struct Tried {
    opened: Opened,
    blocks: u64,
    reach: u64,
    /// The expected fill byte of each block of the reach.
    newest: Vec<u8>,
    at: Time,
    received: u64,
    read: u64,
}

impl Tried {
    fn new(opened: Opened) -> Tried {
        let blocks = opened.device.blocks();
        let reach = REACH.min(blocks / 2);
        Tried { opened, blocks, reach, newest: vec![0; 2 * reach as usize], at: Time::ZERO, received: 0, read: 0 }
    }

    /// The block of a place: the second half of the places is at the end of the device.
    fn block(&self, place: u64) -> u64 {
        let place = place % (2 * self.reach);
        if place < self.reach { place } else { self.blocks - 2 * self.reach + place }
    }

    /// The fill byte of a block; `None` for blocks between the two parts, which are never written.
    fn fill(&mut self, block: u64) -> Option<&mut u8> {
        let behind = self.blocks - self.reach;
        match block {
            block if block < self.reach => Some(&mut self.newest[block as usize]),
            block if block >= behind => Some(&mut self.newest[(block - behind + self.reach) as usize]),
            _ => None,
        }
    }

    /// The range of a step, within one of the two parts.
    fn range(&self, place: u64, count: u64) -> (u64, u64) {
        let first = self.block(place);
        let count = if first < self.reach { count.min(self.reach - first) } else { count };
        (first, count)
    }

    fn check(&mut self, first: u64, bytes: &[u8]) -> Result<(), TestCaseError> {
        for (block, found) in (first..).zip(bytes.chunks_exact(BLOCK)) {
            let expected = self.fill(block).map_or(0, |fill| *fill);
            prop_assert!(found.iter().all(|byte| *byte == expected), "block {} is not filled with {}", block, expected);
        }
        Ok(())
    }

    /// The completion time; `None` for a range beyond the end, which must be refused.
    fn answer(
        &self,
        first: u64,
        count: u64,
        answered: Result<Time, DeviceError>,
    ) -> Result<Option<Time>, TestCaseError> {
        let is_beyond = first + count > self.blocks;
        match answered {
            Ok(done) if !is_beyond => Ok(Some(done)),
            Err(DeviceError::BeyondEnd { .. }) if is_beyond => Ok(None),
            other => Err(TestCaseError::fail(format!("{count} blocks from {first} of {}: {other:?}", self.blocks))),
        }
    }

    fn apply(&mut self, step: &Step) -> Result<(), TestCaseError> {
        let at = self.at;
        let done = match *step {
            Step::Read(place, count) => {
                let (first, count) = self.range(place, count);
                let mut bytes = vec![1; count as usize * BLOCK];
                let read = self.opened.device.read(Lba(first), &mut bytes, at);
                let done = self.answer(first, count, read)?;
                if done.is_some() {
                    self.check(first, &bytes)?;
                    self.read += count;
                }
                done
            }
            Step::Write(place, count, fill, label) => {
                let (first, count) = self.range(place, count);
                let bytes = vec![fill; count as usize * BLOCK];
                let written = self.opened.device.write(Lba(first), &bytes, label, at);
                let done = self.answer(first, count, written)?;
                if done.is_some() {
                    (first..first + count).for_each(|block| *self.fill(block).unwrap() = fill);
                    self.received += count;
                }
                done
            }
            Step::Discard(place, count) => {
                let (first, count) = self.range(place, count);
                let discarded = self.opened.device.discard(Lba(first), count, at);
                let done = self.answer(first, count, discarded)?;
                if done.is_some() {
                    (first..first + count).for_each(|block| *self.fill(block).unwrap() = 0);
                }
                done
            }
            Step::Flush => Some(self.opened.device.flush(at).unwrap()),
            Step::Work => {
                self.opened.device.work(at).unwrap();
                None
            }
            Step::Extent(place, count) => {
                let (first, count) = self.range(place, count);
                match self.opened.device.extent(Lba(first), count) {
                    Err(DeviceError::BeyondEnd { .. }) if first + count > self.blocks => {}
                    Ok(extent) => {
                        prop_assert!((1..=count).contains(&extent.blocks), "{:?} of {}", extent, count);
                        let end = (first + extent.blocks).min(self.blocks);
                        for block in (first..end).filter(|_| !extent.is_stored) {
                            prop_assert_eq!(self.fill(block).map_or(0, |fill| *fill), 0, "block {} is stored", block);
                        }
                    }
                    Err(error) => return Err(TestCaseError::fail(error.to_string())),
                }
                None
            }
        };
        if let Some(done) = done {
            prop_assert!(done >= at, "done at {:?}, before its start at {:?}", done, at);
            // Some requests begin while the previous one is in flight.
            self.at = if done.0.is_multiple_of(3) { done } else { at + 1000 };
        }
        Ok(())
    }
}

/// A step leaves blocks outside its range unchanged: the whole reach is checked after all steps.
fn agrees(opened: Opened, steps: &[Step]) -> Result<(), TestCaseError> {
    let mut tried = Tried::new(opened);
    for step in steps {
        tried.apply(step)?;
    }
    for place in 0..2 * tried.reach {
        tried.apply(&Step::Read(place, 1))?;
    }
    check_account(&tried.opened, tried.received, tried.read);
    tried.opened.device.close(tried.at).unwrap();
    Ok(())
}

#[test]
fn every_device_behaves_like_an_array_of_blocks() {
    for row in rows() {
        let mut has_budget = budget(3);
        while has_budget() {
            let config = Config { cases: 2, failure_persistence: None, ..Config::default() };
            let mut runner = TestRunner::new(config);
            let tried = runner.run(&proptest::collection::vec(step(), 1..160), |steps| agrees(row.open(), &steps));
            tried.unwrap_or_else(|error| panic!("{}: {error}", row.name));
        }
    }
}

#[test]
fn a_range_that_exceeds_the_device_is_refused_whole() {
    for row in rows() {
        let mut tried = Tried::new(row.open());
        let label = Label::host(Content::Data);
        let last = 2 * tried.reach - 1;
        for step in [
            Step::Write(last, 1, 7, label),
            Step::Write(last, 2, 9, label),
            Step::Discard(last, 2),
            Step::Read(last, 2),
            Step::Read(last, 1),
        ] {
            tried.apply(&step).unwrap_or_else(|error| panic!("{}: {step:?}: {error}", row.name));
        }
        let far = tried.opened.device.read(Lba(u64::MAX), &mut [0; BLOCK], Time::ZERO);
        assert!(matches!(far, Err(DeviceError::BeyondEnd { .. })), "{}: {far:?}", row.name);
        check_account(&tried.opened, 1, 1);
    }
}
