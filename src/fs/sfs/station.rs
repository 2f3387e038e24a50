//! sfs as a station of a path.

use super::error::OpenSfsError;
use super::make::Identity;
use super::segment_table::inspection;
use super::{Finding, Sfs, SfsSettings, SfsVolume, check, mark_lost, repair, segment_map};
use crate::device::Medium;
use crate::device::station::only_medium;
use crate::fs::station::{Access, Inspection, Mounting, RepairOutcome, StoredVolumes, VolumeFault, VolumeSettings};
use crate::fs::volume::{Damage, Volume};
use crate::task::Task;
use crate::time::Time;
use std::sync::Arc;

impl From<OpenSfsError> for VolumeFault {
    fn from(error: OpenSfsError) -> VolumeFault {
        VolumeFault { is_lost: matches!(error, OpenSfsError::Superblocks(_)), source: Box::new(error) }
    }
}

impl From<&Finding> for Damage {
    fn from(finding: &Finding) -> Damage {
        Damage { what: finding.to_string(), repair: finding.repair.clone() }
    }
}

fn damages(findings: &[Finding]) -> Vec<Damage> {
    findings.iter().map(Damage::from).collect()
}

impl From<&Mounting> for Identity {
    fn from(mounting: &Mounting) -> Identity {
        Identity { seed: mounting.seed, origin: mounting.origin }
    }
}

impl SfsSettings {
    /// These options, with the memory that the mount may use.
    fn within(&self, mounting: &Mounting) -> SfsSettings {
        let machine_memory_bytes = mounting.memory_bytes.or(self.machine_memory_bytes);
        SfsSettings { machine_memory_bytes, ..self.clone() }
    }

    /// Refuses a grouping that needs to know future writes: a volume that is mounted does not know its own.
    fn check_future_is_not_needed(&self) -> Result<(), VolumeFault> {
        if self.grouping.needs_future() { Err(OpenSfsError::Future.into()) } else { Ok(()) }
    }
}

impl VolumeSettings for SfsSettings {
    fn written_out(&self) -> &str {
        &self.written_out
    }

    fn mounted_as(&self) -> &'static str {
        super::KIND.name
    }

    fn refuses_simulation(&self) -> Option<&'static str> {
        let reason = "a simulation keeps all metadata in memory, as stamps cannot be read back: omit memory=";
        self.memory_bytes.map(|_| reason)
    }

    fn create(&self, below: Vec<Medium>, mounting: &Mounting) -> Result<Arc<dyn Volume>, VolumeFault> {
        self.check_future_is_not_needed()?;
        let task = &Task::at(Time::ZERO);
        let sfs = Sfs::create(task, only_medium(below), &self.within(mounting), mounting.into())?;
        Ok(Arc::new(SfsVolume::new(sfs, task.now())))
    }

    fn stored(&self) -> Option<&dyn StoredVolumes> {
        Some(self)
    }
}

impl StoredVolumes for SfsSettings {
    fn open(&self, below: Vec<Medium>, mounting: &Mounting, access: Access) -> Result<Arc<dyn Volume>, VolumeFault> {
        self.check_future_is_not_needed()?;
        let medium = only_medium(below);
        let (task, settings, identity) = (&Task::at(Time::ZERO), self.within(mounting), mounting.into());
        let opened = match access {
            Access::ReadOnly => Sfs::open(task, medium, &settings, identity, true),
            Access::IfWhole => Sfs::open(task, medium, &settings, identity, false),
            Access::DespiteDamage => Sfs::open_despite_damage(task, medium, &settings, identity),
        };
        Ok(Arc::new(SfsVolume::new(opened?, task.now())))
    }

    fn check(&self, below: Vec<Medium>) -> Result<Vec<Damage>, VolumeFault> {
        Ok(damages(&check(only_medium(below), self)?))
    }

    fn repair(&self, below: Vec<Medium>, mounting: &Mounting) -> Result<RepairOutcome, VolumeFault> {
        let repaired = repair(only_medium(below), self, mounting.into())?;
        Ok(RepairOutcome { repaired: damages(&repaired.findings), left: damages(&repaired.left) })
    }

    fn mark_lost(&self, below: Vec<Medium>, number: [u8; 16]) -> Result<(), VolumeFault> {
        Ok(mark_lost(only_medium(below), number)?)
    }

    fn inspect(&self, below: Vec<Medium>) -> Result<Inspection, VolumeFault> {
        Ok(inspection(&segment_map(only_medium(below), self)?))
    }
}
