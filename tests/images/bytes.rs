//! A disk in memory whose power can be cut.
//!
//! Fault model: every write is split at sectors of 512 bytes. Synced sectors stay. After a power cut, each sector
//! written since has any of its contents since the last sync; a punch is written sector by sector, too. Nothing else is
//! corrupted. The epoch ends with the power.

use flashpath::device::Disk;
use flashpath::device::zns::{Zns, ZnsSettings};
use flashpath::random::Random;
use std::collections::BTreeMap;
use std::io;
use std::sync::{Arc, Mutex};

const SECTOR: usize = 512;

#[derive(Default)]
struct State {
    durable: Vec<u8>,
    /// The writes to each sector since the last sync, in order.
    unsynced: BTreeMap<usize, Vec<[u8; SECTOR]>>,
    now: Vec<u8>,
    /// The number of operations before the power cut.
    left: Option<u64>,
    failing_syncs: u64,
    epoch: u8,
    /// Bytes that a cut of power leaves as a whole, if one write stored all of them: a multiple of a sector; 0 is one.
    atom: usize,
}

/// A disk in memory. Clones are the same disk.
#[derive(Clone)]
pub struct Bytes(Arc<Mutex<State>>);

impl Bytes {
    /// Zeros, long enough for a drive of these settings.
    pub fn for_drive(settings: &ZnsSettings) -> Bytes {
        Bytes::holding(vec![0; Zns::image_bytes(&settings.shape().unwrap()) as usize])
    }

    pub fn holding(bytes: Vec<u8>) -> Bytes {
        Bytes(Arc::new(Mutex::new(State { durable: bytes.clone(), now: bytes, epoch: 1, ..State::default() })))
    }

    /// The same, whose writes are split at blocks of 4 KiB.
    pub fn of_blocks(self) -> Bytes {
        self.0.lock().unwrap().atom = 4096;
        self
    }

    /// The same bytes, in another epoch.
    pub fn after_reboot(bytes: Vec<u8>) -> Bytes {
        let disk = Bytes::holding(bytes);
        disk.0.lock().unwrap().epoch = 2;
        disk
    }

    /// The bytes that a read returns.
    pub fn bytes(&self) -> Vec<u8> {
        self.0.lock().unwrap().now.clone()
    }

    /// Cuts the power after `operations` more writes, punches and syncs.
    pub fn cut_after(&self, operations: u64) {
        self.0.lock().unwrap().left = Some(operations);
    }

    pub fn is_cut(&self) -> bool {
        self.0.lock().unwrap().left == Some(0)
    }

    pub fn fail_syncs(&self, count: u64) {
        self.0.lock().unwrap().failing_syncs = count;
    }

    /// A random state after a power cut now.
    pub fn after_cut(&self, random: &mut Random) -> Bytes {
        let state = self.0.lock().unwrap();
        let mut bytes = state.durable.clone();
        // Sometimes nothing, or all, of the unsynced data survives.
        let whim = random.below(4);
        let mut last = (0, 0, 0);
        for (sector, versions) in &state.unsynced {
            let (atom, count) = (sector * SECTOR / state.atom.max(SECTOR), versions.len() as u64);
            let chosen = match whim {
                0 => 0,
                1 => count,
                _ if (atom, count) == (last.0, last.1) => last.2,
                _ => random.below(count + 1),
            };
            last = (atom, count, chosen);
            if chosen > 0 {
                bytes[sector * SECTOR..][..SECTOR].copy_from_slice(&versions[chosen as usize - 1]);
            }
        }
        let disk = Bytes::holding(bytes);
        disk.0.lock().unwrap().atom = state.atom;
        disk.0.lock().unwrap().epoch = state.epoch.wrapping_add(1);
        disk
    }
}

impl State {
    /// Fails without power; counts an operation.
    fn has_power(&mut self) -> io::Result<()> {
        match &mut self.left {
            None => Ok(()),
            Some(0) => Err(io::Error::other("the power is cut")),
            Some(left) => {
                *left -= 1;
                if *left == 0 { Err(io::Error::other("the power is cut")) } else { Ok(()) }
            }
        }
    }

    fn store(&mut self, offset: usize, bytes: &[u8]) {
        if bytes.is_empty() {
            return;
        }
        self.now[offset..offset + bytes.len()].copy_from_slice(bytes);
        for sector in offset / SECTOR..=(offset + bytes.len() - 1) / SECTOR {
            let content = self.now[sector * SECTOR..][..SECTOR].try_into().unwrap();
            self.unsynced.entry(sector).or_default().push(content);
        }
    }
}

impl Disk for Bytes {
    fn name(&self) -> &str {
        "bytes"
    }

    fn length(&self) -> u64 {
        self.0.lock().unwrap().now.len() as u64
    }

    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<()> {
        buffer.copy_from_slice(&self.0.lock().unwrap().now[offset as usize..][..buffer.len()]);
        Ok(())
    }

    fn write_at(&self, offset: u64, bytes: &[u8]) -> io::Result<()> {
        let mut state = self.0.lock().unwrap();
        // The write during which the power fails is there in part: its sectors count as written and not synced.
        if state.left != Some(0) {
            state.store(offset as usize, bytes);
        }
        state.has_power()
    }

    fn punch(&self, offset: u64, length: u64) -> io::Result<()> {
        let mut state = self.0.lock().unwrap();
        if state.left != Some(0) {
            state.store(offset as usize, &vec![0; length as usize]);
        }
        state.has_power()
    }

    fn sync(&self) -> io::Result<()> {
        let mut state = self.0.lock().unwrap();
        state.has_power()?;
        if state.failing_syncs > 0 {
            state.failing_syncs -= 1;
            return Err(io::Error::other("the disk cannot sync"));
        }
        state.durable = state.now.clone();
        state.unsynced.clear();
        Ok(())
    }

    fn epoch(&self) -> Option<[u8; 16]> {
        Some([self.0.lock().unwrap().epoch; 16])
    }
}

/// Writes the checksum of a structure into its last four bytes.
pub fn seal(structure: &mut [u8]) {
    let (bytes, crc) = structure.split_at_mut(structure.len() - 4);
    crc.copy_from_slice(&crc32c(bytes).to_le_bytes());
}

/// CRC-32C, bit by bit (reflected polynomial 0x82F63B78), independent of the program's own.
pub fn crc32c(bytes: &[u8]) -> u32 {
    !bytes.iter().fold(!0_u32, |crc, byte| {
        (0..8).fold(crc ^ u32::from(*byte), |crc, _| if crc & 1 == 1 { crc >> 1 ^ 0x82F6_3B78 } else { crc >> 1 })
    })
}
