//! The bound of the timing model: bare queues at planes and channels, through which the same operations pass, without flash,
//! requests and ties.
//!
//! ```text
//! copy      |-- plane: read --|-- plane and channel: transfer --|  then at the target  |-- transfer --|-- program --|
//! host      |-- plane and channel: transfer --|-- plane: program --|
//! ```

use crate::measure::cpu_seconds;
use std::hint::black_box;

/// Host writes that are under way at once.
const DEPTH: usize = 32;
/// The copies of a collection.
const COPIES: usize = 205;
/// In nanoseconds.
const READ: u64 = 25_000;
const TRANSFER: u64 = 10_240;
const PROGRAM: u64 = 200_000;

const NONE: u32 = u32::MAX;
const NEVER: u64 = u64::MAX;

/// A queue with room for all that can be in it.
struct Ring<T> {
    items: Vec<T>,
    head: usize,
    tail: usize,
}

impl<T: Copy + Default> Ring<T> {
    fn with_room(room: usize) -> Ring<T> {
        Ring { items: vec![T::default(); room.next_power_of_two()], head: 0, tail: 0 }
    }

    #[inline(always)]
    fn is_empty(&self) -> bool {
        self.head == self.tail
    }

    #[inline(always)]
    fn first(&self) -> T {
        self.items[self.head & (self.items.len() - 1)]
    }

    #[inline(always)]
    fn push(&mut self, item: T) {
        let place = self.tail & (self.items.len() - 1);
        self.items[place] = item;
        self.tail += 1;
    }

    #[inline(always)]
    fn pop(&mut self) -> T {
        let item = self.first();
        self.head += 1;
        item
    }
}

/// An operation: a copy until its read has ended, and then a program; or a program of the host.
#[derive(Clone, Copy, Default)]
struct Operation {
    target: u32,
    is_program: bool,
    is_host: bool,
}

/// What has ended, in the order of the queues of events.
#[derive(Clone, Copy)]
enum Ended {
    Read,
    TransferOfRead,
    Program,
    TransferOfProgram,
}

const ENDS: [Ended; 4] = [Ended::Read, Ended::TransferOfRead, Ended::Program, Ended::TransferOfProgram];

/// The queues, with operations under way.
pub struct Queues {
    /// The copies of each host write, on average.
    copies: f64,
    now: u64,
    dies: u32,
    /// Events by what ends, each in the order of time: when, and the plane or the channel.
    events: [Ring<(u64, u32)>; ENDS.len()],
    planes: Vec<Ring<u32>>,
    /// The operation of each plane.
    current: Vec<u32>,
    /// The planes that wait for each channel.
    channels: Vec<Ring<u32>>,
    busy_until: Vec<u64>,
    is_awaited: Vec<bool>,
    operations: Vec<Operation>,
    free: Vec<u32>,
    random: u64,
    next_target: u32,
    writes_until_collection: f64,
}

impl Queues {
    /// Queues of so many channels and dies on each, in which host writes are under way.
    pub fn new((channels, dies): (u32, u32), copies: f64) -> Queues {
        let planes = (channels * dies) as usize;
        // A collection begins while earlier ones are under way.
        let room = DEPTH + 64 * COPIES;
        let mut queues = Queues {
            copies,
            now: 0,
            dies,
            events: std::array::from_fn(|_| Ring::with_room(2 * planes)),
            planes: (0..planes).map(|_| Ring::with_room(room)).collect(),
            current: vec![NONE; planes],
            channels: (0..channels).map(|_| Ring::with_room(planes)).collect(),
            busy_until: vec![0; channels as usize],
            is_awaited: vec![false; channels as usize],
            operations: vec![Operation::default(); room],
            free: (0..room as u32).collect(),
            random: 88172645463325252,
            next_target: 0,
            writes_until_collection: 0.0,
        };
        (0..DEPTH).for_each(|_| queues.write());
        queues
    }

    /// Passes so many host writes through the planes, with their copies in groups. Returns host writes per CPU-second.
    pub fn run(&mut self, writes: u64) -> f64 {
        let started = cpu_seconds();
        let mut done = 0;
        while done < writes {
            if self.step() {
                done += 1;
                self.write();
            }
        }
        let seconds = cpu_seconds() - started;
        black_box(self.now);
        writes as f64 / seconds
    }

    /// Issues a host write and, when it is time, a collection before it.
    fn write(&mut self) {
        self.writes_until_collection -= 1.0;
        if self.writes_until_collection < 0.0 && self.free.len() > COPIES {
            self.random ^= self.random << 13;
            self.random ^= self.random >> 7;
            self.random ^= self.random << 17;
            let source = (self.random >> 33) as u32 % self.planes.len() as u32;
            (0..COPIES).for_each(|_| self.issue(source, false));
            self.writes_until_collection += COPIES as f64 / self.copies;
        }
        let plane = self.target();
        self.issue(plane, true);
    }

    fn target(&mut self) -> u32 {
        self.next_target = (self.next_target + 1) % self.planes.len() as u32;
        self.next_target
    }

    #[inline(always)]
    fn issue(&mut self, plane: u32, is_host: bool) {
        let target = self.target();
        let number = self.free.pop().expect("the operations under way are bounded");
        self.operations[number as usize] = Operation { target, is_program: is_host, is_host };
        self.planes[plane as usize].push(number);
        self.begin(plane);
    }

    /// The next event. True if a host write has ended.
    #[inline(always)]
    fn step(&mut self) -> bool {
        let (mut first, mut kind) = (NEVER, 0);
        for (other, queue) in self.events.iter().enumerate() {
            let at = if queue.is_empty() { NEVER } else { queue.first().0 };
            (first, kind) = if at < first { (at, other) } else { (first, kind) };
        }
        self.now = first;
        let who = self.events[kind].pop().1;
        match ENDS[kind] {
            Ended::Read => self.ask(who),
            Ended::TransferOfProgram => self.serve(who),
            Ended::TransferOfRead => {
                let number = self.end(who);
                let operation = &mut self.operations[number as usize];
                operation.is_program = true;
                let target = operation.target;
                self.planes[target as usize].push(number);
                self.begin(target);
                self.begin(who);
                self.serve(who / self.dies);
            }
            Ended::Program => {
                let number = self.end(who);
                self.free.push(number);
                self.begin(who);
                return self.operations[number as usize].is_host;
            }
        }
        false
    }

    #[inline(always)]
    fn end(&mut self, plane: u32) -> u32 {
        std::mem::replace(&mut self.current[plane as usize], NONE)
    }

    /// An idle plane begins its next operation.
    #[inline(always)]
    fn begin(&mut self, plane: u32) {
        let queue = &mut self.planes[plane as usize];
        if self.current[plane as usize] != NONE || queue.is_empty() {
            return;
        }
        let number = queue.pop();
        self.current[plane as usize] = number;
        if self.operations[number as usize].is_program {
            self.ask(plane);
        } else {
            self.events[Ended::Read as usize].push((self.now + READ, plane));
        }
    }

    /// A plane needs its channel.
    #[inline(always)]
    fn ask(&mut self, plane: u32) {
        let channel = plane / self.dies;
        let at = channel as usize;
        if self.busy_until[at] <= self.now && self.channels[at].is_empty() {
            return self.transfer(channel, plane);
        }
        self.channels[at].push(plane);
        if !std::mem::replace(&mut self.is_awaited[at], true) {
            self.events[Ended::TransferOfProgram as usize].push((self.busy_until[at], channel));
        }
    }

    /// A channel goes to the next plane.
    #[inline(always)]
    fn serve(&mut self, channel: u32) {
        let at = channel as usize;
        self.is_awaited[at] = false;
        if self.busy_until[at] <= self.now && !self.channels[at].is_empty() {
            let plane = self.channels[at].pop();
            self.transfer(channel, plane);
        }
    }

    #[inline(always)]
    fn transfer(&mut self, channel: u32, plane: u32) {
        let (at, until) = (channel as usize, self.now + TRANSFER);
        self.busy_until[at] = until;
        if self.operations[self.current[plane as usize] as usize].is_program {
            self.events[Ended::Program as usize].push((until + PROGRAM, plane));
            self.is_awaited[at] = !self.channels[at].is_empty();
            if self.is_awaited[at] {
                self.events[Ended::TransferOfProgram as usize].push((until, channel));
            }
        } else {
            self.is_awaited[at] = true;
            self.events[Ended::TransferOfRead as usize].push((until, plane));
        }
    }
}
