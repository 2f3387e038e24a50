//! ext as a station of a path.

use super::error::OpenExtError;
use super::make::create;
use super::{ExtSettings, recovery};
use crate::device::Medium;
use crate::fs::station::{Access, Inspection, Mounting, RepairOutcome, StoredVolumes, VolumeFault, VolumeSettings};
use crate::fs::volume::{Damage, Volume, VolumeError};
use crate::units::BLOCK_BYTES;
use std::sync::Arc;

/// Damage with which no walk over the volume can begin.
fn unrepairable(error: &VolumeError) -> Damage {
    Damage { what: error.to_string(), repair: "none: restore the volume from a backup".to_string() }
}

impl VolumeSettings for ExtSettings {
    fn written_out(&self) -> &str {
        &self.written_out
    }

    fn refuses_simulation(&self) -> Option<&'static str> {
        match self.memory_bytes {
            Some(_) => Some("a simulation keeps all metadata in memory, as stamps cannot be read back: omit memory="),
            None if self.block_bytes != BLOCK_BYTES => Some("a stamp stands for a block of 4K: leave block= away"),
            None => None,
        }
    }

    fn create(&self, below: Vec<Medium>, mounting: &Mounting) -> Result<Arc<dyn Volume>, VolumeFault> {
        Ok(Arc::new(create(below, self, mounting)?))
    }

    fn stored(&self) -> Option<&dyn StoredVolumes> {
        Some(self)
    }
}

impl StoredVolumes for ExtSettings {
    fn open(&self, below: Vec<Medium>, mounting: &Mounting, access: Access) -> Result<Arc<dyn Volume>, VolumeFault> {
        Ok(Arc::new(recovery::open(below, self, mounting, access)?))
    }

    fn check(&self, below: Vec<Medium>) -> Result<Vec<Damage>, VolumeFault> {
        match recovery::check(below, self) {
            Err(OpenExtError::Volume(error @ VolumeError::Damaged { .. })) => Ok(vec![unrepairable(&error)]),
            found => Ok(found?),
        }
    }

    fn repair(&self, below: Vec<Medium>, mounting: &Mounting) -> Result<RepairOutcome, VolumeFault> {
        match recovery::repair(below, self, mounting) {
            Err(OpenExtError::Volume(error @ VolumeError::Damaged { .. })) => {
                Ok(RepairOutcome { repaired: Vec::new(), left: vec![unrepairable(&error)] })
            }
            outcome => Ok(outcome?),
        }
    }

    fn mark_lost(&self, below: Vec<Medium>, number: [u8; 16]) -> Result<(), VolumeFault> {
        Ok(recovery::mark_errors(below, number)?)
    }

    fn recover(&self, below: Vec<Medium>, mounting: &Mounting) -> Result<(), VolumeFault> {
        Ok(recovery::recover(below, self, mounting)?)
    }

    fn inspect(&self, below: Vec<Medium>) -> Result<Inspection, VolumeFault> {
        let mut ext = recovery::open(below, self, &Mounting::at(0, 0), Access::ReadOnly)?;
        Ok(ext.inspection()?)
    }
}
