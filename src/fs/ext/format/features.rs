//! Features: three words of the superblock. A bit that a program does not know in the second forbids a mount, in the third
//! forbids writing.

use super::bytes::le32;
use std::fmt;

/// The word of the superblock that a feature is in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Word {
    /// Unknown ones change nothing for a program that does not know them.
    Compatible,
    /// Unknown ones forbid a mount.
    Incompatible,
    /// Unknown ones forbid writing.
    ReadOnly,
}

/// This program's treatment of a feature.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Knows {
    Writing,
    Reading,
    Nothing,
}

/// A feature: its word, its bit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Feature(Word, u32);

use Knows::{Nothing, Reading, Writing};
use Word::{Compatible, Incompatible, ReadOnly};

/// Inodes may be named by their numbers alone.
pub const IMAGIC: Feature = Feature(Compatible, 0x2);
pub const HAS_JOURNAL: Feature = Feature(Compatible, 0x4);
pub const EXT_ATTR: Feature = Feature(Compatible, 0x8);
pub const RESIZE_INODE: Feature = Feature(Compatible, 0x10);
pub const DIR_INDEX: Feature = Feature(Compatible, 0x20);
pub const SPARSE_SUPER2: Feature = Feature(Compatible, 0x200);
pub const FAST_COMMIT: Feature = Feature(Compatible, 0x400);
pub const ORPHAN_FILE: Feature = Feature(Compatible, 0x1000);
pub const FILETYPE: Feature = Feature(Incompatible, 0x2);
pub const NEEDS_RECOVERY: Feature = Feature(Incompatible, 0x4);
pub const JOURNAL_DEV: Feature = Feature(Incompatible, 0x8);
pub const META_BG: Feature = Feature(Incompatible, 0x10);
pub const EXTENTS: Feature = Feature(Incompatible, 0x40);
pub const WIDE: Feature = Feature(Incompatible, 0x80);
pub const MMP: Feature = Feature(Incompatible, 0x100);
pub const FLEX_BG: Feature = Feature(Incompatible, 0x200);
pub const CSUM_SEED: Feature = Feature(Incompatible, 0x2000);
pub const SPARSE_SUPER: Feature = Feature(ReadOnly, 0x1);
pub const LARGE_FILE: Feature = Feature(ReadOnly, 0x2);
pub const HUGE_FILE: Feature = Feature(ReadOnly, 0x8);
pub const GDT_CSUM: Feature = Feature(ReadOnly, 0x10);
pub const DIR_NLINK: Feature = Feature(ReadOnly, 0x20);
pub const EXTRA_ISIZE: Feature = Feature(ReadOnly, 0x40);
pub const QUOTA: Feature = Feature(ReadOnly, 0x100);
pub const BIGALLOC: Feature = Feature(ReadOnly, 0x200);
pub const METADATA_CSUM: Feature = Feature(ReadOnly, 0x400);
pub const PROJECT: Feature = Feature(ReadOnly, 0x2000);
/// Files may have the same blocks.
pub const SHARED_BLOCKS: Feature = Feature(ReadOnly, 0x4000);
pub const VERITY: Feature = Feature(ReadOnly, 0x8000);
pub const ORPHAN_PRESENT: Feature = Feature(ReadOnly, 0x1_0000);

/// The features that have names, as mke2fs and dumpe2fs call them.
const NAMES: &[(Feature, &str, Knows)] = &[
    (Feature(Compatible, 0x1), "dir_prealloc", Writing),
    (IMAGIC, "imagic_inodes", Writing),
    (HAS_JOURNAL, "has_journal", Writing),
    (EXT_ATTR, "ext_attr", Writing),
    (RESIZE_INODE, "resize_inode", Writing),
    (DIR_INDEX, "dir_index", Writing),
    (SPARSE_SUPER2, "sparse_super2", Writing),
    (FAST_COMMIT, "fast_commit", Writing),
    (Feature(Compatible, 0x800), "stable_inodes", Writing),
    (ORPHAN_FILE, "orphan_file", Writing),
    (Feature(Incompatible, 0x1), "compression", Nothing),
    (FILETYPE, "filetype", Writing),
    (NEEDS_RECOVERY, "needs_recovery", Writing),
    (JOURNAL_DEV, "journal_dev", Nothing),
    (META_BG, "meta_bg", Writing),
    (EXTENTS, "extent", Writing),
    (WIDE, "64bit", Writing),
    (MMP, "mmp", Reading),
    (FLEX_BG, "flex_bg", Writing),
    (Feature(Incompatible, 0x400), "ea_inode", Nothing),
    (Feature(Incompatible, 0x1000), "dirdata", Nothing),
    (CSUM_SEED, "metadata_csum_seed", Writing),
    (Feature(Incompatible, 0x4000), "large_dir", Reading),
    (Feature(Incompatible, 0x8000), "inline_data", Nothing),
    (Feature(Incompatible, 0x1_0000), "encrypt", Nothing),
    (Feature(Incompatible, 0x2_0000), "casefold", Nothing),
    (SPARSE_SUPER, "sparse_super", Writing),
    (LARGE_FILE, "large_file", Writing),
    (Feature(ReadOnly, 0x4), "btree_dir", Reading),
    (HUGE_FILE, "huge_file", Writing),
    (GDT_CSUM, "uninit_bg", Writing),
    (DIR_NLINK, "dir_nlink", Writing),
    (EXTRA_ISIZE, "extra_isize", Writing),
    (QUOTA, "quota", Reading),
    (BIGALLOC, "bigalloc", Reading),
    (METADATA_CSUM, "metadata_csum", Writing),
    (Feature(ReadOnly, 0x800), "replica", Reading),
    (Feature(ReadOnly, 0x1000), "read-only", Reading),
    (PROJECT, "project", Reading),
    (SHARED_BLOCKS, "shared_blocks", Reading),
    (VERITY, "verity", Reading),
    (ORPHAN_PRESENT, "orphan_present", Writing),
];

/// The features of a volume.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Features {
    words: [u32; 3],
}

impl Features {
    /// Those of a superblock: 92 compatible, 96 incompatible, 100 read-only compatible.
    pub fn of_superblock(bytes: &[u8]) -> Features {
        Features { words: [le32(bytes, 92), le32(bytes, 96), le32(bytes, 100)] }
    }

    /// These features.
    pub fn of(features: &[Feature]) -> Features {
        let mut all = Features::default();
        features.iter().for_each(|Feature(word, bit)| all.words[*word as usize] |= bit);
        all
    }

    pub fn words(&self) -> [u32; 3] {
        self.words
    }

    pub fn has(&self, Feature(word, bit): Feature) -> bool {
        self.words[word as usize] & bit != 0
    }

    /// The same with one more.
    pub fn with(mut self, Feature(word, bit): Feature) -> Features {
        self.words[word as usize] |= bit;
        self
    }

    /// The same without one.
    pub fn without(mut self, Feature(word, bit): Feature) -> Features {
        self.words[word as usize] &= !bit;
        self
    }

    /// The names of those that forbid a mount here, of reads or of writes.
    pub fn unreadable(&self) -> Vec<String> {
        self.named(|word, knows| word == Incompatible && knows == Nothing)
    }

    /// The names of those that forbid writing here.
    pub fn unwritable(&self) -> Vec<String> {
        self.named(|word, knows| match word {
            Compatible => knows == Reading,
            Incompatible | ReadOnly => knows != Writing,
        })
    }

    /// The names of all.
    pub fn names(&self) -> Vec<String> {
        self.named(|_, _| true)
    }

    /// The names of those that are there and of which `counts` holds; a bit without a name has its number.
    fn named(&self, counts: impl Fn(Word, Knows) -> bool) -> Vec<String> {
        let mut names = Vec::new();
        for (word, letter) in [(Compatible, 'C'), (Incompatible, 'I'), (ReadOnly, 'R')] {
            for bit in (0..32).map(|at| 1u32 << at).filter(|bit| self.words[word as usize] & bit != 0) {
                let known = NAMES.iter().find(|(feature, ..)| *feature == Feature(word, bit));
                let (name, knows) = match known {
                    Some((_, name, knows)) => (name.to_string(), *knows),
                    // A compatible feature that nobody here knows changes nothing.
                    None => {
                        (format!("FEATURE_{letter}{}", bit.ilog2()), if word == Compatible { Writing } else { Nothing })
                    }
                };
                if counts(word, knows) {
                    names.push(name);
                }
            }
        }
        names
    }
}

impl fmt::Display for Features {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(to, "{}", self.names().join(" "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unknown_feature_is_named_and_forbids_what_its_word_says() {
        let features = Features { words: [0x8000_0000, 0x8008, 0x40_0100] };
        assert_eq!(features.unreadable(), ["journal_dev", "inline_data"]);
        assert_eq!(features.unwritable(), ["journal_dev", "inline_data", "quota", "FEATURE_R22"]);
        assert!(features.has(JOURNAL_DEV) && !features.has(WIDE));
        assert!(Features::of(&[WIDE, EXTENTS, METADATA_CSUM]).unwritable().is_empty());
    }
}
