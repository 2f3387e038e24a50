//! Reasons of a sync for a full commit where fast commits are written, and the count of each.

/// A reason why fast commits cannot have a transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(usize)]
pub enum Reason {
    /// Extended attributes changed: the tag of an inode ends before them.
    Attributes,
    /// A directory was made, removed or moved, or more of one changed than its names.
    Directory,
    /// A directory has got a block: the kernel's replay gives it one, and does not count it.
    GrownDirectory,
    /// Two names were exchanged.
    Exchange,
    /// A rename has left a whiteout.
    Whiteout,
    /// A file that is neither regular nor a directory was made or changed: tags have neither targets nor devices.
    Kind,
    /// A file has a map of block numbers, and tags have extents.
    BlockMap,
    /// A file that lost its last name in an older transaction was freed: its inode may be used again, and the list of
    /// orphans on the medium still names it.
    OldOrphan,
    /// A file is cut off in several handles, and is in the list of orphans meanwhile.
    CutInParts,
    /// An inode says that it changed before the volume was made: a replay takes it for one of another life.
    OldTimes,
    /// The area has no room for the fast commit.
    Full,
    /// Something else changed.
    Other,
}

impl Reason {
    /// All of them, in the order of their numbers.
    const ALL: [Reason; 12] = [
        Reason::Attributes,
        Reason::Directory,
        Reason::GrownDirectory,
        Reason::Exchange,
        Reason::Whiteout,
        Reason::Kind,
        Reason::BlockMap,
        Reason::OldOrphan,
        Reason::CutInParts,
        Reason::OldTimes,
        Reason::Full,
        Reason::Other,
    ];

    /// The name of its count in reports.
    fn event(self) -> &'static str {
        match self {
            Reason::Attributes => "syncs with a full commit: extended attributes",
            Reason::Directory => "syncs with a full commit: directories",
            Reason::GrownDirectory => "syncs with a full commit: directories that got a block",
            Reason::Exchange => "syncs with a full commit: exchanged names",
            Reason::Whiteout => "syncs with a full commit: whiteouts",
            Reason::Kind => "syncs with a full commit: links, devices, pipes and sockets",
            Reason::BlockMap => "syncs with a full commit: maps of block numbers",
            Reason::OldOrphan => "syncs with a full commit: files that had lost their names before",
            Reason::CutInParts => "syncs with a full commit: files cut off in parts",
            Reason::OldTimes => "syncs with a full commit: times before the volume was made",
            Reason::Full => "syncs with a full commit: no room for a fast one",
            Reason::Other => "syncs with a full commit: other changes",
        }
    }
}

/// Fast commits since the mount, and syncs that none could serve.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct FastCounts {
    pub(super) commits: u64,
    pub(super) blocks: u64,
    full: [u64; Reason::ALL.len()],
}

impl FastCounts {
    /// A sync takes a full commit, for this reason.
    pub(super) fn falls_back(&mut self, reason: Reason) {
        self.full[reason as usize] += 1;
    }

    /// The counts with their names. Reasons that were none yet are left out.
    pub(super) fn events(&self) -> Vec<(&'static str, u64)> {
        let mut events = vec![("fast commits", self.commits), ("blocks of fast commits", self.blocks)];
        let full = Reason::ALL.into_iter().zip(self.full);
        events.extend(full.filter(|(_, count)| *count > 0).map(|(reason, count)| (reason.event(), count)));
        events
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_reason_has_a_count_of_its_own() {
        let mut counts = FastCounts::default();
        for (number, reason) in Reason::ALL.into_iter().enumerate() {
            assert_eq!(reason as usize, number);
            (0..=number).for_each(|_| counts.falls_back(reason));
        }
        let events = counts.events();
        let mut names: Vec<&str> = events.iter().map(|(name, _)| *name).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), Reason::ALL.len() + 2);
        assert!(events[2..].iter().map(|(_, count)| *count).eq(1..=Reason::ALL.len() as u64));
        assert_eq!(FastCounts::default().events().len(), 2);
    }
}
