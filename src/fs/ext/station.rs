//! ext as a station of a path.

use super::error::OpenExtError;
use super::{Ext, ExtSettings};
use crate::device::Medium;
use crate::fs::station::{Access, Inspection, Mended, Mounting, StoredVolumes, VolumeFault, VolumeSettings};
use crate::fs::volume::{Damage, Volume};
use crate::units::BLOCK_BYTES;
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

    fn refuses_simulation(&self) -> Option<&'static str> {
        (self.block_bytes != BLOCK_BYTES).then_some("a stamp stands for a block of 4K: leave block= away")
    }

    fn create(&self, below: Option<Medium>, mounting: &Mounting) -> Result<Arc<dyn Volume>, VolumeFault> {
        let medium = below.expect("the table of stations says that ext stands on a device");
        Ok(Arc::new(Ext::create(medium, self, mounting)?))
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

    fn inspect(&self, medium: Medium) -> Result<Inspection, VolumeFault> {
        let mut ext = Ext::open(medium, self, &Mounting::at(0, 0), Access::ReadOnly)?;
        Ok(ext.inspection()?)
    }
}
