//! The process of a guest: whose it is, and its end.

use crate::error::{VmmError, cannot};
use crate::wire::Wire;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fd::OwnedFd;
use rustix::io::Errno;
use rustix::net::sockopt::socket_peercred;
use rustix::process::{Pid, PidfdFlags, Signal, geteuid, pidfd_open, pidfd_send_signal};

/// The time that a killed process has to end, in seconds.
const PATIENCE: i64 = 30;

/// The process at the other end of a connection.
#[derive(Debug)]
pub(crate) struct Peer {
    /// Its number.
    pub process: Pid,
    handle: OwnedFd,
}

impl Peer {
    /// That of a connection, which must be the monitor's user.
    pub fn of(wire: &Wire) -> Result<Peer, VmmError> {
        let credentials = socket_peercred(wire.socket()).map_err(cannot("ask who the guest is"))?;
        let (user, own) = (credentials.uid, geteuid());
        if user != own {
            let why = format!("user {} asks a monitor of user {}", user.as_raw(), own.as_raw());
            return Err(VmmError::Refused(why));
        }
        // The guest sends its next request after the answer to its first one: it lives now, and the number is its own.
        let handle = pidfd_open(credentials.pid, PidfdFlags::empty()).map_err(cannot("open the guest's process"))?;
        Ok(Peer { process: credentials.pid, handle })
    }

    /// Readable once the process has ended.
    pub fn handle(&self) -> &OwnedFd {
        &self.handle
    }

    /// False once the process has ended.
    pub fn lives(&self) -> bool {
        let at_once = Timespec { tv_sec: 0, tv_nsec: 0 };
        matches!(poll(&mut [PollFd::new(&self.handle, PollFlags::IN)], Some(&at_once)), Ok(0))
    }

    /// Kills it. It may be dead already.
    pub fn kill(&self) -> Result<(), VmmError> {
        match pidfd_send_signal(&self.handle, Signal::KILL) {
            Ok(()) | Err(Errno::SRCH) => Ok(()),
            Err(error) => Err(cannot("kill the guest")(error)),
        }
    }

    /// Kills it, and waits until all of it has ended: nothing of it writes any more.
    pub fn fence(&self) -> Result<(), VmmError> {
        self.kill()?;
        let patience = Timespec { tv_sec: PATIENCE, tv_nsec: 0 };
        loop {
            match poll(&mut [PollFd::new(&self.handle, PollFlags::IN)], Some(&patience)) {
                Err(Errno::INTR) => {}
                Ok(0) => {
                    let process = self.process;
                    return Err(VmmError::Gone(format!("process {process} has not ended {PATIENCE} s after its kill")));
                }
                done => return done.map(drop).map_err(cannot("wait for the end of the guest")),
            }
        }
    }
}
