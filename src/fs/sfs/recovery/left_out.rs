//! Parts of the log that cannot be applied because something is damaged: each is left out and reported.

use super::finding::{Finding, Structure};
use crate::fs::sfs::error::SfsError;

/// Reports what cannot be applied. Fails if the device does.
pub(super) fn tolerate(applied: Result<(), SfsError>, damage: &mut Vec<Finding>) -> Result<(), SfsError> {
    match applied {
        Err(SfsError::Device(error)) => Err(error.into()),
        Err(error) => {
            let place = "the log since the last checkpoint";
            let repair = "it is left out";
            damage.push(Finding::new(Structure::Log, place, error.to_string(), "records that can be applied", repair));
            Ok(())
        }
        Ok(()) => Ok(()),
    }
}
