//! The label of a block that is written: its [`Content`] and its [`Cause`].
//!
//! Both travel with every request. Policies may read them; the ledger always counts them.

/// The content of a block.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum Content {
    /// A file's bytes, or unknown.
    #[default]
    Data = 0,
    /// A file system's own structures: inodes, directories, bitmaps.
    Metadata = 1,
    /// A journal's blocks: descriptors, copies of other blocks, commit records.
    Journal = 2,
    /// A translation layer's own structures: mapping pages.
    Mapping = 3,
}

impl Content {
    /// The number of contents.
    pub const COUNT: usize = 4;
    /// All contents, in numeric order.
    pub const ALL: [Content; Self::COUNT] = [Content::Data, Content::Metadata, Content::Journal, Content::Mapping];

    /// The content with the number in the low two bits. Total, so that a packed field needs no check.
    pub fn from_low_bits(number: u8) -> Content {
        Self::ALL[(number & 3) as usize]
    }

    /// The name in reports and JSON.
    pub fn name(self) -> &'static str {
        match self {
            Content::Data => "data",
            Content::Metadata => "metadata",
            Content::Journal => "journal",
            Content::Mapping => "mapping",
        }
    }
}

/// The reason why a station writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum Cause {
    /// A request of the host.
    HostWrite = 0,
    /// A journal makes a transaction durable.
    JournalCommit,
    /// A journal or a log-structured file system updates its home locations.
    Checkpoint,
    /// A log-structured file system cleans a segment.
    SegmentCleaning,
    /// dm-zoned frees a zone.
    Reclaim,
    /// A hybrid FTL merges log blocks and data blocks.
    Merge,
    /// An FTL moves valid pages out of a victim.
    GarbageCollection,
    /// An FTL moves valid pages to even out the erase counts.
    WearLevelling,
    /// An FTL updates the part of its map that is on flash.
    Mapping,
    /// A cache on a device stores blocks that were read.
    CacheFill,
}

impl Cause {
    /// The number of causes.
    pub const COUNT: usize = 10;
    /// All causes, in numeric order.
    pub const ALL: [Cause; Self::COUNT] = [
        Cause::HostWrite,
        Cause::JournalCommit,
        Cause::Checkpoint,
        Cause::SegmentCleaning,
        Cause::Reclaim,
        Cause::Merge,
        Cause::GarbageCollection,
        Cause::WearLevelling,
        Cause::Mapping,
        Cause::CacheFill,
    ];

    /// The name in reports and JSON.
    pub fn name(self) -> &'static str {
        match self {
            Cause::HostWrite => "host-write",
            Cause::JournalCommit => "journal-commit",
            Cause::Checkpoint => "checkpoint",
            Cause::SegmentCleaning => "segment-cleaning",
            Cause::Reclaim => "reclaim",
            Cause::Merge => "merge",
            Cause::GarbageCollection => "garbage-collection",
            Cause::WearLevelling => "wear-levelling",
            Cause::Mapping => "mapping",
            Cause::CacheFill => "cache-fill",
        }
    }
}

/// The cause and the content of a block that is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Label {
    /// The cause at the station that writes it.
    pub cause: Cause,
    /// Its content.
    pub content: Content,
}

impl Label {
    /// The label of a host write.
    pub const fn host(content: Content) -> Label {
        Label { cause: Cause::HostWrite, content }
    }
}

/// Counts by cause and content: a station's column of the ledger.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    counts: [[u64; Content::COUNT]; Cause::COUNT],
}

impl Tally {
    /// Adds `count` of `content` for `cause`.
    #[inline]
    pub fn add(&mut self, cause: Cause, content: Content, count: u64) {
        self.counts[cause as usize][content as usize] += count;
    }

    /// The count of `content` for `cause`.
    pub fn get(&self, cause: Cause, content: Content) -> u64 {
        self.counts[cause as usize][content as usize]
    }

    /// The count for `cause`, over all contents.
    pub fn of_cause(&self, cause: Cause) -> u64 {
        self.counts[cause as usize].iter().sum()
    }

    /// The count over all causes and contents.
    pub fn total(&self) -> u64 {
        self.counts.iter().flatten().sum()
    }

    /// The difference to `earlier`, an older copy of the same tally.
    pub fn since(&self, earlier: &Tally) -> Tally {
        let mut rest = self.clone();
        for (row, old) in rest.counts.iter_mut().zip(&earlier.counts) {
            for (count, old) in row.iter_mut().zip(old) {
                *count -= old;
            }
        }
        rest
    }

    /// The nonzero counts, by cause, then content.
    pub fn entries(&self) -> impl Iterator<Item = (Cause, Content, u64)> + '_ {
        Cause::ALL.into_iter().flat_map(move |cause| {
            Content::ALL
                .into_iter()
                .map(move |content| (cause, content, self.get(cause, content)))
                .filter(|entry| entry.2 > 0)
        })
    }
}
