//! A guest's side: commits to the monitor, and memory that it kept of the guest before.

use crate::arena::{Arena, Frame};
use crate::error::{VmmError, cannot};
use crate::frames::Frames;
use crate::ring::{self, ENTRIES, Ring, Tuple};
use crate::shared::Shared;
use crate::slots::End;
use crate::socket::{address, socket};
use crate::userfault::Userfault;
use crate::wire::{self, Answer, Begin, Commit, KeptMemory, Protection, Request, VERSION, Wire};
use rustix::event::{PollFd, PollFlags, poll};
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::io::Errno;
use rustix::net::connect;
use rustix::thread::sched_getcpu;
use std::ops::Range;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// The time after which a monitor that does not answer counts as gone. It may wait for another guest of the volume, or
/// for the end of one that was killed.
const PATIENCE: Duration = Duration::from_secs(120);

/// A volume whose memory is to be kept.
#[derive(Clone, Debug)]
pub struct Volume {
    /// Its UUID.
    pub uuid: [u8; 16],
    /// The UUID by which it names its journal meanwhile.
    pub name: [u8; 16],
    /// The number of its blocks.
    pub blocks: u64,
    /// Bytes of a block.
    pub width: usize,
    /// The most blocks in memory at once.
    pub most_in_memory: u64,
    /// The path and the directory by which a recovery finds it.
    pub path: String,
    /// The directory in which the path is read.
    pub directory: String,
}

/// Memory that the monitor keeps of a volume.
#[derive(Debug)]
pub struct Kept {
    /// The UUID by which the volume names its journal.
    pub name: [u8; 16],
    /// The last transaction.
    pub last: u32,
    /// Each block, and its bytes.
    pub blocks: Vec<(u64, Vec<u8>)>,
}

struct Running {
    ring: Ring,
    arena: Arc<Arena>,
    protection: Protection,
}

/// A connection on which each request has an answer.
struct Line {
    wire: Arc<Wire>,
    /// The monitor has said that it ends, and the answer to the request before is still to come.
    is_unanswered: bool,
}

struct State {
    line: Line,
    running: Option<Running>,
}

/// A connection to a monitor.
pub struct Guest {
    state: Arc<Mutex<State>>,
    most_blocks: u32,
    /// The monitor has closed the connection.
    is_gone: Arc<AtomicBool>,
    /// Its last word, if it had one.
    last_word: Arc<Mutex<Option<String>>>,
}

/// True if the monitor has ended.
fn is_end<T>(done: &Result<T, VmmError>) -> bool {
    matches!(done, Err(VmmError::Ends(_) | VmmError::Gone(_) | VmmError::Died))
}

fn locked(state: &Mutex<State>) -> MutexGuard<'_, State> {
    // A request that panics halfway leaves a connection that answers no more, and says so.
    state.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Guest {
    /// Connects to the monitor that listens there.
    pub fn connect(path: &Path) -> Result<Guest, VmmError> {
        let (place, socket) = (address(path)?, socket()?);
        let doing = format!("find a monitor at {}: begin one with 'flashpath monitor'", path.display());
        connect(&socket, &place).map_err(cannot(&doing))?;
        let wire = Arc::new(Wire::of(socket));
        wire.set_patience(Some(PATIENCE), Some(PATIENCE))?;
        let mut state = State { line: Line { wire, is_unanswered: false }, running: None };
        match state.line.ask(&Request::Hello { version: VERSION }, &[])? {
            (Answer::Welcome { version: VERSION, most_blocks }, _) => {
                let (is_gone, last_word) = (Arc::default(), Arc::default());
                watch(&state.line.wire, &is_gone, &last_word)?;
                Ok(Guest { state: Arc::new(Mutex::new(state)), most_blocks, is_gone, last_word })
            }
            (other, _) => Err(unexpected(&other)),
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        locked(&self.state)
    }

    /// True once the monitor has ended: it keeps nothing any more.
    pub fn is_gone(&self) -> bool {
        self.is_gone.load(Ordering::SeqCst)
    }

    /// The reason for which the monitor has ended, if it has said one.
    pub fn last_word(&self) -> Option<String> {
        self.last_word.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Notes the end of the monitor, after which nothing is protected.
    fn noted<T>(&self, state: &mut State, done: Result<T, VmmError>) -> Result<T, VmmError> {
        if is_end(&done) {
            if let Err(VmmError::Ends(why)) = &done {
                note_word(&self.last_word, why);
            }
            self.is_gone.store(true, Ordering::SeqCst);
            state.unprotect()?;
        }
        done
    }

    /// The most blocks of a volume that the monitor keeps.
    pub fn most_blocks(&self) -> u32 {
        self.most_blocks
    }

    /// The memory that is kept of a volume. From then on nobody else can ask for it, until this guest goes.
    pub fn kept(&self, volume: [u8; 16]) -> Result<Option<Kept>, VmmError> {
        match self.state().line.ask(&Request::Claim { volume }, &[])? {
            (Answer::Nothing, _) => Ok(None),
            (Answer::Kept(kept), descriptors) => read_kept(&kept, descriptors).map(Some),
            (other, _) => Err(unexpected(&other)),
        }
    }

    /// Lets the monitor keep the memory of a volume from now on: the frames of the arena that this answers. `protection`: the
    /// way to protect it.
    pub fn begin(&self, volume: Volume, first: u32, protection: Protection) -> Result<Arc<Arena>, VmmError> {
        let mut state = self.state();
        let (arena, memory) = Arena::new(u32::try_from(2 * volume.most_in_memory).unwrap_or(u32::MAX >> 8))?;
        let (ring, tuples) = Ring::new()?;
        let userfault = match protection {
            Protection::Monitor => Some(Userfault::new(arena.mapping().start(), arena.mapping().bytes())?),
            Protection::Guest | Protection::Nothing => None,
        };
        let begin = Begin {
            volume: volume.uuid,
            name: volume.name,
            blocks: volume.blocks,
            width: volume.width as u32,
            first,
            frames: arena.frames(),
            start: arena.mapping().start(),
            protection,
            path: volume.path,
            directory: volume.directory,
        };
        {
            let (memory, tuples) = (memory.descriptor(), tuples.descriptor());
            let mut descriptors = vec![memory.as_fd(), tuples.as_fd()];
            descriptors.extend(userfault.as_ref().map(AsFd::as_fd));
            state.line.done(&Request::Begin(begin), &descriptors)?;
            state.line.wire.use_slots(Some(ring.slots(End::Guest, Some(PATIENCE))));
        }
        // The monitor alone has the userfaultfd from now on, and the memory file that could be mapped again.
        drop((userfault, memory));
        let arena = Arc::new(arena);
        let of_guest = Arc::downgrade(&self.state);
        arena.reclaim_by(Box::new(move || of_guest.upgrade().is_some_and(|state| locked(&state).reclaim().is_ok())));
        state.running = Some(Running { ring, arena: Arc::clone(&arena), protection });
        Ok(arena)
    }

    /// Commits blocks, in place of older ones with the same numbers, and keeps those no longer that were freed. When this
    /// answers, the frames are kept, and must not be changed before they are let go.
    pub fn commit<'f>(
        &self,
        number: u32,
        blocks: impl Iterator<Item = (u64, Option<&'f Frame>)>,
        freed: &[u64],
    ) -> Result<(), VmmError> {
        let mut state = self.state();
        let committed = state.commit(number, blocks, freed);
        self.noted(&mut state, committed)
    }

    /// Keeps blocks of transactions before `next` no longer: they are home.
    pub fn let_go(&self, next: u32) -> Result<(), VmmError> {
        let mut state = self.state();
        let done = state.line.done(&Request::LetGo { next }, &[]);
        self.noted(&mut state, done)
    }

    /// Keeps nothing of the volume any more, of which all blocks are home.
    pub fn end(&self) -> Result<(), VmmError> {
        let mut state = self.state();
        let done = state.line.done(&Request::End, &[]);
        self.noted(&mut state, done)?;
        state.line.wire.use_slots(None);
        state.running = None;
        Ok(())
    }
}

impl Drop for Guest {
    fn drop(&mut self) {
        // It wakes the thread that watches.
        self.state().line.wire.close();
    }
}

fn note_word(last_word: &Mutex<Option<String>>, why: &str) {
    last_word.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert_with(|| why.to_string());
}

/// Notes in another thread when the connection ends, and the last word of the monitor if nobody has asked it since.
fn watch(wire: &Arc<Wire>, is_gone: &Arc<AtomicBool>, last_word: &Arc<Mutex<Option<String>>>) -> Result<(), VmmError> {
    let (wire, gone, last_word) = (Arc::clone(wire), Arc::clone(is_gone), Arc::clone(last_word));
    let until_it_ends = move || {
        // The end of a connection is always told.
        while poll(&mut [PollFd::new(wire.socket(), PollFlags::empty())], None) == Err(Errno::INTR) {}
        if let Some(why) = wire::waiting_end(wire.socket()) {
            note_word(&last_word, &why);
        }
        gone.store(true, Ordering::SeqCst);
        // It wakes the thread that waits for an answer.
        wire.close();
    };
    let begun = std::thread::Builder::new().name("monitor".to_string()).spawn(until_it_ends);
    begun.map(drop).map_err(cannot("begin a thread"))
}

impl State {
    fn commit<'f>(
        &mut self,
        number: u32,
        blocks: impl Iterator<Item = (u64, Option<&'f Frame>)>,
        freed: &[u64],
    ) -> Result<(), VmmError> {
        let State { line, running } = self;
        let running = running.as_mut().ok_or_else(not_begun)?;
        let is_protected = running.protection != Protection::Nothing;
        let frame_of = |(block, frame): (u64, Option<&Frame>)| match frame {
            Some(frame) if frame.is_of(&running.arena) => {
                if is_protected {
                    frame.commit();
                }
                Ok((block, frame.number()))
            }
            _ => Err(VmmError::NoFrame { block, frames: running.arena.frames() }),
        };
        let tuples: Vec<Tuple> = blocks.map(frame_of).collect::<Result<_, _>>()?;
        if running.protection == Protection::Guest {
            running.protect(&tuples)?;
        }
        let ranges = ranges(freed);
        // The monitor's thread follows this one to its processor: to wake an idle one takes longer than the commit.
        let processor = sched_getcpu() as u32;
        let (mut left, mut left_ranges) = (&tuples[..], &ranges[..]);
        loop {
            let (part, rest) = left.split_at(left.len().min(ENTRIES));
            let (part_ranges, rest_ranges) = left_ranges.split_at(left_ranges.len().min(ENTRIES - part.len()));
            let at = running.ring.put(part, part_ranges);
            (left, left_ranges) = (rest, rest_ranges);
            let is_last = left.is_empty() && left_ranges.is_empty();
            let (tuples, ranges) = (part.len() as u32, part_ranges.len() as u32);
            let commit = Commit { number, at, tuples, ranges, is_last, processor };
            line.done(&Request::Commit(commit), &[])?;
            if is_last {
                break;
            }
        }
        Ok(())
    }

    /// Lets stale frames be written again.
    fn reclaim(&mut self) -> Result<(), VmmError> {
        let State { line, running } = self;
        let running = running.as_ref().ok_or_else(not_begun)?;
        // The monitor keeps none of them any more.
        let stale = running.arena.stale();
        match running.protection {
            Protection::Monitor => {
                let reclaimed = line.done(&Request::Reclaim, &[]);
                if !is_end(&reclaimed) {
                    reclaimed?;
                }
                // A userfaultfd leaves them read-only until the first write of each, which takes a fault to find that it may.
                running.each_run(&stale, |run| {
                    running.arena.populate(run);
                    Ok(())
                })?;
            }
            Protection::Guest => running.each_run(&stale, |run| running.arena.protect(run, false))?,
            Protection::Nothing => {}
        }
        running.arena.reclaimed(&stale);
        Ok(())
    }

    /// The monitor is gone: its protection went with it, and that of the guest has no meaning.
    fn unprotect(&mut self) -> Result<(), VmmError> {
        let Some(Running { arena, protection, .. }) = &mut self.running else { return Ok(()) };
        if std::mem::replace(protection, Protection::Nothing) == Protection::Guest {
            arena.protect(0..arena.frames(), false)?;
        }
        Ok(())
    }
}

impl Line {
    /// The next answer. A monitor may say in its place that it ends.
    fn answer(&mut self) -> Result<(Answer, Vec<OwnedFd>), VmmError> {
        match self.wire.receive()? {
            Some((Answer::Refused(why), _)) => Err(VmmError::Refused(why)),
            Some((Answer::Ends(why), _)) => {
                self.is_unanswered = true;
                Err(VmmError::Ends(why))
            }
            Some(answer) => Ok(answer),
            None => Err(VmmError::Gone("it has closed the connection".to_string())),
        }
    }

    fn ask(&mut self, request: &Request, descriptors: &[BorrowedFd<'_>]) -> Result<(Answer, Vec<OwnedFd>), VmmError> {
        if std::mem::take(&mut self.is_unanswered) {
            self.answer()?;
        }
        match self.wire.send(request, descriptors) {
            Ok(()) => self.answer(),
            // A monitor that takes no request any more may have said why.
            Err(VmmError::Died) => self.answer().map_err(|error| match error {
                VmmError::Gone(_) => VmmError::Died,
                said => said,
            }),
            Err(error) => Err(error),
        }
    }

    fn done(&mut self, request: &Request, descriptors: &[BorrowedFd<'_>]) -> Result<(), VmmError> {
        match self.ask(request, descriptors)? {
            (Answer::Done, _) => Ok(()),
            (other, _) => Err(unexpected(&other)),
        }
    }
}

fn not_begun() -> VmmError {
    VmmError::Protocol("the guest has not begun a volume".to_string())
}

fn unexpected(answer: &Answer) -> VmmError {
    VmmError::Protocol(format!("the monitor has another version: it answers {answer:?}"))
}

fn read_kept(kept: &KeptMemory, descriptors: Vec<OwnedFd>) -> Result<Kept, VmmError> {
    let mut descriptors = descriptors.into_iter();
    let mut next = || descriptors.next().ok_or_else(|| VmmError::Protocol("a descriptor is missing".to_string()));
    let memory = Shared::received(next()?, kept.memory_bytes, true)?;
    let list = ring::received(next()?, kept.tuples)?;
    let blocks = list.into_iter().map(|(block, frame)| {
        let mut bytes = vec![0; kept.width as usize];
        memory.read(u64::from(frame) * crate::FRAME_BYTES as u64, &mut bytes)?;
        Ok((block, bytes))
    });
    Ok(Kept { name: kept.name, last: kept.last, blocks: blocks.collect::<Result<_, VmmError>>()? })
}

/// Ranges of blocks.
fn ranges(blocks: &[u64]) -> Vec<Range<u64>> {
    let mut ranges: Vec<Range<u64>> = Vec::new();
    for &block in blocks {
        match ranges.last_mut().filter(|range| range.end == block) {
            Some(range) => range.end += 1,
            None => ranges.push(block..block + 1),
        }
    }
    ranges
}

impl Running {
    /// Makes the frames of a commit read-only.
    fn protect(&self, tuples: &[Tuple]) -> Result<(), VmmError> {
        let mut frames = Frames::none(self.arena.frames());
        for (_, frame) in tuples {
            frames.insert(*frame);
        }
        self.each_run(&frames, |run| self.arena.protect(run, true))
    }

    fn each_run(&self, frames: &Frames, work: impl FnMut(Range<u32>) -> Result<(), VmmError>) -> Result<(), VmmError> {
        let none = Frames::none(self.arena.frames());
        frames.runs_without(&none, 0..frames.words().len()).into_iter().try_for_each(work)
    }
}
