//! `flashpath serve`: a path as a disk that other programs use.
//!
//! | file | what it is |
//! |---|---|
//! | `mod` | the command line, and the order in which all begins and ends |
//! | `background` | the same in a process of its own |
//! | `worker` | the thread in which the device does what it does by itself |

mod background;
mod device;
mod worker;

use crate::failure::Failure;
use flashpath::run::shared::{Clock, ServeError, SharedDevice, Sharing};
use flashpath::time::Time;
use flashpath::units::human_size;
use flashpath_nbd::{Address, ListenError, Listener, Server};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;
use std::time::Instant;
use worker::Worker;

/// Serve a path as a disk, until an interrupt or SIGTERM
#[derive(clap::Args)]
pub struct Serve {
    /// The path, from top to bottom
    #[arg(value_name = "PATH")]
    path: String,
    /// As an NBD export, on a Unix socket of this name, or on this loopback port
    #[arg(long, value_name = "SOCKET|127.0.0.1:PORT", value_parser = address)]
    nbd: Address,
    /// Answer when the device would be done by its timing model, and not before
    #[arg(long)]
    pace: bool,
    /// Refuse whatever would change the device
    #[arg(long)]
    read_only: bool,
    /// The seed of all randomness
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Return as soon as the disk can be used; the number of the process that serves it is printed
    #[arg(long)]
    background: bool,
    /// This is the process that `--background` has started
    #[arg(long, hide = true, conflicts_with = "background")]
    detached: bool,
}

fn address(text: &str) -> Result<Address, String> {
    Address::read(text).map_err(|error| error.to_string())
}

impl From<ListenError> for Failure {
    fn from(error: ListenError) -> Failure {
        let help = match &error {
            ListenError::Taken(_) => Some("end that server, or take another name".to_string()),
            ListenError::Occupied(_) => Some("remove it, or take another name".to_string()),
            ListenError::Address { .. } | ListenError::Io { .. } => None,
        };
        Failure::input(error.to_string(), help)
    }
}

impl Serve {
    /// Serves, until it is told to end.
    pub fn run(self) -> Result<(), Failure> {
        if self.background {
            return background::start();
        }
        if self.detached {
            background::leave_the_terminal()?;
        }
        let stop = catch_signals()?;
        let device = device::open(&self.path, self.seed)?;
        let sharing = Sharing { read_only: self.read_only, paced: self.pace };
        let device = SharedDevice::new(device, sharing, clock()).map_err(|error| failed("serve", &error))?;
        let device = Arc::new(device);
        let worker = Worker::start(Arc::clone(&device)).map_err(|error| cannot("start a thread", &error))?;
        let listener = Listener::bind(&self.nbd)?;
        let place = match listener.address() {
            Address::Unix(path) => format!("nbd+unix:///?socket={}", path.display()),
            Address::Loopback(address) => format!("nbd://{address}"),
        };
        let server = Server::start(listener, Arc::clone(&device)).map_err(|error| cannot("start a thread", &error))?;
        let said = format!("serving {} of {} at {place}\n", human_size(device.size_bytes() as f64), self.path);
        if self.detached {
            background::tell_that_it_serves(&said)?;
        } else {
            crate::print(&said)?;
        }
        // It lasts as long as the handler that sends.
        let _ = stop.recv();
        server.stop();
        worker.stop();
        device.flush().map_err(|error| failed("flush the device at the end", &error))?;
        Ok(())
    }
}

/// Time since now.
fn clock() -> Clock {
    let began = Instant::now();
    Box::new(move || Time(began.elapsed().as_nanos() as u64))
}

/// Answers what the first interrupt, or SIGTERM, sends. A second one ends the program at once.
fn catch_signals() -> Result<mpsc::Receiver<()>, Failure> {
    static TOLD: AtomicBool = AtomicBool::new(false);
    let (sender, receiver) = mpsc::channel();
    let handler = move || {
        if TOLD.swap(true, Ordering::SeqCst) {
            std::process::exit(130);
        }
        // Whoever listened has gone to its end already.
        let _ = sender.send(());
    };
    ctrlc::set_handler(handler).map_err(|error| Failure::failed(format!("cannot catch signals: {error}")))?;
    Ok(receiver)
}

fn failed(doing: &str, error: &ServeError) -> Failure {
    Failure::failed(format!("cannot {doing}: {error}"))
}

fn cannot(doing: &str, error: &std::io::Error) -> Failure {
    Failure::failed(format!("cannot {doing}: {error}"))
}
