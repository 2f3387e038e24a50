//! ext as a station of a path.

use super::error::OpenExtError;
use super::{Ext, ExtSettings};
use crate::device::Medium;
use crate::fs::station::{Access, Inspection, Mended, Mounting, StoredVolumes, VolumeFault, VolumeSettings};
use crate::fs::volume::{Damage, Volume};
use std::sync::Arc;

/// What is not done here yet.
fn not_yet(what: &str) -> VolumeFault {
    OpenExtError::Unsupported(what.to_string()).into()
}

impl VolumeSettings for ExtSettings {
    fn written_out(&self) -> &str {
        &self.written_out
    }

    fn mounted_as(&self) -> &'static str {
        super::KIND.name
    }

    fn create(&self, _below: Option<Medium>, _mounting: &Mounting) -> Result<Arc<dyn Volume>, VolumeFault> {
        Err(not_yet("mke2fs makes volumes of ext so far"))
    }

    fn stored(&self) -> Option<&dyn StoredVolumes> {
        Some(self)
    }
}

impl StoredVolumes for ExtSettings {
    fn open(&self, medium: Medium, mounting: &Mounting, access: Access) -> Result<Arc<dyn Volume>, VolumeFault> {
        Ok(Arc::new(Ext::open(medium, self, mounting, access)?))
    }

    fn check(&self, _medium: Medium) -> Result<Vec<Damage>, VolumeFault> {
        Err(not_yet("e2fsck -fn checks volumes of ext so far"))
    }

    fn repair(&self, _medium: Medium, _mounting: &Mounting) -> Result<Mended, VolumeFault> {
        Err(not_yet("e2fsck repairs volumes of ext so far"))
    }

    fn mark_lost(&self, _medium: Medium, _number: [u8; 16]) -> Result<(), VolumeFault> {
        Ok(())
    }

    fn inspect(&self, _medium: Medium) -> Result<Inspection, VolumeFault> {
        Err(not_yet("dumpe2fs describes volumes of ext so far"))
    }
}
