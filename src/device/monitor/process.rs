//! A monitor that is a process of its own, and keeps what it keeps when this one dies.

use super::NAME;
use super::protect::Protect;
use crate::device::{Account, Arena, DeviceError, Frame, KeptBlocks, KeptVolume, Monitor, Warnings};
use crate::time::Time;
use flashpath_vmm::{Guest, Protection, VmmError, Volume};
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The kind of the warning that the monitor is gone.
const MOVED: &str = "monitor-gone";

#[derive(Default)]
struct State {
    path: String,
    arena: Option<Arc<Arena>>,
    warnings: Warnings,
}

/// A connection to a monitor.
pub(super) struct ProcessMonitor {
    guest: Guest,
    protect: Protect,
    state: Mutex<State>,
}

impl ProcessMonitor {
    /// Connects to the monitor that listens there.
    pub fn connect(socket: &Path, protect: Protect) -> Result<ProcessMonitor, DeviceError> {
        let guest = Guest::connect(socket).map_err(failed)?;
        Ok(ProcessMonitor { guest, protect, state: Mutex::default() })
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // Each change of it is one step.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Begins with the wanted protection, or with the best that there is.
    fn begin_protected(&self, volume: &Volume, first: u32) -> Result<Arc<Arena>, VmmError> {
        let begin = |protection| self.guest.begin(volume.clone(), first, protection);
        match self.protect {
            Protect::Required => begin(Protection::Monitor),
            Protect::Mprotect => begin(Protection::Guest),
            Protect::Nothing => begin(Protection::Nothing),
            Protect::Best => match begin(Protection::Monitor) {
                Err(VmmError::Unprotected(why)) => {
                    let what = format!(
                        "committed memory is protected by mprotect in this process, which its own code can lift: there is no \
                         right to a userfaultfd ({why})"
                    );
                    self.state().warnings.add("weaker-protection", what);
                    begin(Protection::Guest)
                }
                begun => begun,
            },
        }
    }
}

fn failed(error: VmmError) -> DeviceError {
    DeviceError::Station { station: NAME, reason: error.to_string() }
}

impl Monitor for ProcessMonitor {
    fn kept_of(&self, volume: [u8; 16]) -> Result<Option<KeptBlocks>, DeviceError> {
        let kept = self.guest.kept(volume).map_err(failed)?;
        Ok(kept.map(|kept| KeptBlocks {
            volume,
            name: kept.name,
            last: kept.last,
            blocks: kept.blocks.into_iter().map(|(block, bytes)| (block, bytes.into())).collect(),
        }))
    }

    fn note_path(&self, path: &str) {
        self.state().path = path.to_string();
    }

    fn begin(&self, volume: KeptVolume, first: u32) -> Result<(), DeviceError> {
        let directory = std::env::current_dir().map_err(DeviceError::io("find the directory of this process"))?;
        let volume = Volume {
            uuid: volume.uuid,
            name: volume.name,
            blocks: volume.blocks,
            width: volume.width,
            most_in_memory: volume.most_in_memory,
            path: self.state().path.clone(),
            directory: directory.to_string_lossy().into_owned(),
        };
        let arena = self.begin_protected(&volume, first).map_err(failed)?;
        let what = "a loss of power, or the end of this process and of the monitor together, loses what is committed and not \
                    home, and with it the volume's consistency";
        let is_huge = arena.is_huge();
        let mut state = self.state();
        state.arena = Some(arena);
        state.warnings.add("memory-alone", what);
        if !is_huge {
            let what = "the kernel gives committed memory no huge pages (it has them from Linux 6.1 on): to protect a block takes \
                        three times as long";
            state.warnings.add("small-pages", what);
        }
        Ok(())
    }

    fn arena(&self) -> Option<Arc<Arena>> {
        self.state().arena.clone()
    }

    fn most_blocks(&self) -> u32 {
        self.guest.most_blocks()
    }

    fn is_gone(&self) -> bool {
        self.guest.is_gone()
    }

    fn account(&self) -> Option<Account> {
        let mut state = self.state();
        let is_told = state.warnings.iter().any(|warning| warning.kind == MOVED);
        if state.arena.is_some() && self.is_gone() && !is_told {
            let why = self.guest.last_word().map_or(String::new(), |why| format!("; it said: {why}"));
            state.warnings.add(MOVED, format!("the monitor is gone: the journal is in the volume from now on{why}"));
        }
        Some(Account { station: NAME, warnings: state.warnings.clone(), ..Account::default() })
    }

    fn commit(&self, at: Time, number: u32, blocks: &[(u64, Frame)], freed: &[u64]) -> Result<Time, DeviceError> {
        let frames = blocks.iter().map(|(block, frame)| match frame {
            Frame::Lent(frame) => (*block, Some(&**frame)),
            Frame::Own(_) => (*block, None),
        });
        self.guest.commit(number, frames, freed).map_err(failed)?;
        Ok(at)
    }

    fn let_go(&self, at: Time, next: u32) -> Result<Time, DeviceError> {
        self.guest.let_go(next).map_err(failed)?;
        Ok(at)
    }

    fn end(&self) -> Result<(), DeviceError> {
        self.guest.end().map_err(failed)
    }
}
