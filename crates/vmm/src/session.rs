//! The monitor's side of one guest.
//!
//! Another thread watches the guest's process and the faults in its memory. A guest that goes without a word, or sends a
//! wrong message, is killed: it may not write to its volume while that is recovered.

use crate::arena::FRAME_BYTES;
use crate::error::{VmmError, cannot};
use crate::event::Event;
use crate::guests::Guests;
use crate::keeper::{Keeper, Volume};
use crate::name::{HeldName, NameError};
use crate::peer::Peer;
use crate::ring::{self, Ring, Tuple};
use crate::shared::Shared;
use crate::slots::End;
use crate::spill;
use crate::table::Table;
use crate::userfault::{Fault, Userfault};
use crate::wire::{Answer, Begin, Commit, KeptMemory, Protection, Request, VERSION, Wire};
use rustix::event::{EventfdFlags, PollFd, PollFlags, eventfd, poll};
use rustix::fd::{AsFd, OwnedFd};
use rustix::io::{Errno, write};
use rustix::thread::{CpuSet, sched_getcpu, sched_setaffinity};
use std::any::Any;
use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

/// The time in which a new guest says something, and in which it takes an answer.
const PATIENCE: Duration = Duration::from_secs(10);
/// The most ranges of freed blocks in a commit.
const MOST_RANGES: usize = 1 << 22;

/// The state that all sessions share.
pub(crate) struct Common {
    pub keeper: Keeper,
    pub most_blocks: u32,
    pub spill: Option<PathBuf>,
    pub events: Box<dyn Fn(Event) + Send + Sync>,
    pub guests: Guests,
}

/// The words of a panic.
pub(crate) fn panic_message(payload: &(dyn Any + Send)) -> String {
    let text = payload.downcast_ref::<String>().map(String::as_str);
    let text = text.or_else(|| payload.downcast_ref::<&str>().copied()).unwrap_or("a panic");
    format!("it has panicked: {text}")
}

/// Does the work of a thread, whose panic is told.
pub(crate) fn guarded(common: &Common, thread: &'static str, work: impl FnOnce()) {
    if let Err(payload) = catch_unwind(AssertUnwindSafe(work)) {
        (common.events)(Event::Failed { thread, why: panic_message(&*payload) });
    }
}

/// A guest that commits.
struct Running {
    uuid: [u8; 16],
    ring: Ring,
    /// The address of its first frame.
    start: u64,
    userfault: Option<Arc<Userfault>>,
    watcher: Watcher,
    /// The parts of the commit under way.
    tuples: Vec<Tuple>,
    freed: Vec<Range<u64>>,
}

/// A guest.
pub(crate) struct Session {
    common: Arc<Common>,
    number: u64,
    wire: Arc<Wire>,
    peer: Arc<Peer>,
    /// The volume that it holds.
    held: Option<[u8; 16]>,
    running: Option<Running>,
}

impl Session {
    pub fn new(common: Arc<Common>, number: u64, wire: Arc<Wire>, peer: Peer) -> Session {
        Session { common, number, wire, peer: Arc::new(peer), held: None, running: None }
    }

    /// Serves the guest until it goes. Answers the volume whose memory it has left behind, if nobody recovers it yet.
    pub fn serve(mut self) -> Option<[u8; 16]> {
        let process = self.peer.process.as_raw_nonzero().get();
        let ended = match catch_unwind(AssertUnwindSafe(|| self.converse())) {
            Ok(ended) => ended,
            Err(payload) => return self.failed(&*payload),
        };
        // One that has ended in the middle of a request has said nothing wrong.
        if let Err(error) = &ended
            && !matches!(error, VmmError::Died)
        {
            // A guest that is gone does not take it.
            let _ = self.wire.send(&Answer::Refused(error.to_string()), &[]);
            (self.common.events)(Event::Refused { process, why: error.to_string() });
        }
        let left = self.running.take().map(|running| {
            running.watcher.end();
            running.uuid
        });
        if let (Some(uuid), Err(error)) = (left, left.map_or(Ok(()), |_| self.peer.fence())) {
            // While it may still write, nobody else may have its volume.
            (self.common.events)(Event::NotRecovered { volume: uuid, why: error.to_string() });
            return None;
        }
        if let Some(volume) = left {
            let blocks = self.common.keeper.with(volume, |kept| kept.table.len()).unwrap_or_default();
            (self.common.events)(Event::Died { process, volume, blocks });
        }
        self.held.filter(|held| self.common.keeper.release(*held, self.number))
    }

    /// The thread has panicked. A guest that lives goes on with the log in its volume; its memory is no longer protected.
    fn failed(mut self, payload: &(dyn Any + Send)) -> Option<[u8; 16]> {
        let why = panic_message(payload);
        if let Some(running) = self.running.take() {
            running.watcher.end();
        }
        // A guest that is gone does not take it.
        let _ = self.wire.send_at_once(&Answer::Ends(why.clone()));
        self.wire.close();
        (self.common.events)(Event::Failed { thread: "the thread of a guest", why });
        let is_dead = !self.peer.lives();
        self.held.filter(|held| is_dead && self.common.keeper.release(*held, self.number))
    }

    fn converse(&mut self) -> Result<(), VmmError> {
        self.wire.set_patience(Some(PATIENCE), Some(PATIENCE))?;
        let Some((Request::Hello { version }, _)) = self.wire.receive()? else {
            return Err(VmmError::Protocol("a guest begins with its version".to_string()));
        };
        if version != VERSION {
            let why = format!("the guest speaks version {version} of the protocol, and the monitor {VERSION}");
            return Err(VmmError::Protocol(why));
        }
        self.answer(&Answer::Welcome { version: VERSION, most_blocks: self.common.most_blocks })?;
        // From here on the guest may take as long as it wants.
        self.wire.set_patience(None, Some(PATIENCE))?;
        while let Some((request, descriptors)) = self.wire.receive()? {
            match request {
                Request::Hello { .. } => return Err(VmmError::Protocol("the guest began twice".to_string())),
                Request::Claim { volume } => self.claim(volume)?,
                Request::Begin(begin) => self.begin(begin, descriptors)?,
                Request::Commit(commit) => self.commit(commit)?,
                Request::LetGo { next } => self.let_go(next)?,
                Request::Reclaim => self.reclaim()?,
                Request::End => self.end()?,
            }
        }
        Ok(())
    }

    fn answer(&self, answer: &Answer) -> Result<(), VmmError> {
        self.wire.send(answer, &[])
    }

    fn hold(&mut self, volume: [u8; 16]) -> Result<(), VmmError> {
        if self.held.is_some_and(|held| held != volume) {
            return Err(VmmError::Protocol("a guest has one volume".to_string()));
        }
        self.common.guests.settle(self.number);
        self.common.keeper.hold(volume, self.number, &self.peer).map_err(VmmError::Refused)?;
        self.held = Some(volume);
        Ok(())
    }

    /// Passes the kept memory of a volume.
    fn claim(&mut self, volume: [u8; 16]) -> Result<(), VmmError> {
        self.hold(volume)?;
        let kept = self.common.keeper.with(volume, |kept| {
            let memory = KeptMemory {
                name: kept.name,
                last: kept.table.last(),
                width: kept.width,
                memory_bytes: kept.memory.bytes(),
                tuples: kept.table.len() as u64,
            };
            (memory, Arc::clone(&kept.memory), kept.table.tuples())
        });
        let Some((kept, memory, tuples)) = kept else { return self.answer(&Answer::Nothing) };
        let bytes = ring::written(&tuples);
        let list = Shared::new("flashpath tuples", bytes.len() as u64)?;
        list.write(0, &bytes)?;
        let (memory, list) = (memory.descriptor(), list.descriptor());
        self.wire.send(&Answer::Kept(kept), &[memory.as_fd(), list.as_fd()])
    }

    fn begin(&mut self, begin: Begin, descriptors: Vec<OwnedFd>) -> Result<(), VmmError> {
        if self.running.is_some() {
            return Err(VmmError::Protocol("the volume has begun already".to_string()));
        }
        let left = self.common.keeper.with(begin.volume, |kept| kept.table.len()).unwrap_or_default();
        if left > 0 {
            return Err(VmmError::Refused(format!("{left} blocks of the volume are kept, and not home")));
        }
        if begin.width as usize > FRAME_BYTES || !begin.start.is_multiple_of(FRAME_BYTES as u64) {
            let (width, start) = (begin.width, begin.start);
            return Err(VmmError::Protocol(format!("blocks of {width} bytes in frames from {start:#x} on")));
        }
        let mut descriptors = descriptors.into_iter();
        let mut next = || descriptors.next().ok_or_else(|| VmmError::Protocol("a descriptor is missing".to_string()));
        let memory_bytes = u64::from(begin.frames) * FRAME_BYTES as u64;
        let memory = Arc::new(Shared::received(next()?, memory_bytes, true)?);
        let ring = Ring::received(next()?)?;
        let userfault = match begin.protection {
            Protection::Monitor => Some(Arc::new(Userfault::received(next()?))),
            Protection::Guest | Protection::Nothing => None,
        };
        if let Some(userfault) = &userfault {
            // It is really that of this memory.
            let all = begin.start..begin.start + memory_bytes;
            userfault.protect(all.clone(), false)?;
        }
        self.hold(begin.volume)?;
        // Before the volume names it.
        let name = HeldName::hold(begin.name).map_err(|error| match error {
            NameError::Taken { .. } => VmmError::Refused(format!("the memory's name is held by {error}")),
            NameError::System(error) => error,
        })?;
        let watcher = Watcher::begin(Watched {
            common: Arc::clone(&self.common),
            wire: Arc::clone(&self.wire),
            peer: Arc::clone(&self.peer),
            userfault: userfault.clone(),
            uuid: begin.volume,
            start: begin.start,
        })?;
        let event = Event::Began {
            process: self.peer.process.as_raw_nonzero().get(),
            volume: begin.volume,
            path: begin.path.clone(),
            protection: begin.protection,
        };
        let table = Table::new(begin.blocks, begin.frames, self.common.most_blocks, begin.first);
        let Begin { volume: uuid, name: named, width, path, directory, start, .. } = begin;
        let volume = Volume { name: named, width, table, memory, path, directory, is_of_spill: false };
        self.common.keeper.begun(uuid, volume, name);
        let (tuples, freed) = (Vec::new(), Vec::new());
        let slots = ring.slots(End::Monitor, None);
        self.running = Some(Running { uuid, ring, start, userfault, watcher, tuples, freed });
        (self.common.events)(event);
        self.answer(&Answer::Done)?;
        self.wire.use_slots(Some(slots));
        Ok(())
    }

    fn commit(&mut self, commit: Commit) -> Result<(), VmmError> {
        follow(commit.processor);
        let most = self.common.most_blocks as usize;
        let running = self.running.as_mut().ok_or_else(not_begun)?;
        let (tuples, freed) = running.ring.take(commit.at, commit.tuples, commit.ranges)?;
        if running.tuples.is_empty() && running.freed.is_empty() {
            (running.tuples, running.freed) = (tuples, freed);
        } else {
            running.tuples.extend(tuples);
            running.freed.extend(freed);
        }
        if running.tuples.len() > most || running.freed.len() > MOST_RANGES {
            let (tuples, ranges) = (running.tuples.len(), running.freed.len());
            return Err(VmmError::Refused(format!("a commit of {tuples} blocks and {ranges} freed ranges has no end")));
        }
        if commit.is_last {
            let (tuples, freed) = (std::mem::take(&mut running.tuples), std::mem::take(&mut running.freed));
            let (uuid, keeper) = (running.uuid, &self.common.keeper);
            let checked = keeper.with(uuid, |kept| kept.table.check(commit.number, tuples, freed));
            let checked = checked.ok_or_else(not_begun)?.map_err(VmmError::Refused)?;
            // Nobody changes a frame between this and the commit: the guest waits, and shares them with nobody.
            running.protect(&checked.unprotected, true)?;
            keeper.with(uuid, |kept| kept.table.apply(checked)).ok_or_else(not_begun)?;
        }
        self.answer(&Answer::Done)
    }

    fn let_go(&mut self, next: u32) -> Result<(), VmmError> {
        let uuid = self.held.ok_or_else(not_begun)?;
        self.common.keeper.with(uuid, |kept| kept.table.let_go(next)).ok_or_else(not_begun)?;
        self.answer(&Answer::Done)
    }

    fn reclaim(&mut self) -> Result<(), VmmError> {
        let running = self.running.as_ref().ok_or_else(not_begun)?;
        let reclaimed = self.common.keeper.with(running.uuid, |kept| kept.table.reclaim());
        running.protect(&reclaimed.ok_or_else(not_begun)?, false)?;
        self.answer(&Answer::Done)
    }

    fn end(&mut self) -> Result<(), VmmError> {
        let uuid = self.held.ok_or_else(not_begun)?;
        let left = self.common.keeper.with(uuid, |kept| kept.table.len()).unwrap_or_default();
        if left > 0 {
            return Err(VmmError::Refused(format!("{left} blocks of the volume are not home")));
        }
        if let Some(running) = self.running.take() {
            running.watcher.end();
            let process = self.peer.process.as_raw_nonzero().get();
            (self.common.events)(Event::Ended { process, volume: uuid });
        }
        self.held = None;
        if self.common.keeper.forget(uuid)
            && let Some(spill) = &self.common.spill
            && let Err(error) = spill::remove(spill)
        {
            (self.common.events)(Event::SpillLeft { why: error.to_string() });
        }
        self.answer(&Answer::Done)?;
        self.wire.use_slots(None);
        Ok(())
    }
}

fn not_begun() -> VmmError {
    VmmError::Protocol("the guest has not begun a volume".to_string())
}

/// Runs on the processor of the guest: to wake one that is idle takes longer than the work.
fn follow(processor: u32) {
    let processor = processor as usize;
    if processor < CpuSet::MAX_CPU && sched_getcpu() != processor {
        let mut only = CpuSet::new();
        only.set(processor);
        // It costs time alone if that fails.
        let _ = sched_setaffinity(None, &only);
    }
}

impl Running {
    /// Protects frames, or lets them be written again.
    fn protect(&self, frames: &[Range<u32>], is_read_only: bool) -> Result<(), VmmError> {
        let Some(userfault) = &self.userfault else { return Ok(()) };
        let bytes = |frame: u32| self.start + u64::from(frame) * FRAME_BYTES as u64;
        frames.iter().try_for_each(|run| userfault.protect(bytes(run.start)..bytes(run.end), is_read_only))
    }
}

/// The descriptors of a guest that a thread watches.
struct Watched {
    common: Arc<Common>,
    wire: Arc<Wire>,
    peer: Arc<Peer>,
    userfault: Option<Arc<Userfault>>,
    uuid: [u8; 16],
    start: u64,
}

/// The thread that watches a guest.
struct Watcher {
    thread: JoinHandle<()>,
    ends: Arc<OwnedFd>,
}

impl Watcher {
    fn begin(watched: Watched) -> Result<Watcher, VmmError> {
        let ends = Arc::new(eventfd(0, EventfdFlags::CLOEXEC).map_err(cannot("make an eventfd"))?);
        let own = Arc::clone(&ends);
        let watch = move || {
            let common = Arc::clone(&watched.common);
            guarded(&common, "the thread that watches a guest", move || watched.watch(&own));
        };
        let thread = std::thread::Builder::new().name("watcher".to_string()).spawn(watch);
        Ok(Watcher { thread: thread.map_err(cannot("begin a thread"))?, ends })
    }

    /// Ends it.
    fn end(self) {
        let one = 1_u64.to_ne_bytes();
        if write(&*self.ends, &one).is_ok() {
            // A panic of it has been printed.
            let _ = self.thread.join();
        }
    }
}

impl Watched {
    fn event(&self, fault: Fault) -> Event {
        let (process, volume) = (self.peer.process.as_raw_nonzero().get(), self.uuid);
        match fault {
            Fault::Write { address, thread } => {
                let frame = address.saturating_sub(self.start) / FRAME_BYTES as u64;
                let block = self.common.keeper.with(volume, |kept| kept.table.block_in(frame as u32)).flatten();
                Event::WildWrite { process, thread, volume, block }
            }
            Fault::Mapping => Event::SecondMapping { process, volume },
        }
    }

    /// Until the guest dies, or `ends` can be read.
    fn watch(&self, ends: &OwnedFd) {
        loop {
            let mut all = vec![PollFd::new(ends, PollFlags::IN), PollFd::new(self.peer.handle(), PollFlags::IN)];
            all.extend(self.userfault.iter().map(|userfault| PollFd::new(&**userfault, PollFlags::IN)));
            match poll(&mut all, None) {
                Ok(_) | Err(Errno::INTR) => {}
                // Without it, a guest that dies is noticed by the end of its connection alone.
                Err(_) => return,
            }
            if !all[0].revents().is_empty() {
                return;
            }
            if !all[1].revents().is_empty() {
                // A process that it has forked may hold the connection open.
                self.wire.close();
                return;
            }
            if all.get(2).is_some_and(|faults| faults.revents().contains(PollFlags::IN))
                && let Some(userfault) = &self.userfault
                && let Ok(Some(fault)) = userfault.fault()
            {
                let process = self.peer.process.as_raw_nonzero().get();
                // A thread that has written waits for ever: the process is killed if it has not ended before.
                let killed = self.peer.kill();
                (self.common.events)(self.event(fault));
                if let Err(error) = killed {
                    (self.common.events)(Event::Refused { process, why: error.to_string() });
                }
            }
        }
    }
}
