//! Write protection of a guest's memory through its userfaultfd: the guest makes the descriptor, and the monitor has it.
//!
//! The numbers and structures are those of linux/userfaultfd.h.

use crate::error::{VmmError, cannot};
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::io::{Errno, read};
use rustix::ioctl::{Opcode, Updater, ioctl, opcode};
use rustix::mm::{UserfaultfdFlags, userfaultfd};
use std::ops::Range;

const API: u64 = 0xAA;
/// Faults on protected pages, those of shared memory, the threads that have them, and mappings that are moved or doubled.
const FEATURES: u64 = 1 | 1 << 12 | 1 << 8 | 1 << 2;
/// Handles the faults of user code only, which needs no privilege.
const USER_MODE_ONLY: UserfaultfdFlags = UserfaultfdFlags::from_bits_retain(1);
/// Registers a range for protection.
const WRITE_PROTECTED: u64 = 1 << 1;
/// Protects a range; without it, lets it be written.
const PROTECT: u64 = 1;
const PAGE_FAULT: u8 = 0x12;
const REMAP: u8 = 0x14;

#[repr(C)]
struct Api {
    api: u64,
    features: u64,
    ioctls: u64,
}

#[repr(C)]
struct Register {
    start: u64,
    bytes: u64,
    mode: u64,
    ioctls: u64,
}

#[repr(C)]
struct WriteProtect {
    start: u64,
    bytes: u64,
    mode: u64,
}

const HANDSHAKE: Opcode = opcode::read_write::<Api>(API as u8, 0x3F);
const REGISTER: Opcode = opcode::read_write::<Register>(API as u8, 0x00);
const WRITE_PROTECT: Opcode = opcode::read_write::<WriteProtect>(API as u8, 0x06);

/// Something that a guest does not do to its memory.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Fault {
    /// A write to a page that is protected. The thread that made it waits.
    Write {
        /// The address in the guest.
        address: u64,
        /// The number of the thread.
        thread: u32,
    },
    /// The memory was mapped a second time, or moved: the second mapping is not protected.
    Mapping,
}

/// A userfaultfd.
#[derive(Debug)]
pub(crate) struct Userfault(OwnedFd);

impl Userfault {
    /// That of this process, for all of a range. An ordinary user has the right to one that handles the faults of its own code
    /// only: a system call into a protected page then fails with EFAULT.
    pub fn new(start: u64, bytes: u64) -> Result<Userfault, VmmError> {
        let flags = UserfaultfdFlags::CLOEXEC | UserfaultfdFlags::NONBLOCK;
        let make = |flags| {
            #[allow(unsafe_code, reason = "a descriptor that is passed to the monitor")]
            // SAFETY: it is registered for shared memory alone that this crate has mapped, and only protects it.
            unsafe {
                userfaultfd(flags)
            }
        };
        let made = match make(flags) {
            Err(Errno::PERM) => make(flags | USER_MODE_ONLY),
            made => made,
        };
        let unprotected = |error: Errno| VmmError::Unprotected(std::io::Error::from(error).to_string());
        let own = Userfault(made.map_err(unprotected)?);
        own.call::<HANDSHAKE, _>(&mut Api { api: API, features: FEATURES, ioctls: 0 }).map_err(unprotected)?;
        let mut register = Register { start, bytes, mode: WRITE_PROTECTED, ioctls: 0 };
        own.call::<REGISTER, _>(&mut register).map_err(unprotected)?;
        Ok(own)
    }

    /// One that a guest has passed.
    pub fn received(descriptor: OwnedFd) -> Userfault {
        Userfault(descriptor)
    }

    fn call<const CODE: Opcode, T>(&self, argument: &mut T) -> Result<(), Errno> {
        #[allow(unsafe_code, reason = "the calls of a userfaultfd")]
        // SAFETY: the code belongs to the type of the argument. A descriptor of another kind refuses it, and the addresses
        // are those of the process that has made the descriptor.
        unsafe {
            ioctl(&self.0, Updater::<CODE, T>::new(argument))
        }
    }

    /// Protects a range of bytes in the guest, or lets it be written again.
    pub fn protect(&self, range: Range<u64>, is_read_only: bool) -> Result<(), VmmError> {
        let mode = if is_read_only { PROTECT } else { 0 };
        let mut argument = WriteProtect { start: range.start, bytes: range.end - range.start, mode };
        loop {
            match self.call::<WRITE_PROTECT, _>(&mut argument) {
                // The guest's memory was changing its shape.
                Err(Errno::AGAIN | Errno::INTR) => {}
                // It has no memory any more.
                Err(Errno::SRCH) => return Err(VmmError::Died),
                done => return done.map_err(cannot("protect the guest's memory")),
            }
        }
    }

    /// The next one that is to be read.
    pub fn fault(&self) -> Result<Option<Fault>, VmmError> {
        let mut message = [0_u8; 32];
        match read(&self.0, &mut message) {
            Ok(32) if message[0] == PAGE_FAULT => {
                let number = |at: usize| u64::from_le_bytes(message[at..at + 8].try_into().expect("eight bytes"));
                Ok(Some(Fault::Write { address: number(16), thread: number(24) as u32 }))
            }
            Ok(32) if message[0] == REMAP => Ok(Some(Fault::Mapping)),
            Ok(_) | Err(Errno::AGAIN) => Ok(None),
            Err(error) => Err(cannot("read the faults of the guest")(error)),
        }
    }
}

impl AsFd for Userfault {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}
