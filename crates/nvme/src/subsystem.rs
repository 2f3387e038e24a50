//! The subsystem: namespaces, controllers, and names.

use crate::controller::{Controller, Kind, Portal};
use crate::namespace::{Drive, Namespace, NamespaceError, identifier, uuid_text};
use flashpath::time::Time;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// The name of every discovery controller.
pub const DISCOVERY_NAME: &str = "nqn.2014-08.org.nvmexpress.discovery";
/// The longest name, in bytes.
pub const LONGEST_NAME: usize = 223;

/// The reason why there can be no subsystem.
#[derive(Debug, thiserror::Error)]
pub enum SubsystemError {
    /// The name is no qualified name.
    #[error("{0} is no NVMe qualified name: write nqn.YYYY-MM.REVERSED.DOMAIN:NAME, of at most {LONGEST_NAME} bytes")]
    Name(String),
    /// A device cannot be a namespace.
    #[error("device {number} cannot be a namespace: {error}")]
    Namespace {
        /// The number, from 1.
        number: u32,
        /// The reason.
        error: NamespaceError,
    },
}

/// A subsystem.
pub struct Subsystem {
    name: String,
    serial: String,
    namespaces: Vec<Namespace>,
    controllers: Mutex<BTreeMap<u16, Arc<Controller>>>,
    is_ending: AtomicBool,
}

/// Checks a name of a subsystem.
pub fn check_name(name: &str) -> Result<(), SubsystemError> {
    let has_date = name.strip_prefix("nqn.").is_some_and(|rest| {
        let form = |(index, byte): (usize, u8)| if index == 4 { byte == b'-' } else { byte.is_ascii_digit() };
        rest.len() > 8 && rest.bytes().take(7).enumerate().all(form) && rest.as_bytes()[7] == b'.'
    });
    let is_text = name.bytes().all(|byte| byte.is_ascii_graphic());
    if !has_date || !is_text || name.len() > LONGEST_NAME || name == DISCOVERY_NAME {
        return Err(SubsystemError::Name(name.to_string()));
    }
    Ok(())
}

impl Subsystem {
    /// A subsystem of these devices, which have one clock. Without a name it gets one that follows from `what`: a server of the
    /// same devices at the same place is the same subsystem again.
    ///
    /// # Errors
    ///
    /// The name is none, or a device cannot be a namespace.
    pub fn new(name: Option<&str>, what: &str, drives: Vec<Drive>) -> Result<Subsystem, SubsystemError> {
        let id = identifier(what);
        let name = match name {
            Some(name) => name.to_string(),
            None => format!("nqn.2014-08.org.nvmexpress:uuid:{}", uuid_text(&id)),
        };
        check_name(&name)?;
        let named = |(number, drive)| {
            Namespace::new(drive, number, &name).map_err(|error| SubsystemError::Namespace { number, error })
        };
        let namespaces = (1..).zip(drives).map(named).collect::<Result<_, _>>()?;
        let serial = uuid_text(&identifier(&name)).replace('-', "")[..20].to_string();
        let is_ending = AtomicBool::new(false);
        Ok(Subsystem { name, serial, namespaces, controllers: Mutex::default(), is_ending })
    }

    /// The qualified name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The serial number.
    pub fn serial(&self) -> &str {
        &self.serial
    }

    /// All namespaces.
    pub fn namespaces(&self) -> &[Namespace] {
        &self.namespaces
    }

    /// The namespace of this number.
    pub fn namespace(&self, number: u32) -> Option<&Namespace> {
        self.namespaces.get((number as usize).checked_sub(1)?)
    }

    /// True if a namespace places writes by identifiers: each namespace is then an endurance group of its number.
    pub fn has_placement(&self) -> bool {
        self.namespaces.iter().any(|namespace| namespace.placement.is_some())
    }

    /// The time of the devices.
    pub fn now(&self) -> Time {
        self.namespaces.first().map_or(Time::ZERO, |namespace| namespace.drive.now())
    }

    /// True if answers wait for the time that the devices name.
    pub fn is_paced(&self) -> bool {
        self.namespaces.iter().any(|namespace| namespace.drive.sharing().paced)
    }

    /// A new controller for a host; `None` if there is no free number.
    pub fn add_controller(
        &self,
        kind: Kind,
        host: &str,
        host_id: [u8; 16],
        keep_alive: Duration,
        portal: &Portal,
    ) -> Option<Arc<Controller>> {
        let mut controllers = self.controllers();
        let id = (1..=0xffef).find(|id| !controllers.contains_key(id))?;
        let controller = Arc::new(Controller::new(id, kind, host.to_string(), host_id, keep_alive, portal.clone()));
        controllers.insert(id, Arc::clone(&controller));
        Some(controller)
    }

    /// The controller of this number.
    pub fn controller(&self, id: u16) -> Option<Arc<Controller>> {
        self.controllers().get(&id).cloned()
    }

    /// The numbers of all controllers with drives, in order.
    pub fn controller_numbers(&self) -> Vec<u16> {
        let controllers = self.controllers();
        controllers.values().filter(|controller| controller.kind == Kind::Drives).map(|known| known.id).collect()
    }

    /// Removes a controller, and ends its connections.
    pub fn remove_controller(&self, id: u16) {
        let removed = self.controllers().remove(&id);
        if let Some(controller) = removed {
            // A host that reconnects repeats what was not answered: what comes late must not undo newer writes. At the end, what has
            // arrived is still answered.
            if self.is_ending.load(Ordering::Relaxed) { controller.hang_up() } else { controller.disable() }
        }
    }

    /// From now on, commands that have arrived are executed although their controller ends.
    pub fn end(&self) {
        self.is_ending.store(true, Ordering::Relaxed);
    }

    /// Tells all hosts that the zone from this block on has changed.
    pub fn zone_changed(&self, namespace: u32, first: u64) {
        self.controllers().values().for_each(|controller| controller.events().zone_changed(namespace, first));
    }

    fn controllers(&self) -> MutexGuard<'_, BTreeMap<u16, Arc<Controller>>> {
        // No code that holds the lock can panic; and the list would still be valid.
        self.controllers.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_qualified_and_not_that_of_discovery() {
        for name in ["nqn.2026-01.org.example:drive", "nqn.2014-08.org.nvmexpress:uuid:0"] {
            assert!(check_name(name).is_ok(), "{name}");
        }
        let long = format!("nqn.2026-01.org.example:{}", "x".repeat(220));
        for name in [
            "",
            "drive",
            "nqn.",
            "nqn.2026-01",
            "nqn.2026-01.",
            "nqn.20260-1.org:x",
            "nqn.2026-01.a b",
            DISCOVERY_NAME,
            &long,
        ] {
            assert!(check_name(name).is_err(), "{name}");
        }
    }
}
