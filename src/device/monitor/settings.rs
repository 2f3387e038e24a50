//! The station `monitor`: keeps the memory of the volume above it in another process.

use super::NAME;
use super::process::ProcessMonitor;
use super::protect::Protect;
use crate::device::Medium;
use crate::device::station::{DeviceSettings, OpenOptions, StationError, Storage};
use crate::expression::{ExpressionError, Kind, OptionKind, Term, Values, words};
use std::path::PathBuf;
use std::sync::Arc;

/// The station `monitor`.
pub static KIND: Kind = Kind {
    name: NAME,
    about: "a process that keeps the committed memory of the file system above it (ext:journal=vmm)",
    options: &[
        OptionKind {
            name: "socket",
            values: Values::File,
            default: "",
            about: "the socket of 'flashpath monitor', which must run",
        },
        OptionKind {
            name: "protect",
            values: Values::Choice(words::<Protect>),
            default: "best",
            about: "the protection of committed memory against wild writes",
        },
    ],
};

/// The parsed options of `monitor`.
#[derive(Clone, Debug)]
pub struct MonitorSettings {
    /// The monitor's socket.
    pub socket: PathBuf,
    protect: Protect,
    written_out: String,
}

impl MonitorSettings {
    /// Parses a term. Nothing is connected yet.
    pub fn read(term: &Term) -> Result<MonitorSettings, ExpressionError> {
        let settings = term.settle(&KIND)?;
        if !settings.is_set("socket") {
            let message = "a monitor is found by its socket".to_string();
            let help = "begin one with 'flashpath monitor SOCKET', and write monitor:socket=SOCKET";
            return Err(settings.error("socket", message, help.to_string()));
        }
        Ok(MonitorSettings {
            socket: PathBuf::from(settings.text("socket")),
            protect: settings.choice("protect"),
            written_out: settings.written_out(&[]),
        })
    }
}

impl DeviceSettings for MonitorSettings {
    fn written_out(&self) -> String {
        self.written_out.clone()
    }

    fn storage(&self) -> Storage<'_> {
        Storage::Process
    }

    fn open(&self, _: Vec<Medium>, _: &OpenOptions) -> Result<Medium, StationError> {
        let monitor = ProcessMonitor::connect(&self.socket, self.protect).map_err(StationError::Device)?;
        Ok(Medium::Monitor(Arc::new(monitor)))
    }
}
