//! A drive of simulated flash whose power can be cut at any operation of the flash: what its buffer and its translation layer had in
//! memory is lost, and each page reads as its flash says.
//!
//! A block's bytes are a repetition of its first 24.

use super::plug::{Plug, PowerCut};
use flashpath::device::nand::LogicalPage;
use flashpath::device::{Abilities, Account, BlockDevice, DeviceError, Lba, NO_HINT, Placement, PlacementAccount};
use flashpath::label::Label;
use flashpath::time::Time;
use flashpath::translation::{PageWrite, Translation, TranslationError};
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, Mutex};

const BLOCK: usize = 4096;
/// Bytes that a block repeats.
const WORDS: usize = 24;

struct State<T> {
    /// It is away while a power cut is made of it.
    layer: Option<T>,
    /// The bytes of each stamp.
    written: Vec<[u8; WORDS]>,
    is_off: bool,
}

/// A drive of pages of 4 KiB. Clones are the same drive.
pub struct Flash<T> {
    state: Arc<Mutex<State<T>>>,
    plug: Plug,
    blocks: u64,
    is_placed: bool,
}

impl<T> Clone for Flash<T> {
    fn clone(&self) -> Flash<T> {
        Flash { state: Arc::clone(&self.state), plug: self.plug.clone(), ..*self }
    }
}

fn no_power() -> DeviceError {
    DeviceError::Station { station: "test", reason: "no power".to_string() }
}

impl<T: Translation<Timing = Plug>> Flash<T> {
    /// A drive of the layer's first blocks.
    pub fn new(layer: T, plug: Plug, blocks: u64) -> Flash<T> {
        assert!(layer.flash().geometry.page_bytes as usize == BLOCK && layer.exported_pages() >= blocks);
        let is_placed = layer.placement().is_some_and(|placement| placement.is_by_identifier);
        let state = State { layer: Some(layer), written: vec![[0; WORDS]], is_off: false };
        Flash { state: Arc::new(Mutex::new(state)), plug, blocks, is_placed }
    }

    /// Cuts the power after this many operations of flash.
    pub fn cut_after(&self, operations: u64) {
        self.plug.0.store(operations, Relaxed);
    }

    pub fn is_cut(&self) -> bool {
        self.state.lock().unwrap().is_off
    }

    /// The drive when it has power again.
    pub fn lose_power(&self) {
        self.plug.0.store(u64::MAX, Relaxed);
        let state = &mut *self.state.lock().unwrap();
        state.layer = Some(state.layer.take().unwrap().after_power_cut().unwrap());
        state.is_off = false;
    }

    pub fn erased_blocks(&self) -> u64 {
        self.state.lock().unwrap().layer.as_ref().unwrap().flash().counts.erased_blocks
    }

    /// Does something with the layer. The power may fail during it.
    fn operate<R>(
        &self,
        act: impl FnOnce(&mut T, &mut Vec<[u8; WORDS]>) -> Result<R, TranslationError>,
    ) -> Result<R, DeviceError> {
        let state = &mut *self.state.lock().unwrap();
        if state.is_off {
            return Err(no_power());
        }
        let (layer, written) = (state.layer.as_mut().unwrap(), &mut state.written);
        match catch_unwind(AssertUnwindSafe(|| act(layer, written))) {
            Ok(done) => done.map_err(|error| panic!("{error}")),
            Err(cause) if cause.is::<PowerCut>() => {
                state.is_off = true;
                Err(no_power())
            }
            Err(cause) => resume_unwind(cause),
        }
    }
}

impl<T: Translation<Timing = Plug> + Send> BlockDevice for Flash<T> {
    fn blocks(&self) -> u64 {
        self.blocks
    }

    fn block_width(&self) -> usize {
        BLOCK
    }

    fn read(&self, first: Lba, buffer: &mut [u8], at: Time) -> Result<Time, DeviceError> {
        self.operate(|layer, written| {
            for (page, bytes) in (first.0 as u32..).zip(buffer.chunks_exact_mut(BLOCK)) {
                let stamp = layer.read(LogicalPage(page), ())?.0.unwrap_or(0);
                let words = written[stamp as usize].iter().cycle();
                bytes.iter_mut().zip(words).for_each(|(byte, word)| *byte = *word);
            }
            Ok(at)
        })
    }

    fn write(&self, first: Lba, buffer: &[u8], label: Label, at: Time) -> Result<Time, DeviceError> {
        self.write_placed(first, buffer, label, NO_HINT, at)
    }

    fn write_placed(&self, first: Lba, buffer: &[u8], label: Label, hint: u8, at: Time) -> Result<Time, DeviceError> {
        self.operate(|layer, written| {
            for (page, bytes) in (first.0 as u32..).zip(buffer.chunks_exact(BLOCK)) {
                let words: [u8; WORDS] = bytes[..WORDS].try_into().unwrap();
                assert!(bytes.iter().eq(words.iter().cycle().take(BLOCK)), "the test writes repetitions");
                let stamp = written.len() as u32;
                written.push(words);
                let write = PageWrite { page: LogicalPage(page), provenance: label.provenance(), stream: hint, stamp };
                layer.write(write, ())?;
            }
            Ok(at)
        })
    }

    fn discard(&self, first: Lba, blocks: u64, at: Time) -> Result<Time, DeviceError> {
        self.operate(|layer, _| {
            for page in first.0..first.0 + blocks {
                layer.discard(LogicalPage(page as u32), ())?;
            }
            Ok(at)
        })
    }

    fn flush(&self, at: Time) -> Result<Time, DeviceError> {
        self.operate(|layer, _| layer.flush(()).map(|()| at))
    }

    fn account(&self) -> Account {
        Account { station: "test", ..Account::default() }
    }
}

impl<T: Translation<Timing = Plug> + Send> Placement for Flash<T> {
    fn placement_account(&self) -> PlacementAccount {
        self.state.lock().unwrap().layer.as_ref().unwrap().placement().unwrap()
    }

    fn update_handle(&self, identifier: u8, at: Time) -> Result<Time, DeviceError> {
        self.operate(|layer, _| layer.update_handle(identifier, ()).map(|()| at))
    }
}

impl<T: Translation<Timing = Plug> + Send> Abilities for Flash<T> {
    fn wrapped(&self) -> Option<&dyn BlockDevice> {
        None
    }

    fn placement(&self) -> Option<&dyn Placement> {
        self.is_placed.then_some(self as &dyn Placement)
    }
}
