//! The way of dirty pages to the device.

use super::inodes::Inodes;
use super::map::Maps;
use super::reading::Reads;
use super::waiting::Waiting;
use crate::fs::ext::allocation::Allocation;
use crate::fs::ext::blocks::Blocks;
use crate::fs::ext::changes::Changes;
use crate::fs::ext::metadata::Metadata;
use crate::fs::ext::settings::ExtSettings;

/// Dirty pages of files, which are written out.
#[derive(Clone, Copy)]
pub struct WriteBack<'e> {
    pub settings: &'e ExtSettings,
    pub metadata: &'e Metadata,
    pub changes: &'e Changes,
    pub inodes: Inodes<'e>,
    /// Clean pages; `None` if none are kept.
    pub pages: Option<&'e Blocks>,
    pub waiting: &'e Waiting,
}

impl<'e> WriteBack<'e> {
    pub fn maps(&self) -> Maps<'e> {
        self.inodes.maps
    }

    pub fn allocation(&self) -> Allocation<'e> {
        self.inodes.maps.allocation
    }

    /// The stored bytes of files, and those in memory.
    pub fn reads(&self) -> Reads<'e> {
        Reads { settings: self.settings, metadata: self.metadata, maps: self.maps(), pages: self.pages }
    }
}
