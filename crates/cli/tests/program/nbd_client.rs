//! An NBD client that sends any request, valid or not.

use std::io::{self, Read, Write};
use std::net::Shutdown;
use std::os::unix::net::UnixStream;
use std::path::Path;

/// Commands.
pub const READ: u16 = 0;
pub const WRITE: u16 = 1;
pub const FLUSH: u16 = 3;
pub const TRIM: u16 = 4;
pub const WRITE_ZEROES: u16 = 6;
/// The error of a reply: no space.
pub const NO_SPACE: u32 = 28;
/// The command flag for durability before the answer.
pub const FUA: u16 = 1;

const REQUEST: u32 = 0x2560_9513;
const SIMPLE_REPLY: [u8; 4] = 0x6744_6698u32.to_be_bytes();

/// A request with any flags, command and lengths.
#[derive(Clone, Copy, Debug)]
pub struct Request {
    pub flags: u16,
    pub command: u16,
    pub cookie: u64,
    pub offset: u64,
    pub length: u32,
}

impl Request {
    pub fn new(command: u16, offset: u64, length: u32) -> Request {
        Request { flags: 0, command, cookie: 9, offset, length }
    }

    pub fn bytes(&self) -> Vec<u8> {
        let mut bytes = REQUEST.to_be_bytes().to_vec();
        bytes.extend(self.flags.to_be_bytes());
        bytes.extend(self.command.to_be_bytes());
        bytes.extend(self.cookie.to_be_bytes());
        bytes.extend(self.offset.to_be_bytes());
        bytes.extend(self.length.to_be_bytes());
        bytes
    }
}

/// A client after the handshake, with simple replies.
pub struct Client(pub UnixStream);

impl Client {
    /// Connects to a listening server.
    pub fn connect(socket: &Path) -> Client {
        Client::try_connect(socket).unwrap()
    }

    pub fn try_connect(socket: &Path) -> io::Result<Client> {
        let mut stream = UnixStream::connect(socket)?;
        stream.set_read_timeout(Some(super::serve::PATIENCE))?;
        stream.read_exact(&mut [0; 18])?;
        stream.write_all(&[0, 0, 0, 3])?;
        stream.write_all(b"IHAVEOPT\0\0\0\x01\0\0\0\0")?;
        stream.read_exact(&mut [0; 10])?;
        Ok(Client(stream))
    }

    pub fn request(&mut self, command: u16, offset: u64, length: u32) {
        self.0.write_all(&Request::new(command, offset, length).bytes()).unwrap();
    }

    /// The cookie and the error of the next reply.
    pub fn reply(&mut self) -> io::Result<(u64, u32)> {
        let mut reply = [0; 16];
        self.0.read_exact(&mut reply)?;
        assert_eq!(reply[..4], SIMPLE_REPLY);
        let cookie = u64::from_be_bytes(reply[8..].try_into().unwrap());
        Ok((cookie, u32::from_be_bytes(reply[4..8].try_into().unwrap())))
    }

    /// The error of the next reply.
    pub fn error(&mut self) -> u32 {
        self.reply().unwrap().1
    }

    /// Sends a request and asserts its success.
    pub fn does(&mut self, request: Request, payload: &[u8]) {
        self.0.write_all(&[&request.bytes()[..], payload].concat()).unwrap();
        assert_eq!(self.reply().unwrap(), (request.cookie, 0), "{request:?}");
    }

    pub fn read(&mut self, offset: u64, length: usize) -> Vec<u8> {
        self.does(Request::new(READ, offset, length as u32), &[]);
        let mut bytes = vec![0; length];
        self.0.read_exact(&mut bytes).unwrap();
        bytes
    }

    /// True if it is served, and not disconnected.
    pub fn reads_one_byte(&mut self) -> bool {
        let read = Request::new(READ, 0, 1).bytes();
        self.0.write_all(&read).is_ok() && self.0.read_exact(&mut [0; 17]).is_ok()
    }

    /// Asserts that it is still served.
    pub fn works(&mut self) {
        self.read(0, 1);
    }

    pub fn sees_the_end(&mut self) -> bool {
        let mut rest = Vec::new();
        self.0.read_to_end(&mut rest).is_ok()
    }

    /// Shuts down sending; reading goes on.
    pub fn close_half(&self) {
        // The server may have gone already.
        let _ = self.0.shutdown(Shutdown::Write);
    }
}
