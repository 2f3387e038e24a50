//! Requests and their replies.
//!
//! A long request is served in pieces, so that a client takes the memory of a few pieces at most. An invalid request
//! gets an error reply; bytes that cannot be a request end the connection.

use crate::error::{ConnectionError, number};
use crate::handshake::{ALLOCATION_ID, Agreement, LARGEST_PAYLOAD};
use crate::input::{Arrived, Input, LONGEST_PIECE};
use crate::replies::Replies;
use crate::wire::{self, CHUNK_BYTES, REQUEST_BYTES, RequestHeader, SIMPLE_BYTES, allocation, chunk, command};
use crate::wire::{command_flag as flag, error};
use flashpath::run::shared::{ServeError, SharedDevice};
use flashpath::time::Time;
use std::io::{self, Read};

/// Bytes of a chunk of data before the data: its header and the offset.
const DATA_HEADER: usize = CHUNK_BYTES + 8;
/// The maximum number of extents in a reply; a client asks again for more.
const MOST_EXTENTS: usize = 4096;
/// Bytes that are zeroed in one call of the device.
const ZEROS_AT_ONCE: u64 = 4 << 20;

/// A failed request: the protocol's error number, and the text for clients that take one.
struct Refusal {
    error: u32,
    why: String,
}

impl Refusal {
    fn invalid(why: &str) -> Refusal {
        Refusal { error: error::INVALID, why: why.to_string() }
    }

    fn of(error: &ServeError, is_write: bool) -> Refusal {
        Refusal { error: number(error, is_write), why: error.to_string() }
    }
}

/// The transmission phase of one client.
struct Transmission<'a, R, A> {
    device: &'a SharedDevice,
    agreement: Agreement,
    input: &'a mut Input<R>,
    replies: &'a mut A,
}

/// Serves requests until the client disconnects, or closes between two of them.
pub fn serve<R: Read, A: Replies>(
    device: &SharedDevice,
    agreement: Agreement,
    input: &mut Input<R>,
    replies: &mut A,
) -> Result<(), ConnectionError> {
    let mut transmission = Transmission { device, agreement, input, replies };
    let ended = transmission.serve();
    // Requests that were served are answered, even if garbage followed them; the first error is returned.
    let sent = transmission.replies.before_waiting();
    ended.and(sent)
}

impl<R: Read, A: Replies> Transmission<'_, R, A> {
    fn serve(&mut self) -> Result<(), ConnectionError> {
        loop {
            if !self.input.has(REQUEST_BYTES) {
                self.replies.before_waiting()?;
                if self.input.wait_for(REQUEST_BYTES, false)? == Arrived::End {
                    return Ok(());
                }
            }
            let request = RequestHeader::read(&self.input.array()?)
                .ok_or(ConnectionError::Protocol("a request does not begin as one"))?;
            match request.command {
                command::DISCONNECT => return Ok(()),
                command::READ => self.read(&request)?,
                command::BLOCK_STATUS => self.block_status(&request)?,
                command::WRITE => {
                    let result = self.write(&request)?;
                    self.answer(&request, result)?;
                }
                _ => {
                    let result = self.change(&request);
                    self.answer(&request, result)?;
                }
            }
        }
    }

    /// Writes the payload. It is read from the input even if the request is invalid.
    fn write(&mut self, request: &RequestHeader) -> Result<Result<Time, Refusal>, ConnectionError> {
        let durable = request.flags & flag::FUA != 0;
        let mut left = request.length as usize;
        let mut offset = request.offset;
        let mut done = Ok(self.device.now());
        if request.flags & !flag::FUA != 0 {
            done = Err(Refusal::invalid("a write has no such flag"));
        } else if request.length > LARGEST_PAYLOAD {
            done = Err(Refusal::invalid("a write has at most 32 MiB"));
        } else if let Err(refusal) = self.check_end(request, true) {
            done = Err(refusal);
        }
        while left > 0 && done.is_ok() {
            let piece = left.min(LONGEST_PIECE);
            if !self.input.has(piece) {
                self.replies.before_waiting()?;
                self.input.wait_for(piece, true)?;
            }
            left -= piece;
            let written = self.device.write(offset, self.input.take(piece), durable && left == 0);
            offset += piece as u64;
            done = match (written, done) {
                (Ok(at), Ok(before)) => Ok(at.max(before)),
                (Err(error), _) => Err(Refusal::of(&error, true)),
                (_, refused) => refused,
            };
        }
        self.input.skip(left)?;
        Ok(done)
    }

    /// Serves a command without payload in either direction.
    fn change(&mut self, request: &RequestHeader) -> Result<Time, Refusal> {
        let &RequestHeader { flags, command, offset, length, .. } = request;
        let length = u64::from(length);
        let durable = flags & flag::FUA != 0;
        let allowed = match command {
            command::FLUSH | command::TRIM => flag::FUA,
            command::WRITE_ZEROES => flag::FUA | flag::NO_HOLE | flag::FAST_ZERO,
            _ => return Err(Refusal::invalid("this command is not known")),
        };
        if flags & !allowed != 0 {
            return Err(Refusal::invalid("the command has no such flag"));
        }
        let result = match command {
            command::FLUSH => self.device.flush(),
            command::TRIM => self.device.discard(offset, length, durable),
            _ if flags & flag::NO_HOLE == 0 => self.device.write_zeroes(offset, length, false, durable),
            _ if flags & flag::FAST_ZERO != 0 => {
                let why = "zeros that keep their room are written, which is not fast".to_string();
                return Err(Refusal { error: error::NOT_SUPPORTED, why });
            }
            _ => {
                self.check_end(request, true)?;
                self.write_zeros(offset, length, durable)
            }
        };
        result.map_err(|error| Refusal::of(&error, true))
    }

    /// Writes zeros in pieces, so that other clients are served in between.
    fn write_zeros(&self, mut offset: u64, mut length: u64, durable: bool) -> Result<Time, ServeError> {
        let mut done = self.device.now();
        loop {
            let piece = length.min(ZEROS_AT_ONCE);
            length -= piece;
            done = done.max(self.device.write_zeroes(offset, piece, true, durable && length == 0)?);
            offset += piece;
            if length == 0 {
                return Ok(done);
            }
        }
    }

    fn read(&mut self, request: &RequestHeader) -> Result<(), ConnectionError> {
        let &RequestHeader { flags, length, .. } = request;
        let whole = flags & flag::DF != 0;
        let refusal = if flags & !(flag::DF | flag::FUA) != 0 || (whole && !self.agreement.structured) {
            Some(Refusal::invalid("a read has no such flag"))
        } else if length > LARGEST_PAYLOAD {
            Some(Refusal::invalid("a read has at most 32 MiB"))
        } else if whole && length as usize > LONGEST_PIECE {
            Some(Refusal { error: error::OVERFLOW, why: "no chunk is that long".to_string() })
        } else {
            self.check_end(request, false).err()
        };
        match refusal {
            Some(refusal) => self.answer(request, Err(refusal)),
            None if length == 0 => self.answer(request, Ok(self.device.now())),
            None if self.agreement.structured => self.read_in_chunks(request, whole),
            None => self.read_at_once(request),
        }
    }

    /// A simple reply: its header, then the data.
    fn read_at_once(&mut self, request: &RequestHeader) -> Result<(), ConnectionError> {
        let &RequestHeader { cookie, mut offset, length, .. } = request;
        let mut left = length as usize;
        let mut done = Time::ZERO;
        let mut header = SIMPLE_BYTES;
        while left > 0 {
            let piece = left.min(LONGEST_PIECE);
            let room = self.replies.room(header + piece)?;
            match self.device.read(offset, &mut room[header..]) {
                Ok(at) => done = done.max(at),
                Err(error) if header > 0 => return self.answer(request, Err(Refusal::of(&error, false))),
                // The header said that the read succeeded, and cannot be taken back.
                Err(error) => return Err(io::Error::other(error.to_string()).into()),
            }
            room[..header].copy_from_slice(&wire::simple_reply(0, cookie)[..header]);
            self.replies.wrote(header + piece);
            header = 0;
            offset += piece as u64;
            left -= piece;
        }
        self.replies.end(done)
    }

    /// A structured reply: one chunk for each run of stored blocks and each hole. A `whole` reply has one chunk.
    fn read_in_chunks(&mut self, request: &RequestHeader, whole: bool) -> Result<(), ConnectionError> {
        let &RequestHeader { cookie, mut offset, length, .. } = request;
        let end = offset + u64::from(length);
        let mut done = self.device.now();
        while offset < end {
            let left = end - offset;
            let (run, is_stored) = match self.device.extent(offset, left) {
                _ if whole => (left, true),
                Ok(extent) => (extent.length, extent.is_stored),
                Err(error) => return self.answer(request, Err(Refusal::of(&error, false))),
            };
            assert!((1..=left).contains(&run), "a run of {run} of {left} bytes: the reply would not end");
            let run = if is_stored { run.min(LONGEST_PIECE as u64) } else { run };
            debug_assert!(!whole || run == left, "a client that wants one chunk gets one");
            let flags = if run == left { wire::CHUNK_DONE } else { 0 };
            if is_stored {
                let data = run as usize;
                let room = self.replies.room(DATA_HEADER + data)?;
                match self.device.read(offset, &mut room[DATA_HEADER..]) {
                    Ok(at) => done = done.max(at),
                    Err(error) => return self.answer(request, Err(Refusal::of(&error, false))),
                }
                let header = wire::chunk_header(flags, chunk::OFFSET_DATA, cookie, 8 + data as u32);
                room[..CHUNK_BYTES].copy_from_slice(&header);
                room[CHUNK_BYTES..DATA_HEADER].copy_from_slice(&offset.to_be_bytes());
                self.replies.wrote(DATA_HEADER + data);
            } else {
                self.replies.add(&wire::chunk_header(flags, chunk::OFFSET_HOLE, cookie, 12))?;
                self.replies.add(&offset.to_be_bytes())?;
                self.replies.add(&(run as u32).to_be_bytes())?;
            }
            offset += run;
        }
        self.replies.end(done)
    }

    fn block_status(&mut self, request: &RequestHeader) -> Result<(), ConnectionError> {
        let result = self.extents(request);
        match result {
            Err(refusal) => self.answer(request, Err(refusal)),
            Ok(extents) => {
                let length = 4 + extents.len() as u32 * 8;
                let kind = chunk::BLOCK_STATUS;
                self.replies.add(&wire::chunk_header(wire::CHUNK_DONE, kind, request.cookie, length))?;
                self.replies.add(&ALLOCATION_ID.to_be_bytes())?;
                for (length, state) in extents {
                    self.replies.add(&length.to_be_bytes())?;
                    self.replies.add(&state.to_be_bytes())?;
                }
                self.replies.end(self.device.now())
            }
        }
    }

    /// The extents of a range, at most as many as a reply holds; adjacent ones differ in state.
    fn extents(&mut self, request: &RequestHeader) -> Result<Vec<(u32, u32)>, Refusal> {
        if !self.agreement.allocation {
            return Err(Refusal::invalid("no context was agreed on"));
        }
        if request.flags & !(flag::REQ_ONE | flag::FUA) != 0 || request.length == 0 {
            return Err(Refusal::invalid("block status has no such flag, and a length"));
        }
        self.check_end(request, false)?;
        let most = if request.flags & flag::REQ_ONE != 0 { 1 } else { MOST_EXTENTS };
        let (mut offset, mut left) = (request.offset, request.length);
        let mut extents: Vec<(u32, u32)> = Vec::new();
        while left > 0 {
            let extent = self.device.extent(offset, u64::from(left)).map_err(|error| Refusal::of(&error, false))?;
            assert!((1..=u64::from(left)).contains(&extent.length), "a run of {} of {left} bytes", extent.length);
            let length = extent.length as u32;
            let state = if extent.is_stored { 0 } else { allocation::HOLE | allocation::ZERO };
            let is_full = extents.len() == most;
            match extents.last_mut() {
                Some((before, same)) if *same == state => *before += length,
                _ if is_full => break,
                _ => extents.push((length, state)),
            }
            offset += u64::from(length);
            left -= length;
        }
        Ok(extents)
    }

    fn check_end(&self, request: &RequestHeader, is_write: bool) -> Result<(), Refusal> {
        let (offset, length, size_bytes) = (request.offset, u64::from(request.length), self.device.size_bytes());
        match offset.checked_add(length) {
            Some(end) if end <= size_bytes => Ok(()),
            _ => Err(Refusal::of(&ServeError::BeyondEnd { offset, length, size_bytes }, is_write)),
        }
    }

    /// Ends a reply without data. A client of structured replies gets the error's text, too.
    fn answer(&mut self, request: &RequestHeader, result: Result<Time, Refusal>) -> Result<(), ConnectionError> {
        let cookie = request.cookie;
        let has_chunks = self.agreement.structured;
        match result {
            Ok(done) if has_chunks && request.command == command::READ => {
                self.replies.add(&wire::chunk_header(wire::CHUNK_DONE, chunk::NONE, cookie, 0))?;
                self.replies.end(done)
            }
            Ok(done) => {
                self.replies.add(&wire::simple_reply(0, cookie))?;
                self.replies.end(done)
            }
            Err(Refusal { error, .. }) if !has_chunks => {
                self.replies.add(&wire::simple_reply(error, cookie))?;
                self.replies.end(self.device.now())
            }
            Err(Refusal { error, why }) => {
                let why = &why.as_bytes()[..why.len().min(wire::LONGEST_TEXT)];
                let length = 6 + why.len() as u32;
                self.replies.add(&wire::chunk_header(wire::CHUNK_DONE, chunk::ERROR, cookie, length))?;
                self.replies.add(&error.to_be_bytes())?;
                self.replies.add(&(why.len() as u16).to_be_bytes())?;
                self.replies.add(why)?;
                self.replies.end(self.device.now())
            }
        }
    }
}
