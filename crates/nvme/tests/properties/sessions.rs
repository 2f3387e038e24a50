//! Sessions of hosts that send any bytes.

use flashpath::device::conv::{ConvSettings, Conventional};
use flashpath::device::station::Payload;
use flashpath::device::zns::{Zns, ZnsSettings};
use flashpath::expression::parse_term;
use flashpath::run::shared::{SharedDevice, SharedZones, Sharing};
use flashpath::run::{Path, open_device};
use flashpath::time::Time;
use flashpath_nvme::{Drive, Portal, Subsystem, serve_host};
use std::io::{self, Read};
use std::sync::Arc;

const NAME: &str = "nqn.2026-01.org.example:drive";

/// A subsystem in memory, of blocks, of zones, and of blocks with placement.
fn subsystem(paced: bool) -> (Arc<Subsystem>, Vec<Drive>) {
    let sharing = Sharing { read_only: false, paced };
    let settings = ConvSettings::read(&parse_term("conv:size=256K,timing=off").unwrap()).unwrap();
    let blocks = SharedDevice::new(Box::new(Conventional::new(&settings, 4096)), sharing, Box::new(|| Time(5)));
    let text = "zns:size=1M,zone=64K,max-open=2,max-active=3,timing=off";
    let settings = ZnsSettings::read(&parse_term(text).unwrap()).unwrap();
    let zones = SharedZones::new(Box::new(Zns::new(&settings, 4096)), sharing, Box::new(|| Time(5)));
    let placed =
        Path::read("page:export=30%,fdp=2,fdp-groups=2/nand:size=1M,page=4K,pages-per-block=4,planes=2,timing=off");
    let placed = open_device(&placed.unwrap(), Payload::Bytes, 1).unwrap();
    let placed = SharedDevice::new(placed, sharing, Box::new(|| Time(5)));
    let drives = vec![
        Drive::Blocks(Arc::new(blocks.unwrap())),
        Drive::Zones(Arc::new(zones.unwrap())),
        Drive::Blocks(Arc::new(placed.unwrap())),
    ];
    (Arc::new(Subsystem::new(Some(NAME), "", drives.clone()).unwrap()), drives)
}

/// The target's output for `bytes`, true if the session ended well, and the content of both devices after it.
fn session(bytes: impl Read, paced: bool) -> (Vec<u8>, bool, Vec<u8>) {
    let (subsystem, drives) = subsystem(paced);
    let mut told = Vec::new();
    let portal = Portal::Local("s".to_string());
    let is_well = serve_host(&subsystem, bytes, &mut told, portal, Arc::new(|| {}), &mut || true).is_ok();
    let mut content = vec![0; 256 << 10];
    let [Drive::Blocks(blocks), Drive::Zones(zones), Drive::Blocks(placed)] = &drives[..] else {
        panic!("three drives")
    };
    blocks.read(0, &mut content).expect("the device works whatever a host sends");
    let handles = placed.placement().expect("the handles work whatever a host sends");
    content.extend(format!("{handles:?}").bytes());
    let report = |_, zone: flashpath::device::Zone| {
        content.extend(format!("{zone:?}").bytes());
        true
    };
    zones.report(0, report).expect("the zones work whatever a host sends");
    (told, is_well, content)
}

/// A reader that returns single bytes, with timeouts between them.
struct Slowly<'b> {
    bytes: &'b [u8],
    is_pause: bool,
}

impl Read for Slowly<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.is_pause = !self.is_pause;
        if self.is_pause {
            return Err(io::ErrorKind::WouldBlock.into());
        }
        let one = buffer.len().min(1);
        self.bytes.read(&mut buffer[..one])
    }
}

/// The output and the content of the devices do not depend on how the bytes arrive, or on pacing, and nothing panics.
pub fn check_session(bytes: &[u8]) {
    let at_once = session(bytes, false);
    assert!(session(Slowly { bytes, is_pause: false }, false) == at_once, "it matters how the bytes arrive");
    assert!(session(bytes, true) == at_once, "devices without a timing model are paced");
}

fn capsule(command: &[u8; 64], data: &[u8]) -> Vec<u8> {
    let data_offset = if data.is_empty() { 0 } else { 72 };
    let mut bytes = vec![4, 0, 72, data_offset];
    bytes.extend((72 + data.len() as u32).to_le_bytes());
    bytes.extend(command);
    bytes.extend(data);
    bytes
}

/// The beginning of a session: the connection request, a connect and an enabled controller. With digests, only the request.
pub fn connected(digests: u8, is_zoned: bool) -> Vec<u8> {
    let mut bytes = vec![0; 128];
    (bytes[2], bytes[4], bytes[11]) = (128, 128, digests);
    if digests != 0 {
        return bytes;
    }
    let mut connect = [0; 64];
    (connect[0], connect[1], connect[4], connect[44]) = (0x7f, 0x40, 1, 31);
    connect[32..36].copy_from_slice(&1024u32.to_le_bytes());
    connect[39] = 1;
    let mut data = [0; 1024];
    data[16..18].fill(0xff);
    data[256..256 + NAME.len()].copy_from_slice(NAME.as_bytes());
    data[512..516].copy_from_slice(b"host");
    bytes.extend(capsule(&connect, &data));
    let mut enable = [0; 64];
    (enable[0], enable[1], enable[44]) = (0x7f, 0x40, 0x14);
    let configuration: u32 = if is_zoned { 0x46_0061 } else { 0x46_0001 };
    enable[48..52].copy_from_slice(&configuration.to_le_bytes());
    bytes.extend(capsule(&enable, &[]));
    bytes
}

/// A session of commands of administration with these fields and lengths of data.
pub fn script(steps: &[([u8; 12], usize)]) -> Vec<u8> {
    let mut bytes = connected(0, true);
    for (number, (fields, length)) in steps.iter().enumerate() {
        let [opcode, namespace, ten, eleven, twelve, thirteen, fourteen, kind, described, high, word, page] = *fields;
        let known = [0x02, 0x06, 0x08, 0x09, 0x0a, 0x0c, 0x18, 0x7f, 0x19, 0x1a];
        let mut command = [0; 64];
        (command[0], command[1], command[2], command[4]) =
            (known[usize::from(opcode) % known.len()], 0x40, number as u8, namespace % 5);
        command[40..44].copy_from_slice(&[ten % 40, page % 4, high, word % 8]);
        (command[44], command[48], command[52], command[59]) = (eleven, twelve, thirteen, fourteen % 4);
        // An endurance group, or a number of events.
        command[46] = thirteen % 5;
        // Often the length of an identify, or of the log that is asked for.
        let asked = match described % 4 {
            0 => 4096,
            1 => (u32::from(high) + (u32::from(word % 8) << 8) + 1) * 4,
            _ => *length as u32,
        };
        command[32..36].copy_from_slice(&asked.to_le_bytes());
        command[39] = [0x01, 0x5a, 0x5a, 0x40][usize::from(kind) % 4];
        let data = if kind % 4 == 0 { vec![kind; (*length).min(8192)] } else { Vec::new() };
        bytes.extend(capsule(&command, &data));
    }
    bytes
}
