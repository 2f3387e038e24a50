//! Mounting: a volume is opened strictly, and then made ready to be written, unless it may only be read.

use super::open::{Opened, Tolerance, open};
use crate::device::Medium;
use crate::fs::sfs::Sfs;
use crate::fs::sfs::error::{OpenSfsError, SfsError};
use crate::fs::sfs::log::Head;
use crate::fs::sfs::log::segments::State;
use crate::fs::sfs::make::Identity;
use crate::fs::sfs::media::format::VERSION;
use crate::fs::sfs::settings::SfsSettings;
use crate::fs::sfs::write_back::{Checkpoint, release_by_log};
use crate::task::Task;

/// The use of a volume that is mounted.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Access {
    ReadOnly,
    /// It may be written if nothing of its log is damaged.
    IfWhole,
    DespiteDamage,
}

/// Mounts the volume on a medium: see [`Sfs::open`].
pub(in crate::fs::sfs) fn open_whole(
    task: &Task<'_>,
    medium: Medium,
    settings: &SfsSettings,
    identity: Identity,
    read_only: bool,
) -> Result<Sfs, OpenSfsError> {
    let access = if read_only { Access::ReadOnly } else { Access::IfWhole };
    mount(task, open(task, medium, settings, identity, Tolerance::Strict)?, access)
}

/// Mounts the volume on a medium: see [`Sfs::open_despite_damage`].
pub(in crate::fs::sfs) fn open_damaged(
    task: &Task<'_>,
    medium: Medium,
    settings: &SfsSettings,
    identity: Identity,
) -> Result<Sfs, OpenSfsError> {
    mount(task, open(task, medium, settings, identity, Tolerance::Strict)?, Access::DespiteDamage)
}

fn mount(task: &Task<'_>, opened: Opened, access: Access) -> Result<Sfs, OpenSfsError> {
    let Opened { volume: mut sfs, findings: damage, is_clean, .. } = opened;
    sfs.damage = damage;
    let why = match access {
        Access::ReadOnly => Some("it was mounted so"),
        Access::IfWhole if !sfs.damage.is_empty() => {
            Some("parts of its log are damaged, and 'flashpath fsck' repairs it")
        }
        Access::IfWhole | Access::DespiteDamage => None,
    };
    if let Some(why) = why {
        sfs.writer.faults.read_only = Some(why.to_string());
        // Whatever was rolled forward is durable in the log.
        sfs.files.is_changed = false;
        return Ok(sfs);
    }
    if !is_clean {
        // The log may have taken all that was free, and gone on in what it freed: that is free for the checkpoint
        // below, too. If only the process ended, the device may hold the log in its memory yet.
        sfs.writer.flush(task, &sfs.files.media)?;
        sfs.writer.check_emptied(task, &mut sfs.files)?;
        for segment in release_by_log(&mut sfs.files, &sfs.writer.log) {
            sfs.writer.discards.discard(task, &sfs.files, segment)?;
        }
    }
    tidy_zones(task, &sfs)?;
    if is_clean && sfs.writer.superblock.version.get() == VERSION {
        go_on(task, &mut sfs);
        // It is no longer unmounted, and that must be durable before the first fsync adds to the log: a superblock
        // that says that nothing follows would have the next mount not look for it.
        Checkpoint::of(task, &mut sfs).write_superblocks(false)?;
    } else {
        sfs.write_back(task).checkpoint(false)?;
        // Should the power fail again and again, and nothing else be done in between, there must be room for the
        // next such checkpoint.
        sfs.write_back(task).keep_room()?;
    }
    sfs.writer.discards.queue_free(task, &sfs.files);
    Ok(sfs)
}

/// Goes on in the segments that were open when the volume was unmounted.
pub(super) fn go_on(task: &Task<'_>, volume: &mut Sfs) {
    let superblock = volume.writer.superblock;
    for (head, segment, block) in superblock.open_ends() {
        if usize::from(head) < volume.writer.log.most_heads
            && segment < volume.files.segments.count()
            && block < volume.files.media.segment_blocks()
            && matches!(volume.files.segments.get(segment).state, State::Written | State::Emptied)
            && volume.files.media.can_append_at(segment, block)
            && ends_at(task, volume, segment, block)
        {
            volume.files.segments.reopen(segment);
            volume.writer.log.heads[usize::from(head)] = Some(Head { segment, block });
        }
    }
}

/// Zones that are open and will not be written on take what a device has few of.
pub(super) fn tidy_zones(task: &Task<'_>, volume: &Sfs) -> Result<(), SfsError> {
    if !volume.files.media.is_zoned() {
        return Ok(());
    }
    let superblock = volume.writer.superblock;
    let stays_open = |segment: u32| {
        let mut heads = superblock.open_ends().filter(|(head, ..)| usize::from(*head) < volume.writer.log.most_heads);
        superblock.clean.get() == 1 && heads.any(|(_, open, _)| open == segment)
    };
    for segment in 0..volume.files.segments.count() {
        let goes_on = stays_open(segment);
        match volume.files.segments.get(segment).state {
            _ if goes_on => {}
            State::Free => volume.files.media.discard(task, segment)?,
            _ => volume.files.media.end(task, segment)?,
        }
    }
    Ok(())
}

/// True if an open segment of a checkpoint ends where the superblock says, so that the log can go on there.
fn ends_at(task: &Task<'_>, volume: &Sfs, segment: u32, block: u32) -> bool {
    let next = volume.writer.superblock.next_partial.get();
    volume.files.media.holds_stamps()
        || volume.writer.reader(task, &volume.files.media).end_before(segment, next).is_ok_and(|end| end == block)
}
