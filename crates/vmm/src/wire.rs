//! The messages between a guest and the monitor: one in each packet of a Unix socket, with descriptors beside some. A guest
//! asks, the monitor answers, one after the other. Once they share memory, short messages go through its slots, and a bell
//! in it tells of those in the socket.

use crate::error::{VmmError, cannot};
use crate::slots::Slots;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::{Errno, IoSlice, IoSliceMut};
use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, ReturnFlags, SendAncillaryBuffer, SendAncillaryMessage,
    SendFlags, Shutdown, recv, recvmsg, send, sendmsg, shutdown, sockopt,
};
use serde::{Deserialize, Serialize, de::DeserializeOwned};
use std::mem::MaybeUninit;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// The version of this protocol.
pub const VERSION: u32 = 3;
/// The longest message.
const LONGEST: usize = 16 << 10;
/// The most descriptors beside a message.
const DESCRIPTORS: usize = 3;

/// The interval at which a waiter for the bell looks at the socket: its other end may close it, and not ring.
const TICK: Duration = Duration::from_secs(1);

/// The way in which committed memory is protected.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Protection {
    /// By the monitor, through the guest's userfaultfd.
    Monitor,
    /// By the guest itself, with mprotect: the same code that writes to memory could lift it.
    Guest,
    /// Not at all: for comparisons.
    Nothing,
}

/// A guest's requests.
#[derive(Debug, Serialize, Deserialize)]
pub enum Request {
    /// The first one.
    Hello { version: u32 },
    /// The memory that is kept of a volume. From then on nobody else can ask for it.
    Claim { volume: [u8; 16] },
    /// Keeps the memory of the volume from now on, with the descriptors of frames and ring, and the userfaultfd.
    Begin(Begin),
    /// A part of a commit, in the ring.
    Commit(Commit),
    /// Keeps blocks of transactions before this one no longer.
    LetGo { next: u32 },
    /// Lets all frames be written again that are kept no longer.
    Reclaim,
    /// Keeps nothing of the volume any more.
    End,
}

/// A volume whose memory is to be kept.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Begin {
    pub volume: [u8; 16],
    pub name: [u8; 16],
    pub blocks: u64,
    /// Bytes of a block.
    pub width: u32,
    /// The number of the first transaction.
    pub first: u32,
    pub frames: u32,
    /// The address of the first frame in the guest.
    pub start: u64,
    pub protection: Protection,
    /// The volume's path, and the directory in which it is read.
    pub path: String,
    pub directory: String,
}

/// A part of a commit: tuples, and behind them ranges of freed blocks.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct Commit {
    pub number: u32,
    /// Their first entry in the ring.
    pub at: u32,
    pub tuples: u32,
    pub ranges: u32,
    /// The last part: the commit is done.
    pub is_last: bool,
    /// The processor on which the guest runs.
    pub processor: u32,
}

/// The monitor's answers.
#[derive(Debug, Serialize, Deserialize)]
pub enum Answer {
    Done,
    /// It keeps so many blocks of a volume at most.
    Welcome {
        version: u32,
        most_blocks: u32,
    },
    Nothing,
    /// It keeps this, with the descriptors of the frames and of a list of tuples.
    Kept(KeptMemory),
    Refused(String),
    /// It ends, and keeps nothing any more: the answer to any request then.
    Ends(String),
}

/// Memory that is kept of a volume.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct KeptMemory {
    pub name: [u8; 16],
    pub last: u32,
    pub width: u32,
    pub memory_bytes: u64,
    pub tuples: u64,
}

/// The reason in the next message of a monitor, if that says that it ends. The message stays.
pub(crate) fn waiting_end(socket: &OwnedFd) -> Option<String> {
    let mut bytes = vec![0; LONGEST];
    let (count, _) = recv(socket, &mut bytes[..], RecvFlags::PEEK | RecvFlags::DONTWAIT).ok()?;
    match postcard::from_bytes(&bytes[..count]) {
        Ok(Answer::Ends(why)) => Some(why),
        _ => None,
    }
}

/// An end of a connection.
#[derive(Debug)]
pub(crate) struct Wire {
    socket: OwnedFd,
    /// Where messages are received.
    buffer: Mutex<Box<[u8]>>,
    /// Where short messages go, once there is shared memory.
    slots: Mutex<Option<Arc<Slots>>>,
}

fn read<M: DeserializeOwned>(bytes: &[u8]) -> Result<M, VmmError> {
    postcard::from_bytes(bytes).map_err(|error| VmmError::Protocol(format!("a message cannot be read: {error}")))
}

impl Wire {
    pub fn of(socket: OwnedFd) -> Wire {
        Wire { socket, buffer: Mutex::new(vec![0; LONGEST].into()), slots: Mutex::default() }
    }

    /// Lets short messages go through slots from now on, or all through the socket. Both ends do so behind the same message.
    pub fn use_slots(&self, slots: Option<Slots>) {
        *self.slots.lock().unwrap_or_else(PoisonError::into_inner) = slots.map(Arc::new);
    }

    fn slots(&self) -> Option<Arc<Slots>> {
        self.slots.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Ends the connection, and wakes the waiters at its ends.
    pub fn close(&self) {
        // The other side may have closed it before.
        let _ = shutdown(&self.socket, Shutdown::Both);
        if let Some(slots) = self.slots() {
            slots.ring();
            slots.ring_own();
        }
    }

    pub fn socket(&self) -> &OwnedFd {
        &self.socket
    }

    /// Waits so long for a message, and as long until one can be sent.
    pub fn set_patience(&self, receive: Option<Duration>, send: Option<Duration>) -> Result<(), VmmError> {
        sockopt::set_socket_timeout(&self.socket, sockopt::Timeout::Recv, receive)
            .and_then(|()| sockopt::set_socket_timeout(&self.socket, sockopt::Timeout::Send, send))
            .map_err(cannot("set the times of a socket"))
    }

    /// Sends a message, with descriptors.
    pub fn send<M: Serialize>(&self, message: &M, descriptors: &[BorrowedFd<'_>]) -> Result<(), VmmError> {
        let bytes = postcard::to_stdvec(message).map_err(|error| VmmError::Protocol(error.to_string()))?;
        if bytes.len() > LONGEST {
            return Err(VmmError::Protocol(format!("a message of {} bytes; the most are {LONGEST}", bytes.len())));
        }
        let slots = self.slots();
        if descriptors.is_empty() && slots.as_ref().is_some_and(|slots| slots.put(&bytes)) {
            return Ok(());
        }
        self.send_bytes(&bytes, descriptors)?;
        if let Some(slots) = slots {
            slots.ring();
        }
        Ok(())
    }

    fn send_bytes(&self, bytes: &[u8], descriptors: &[BorrowedFd<'_>]) -> Result<(), VmmError> {
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(DESCRIPTORS))];
        let mut ancillary = SendAncillaryBuffer::new(&mut space);
        if !descriptors.is_empty() {
            let has_room = ancillary.push(SendAncillaryMessage::ScmRights(descriptors));
            assert!(has_room, "a message has {DESCRIPTORS} descriptors at most");
        }
        loop {
            let sent = if descriptors.is_empty() {
                send(&self.socket, bytes, SendFlags::NOSIGNAL)
            } else {
                sendmsg(&self.socket, &[IoSlice::new(bytes)], &mut ancillary, SendFlags::NOSIGNAL)
            };
            match sent {
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => return Err(VmmError::Gone("it does not take messages".to_string())),
                Err(Errno::PIPE | Errno::CONNRESET) => return Err(VmmError::Died),
                Err(error) => return Err(VmmError::Gone(error.to_string())),
                Ok(_) => return Ok(()),
            }
        }
    }

    /// Sends a message through the socket, unless the other side would have to take others first.
    pub fn send_at_once<M: Serialize>(&self, message: &M) -> Result<(), VmmError> {
        let bytes = postcard::to_stdvec(message).map_err(|error| VmmError::Protocol(error.to_string()))?;
        let sent = send(&self.socket, &bytes, SendFlags::NOSIGNAL | SendFlags::DONTWAIT);
        if let Some(slots) = self.slots() {
            slots.ring();
        }
        sent.map(drop).map_err(|error| VmmError::Gone(error.to_string()))
    }

    /// Sends a last message, and ends the connection. A message that the other side has sent meanwhile is taken: it would hear an error in place
    /// of the message.
    pub fn dismiss<M: Serialize>(&self, message: &M) {
        // It may have gone.
        let _ = self.send_at_once(message);
        self.close();
        let mut byte = [0; 1];
        while recv(&self.socket, &mut byte[..], RecvFlags::DONTWAIT).is_ok_and(|(_, bytes)| bytes > 0) {}
    }

    /// A message is in the socket, or its end.
    fn is_readable(&self) -> bool {
        let at_once = Timespec { tv_sec: 0, tv_nsec: 0 };
        matches!(poll(&mut [PollFd::new(&self.socket, PollFlags::IN)], Some(&at_once)), Ok(1..))
    }

    /// Receives a message and its descriptors; `None` if the other side has closed the connection.
    pub fn receive<M: DeserializeOwned>(&self) -> Result<Option<(M, Vec<OwnedFd>)>, VmmError> {
        let Some(slots) = self.slots() else { return self.receive_from_socket() };
        let (mut has_waited, mut silent) = (false, Duration::ZERO);
        loop {
            if let Some(message) = slots.take() {
                return Ok(Some((read(message.bytes())?, Vec::new())));
            }
            if std::mem::replace(&mut has_waited, true) && self.is_readable() {
                return self.receive_from_socket();
            }
            if slots.patience.is_some_and(|patience| silent >= patience) {
                return Err(VmmError::Gone("it has sent nothing for too long".to_string()));
            }
            if !slots.wait(TICK) {
                silent += TICK;
            }
        }
    }

    fn receive_from_socket<M: DeserializeOwned>(&self) -> Result<Option<(M, Vec<OwnedFd>)>, VmmError> {
        let mut bytes = self.buffer.lock().unwrap_or_else(PoisonError::into_inner);
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(DESCRIPTORS))];
        let mut ancillary = RecvAncillaryBuffer::new(&mut space);
        let mut was_reset = false;
        let received = loop {
            let into = &mut [IoSliceMut::new(&mut bytes)];
            match recvmsg(&self.socket, into, &mut ancillary, RecvFlags::CMSG_CLOEXEC) {
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => return Err(VmmError::Gone("it has sent nothing for too long".to_string())),
                // The kernel tells it before a last message that is there.
                Err(Errno::CONNRESET) if !std::mem::replace(&mut was_reset, true) => {}
                Err(Errno::CONNRESET) => return Ok(None),
                received => break received.map_err(cannot("receive a message"))?,
            }
        };
        let mut descriptors = Vec::new();
        for message in ancillary.drain() {
            if let RecvAncillaryMessage::ScmRights(passed) = message {
                descriptors.extend(passed);
            }
        }
        if received.bytes == 0 {
            return Ok(None);
        }
        if received.flags.contains(ReturnFlags::CTRUNC) {
            let why = "the descriptors of a message cannot be taken: there are too many, or this process has no room for them";
            return Err(VmmError::Protocol(why.to_string()));
        }
        if received.flags.contains(ReturnFlags::TRUNC) {
            return Err(VmmError::Protocol(format!("a message is longer than {LONGEST} bytes")));
        }
        Ok(Some((read(&bytes[..received.bytes])?, descriptors)))
    }
}
