//! The versions of blocks that may be found after a server has ended: one since the last durable one. Included by path.

pub const BLOCK: usize = 4096;
pub const BLOCKS: u64 = 2048;

/// What a write leaves in a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Bytes,
    Zeros,
    /// Zeros, unless the device has forgotten the deallocation.
    Deallocated,
}

/// The versions of a block. They are numbered over all blocks; 0 is the initial content.
#[derive(Clone, Default)]
pub struct Versions {
    /// The oldest allowed version.
    pub durable: u64,
    /// The latest answered version.
    pub answered: u64,
    /// The versions requested since the durable one.
    pub asked: Vec<(u64, Kind)>,
}

/// The versions of all blocks.
pub struct Oracle {
    pub blocks: Vec<Versions>,
    pub version: u64,
    /// True of devices whose answered writes are durable.
    pub writes_through: bool,
    /// True of devices that may lose deallocations, even flushed ones: the block then has any earlier content until its next durable write.
    pub forgets_deallocations: bool,
}

/// The content of a version of a block.
pub fn content(block: u64, version: u64, kind: Kind) -> Vec<u8> {
    if kind != Kind::Bytes || version == 0 {
        return vec![0; BLOCK];
    }
    let words = [block, version, block.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ version];
    words.iter().flat_map(|word| word.to_le_bytes()).cycle().take(BLOCK).collect()
}

/// The version whose bytes a block holds, if it holds one's.
fn version_of(block: u64, found: &[u8]) -> Option<u64> {
    let version = u64::from_le_bytes(found[8..16].try_into().expect("eight bytes"));
    (version > 0 && found == content(block, version, Kind::Bytes)).then_some(version)
}

impl Versions {
    /// The latest content.
    pub fn newest(&self, block: u64) -> Vec<u8> {
        self.asked.last().map_or_else(|| vec![0; BLOCK], |(version, kind)| content(block, *version, *kind))
    }

    /// The version that was found, if it may be there.
    fn allowed(&self, block: u64, found: &[u8], forgets: bool) -> Option<(u64, Kind)> {
        let since = || self.asked.iter().rev().filter(|(version, _)| *version >= self.durable);
        let known = since().find(|(version, kind)| found == content(block, *version, *kind)).copied();
        let may_be_forgotten = || since().map(|(version, kind)| (*kind == Kind::Deallocated, *version));
        known.or_else(|| {
            let forgotten = may_be_forgotten().find(|(is_deallocated, _)| forgets && *is_deallocated)?.1;
            let earlier = version_of(block, found)?;
            (earlier < forgotten).then_some((earlier, Kind::Bytes))
        })
    }
}

impl Oracle {
    pub fn new() -> Oracle {
        let blocks = vec![Versions::default(); BLOCKS as usize];
        Oracle { blocks, version: 0, writes_through: false, forgets_deallocations: false }
    }

    /// The answered versions, which become durable with the answer of a later flush.
    pub fn answered(&self) -> Vec<u64> {
        self.blocks.iter().map(|known| known.answered).collect()
    }

    pub fn flushed(&mut self, answered: &[u64]) {
        for (known, answered) in self.blocks.iter_mut().zip(answered) {
            known.durable = known.durable.max(*answered);
        }
    }

    /// Checks the blocks after the end, as `read` reads them, and takes them as durable from now on. Returns the number of blocks
    /// newer than required.
    pub fn check(&mut self, read: &mut dyn FnMut(u64, u64) -> Vec<u8>, context: &str) -> u64 {
        let mut newer = 0;
        for first in (0..BLOCKS).step_by(64) {
            let bytes = read(first, 64);
            for (block, found) in (first..).zip(bytes.chunks(BLOCK)) {
                let known = &mut self.blocks[block as usize];
                let durable = known.durable;
                let Some((version, kind)) = known.allowed(block, found, self.forgets_deallocations) else {
                    let is_untouched = durable == 0 && found.iter().all(|byte| *byte == 0);
                    assert!(
                        is_untouched,
                        "{context}: block {block} holds {:02x?}..., and version {durable} is durable, of {:?}",
                        &found[..24],
                        known.asked
                    );
                    // Answered but unflushed versions are lost: a flush of the next server does not cover them.
                    *known = Versions::default();
                    continue;
                };
                newer += u64::from(version > durable);
                *known = Versions { durable: version, answered: version, asked: vec![(version, kind)] };
            }
        }
        newer
    }
}
