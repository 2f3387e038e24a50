//! A target in this process: a device of blocks, zones, and a device for reading only.

use super::initiator::{Dial, Host, unix};
use flashpath::device::conv::{ConvSettings, Conventional};
use flashpath::device::station::Payload;
use flashpath::device::zns::{Zns, ZnsSettings};
use flashpath::expression::parse_term;
use flashpath::run::shared::{Clock, SharedDevice, SharedZones, Sharing};
use flashpath::run::{Path, open_device};
use flashpath::time::Time;
use flashpath_nbd::{Address, Listener};
use flashpath_nvme::{Drive, Limits, Server, Subsystem};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Instant;

/// The namespaces.
pub const BLOCKS: u32 = 1;
pub const ZONES: u32 = 2;
pub const READ_ONLY: u32 = 3;
/// Blocks of the device of blocks.
pub const BLOCK_COUNT: u64 = 4096;
/// Blocks of a zone: its size, and its capacity.
pub const ZONE: u64 = 256;
pub const CAPACITY: u64 = 192;
/// The number of zones, and its limits of open and of active ones.
pub const ZONE_COUNT: u64 = 16;
pub const MOST_OPEN: u64 = 3;
pub const MOST_ACTIVE: u64 = 5;
pub const NAME: &str = "nqn.2026-01.org.example:drive";

/// A running target.
pub struct Target {
    pub server: Option<Server>,
    pub socket: PathBuf,
    _folder: tempfile::TempDir,
}

fn clock(began: Instant) -> Clock {
    Box::new(move || Time(began.elapsed().as_nanos() as u64))
}

/// A device of blocks in memory.
pub fn blocks(sharing: Sharing, began: Instant) -> Drive {
    let settings = ConvSettings::read(&parse_term("conv:size=16M,timing=off").unwrap()).unwrap();
    let device = Conventional::new(&settings, 4096);
    Drive::Blocks(Arc::new(SharedDevice::new(Box::new(device), sharing, clock(began)).unwrap()))
}

/// Zones in memory.
pub fn zones(more: &str, sharing: Sharing, began: Instant) -> Drive {
    let text = format!("zns:size=16M,zone=1M,capacity=768K,max-open=3,max-active=5,timing=off{more}");
    let settings = ZnsSettings::read(&parse_term(&text).unwrap()).unwrap();
    let device = Zns::new(&settings, 4096);
    Drive::Zones(Arc::new(SharedZones::new(Box::new(device), sharing, clock(began)).unwrap()))
}

/// A drive of this path.
pub fn drive_of(path: &str, sharing: Sharing, began: Instant) -> Drive {
    let device = open_device(&Path::read(path).unwrap(), Payload::Bytes, 1).unwrap();
    Drive::Blocks(Arc::new(SharedDevice::new(device, sharing, clock(began)).unwrap()))
}

impl Target {
    pub fn start() -> Target {
        Target::with(Limits::default(), false, "")
    }

    /// A target with drives of these paths.
    pub fn of_paths(paths: &[&str]) -> Target {
        let (began, sharing) = (Instant::now(), Sharing { read_only: false, paced: false });
        Target::of(Limits::default(), paths.iter().map(|path| drive_of(path, sharing, began)).collect())
    }

    pub fn with(limits: Limits, paced: bool, zone_options: &str) -> Target {
        let began = Instant::now();
        let sharing = Sharing { read_only: false, paced };
        let drives = vec![
            blocks(sharing, began),
            zones(zone_options, sharing, began),
            blocks(Sharing { read_only: true, paced }, began),
        ];
        Target::of(limits, drives)
    }

    /// A target with these drives.
    pub fn of(limits: Limits, drives: Vec<Drive>) -> Target {
        let folder = tempfile::tempdir().unwrap();
        let socket = folder.path().join("s");
        let subsystem = Arc::new(Subsystem::new(Some(NAME), "", drives).unwrap());
        let listener = Listener::bind(&Address::Unix(socket.clone())).unwrap();
        let server = Server::start(listener, subsystem, limits, Arc::new(|_| {})).unwrap();
        Target { server: Some(server), socket, _folder: folder }
    }

    pub fn dial(&self) -> Dial {
        unix(&self.socket)
    }

    pub fn host(&self) -> Host {
        Host::connect(self.dial(), NAME, (false, false)).unwrap()
    }
}
