//! A virtual machine of the tests' own: shared memory, split virtqueues and the driver of a virtio disk, written from the
//! specifications and not from the server. The messages are those of the `vhost` crate's front end.
//!
//! ```text
//! memory of a queue, from its base on
//! 0x0000 descriptors (16 each)    0x3000 used ring              0x10000 slots of 512 KiB: a request each
//! 0x2000 available ring           0x4000 indirect tables        of a slot: header at 0, status at 64, data at 4096
//! ```

use rustix::fs::{MemfdFlags, ftruncate, memfd_create};
use std::fs::File;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{Ordering, fence};
use std::time::Duration;
use vhost::vhost_user::message::VhostUserConfigFlags;
use vhost::vhost_user::{Frontend, VhostUserFrontend, VhostUserProtocolFeatures};
use vhost::{VhostBackend, VhostUserMemoryRegionInfo, VringConfigData};
use vm_memory::{Bytes, FileOffset, GuestAddress, GuestMemoryBackend, GuestMemoryMmap};
use vmm_sys_util::eventfd::{EFD_NONBLOCK, EventFd};
use vmm_sys_util::poll::PollContext;

/// The kinds of requests.
pub const READ: u32 = 0;
pub const WRITE: u32 = 1;
pub const FLUSH: u32 = 4;
pub const GET_ID: u32 = 8;
pub const DISCARD: u32 = 11;
pub const WRITE_ZEROES: u32 = 13;
/// The statuses.
pub const OK: u8 = 0;
pub const FAILED: u8 = 1;
pub const UNSUPPORTED: u8 = 2;
/// A status that no request has written.
pub const UNTOUCHED: u8 = 0xee;
/// Flags of a descriptor.
pub const NEXT: u16 = 1;
pub const WRITABLE: u16 = 2;
pub const INDIRECT: u16 = 4;
/// The numbers of features.
pub const F_FLUSH: u64 = 9;
pub const F_INDIRECT: u64 = 28;
pub const F_EVENT_INDEX: u64 = 29;

/// Entries of a queue, of which a slot has four.
const ENTRIES: u16 = 128;
/// Requests that a queue may have under way.
pub const SLOTS: usize = 32;
/// The most bytes of a request's data.
pub const MOST_DATA: usize = (512 << 10) - 4096;
/// The guest's first address.
const FIRST: u64 = 1 << 20;
const QUEUE_BYTES: u64 = 32 << 20;
const AVAILABLE: u64 = 0x2000;
const USED: u64 = 0x3000;
const TABLES: u64 = 0x4000;
const SLOT_BYTES: u64 = 512 << 10;
/// The time that an answer may take.
const PATIENCE: Duration = Duration::from_secs(60);

/// The server is gone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Gone;

/// An answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answer {
    pub slot: usize,
    pub status: u8,
    /// The room of the request's data, as it is now.
    pub data: Vec<u8>,
    /// Bytes that the server says it has written.
    pub written: u32,
}

/// The machine.
pub struct Guest {
    memory: Arc<GuestMemoryMmap>,
    /// Features that it takes if they are offered.
    pub wanted: u64,
    /// Those that were offered, and those that both have.
    pub offered: u64,
    pub features: u64,
    /// The configuration space.
    pub configuration: Vec<u8>,
    pub most_queues: u64,
    pub queues: Vec<Queue>,
    pub frontend: Option<Frontend>,
}

/// A queue and its driver.
pub struct Queue {
    pub memory: Arc<GuestMemoryMmap>,
    base: u64,
    kick: EventFd,
    call: EventFd,
    waiting: Option<PollContext<u32>>,
    features: u64,
    available: u16,
    used: u16,
    /// The room of each slot that is under way.
    slots: [Option<usize>; SLOTS],
}

impl Guest {
    pub fn new(queues: u64) -> Guest {
        let bytes = queues * QUEUE_BYTES;
        let file = File::from(memfd_create("guest", MemfdFlags::CLOEXEC).unwrap());
        ftruncate(&file, bytes).unwrap();
        let range = (GuestAddress(FIRST), bytes as usize, Some(FileOffset::new(file, 0)));
        let memory = Arc::new(GuestMemoryMmap::from_ranges_with_files([range]).unwrap());
        let queue = |number: u64| Queue {
            memory: Arc::clone(&memory),
            base: FIRST + number * QUEUE_BYTES,
            kick: EventFd::new(EFD_NONBLOCK).unwrap(),
            call: EventFd::new(EFD_NONBLOCK).unwrap(),
            waiting: None,
            features: 0,
            available: 0,
            used: 0,
            slots: [None; SLOTS],
        };
        let queues = (0..queues).map(queue).collect();
        Guest {
            memory: Arc::clone(&memory),
            wanted: u64::MAX,
            offered: 0,
            features: 0,
            configuration: Vec::new(),
            most_queues: 0,
            queues,
            frontend: None,
        }
    }

    /// A machine with a disk at this socket.
    pub fn connected(socket: &Path, queues: u64) -> Guest {
        let mut guest = Guest::new(queues);
        guest.connect(socket);
        guest
    }

    /// Connects to a server, also to the next one: its rings begin behind the answers that the last one gave, as QEMU has it.
    pub fn connect(&mut self, socket: &Path) {
        let stream = UnixStream::connect(socket).unwrap();
        let watched = stream.try_clone().unwrap();
        let mut frontend = Frontend::from_stream(stream, self.queues.len() as u64);
        frontend.set_owner().unwrap();
        self.offered = frontend.get_features().unwrap();
        self.features = self.offered & self.wanted;
        let protocol = frontend.get_protocol_features().unwrap();
        let wanted = VhostUserProtocolFeatures::MQ | VhostUserProtocolFeatures::CONFIG;
        assert!(protocol.contains(wanted), "{protocol:?}");
        frontend.set_protocol_features(wanted | (protocol & VhostUserProtocolFeatures::REPLY_ACK)).unwrap();
        self.most_queues = frontend.get_queue_num().unwrap();
        let space = frontend.get_config(0, 60, VhostUserConfigFlags::empty(), &[0; 60]).unwrap();
        self.configuration = space.1;
        frontend.set_features(self.features).unwrap();
        let region = self.memory.iter().next().unwrap();
        frontend.set_mem_table(&[VhostUserMemoryRegionInfo::from_guest_region(region).unwrap()]).unwrap();
        for (number, queue) in self.queues.iter_mut().enumerate() {
            queue.connect(number, self.features, &mut frontend, &watched);
        }
        self.frontend = Some(frontend);
    }

    /// Leaves without a word.
    pub fn disconnect(&mut self) {
        self.frontend = None;
        self.queues.iter_mut().for_each(|queue| queue.waiting = None);
    }

    pub fn sectors(&self) -> u64 {
        u64::from_le_bytes(self.configuration[..8].try_into().unwrap())
    }

    pub fn offers(&self, feature: u64) -> bool {
        self.offered & 1 << feature != 0
    }
}

impl Queue {
    fn connect(&mut self, number: usize, features: u64, frontend: &mut Frontend, watched: &UnixStream) {
        let user = |place: u64| self.memory.get_host_address(GuestAddress(self.base + place)).unwrap() as u64;
        let addresses = VringConfigData {
            queue_max_size: ENTRIES,
            queue_size: ENTRIES,
            desc_table_addr: user(0),
            avail_ring_addr: user(AVAILABLE),
            used_ring_addr: user(USED),
            ..Default::default()
        };
        frontend.set_vring_num(number, ENTRIES).unwrap();
        frontend.set_vring_base(number, self.load(USED + 2)).unwrap();
        frontend.set_vring_addr(number, &addresses).unwrap();
        frontend.set_vring_call(number, &self.call).unwrap();
        frontend.set_vring_kick(number, &self.kick).unwrap();
        frontend.set_vring_enable(number, true).unwrap();
        let waiting = PollContext::new().unwrap();
        waiting.add(&self.call, 0).unwrap();
        waiting.add(watched, 1).unwrap();
        (self.waiting, self.features) = (Some(waiting), features);
    }

    fn has(&self, feature: u64) -> bool {
        self.features & 1 << feature != 0
    }

    fn load(&self, place: u64) -> u16 {
        u16::from_le(self.memory.load(GuestAddress(self.base + place), Ordering::Acquire).unwrap())
    }

    fn store(&self, place: u64, value: u16) {
        self.memory.store(value.to_le(), GuestAddress(self.base + place), Ordering::Release).unwrap();
    }

    /// The address of a slot's header; its status and its data follow.
    pub fn slot(&self, slot: usize) -> u64 {
        self.base + 0x10000 + slot as u64 * SLOT_BYTES
    }

    /// Writes a descriptor: of the queue, or of a table.
    pub fn describe(&self, table: Option<usize>, entry: u64, place: u64, bytes: u32, flags: u16, next: u16) {
        let table = table.map_or(0, |slot| TABLES + slot as u64 * 256);
        let mut descriptor = [0; 16];
        descriptor[..8].copy_from_slice(&place.to_le_bytes());
        descriptor[8..12].copy_from_slice(&bytes.to_le_bytes());
        descriptor[12..14].copy_from_slice(&flags.to_le_bytes());
        descriptor[14..].copy_from_slice(&next.to_le_bytes());
        self.memory.write_slice(&descriptor, GuestAddress(self.base + table + entry * 16)).unwrap();
    }

    /// Makes a head available, and kicks the server if it wants to be.
    pub fn offer(&mut self, head: u16) {
        self.store(AVAILABLE + 4 + u64::from(self.available % ENTRIES) * 2, head);
        let before = self.available;
        self.available = before.wrapping_add(1);
        self.store(AVAILABLE + 2, self.available);
        fence(Ordering::SeqCst);
        let event = self.load(USED + 4 + u64::from(ENTRIES) * 8);
        let is_wanted = match self.has(F_EVENT_INDEX) {
            true => event == before,
            false => self.load(USED) & 1 == 0,
        };
        if is_wanted {
            self.kick.write(1).unwrap();
        }
    }

    /// Writes the header of a request into a slot.
    pub fn head(&self, slot: usize, kind: u32, sector: u64) {
        let mut header = [0; 16];
        header[..4].copy_from_slice(&kind.to_le_bytes());
        header[8..].copy_from_slice(&sector.to_le_bytes());
        self.memory.write_slice(&header, GuestAddress(self.slot(slot))).unwrap();
        self.memory.write_obj(UNTOUCHED, GuestAddress(self.slot(slot) + 64)).unwrap();
    }

    /// Sends a request: with these data, or with room for so many bytes. Returns its slot.
    pub fn submit(&mut self, kind: u32, sector: u64, data: &[u8], room: usize) -> usize {
        let slot = self.slots.iter().position(Option::is_none).expect("a slot is free");
        self.head(slot, kind, sector);
        let place = self.slot(slot);
        self.memory.write_slice(data, GuestAddress(place + 4096)).unwrap();
        // Data in two descriptors, the first of an odd length.
        let bytes = (data.len() + room) as u32;
        let first = if bytes > 4096 { 4095 } else { 0 };
        let flags = if room > 0 { WRITABLE } else { 0 };
        let mut parts = vec![(place, 16, 0)];
        parts.extend((first > 0).then_some((place + 4096, first, flags)));
        parts.extend((bytes > 0).then_some((place + 4096 + u64::from(first), bytes - first, flags)));
        parts.push((place + 64, 1, WRITABLE));
        // Every other request has its descriptors in a table.
        let head = slot as u64 * 4;
        let table = (self.has(F_INDIRECT) && self.available % 2 == 1).then_some(slot);
        let start = if table.is_some() { 0 } else { head };
        for (number, (place, bytes, flags)) in (0..).zip(&parts) {
            let more = if number + 1 < parts.len() as u64 { NEXT } else { 0 };
            self.describe(table, start + number, *place, *bytes, flags | more, (start + number + 1) as u16);
        }
        if table.is_some() {
            let place = self.base + TABLES + slot as u64 * 256;
            self.describe(None, head, place, parts.len() as u32 * 16, INDIRECT, 0);
        }
        self.slots[slot] = Some(room);
        self.offer(head as u16);
        slot
    }

    /// Waits for the next head in the used ring, and the bytes that were written.
    pub fn next_used(&mut self) -> Result<(u16, u32), Gone> {
        loop {
            if self.load(USED + 2) != self.used {
                let place = USED + 4 + u64::from(self.used % ENTRIES) * 8;
                self.used = self.used.wrapping_add(1);
                let entry: [u32; 2] = self.memory.read_obj(GuestAddress(self.base + place)).unwrap();
                return Ok((entry[0] as u16, entry[1]));
            }
            // The server is to wake this for the next answer.
            self.store(AVAILABLE + 4 + u64::from(ENTRIES) * 2, self.used);
            fence(Ordering::SeqCst);
            if self.load(USED + 2) != self.used {
                continue;
            }
            let events = self.waiting.as_ref().ok_or(Gone)?.wait_timeout(PATIENCE).unwrap();
            let (mut is_called, mut is_gone, mut is_late) = (false, false, true);
            for event in events.iter() {
                is_late = false;
                is_called |= event.token() == 0;
                is_gone |= event.token() == 1 && event.hungup();
            }
            assert!(!is_late, "no answer came in time");
            if is_called {
                let _ = self.call.read();
            } else if is_gone && self.load(USED + 2) == self.used {
                return Err(Gone);
            }
        }
    }

    /// Waits for an answer.
    pub fn complete(&mut self) -> Result<Answer, Gone> {
        let (head, written) = self.next_used()?;
        let slot = usize::from(head / 4);
        let room = self.slots[slot].take().expect("a request that is under way");
        let place = self.slot(slot);
        let mut data = vec![0; room];
        self.memory.read_slice(&mut data, GuestAddress(place + 4096)).unwrap();
        let status = self.memory.read_obj(GuestAddress(place + 64)).unwrap();
        Ok(Answer { slot, status, data, written })
    }

    /// Asks to be woken for the next answer, and forgets that it was for earlier ones.
    #[allow(dead_code, reason = "tests of the disk use it")]
    pub fn arm(&self) {
        let _ = self.call.read();
        self.store(AVAILABLE + 4 + u64::from(ENTRIES) * 2, self.used);
    }

    /// Answers in the ring, and whether the server has woken this for them.
    #[allow(dead_code, reason = "tests of the disk use it")]
    pub fn woken(&self) -> (u16, bool) {
        (self.load(USED + 2).wrapping_sub(self.used), self.call.read().is_ok())
    }

    /// Requests that are not answered.
    #[allow(dead_code, reason = "tests of the program use it")]
    pub fn under_way(&self) -> usize {
        self.slots.iter().flatten().count()
    }

    /// A request and its answer.
    pub fn run(&mut self, kind: u32, sector: u64, data: &[u8], room: usize) -> Answer {
        let slot = self.submit(kind, sector, data, room);
        let answer = self.complete().expect("the server is there");
        assert_eq!(answer.slot, slot);
        answer
    }

    pub fn read(&mut self, sector: u64, bytes: usize) -> Vec<u8> {
        let answer = self.run(READ, sector, &[], bytes);
        assert_eq!((answer.status, answer.written as usize), (OK, bytes + 1));
        answer.data
    }

    pub fn write(&mut self, sector: u64, data: &[u8]) {
        assert_eq!(self.run(WRITE, sector, data, 0).status, OK);
    }

    /// A discard or a zeroing of ranges: sector, sectors, flags.
    pub fn ranges(&mut self, kind: u32, ranges: &[(u64, u32, u32)]) -> u8 {
        let bytes = |range: &(u64, u32, u32)| {
            [&range.0.to_le_bytes()[..], &range.1.to_le_bytes(), &range.2.to_le_bytes()].concat()
        };
        self.run(kind, 0, &ranges.iter().flat_map(bytes).collect::<Vec<u8>>(), 0).status
    }
}
