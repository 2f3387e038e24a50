//! Why a block is written: its [`Content`] and its [`Cause`].
//!
//! Both travel with every request. Policies may read them; the ledger always counts them.

/// What a block holds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum Content {
    /// A file's bytes, or a block of which nothing more is known.
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
    /// How many contents there are.
    pub const COUNT: usize = 4;
    /// All contents, in the order of their numbers.
    pub const ALL: [Content; Self::COUNT] = [Content::Data, Content::Metadata, Content::Journal, Content::Mapping];

    /// The content with this number, of which only the low two bits count: it is total, so that a packed field can be
    /// unpacked without a check.
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

/// What made a station write.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum Cause {
    /// The host asked for it.
    HostWrite = 0,
    /// A journal made a transaction durable.
    JournalCommit,
    /// A journal or a log-structured file system brought its home locations up to date.
    Checkpoint,
    /// A log-structured file system cleaned a segment.
    SegmentCleaning,
    /// dm-zoned freed a zone.
    Reclaim,
    /// A hybrid FTL joined log blocks and data blocks.
    Merge,
    /// An FTL moved valid pages out of a victim.
    GarbageCollection,
    /// An FTL moved valid pages to even out the erase counts.
    WearLevelling,
    /// An FTL brought the part of its map that is on flash up to date.
    Mapping,
    /// A cache on a device kept what was read.
    CacheFill,
}

impl Cause {
    /// How many causes there are.
    pub const COUNT: usize = 10;
    /// All causes, in the order of their numbers.
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

/// Why a block is written: what made a station write it, and what it holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Label {
    /// What made a station write it.
    pub cause: Cause,
    /// What it holds.
    pub content: Content,
}

impl Label {
    /// What the host writes.
    pub const fn host(content: Content) -> Label {
        Label { cause: Cause::HostWrite, content }
    }
}

/// A count for each cause and content: a station's column of the ledger.
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

    /// What has been added since `earlier`, an older copy of the same tally.
    pub fn since(&self, earlier: &Tally) -> Tally {
        let mut rest = self.clone();
        for (row, old) in rest.counts.iter_mut().zip(&earlier.counts) {
            for (count, old) in row.iter_mut().zip(old) {
                *count -= old;
            }
        }
        rest
    }

    /// The entries that are not zero, by cause, then content.
    pub fn entries(&self) -> impl Iterator<Item = (Cause, Content, u64)> + '_ {
        Cause::ALL.into_iter().flat_map(move |cause| {
            Content::ALL
                .into_iter()
                .map(move |content| (cause, content, self.get(cause, content)))
                .filter(|entry| entry.2 > 0)
        })
    }
}
