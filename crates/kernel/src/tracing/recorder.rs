//! A thread that saves the buffers' pages. It decodes only their length, to keep up with the kernel.

use super::format::Formats;
use super::recording::{Losses, Recording, Spool};
use super::{page, processors, set};
use crate::{KernelError, failed};
use std::fs::{File, OpenOptions};
use std::io::{self, BufWriter, Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

/// The pause after a round that found little.
const PAUSE: Duration = Duration::from_millis(5);

/// A recording in progress. Dropping it without `stop` discards the events.
#[derive(Debug)]
pub struct Recorder {
    instance: PathBuf,
    formats: Formats,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<io::Result<Vec<File>>>>,
}

/// A processor's buffer, and the file for its pages.
struct Channel {
    pages: File,
    spool: BufWriter<File>,
}

impl Recorder {
    pub(super) fn start(instance: &Path, formats: &Formats, directory: &Path) -> Result<Recorder, KernelError> {
        let mut channels = Vec::new();
        for processor in processors(instance)? {
            let file = processor.join("trace_pipe_raw");
            let pages = OpenOptions::new()
                .read(true)
                .custom_flags(nix::fcntl::OFlag::O_NONBLOCK.bits())
                .open(&file)
                .map_err(failed(format!("open {}", file.display())))?;
            let spool = tempfile::tempfile_in(directory)
                .map_err(failed(format!("make a scratch file in {}", directory.display())))?;
            channels.push(Channel { pages, spool: BufWriter::with_capacity(256 << 10, spool) });
        }
        let stop = Arc::new(AtomicBool::new(false));
        let (seen, own) = (Arc::clone(&stop), formats.clone());
        let thread = std::thread::Builder::new()
            .name("recorder".to_string())
            .spawn(move || save(channels, &own, &seen))
            .map_err(failed("start a thread"))?;
        Ok(Recorder { instance: instance.to_path_buf(), formats: formats.clone(), stop, thread: Some(thread) })
    }

    /// Stops recording and counts lost events.
    ///
    /// Fails if the scratch files could not be written.
    pub fn stop(mut self) -> Result<Recording, KernelError> {
        set(&self.instance.join("tracing_on"), "0")?;
        let files = self.join().map_err(failed("save the kernel's events"))?;
        let losses = Losses::read(&processors(&self.instance)?)?;
        let spools = files.into_iter().map(Spool::new).collect::<io::Result<_>>().map_err(failed("save events"))?;
        Recording::new(spools, self.formats.clone(), losses)
    }

    fn join(&mut self) -> io::Result<Vec<File>> {
        self.stop.store(true, Ordering::Release);
        let Some(thread) = self.thread.take() else { return Ok(Vec::new()) };
        thread.join().unwrap_or_else(|_| Err(io::Error::other("the thread that saves them panicked")))
    }
}

impl Drop for Recorder {
    fn drop(&mut self) {
        // The result is discarded, but the instance cannot be removed before its files are closed.
        let _ = self.join();
    }
}

/// Saves pages until `stop` is set and the buffers are empty. Each page is cut to its used bytes.
fn save(mut channels: Vec<Channel>, formats: &Formats, stop: &AtomicBool) -> io::Result<Vec<File>> {
    let mut buffer = vec![0; formats.page_bytes];
    loop {
        let is_last = stop.load(Ordering::Acquire);
        let mut full = false;
        for channel in &mut channels {
            full |= channel.drain(formats, &mut buffer)?;
        }
        if is_last {
            break;
        }
        if !full {
            std::thread::sleep(PAUSE);
        }
    }
    channels.into_iter().map(|channel| channel.spool.into_inner().map_err(io::IntoInnerError::into_error)).collect()
}

impl Channel {
    /// Saves the whole buffer of the processor; true if it held much.
    fn drain(&mut self, formats: &Formats, buffer: &mut [u8]) -> io::Result<bool> {
        let mut pages = 0;
        loop {
            match self.pages.read(buffer) {
                Ok(0) => return Ok(pages > 16),
                Ok(length) => {
                    let page = &buffer[..length];
                    let used = page::used_bytes(formats, page).ok_or_else(|| io::Error::other("a damaged page"))?;
                    self.spool.write_all(&page[..used])?;
                    pages += 1;
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(pages > 16),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
    }
}
