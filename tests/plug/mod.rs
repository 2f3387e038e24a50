//! A power cut at any operation of flash: a timing model that panics when its operations are used up.

use flashpath::device::nand::{EraseBlock, Timing};
use flashpath::device::wait_log::Purpose;
use flashpath::time::Time;
use std::panic::resume_unwind;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// The number of flash operations before the power cut.
#[derive(Clone)]
pub struct Plug(pub Arc<AtomicU64>);

/// The panic payload of a power cut.
pub struct PowerCut;

impl Plug {
    fn operate(&self) {
        match self.0.load(Relaxed) {
            0 => resume_unwind(Box::new(PowerCut)),
            left => self.0.store(left - 1, Relaxed),
        }
    }
}

/// The last operation is completed: a page is programmed or not, a block erased or not.
impl Timing for Plug {
    const TIMED: bool = false;

    type Moment = ();

    fn instant(&mut self, _at: Time) {}

    fn later(&mut self, _sum: (), _other: ()) {}

    fn settle(&mut self, _moment: (), until: Time) -> Option<Time> {
        Some(until)
    }

    fn read(&mut self, _block: EraseBlock, _purpose: Purpose, _at: ()) {
        self.operate();
    }

    fn program(&mut self, _block: EraseBlock, _purpose: Purpose, _at: ()) {
        self.operate();
    }

    fn erase(&mut self, _block: EraseBlock, _at: ()) {
        self.operate();
    }
}
