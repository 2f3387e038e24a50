//! The label of a block that is written: its [`Content`], the [`Cause`] for which a station writes it now, and its
//! origin, the cause for which the first station wrote it.
//!
//! All three travel with every request. Policies may read them; the ledger always counts them. The cause is new at each
//! station; content and origin, the block's [`Provenance`], stay the same down to the spare area of a flash page.

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
    /// A journal makes a transaction durable, or the log of a file system bytes of a sync.
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
    /// A page of flash is programmed before all of it is written: the rest is filled.
    Padding,
    /// In a write buffer a newer version takes the place of the block: it is not written.
    Joined,
    /// An FTL moves pages out of its cache in SLC mode.
    Fold,
    /// An FTL writes an erase block anew before its errors exceed what can be corrected, as reads of hosts have found.
    Refresh,
    /// The same, as its own reads in the background have found.
    Scrub,
    /// An FTL moves the pages of an erase block in which a program has failed.
    BadBlock,
}

impl Cause {
    /// The causes that can be an origin, the first ones: copies of a drive keep the origins of what they copy.
    pub const ORIGINS: usize = Cause::Fold as usize;
    /// The number of causes.
    pub const COUNT: usize = 16;
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
        Cause::Padding,
        Cause::Joined,
        Cause::Fold,
        Cause::Refresh,
        Cause::Scrub,
        Cause::BadBlock,
    ];

    /// The cause with this number; [`Cause::HostWrite`] for a number that no cause has.
    #[inline]
    pub fn from_number(number: u8) -> Cause {
        Self::ALL.get(usize::from(number)).copied().unwrap_or(Cause::HostWrite)
    }

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
            Cause::Padding => "padding",
            Cause::Joined => "joined",
            Cause::Fold => "fold",
            Cause::Refresh => "refresh",
            Cause::Scrub => "scrub",
            Cause::BadBlock => "bad-block",
        }
    }
}

/// The part of a label that a block keeps when a station writes it again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Provenance {
    /// The cause for which the first station wrote the block.
    pub origin: Cause,
    /// Its content.
    pub content: Content,
}

impl Provenance {
    /// The provenance of a block of which nothing is known: a host wrote data.
    pub const UNKNOWN: Provenance = Provenance { origin: Cause::HostWrite, content: Content::Data };
}

/// The label of a block that is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Label {
    /// The cause at the station that writes it.
    pub cause: Cause,
    /// The cause for which the first station wrote it.
    pub origin: Cause,
    /// Its content.
    pub content: Content,
}

impl Label {
    /// The label of a host write.
    pub const fn host(content: Content) -> Label {
        Label::first(Cause::HostWrite, content)
    }

    /// The label of a block that no station above has written: its origin is this cause.
    pub const fn first(cause: Cause, content: Content) -> Label {
        Label { cause, origin: cause, content }
    }

    /// The label of a block that was written before, and is written again for `cause`.
    pub const fn again(cause: Cause, Provenance { origin, content }: Provenance) -> Label {
        Label { cause, origin, content }
    }

    /// The part that the block keeps.
    pub const fn provenance(self) -> Provenance {
        Provenance { origin: self.origin, content: self.content }
    }
}

/// The numbers of the bits that are set, ascending.
#[inline]
pub(crate) fn set_bits(bits: u64) -> impl Iterator<Item = usize> {
    let mut left = bits;
    std::iter::from_fn(move || {
        let next = (left != 0).then(|| left.trailing_zeros() as usize)?;
        left &= left - 1;
        Some(next)
    })
}

/// Counts by cause, origin and content: a station's column of the ledger.
#[derive(Clone, Debug, Default)]
pub struct Tally {
    counts: [[[u64; Content::COUNT]; Cause::ORIGINS]; Cause::COUNT],
    /// A bit for each cause that may have a count: a run looks at many tallies, and few of their causes are used.
    used: u16,
}

const _: () = assert!(Cause::COUNT <= u16::BITS as usize, "each cause has a bit");

impl PartialEq for Tally {
    fn eq(&self, other: &Tally) -> bool {
        self.counts == other.counts
    }
}

impl Eq for Tally {}

impl Tally {
    /// Adds `count` blocks with this label, whose origin is one of [`Cause::ORIGINS`].
    #[inline]
    pub fn add(&mut self, label: Label, count: u64) {
        self.counts[label.cause as usize][label.origin as usize][label.content as usize] += count;
        self.used |= 1 << label.cause as u16;
    }

    /// The numbers of the causes that may have a count.
    #[inline]
    fn used(&self) -> impl Iterator<Item = usize> + use<> {
        set_bits(self.used.into())
    }

    /// The count of blocks with this label.
    pub fn of(&self, label: Label) -> u64 {
        self.counts[label.cause as usize][label.origin as usize][label.content as usize]
    }

    /// The count of `content` for `cause`, over all origins.
    pub fn get(&self, cause: Cause, content: Content) -> u64 {
        self.counts[cause as usize].iter().map(|contents| contents[content as usize]).sum()
    }

    /// The count of one provenance, over all causes.
    pub fn of_provenance(&self, Provenance { origin, content }: Provenance) -> u64 {
        self.used().map(|cause| self.counts[cause][origin as usize][content as usize]).sum()
    }

    /// The count for `cause`, over all origins and contents.
    pub fn of_cause(&self, cause: Cause) -> u64 {
        self.counts[cause as usize].iter().flatten().sum()
    }

    /// The count over all labels.
    pub fn total(&self) -> u64 {
        self.used().map(|cause| self.counts[cause].as_flattened().iter().sum::<u64>()).sum()
    }

    /// The difference to `earlier`, an older copy of the same tally.
    pub fn since(&self, earlier: &Tally) -> Tally {
        let mut rest = self.clone();
        for cause in self.used() {
            let counts = rest.counts[cause].as_flattened_mut().iter_mut();
            counts.zip(earlier.counts[cause].as_flattened()).for_each(|(count, old)| *count -= old);
        }
        rest
    }

    /// The nonzero counts, by cause, then origin, then content.
    pub fn entries(&self) -> impl Iterator<Item = (Label, u64)> + '_ {
        self.used().flat_map(|cause| {
            let rows = self.counts[cause].iter().enumerate();
            let used = rows.filter(|(_, row)| row.iter().fold(0, |all, count| all | count) != 0);
            used.flat_map(move |(origin, row)| {
                let (cause, origin) = (Cause::ALL[cause], Cause::ALL[origin]);
                let label = move |content| Label { cause, origin, content };
                Content::ALL.into_iter().map(label).zip(row.iter().copied()).filter(|(_, count)| *count > 0)
            })
        })
    }
}

impl FromIterator<(Label, u64)> for Tally {
    fn from_iter<I: IntoIterator<Item = (Label, u64)>>(counts: I) -> Tally {
        let mut tally = Tally::default();
        counts.into_iter().for_each(|(label, count)| tally.add(label, count));
        tally
    }
}
