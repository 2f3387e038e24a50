//! The bytes of a block in memory: shared by all who read them, and copied before a change while others share them.

use flashpath_vmm::{Arena, Frame as ArenaFrame};
use std::fmt;
use std::ops::Deref;
use std::sync::Arc;

/// The bytes of a block. Clones share them.
#[derive(Clone)]
pub enum Frame {
    /// In memory of this process alone.
    Own(Arc<[u8]>),
    /// In memory that a monitor keeps when this process dies.
    Lent(Arc<ArenaFrame>),
}

impl Frame {
    /// A copy of bytes, in a frame of the arena if there is one with room.
    pub fn copy_of(bytes: &[u8], arena: Option<&Arc<Arena>>) -> Frame {
        match arena.and_then(|arena| arena.take(bytes)) {
            Some(frame) => Frame::Lent(Arc::new(frame)),
            None => Frame::Own(bytes.into()),
        }
    }

    /// The bytes to be changed in their place; `None` while others share them, or if a monitor may still protect them.
    pub fn get_mut(&mut self) -> Option<&mut [u8]> {
        match self {
            Frame::Own(bytes) => Arc::get_mut(bytes),
            Frame::Lent(frame) => Arc::get_mut(frame).and_then(ArenaFrame::bytes_mut),
        }
    }

    /// The bytes to be changed, which are copied first if they cannot be changed in their place. With an arena they are in one of its frames
    /// from then on, if it has room.
    pub fn make_mut(&mut self, arena: Option<&Arc<Arena>>) -> &mut [u8] {
        let is_to_move = arena.is_some() && matches!(self, Frame::Own(_));
        if is_to_move || self.get_mut().is_none() {
            *self = Frame::copy_of(self, arena);
        }
        self.get_mut().expect("nobody shares a copy yet, or it was found to be one")
    }

    /// True if both share the same memory.
    pub fn is_same(&self, other: &Frame) -> bool {
        match (self, other) {
            (Frame::Own(own), Frame::Own(other)) => Arc::ptr_eq(own, other),
            (Frame::Lent(own), Frame::Lent(other)) => Arc::ptr_eq(own, other),
            _ => false,
        }
    }
}

impl Deref for Frame {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        match self {
            Frame::Own(bytes) => bytes,
            Frame::Lent(frame) => frame.bytes(),
        }
    }
}

impl Default for Frame {
    fn default() -> Frame {
        Frame::Own(Arc::default())
    }
}

impl From<Vec<u8>> for Frame {
    fn from(bytes: Vec<u8>) -> Frame {
        Frame::Own(bytes.into())
    }
}

impl From<&[u8]> for Frame {
    fn from(bytes: &[u8]) -> Frame {
        Frame::Own(bytes.into())
    }
}

impl fmt::Debug for Frame {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.deref().fmt(formatter)
    }
}
