//! An initiator of the tests' own: the host's side of NVMe/TCP, written from the specification and not from the target.

pub mod known_blocks;
pub mod known_zones;
#[path = "../../../../tests/versions/mod.rs"]
pub mod versions;

use std::collections::BTreeMap;
use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;

/// A connected socket.
pub trait Stream: Read + Write + Send {
    /// Sets the timeout of reads and writes.
    fn set_patience(&self, patience: Duration) -> io::Result<()>;
}

impl Stream for UnixStream {
    fn set_patience(&self, patience: Duration) -> io::Result<()> {
        self.set_read_timeout(Some(patience))?;
        self.set_write_timeout(Some(patience))
    }
}

impl Stream for TcpStream {
    fn set_patience(&self, patience: Duration) -> io::Result<()> {
        self.set_read_timeout(Some(patience))?;
        self.set_write_timeout(Some(patience))
    }
}

/// The discovery controller's name.
pub const DISCOVERY: &str = "nqn.2014-08.org.nvmexpress.discovery";
/// The name of the host.
pub const HOST: &str = "nqn.2026-01.org.example:host";
/// The longest data in a capsule.
pub const IN_CAPSULE: usize = 8192;
/// The time that an answer may take.
const PATIENCE: Duration = Duration::from_secs(60);

/// CRC-32C by its definition, bit by bit.
pub fn crc32c(bytes: &[u8]) -> u32 {
    let mut sum = u32::MAX;
    for byte in bytes {
        sum ^= u32::from(*byte);
        for _ in 0..8 {
            sum = if sum & 1 != 0 { sum >> 1 ^ 0x82f6_3b78 } else { sum >> 1 };
        }
    }
    !sum
}

/// A command.
#[derive(Clone, Copy, Debug)]
pub struct Command(pub [u8; 64]);

impl Command {
    /// A command to a namespace.
    pub fn new(opcode: u8, namespace: u32) -> Command {
        let mut bytes = [0; 64];
        (bytes[0], bytes[1]) = (opcode, 0x40);
        bytes[4..8].copy_from_slice(&namespace.to_le_bytes());
        Command(bytes)
    }

    /// A command of the fabric.
    pub fn fabric(kind: u8) -> Command {
        Command::new(0x7f, u32::from(kind))
    }

    /// Sets a double word.
    pub fn word(mut self, number: usize, value: u32) -> Command {
        self.0[number * 4..number * 4 + 4].copy_from_slice(&value.to_le_bytes());
        self
    }

    /// Sets the first block and the number of blocks.
    pub fn blocks(self, first: u64, count: u64) -> Command {
        self.word(10, first as u32).word(11, (first >> 32) as u32).word(12, (count as u32).wrapping_sub(1))
    }

    /// Sets the identifier.
    pub fn with_id(mut self, id: u16) -> Command {
        self.0[2..4].copy_from_slice(&id.to_le_bytes());
        self
    }

    /// Describes data of this length: in the capsule, or in units of its own.
    pub fn describe(mut self, length: usize, in_capsule: bool) -> Command {
        self.0[24..32].fill(0);
        self.0[32..36].copy_from_slice(&(length as u32).to_le_bytes());
        self.0[39] = if in_capsule { 0x01 } else { 0x5a };
        self
    }
}

/// A completed command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answer {
    pub id: u16,
    /// The status code and its type.
    pub status: u16,
    /// True if repeating does not help.
    pub is_final: bool,
    pub head: u16,
    pub result: u64,
    pub data: Vec<u8>,
}

/// The reason why there is no answer.
#[derive(Debug)]
pub enum Ended {
    /// The connection has ended.
    Io(io::Error),
    /// The target has terminated it: status, information.
    Terminated(u16, u32),
}

impl From<io::Error> for Ended {
    fn from(error: io::Error) -> Ended {
        Ended::Io(error)
    }
}

/// Data from the host, before it is asked for.
struct Pending {
    data: Vec<u8>,
    received: Vec<u8>,
}

/// A connection.
pub struct Queue {
    pub stream: Box<dyn Stream>,
    header_digest: bool,
    data_digest: bool,
    most_h2c: usize,
    next_id: u16,
    pending: BTreeMap<u16, Pending>,
    /// Requests for data so far.
    pub asked: u64,
}

/// A unit with the common header filled in.
pub fn unit(kind: u8, flags: u8, header: u8, data_offset: u8, fields: &[u8], data: &[u8]) -> Vec<u8> {
    let mut bytes = vec![kind, flags, header, data_offset, 0, 0, 0, 0];
    bytes.extend(fields);
    bytes.extend(data);
    let length = bytes.len() as u32;
    bytes[4..8].copy_from_slice(&length.to_le_bytes());
    bytes
}

/// A connection request.
pub fn connection_request(alignment: u8, header_digest: bool, data_digest: bool) -> Vec<u8> {
    let mut fields = [0; 120];
    (fields[2], fields[3]) = (alignment, u8::from(header_digest) | u8::from(data_digest) << 1);
    unit(0, 0, 128, 0, &fields, &[])
}

fn u32_at(bytes: &[u8], offset: usize) -> u32 {
    u32::from_le_bytes(bytes[offset..offset + 4].try_into().unwrap())
}

fn u16_at(bytes: &[u8], offset: usize) -> u16 {
    u16::from_le_bytes(bytes[offset..offset + 2].try_into().unwrap())
}

impl Queue {
    /// Agrees on a connection.
    pub fn open(stream: Box<dyn Stream>, header_digest: bool, data_digest: bool) -> Result<Queue, Ended> {
        Queue::open_aligned(stream, 0, header_digest, data_digest)
    }

    /// The same, with an alignment of data, in fours of bytes less one.
    pub fn open_aligned(
        mut stream: Box<dyn Stream>,
        alignment: u8,
        header_digest: bool,
        data_digest: bool,
    ) -> Result<Queue, Ended> {
        stream.set_patience(PATIENCE)?;
        stream.write_all(&connection_request(alignment, header_digest, data_digest))?;
        let mut response = [0; 128];
        stream.read_exact(&mut response)?;
        if response[0] != 1 {
            return Err(Ended::Terminated(u16_at(&response, 8), u32_at(&response, 10)));
        }
        assert_eq!((response[2], u32_at(&response, 4)), (128, 128));
        assert_eq!(response[11], u8::from(header_digest) | u8::from(data_digest) << 1, "the digests are granted");
        let most_h2c = u32_at(&response, 12) as usize;
        assert!(most_h2c >= 4096 && most_h2c.is_multiple_of(4));
        let (next_id, pending) = (0, BTreeMap::new());
        Ok(Queue { stream, header_digest, data_digest, most_h2c, next_id, pending, asked: 0 })
    }

    fn sealed(&self, kind: u8, mut flags: u8, header: &[u8], data: &[u8]) -> Vec<u8> {
        let header_length = header.len() + 8;
        let digest = if self.header_digest { 4 } else { 0 };
        let has_data_digest = self.data_digest && !data.is_empty();
        flags |= u8::from(self.header_digest) | u8::from(has_data_digest) << 1;
        let data_offset = if data.is_empty() { 0 } else { header_length + digest };
        let length = header_length + digest + data.len() + if has_data_digest { 4 } else { 0 };
        let mut bytes = vec![kind, flags, header_length as u8, data_offset as u8];
        bytes.extend((length as u32).to_le_bytes());
        bytes.extend(header);
        if self.header_digest {
            bytes.extend(crc32c(&bytes).to_le_bytes());
        }
        bytes.extend(data);
        if has_data_digest {
            bytes.extend(crc32c(data).to_le_bytes());
        }
        bytes
    }

    /// The unit of a command with data in its capsule, or none.
    pub fn capsule(&self, command: &Command, data: &[u8]) -> Vec<u8> {
        self.sealed(4, 0, &command.0, data)
    }

    /// The unit of data for a transfer.
    pub fn host_data(&self, id: u16, tag: u16, offset: usize, data: &[u8], is_last: bool) -> Vec<u8> {
        let mut header = Vec::new();
        header.extend(id.to_le_bytes());
        header.extend(tag.to_le_bytes());
        header.extend((offset as u32).to_le_bytes());
        header.extend((data.len() as u32).to_le_bytes());
        header.extend([0; 4]);
        self.sealed(6, if is_last { 4 } else { 0 }, &header, data)
    }

    /// Sends a command, with data for the device or room for data from it; returns its identifier. Data goes in the capsule if it
    /// fits.
    pub fn submit(&mut self, command: Command, data: &[u8], room: usize) -> io::Result<u16> {
        let id = self.next_id;
        self.next_id = self.next_id.wrapping_add(1);
        let in_capsule = !data.is_empty() && data.len() <= IN_CAPSULE;
        let length = data.len() + room;
        let command = command.with_id(id);
        let command = if length > 0 { command.describe(length, in_capsule) } else { command };
        let bytes = self.capsule(&command, if in_capsule { data } else { &[] });
        let held = if in_capsule { Vec::new() } else { data.to_vec() };
        self.pending.insert(id, Pending { data: held, received: Vec::new() });
        self.stream.write_all(&bytes)?;
        Ok(id)
    }

    /// Receives the next unit: its type, flags, fields behind the common header, and data.
    pub fn receive(&mut self) -> Result<(u8, u8, Vec<u8>, Vec<u8>), Ended> {
        let mut common = [0; 8];
        self.stream.read_exact(&mut common)?;
        let [kind, flags, header, data_offset, ..] = common;
        let length = u32_at(&common, 4) as usize;
        assert!(length >= usize::from(header) && length < 2 << 20, "{common:?}");
        let mut whole = common.to_vec();
        whole.resize(length, 0);
        self.stream.read_exact(&mut whole[8..])?;
        let header = usize::from(header);
        if kind == 3 {
            return Err(Ended::Terminated(u16_at(&whole, 8), u32_at(&whole, 10)));
        }
        assert_eq!(flags & 1 != 0, self.header_digest, "type {kind}");
        if self.header_digest {
            assert_eq!(u32_at(&whole, header), crc32c(&whole[..header]), "type {kind}");
        }
        let mut data = Vec::new();
        if data_offset > 0 {
            let end = if flags & 2 != 0 { length - 4 } else { length };
            data = whole[usize::from(data_offset)..end].to_vec();
            assert_eq!(flags & 2 != 0, self.data_digest && !data.is_empty());
            if flags & 2 != 0 {
                assert_eq!(u32_at(&whole, end), crc32c(&data));
            }
        }
        Ok((kind, flags, whole[8..header].to_vec(), data))
    }

    /// Receives the next completion; data that is asked for meanwhile is sent.
    pub fn complete(&mut self) -> Result<Answer, Ended> {
        loop {
            let (kind, _, fields, data) = self.receive()?;
            let id = u16_at(&fields, 0);
            match kind {
                5 => {
                    let id = u16_at(&fields, 12);
                    let status = u16_at(&fields, 14) >> 1;
                    let result = u64::from(u32_at(&fields, 0)) | u64::from(u32_at(&fields, 4)) << 32;
                    let data = self.pending.remove(&id).map(|pending| pending.received).unwrap_or_default();
                    let (head, is_final) = (u16_at(&fields, 8), status & 1 << 14 != 0);
                    return Ok(Answer { id, status: status & 0x7ff, is_final, head, result, data });
                }
                7 => {
                    let received = &mut self.pending.get_mut(&id).expect("a command is under way").received;
                    assert_eq!(u32_at(&fields, 4) as usize, received.len(), "data comes in order");
                    received.extend(data);
                }
                9 => {
                    self.asked += 1;
                    let (tag, offset) = (u16_at(&fields, 2), u32_at(&fields, 4) as usize);
                    let length = u32_at(&fields, 8) as usize;
                    let held = self.pending[&id].data[offset..offset + length].to_vec();
                    let mut units = Vec::new();
                    for (number, piece) in held.chunks(self.most_h2c).enumerate() {
                        let at = number * self.most_h2c;
                        units.extend(self.host_data(id, tag, offset + at, piece, at + piece.len() == length));
                    }
                    self.stream.write_all(&units)?;
                }
                other => panic!("a unit of type {other}"),
            }
        }
    }

    /// Sends a command, and waits for its completion.
    pub fn run(&mut self, command: Command, data: &[u8], room: usize) -> Answer {
        self.try_run(command, data, room).unwrap_or_else(|ended| panic!("{command:x?}: {ended:?}"))
    }

    /// The same, of a connection that may end.
    pub fn try_run(&mut self, command: Command, data: &[u8], room: usize) -> Result<Answer, Ended> {
        let id = self.submit(command, data, room)?;
        let answer = self.complete()?;
        assert_eq!(answer.id, id);
        Ok(answer)
    }

    /// Connects a queue of 32 entries to a controller, or to a new one (FFFFh).
    pub fn connect(&mut self, subsystem: &str, queue: u16, controller: u16, keep_alive: u32) -> Result<Answer, Ended> {
        let mut data = vec![0; 1024];
        data[0] = 7;
        data[16..18].copy_from_slice(&controller.to_le_bytes());
        data[256..256 + subsystem.len()].copy_from_slice(subsystem.as_bytes());
        data[512..512 + HOST.len()].copy_from_slice(HOST.as_bytes());
        let command = Command::fabric(1).word(10, u32::from(queue) << 16).word(11, 31).word(12, keep_alive);
        self.try_run(command, &data, 0)
    }

    /// Reads a register.
    pub fn register(&mut self, offset: u32) -> u64 {
        let is_long = u32::from(offset == 0);
        let answer = self.run(Command::fabric(4).word(10, is_long).word(11, offset), &[], 0);
        assert_eq!(answer.status, 0, "register {offset:x}");
        answer.result
    }

    /// Sets the configuration.
    pub fn configure(&mut self, value: u32) -> u16 {
        self.run(Command::fabric(0).word(11, 0x14).word(12, value), &[], 0).status
    }

    /// Reads a structure of Identify.
    pub fn identify(&mut self, structure: u32, namespace: u32, set: u32) -> Answer {
        self.run(Command::new(0x06, namespace).word(10, structure).word(11, set << 24), &[], 4096)
    }

    /// Reads a page of a log.
    pub fn log(&mut self, page: u32, namespace: u32, length: usize, offset: u64, set: u32) -> Answer {
        let words = length as u32 / 4 - 1;
        let command = Command::new(0x02, namespace).word(10, page | words << 16).word(11, words >> 16);
        self.run(command.word(12, offset as u32).word(13, (offset >> 32) as u32).word(14, set << 24), &[], length)
    }

    /// Reads blocks.
    pub fn read(&mut self, namespace: u32, first: u64, blocks: u64) -> Vec<u8> {
        let answer = self.run(Command::new(2, namespace).blocks(first, blocks), &[], blocks as usize * 4096);
        assert_eq!(answer.status, 0, "a read of {blocks} blocks from {first}");
        answer.data
    }

    /// Writes blocks; returns the status.
    pub fn write(&mut self, namespace: u32, first: u64, data: &[u8]) -> u16 {
        self.run(Command::new(1, namespace).blocks(first, data.len() as u64 / 4096), data, 0).status
    }
}

/// Connects a socket to the target.
pub type Dial = Box<dyn Fn() -> io::Result<Box<dyn Stream>> + Send + Sync>;

/// A host with a controller.
pub struct Host {
    pub admin: Queue,
    pub controller: u16,
    pub subsystem: String,
    digests: (bool, bool),
    dial: Dial,
}

/// Connects to a Unix socket.
pub fn unix(path: &Path) -> Dial {
    let path = path.to_path_buf();
    Box::new(move || Ok(Box::new(UnixStream::connect(&path)?)))
}

impl Host {
    /// Connects a controller and enables it.
    pub fn connect(dial: Dial, subsystem: &str, digests: (bool, bool)) -> Result<Host, Ended> {
        let mut admin = Queue::open(dial()?, digests.0, digests.1)?;
        let connected = admin.connect(subsystem, 0, 0xffff, 0)?;
        assert_eq!(connected.status, 0, "{connected:?}");
        assert_eq!(admin.configure(0x46_0061), 0);
        assert_eq!(admin.register(0x1c) & 1, 1, "it is ready");
        let controller = connected.result as u16;
        Ok(Host { admin, controller, subsystem: subsystem.to_string(), digests, dial })
    }

    /// The name of the one subsystem that the discovery controller tells.
    pub fn discover(dial: &Dial) -> Result<String, Ended> {
        let mut queue = Queue::open(dial()?, false, false)?;
        assert_eq!(queue.connect(DISCOVERY, 0, 0xffff, 0)?.status, 0);
        assert_eq!(queue.configure(0x46_0001), 0);
        let log = queue.log(0x70, 0, 2048, 0, 0).data;
        assert_eq!(u32_at(&log, 8), 1, "one record");
        let name = &log[1024 + 256..1024 + 512];
        Ok(String::from_utf8(name.iter().copied().take_while(|byte| *byte != 0).collect()).unwrap())
    }

    /// Connects another socket, and agrees on it.
    pub fn open(&self) -> Result<Queue, Ended> {
        Queue::open((self.dial)()?, self.digests.0, self.digests.1)
    }

    /// Connects a queue of input and output.
    pub fn queue(&self, number: u16) -> Result<Queue, Ended> {
        let mut queue = self.open()?;
        let connected = queue.connect(&self.subsystem, number, self.controller, 0)?;
        assert_eq!(connected.status, 0, "queue {number}: {connected:?}");
        Ok(queue)
    }
}
