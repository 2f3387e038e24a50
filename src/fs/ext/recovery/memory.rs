//! A volume whose journal is in memory: a region of non-volatile memory, or that of the volume's own process.
//!
//! The journal is a choice of the mount: while a volume is mounted with it, the superblock names the memory's UUID as that of
//! an external journal, and no inode. The kernel and e2fsck then find no such journal, and do not touch the volume. After the
//! unmount it is an ordinary one again, with the empty log in inode 8 that it had before.

use crate::device::OwnMonitor;
use crate::device::nvm::{self, NvmSettings};
use crate::expression::parse_term;
use crate::fs::ext::error::OpenExtError;
use crate::fs::ext::media::JournalMemory;
use crate::fs::ext::settings::{ExtSettings, JournalKind};
use std::sync::Arc;

pub fn refused(why: impl ToString) -> OpenExtError {
    OpenExtError::JournalDevice(why.to_string())
}

/// Memory of this process, for a journal of which the path names no memory: the station `nvm` as it is by itself, or a
/// monitor.
fn own_memory(kind: JournalKind) -> Result<JournalMemory, OpenExtError> {
    if kind == JournalKind::Vmm {
        return Ok(JournalMemory::Kept(Arc::new(OwnMonitor::new())));
    }
    let settings = parse_term(nvm::KIND.name).and_then(|term| NvmSettings::read(&term));
    let memory = settings.expect("the defaults are valid").open();
    Ok(JournalMemory::Region(Arc::new(memory.map_err(refused)?)))
}

/// The reason that a journal in non-volatile memory has no commit thread.
pub const COMMIT_THREAD_OF_LOGS: &str = "commit-thread=on is of a journal on a device: who syncs commits to non-volatile memory without a wait, so leave it out";

/// The memory that a volume with these settings takes for its journal; the second device may be one of blocks. `is_new`:
/// nothing of the volume was there before, and it may be memory of this process.
pub fn wanted_memory(
    settings: &ExtSettings,
    memory: Option<JournalMemory>,
    has_device: bool,
    is_new: bool,
) -> Result<Option<JournalMemory>, OpenExtError> {
    let wanted = settings.journal.filter(|kind| *kind != JournalKind::Inline);
    let kind = match (&memory, settings.journal) {
        (Some(_), Some(JournalKind::Inline)) => {
            return Err(refused("journal=inline, and memory for a journal: leave one of them out"));
        }
        (Some(JournalMemory::Region(_)), Some(JournalKind::Vmm)) => {
            return Err(refused("journal=vmm, and non-volatile memory: write journal=nvm, or leave the memory out"));
        }
        (Some(JournalMemory::Kept(_)), Some(JournalKind::Nvm)) => {
            return Err(refused("journal=nvm, and a monitor: write journal=vmm, or +nvm:image=FILE in its place"));
        }
        (Some(JournalMemory::Region(_)), _) => Some(JournalKind::Nvm),
        (Some(JournalMemory::Kept(_)), _) => Some(JournalKind::Vmm),
        (None, _) => wanted,
    };
    if let (Some(option), None | Some(JournalKind::Vmm)) = (settings.of_nvm, kind) {
        let what = "is of a journal in non-volatile memory: add its memory, such as +nvm:image=FILE";
        return Err(refused(format!("{option}= {what}")));
    }
    if settings.has_commit_thread && kind == Some(JournalKind::Nvm) {
        return Err(refused(COMMIT_THREAD_OF_LOGS));
    }
    if settings.kept_bytes.is_some() && kind != Some(JournalKind::Vmm) {
        let what = "is of a journal that a monitor keeps: add it, such as +monitor:socket=SOCKET";
        return Err(refused(format!("kept= {what}")));
    }
    match (memory, wanted) {
        (None, Some(JournalKind::Nvm)) if has_device => {
            Err(refused("journal=nvm, and a second device of blocks: write +nvm in its place"))
        }
        (None, Some(_)) if has_device => Err(refused("journal=vmm writes no journal: leave the second device out")),
        (None, Some(kind)) if is_new => own_memory(kind).map(Some),
        (None, Some(JournalKind::Nvm)) => {
            Err(refused("journal=nvm needs its memory as the second device, such as ext/conv+nvm:image=FILE"))
        }
        (None, Some(_)) => Err(refused(
            "journal=vmm needs a monitor that outlives this process as the second device, such as \
             ext/conv:image=v.img+monitor:socket=SOCKET, with 'flashpath monitor SOCKET'",
        )),
        (memory, _) => Ok(memory),
    }
}
