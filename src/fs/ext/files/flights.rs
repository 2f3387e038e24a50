//! Overwrites blocks of a file without its gate, so that its writers need not wait for the device.
//!
//! A flight is a run of pages that have a place. The thread that writes them out notes the flight in the file, leaves the
//! file's gate, asks the device, and comes back: pages that nobody has changed meanwhile wait no more. Reads and writes go
//! on beside a flight. All else first waits until the device has answered, since it may free the blocks, or promise that
//! they are stored.

use crate::fs::ext::blocks::Bytes;
use crate::fs::ext::files::node::{File, Flight, Node, Page};
use crate::fs::ext::files::write_back::WriteBack;
use crate::fs::volume::VolumeError;
use crate::task::{Gate, Task, WriteGuard};
use std::ops::Range;
use std::sync::Arc;

/// Bytes of a file that are in flight at once, at most.
const AT_ONCE: usize = 4 << 20;

impl WriteBack<'_> {
    /// Enters a file's gate alone, when no flight of the file is under way.
    pub fn enter_alone<'g>(&self, task: &'g Task<'_>, node: &'g Node) -> WriteGuard<'g, File> {
        let mut file = node.gate.write(task);
        if let Some(flight) = file.flight.take() {
            self.land(task, &mut file, &flight);
        }
        file
    }

    /// Writes out a piece of the dirty pages in a range of a file's blocks, as [`WriteBack::write_piece`] does, but without the
    /// file's gate while the device is asked, where that is possible. Answers the block behind the piece, and the file.
    pub fn write_piece_beside<'g>(
        &self,
        task: &'g Task<'_>,
        node: &'g Node,
        mut file: WriteGuard<'g, File>,
        range: Range<u64>,
    ) -> Result<(u64, WriteGuard<'g, File>), VolumeError> {
        assert!(file.flight.is_none(), "the task has entered alone");
        let Some((flight, place)) = self.next_flight(task, &file, range.clone())? else {
            let end = self.write_piece(task, node, &mut file, range)?;
            return Ok((end, file));
        };
        let end = flight.blocks().end;
        file.flight = Some(Arc::clone(&flight));
        file.next_out = end;
        let mut is_written = flight.is_written.enter(task);
        drop(file);
        let sent = self.send_pages(task, place, flight.pages.len(), flight.pages.iter());
        *is_written = sent.is_ok();
        drop(is_written);
        let mut file = node.gate.write(task);
        // Another may have entered alone meanwhile, and may even have begun the next flight.
        if file.flight.as_ref().is_some_and(|own| Arc::ptr_eq(own, &flight)) {
            file.flight = None;
            self.land(task, &mut file, &flight);
        }
        sent?;
        if !file.is_freed && file.pages.is_empty() {
            self.all_is_written(task, node, &mut file)?;
        }
        Ok((end, file))
    }

    /// The first run of pages that wait in a range, and the run's place: if the device answers while a write is in flight,
    /// and neither the file's map nor its inode changes with them.
    fn next_flight(
        &self,
        task: &Task<'_>,
        file: &File,
        range: Range<u64>,
    ) -> Result<Option<(Arc<Flight>, u64)>, VolumeError> {
        let can_fly = self.metadata.media.is_written_behind() && !self.settings.logs_overwrites();
        let Some((&first, _)) = file.pages.range(range.clone()).next().filter(|_| can_fly) else {
            return Ok(None);
        };
        let run = self.maps().run(task, file, first)?;
        let Some(place) = run.stored() else { return Ok(None) };
        let most = run.count.min((AT_ONCE / self.metadata.shape.block_bytes) as u64);
        let end =
            range.end.min(first.saturating_add(most)).min(file.stored_size / self.metadata.shape.block_bytes as u64);
        if end <= first {
            return Ok(None);
        }
        let pages = (first..).zip(file.pages.range(first..end));
        let pages = pages.take_while(|(at, (next, _))| at == *next).map(|(_, (_, page))| Bytes::clone(&page.bytes));
        let flight = Flight { first, pages: pages.collect(), is_written: Gate::new("flight", false) };
        Ok(Some((Arc::new(flight), place)))
    }

    /// Takes the pages of a flight from the dirty ones, as far as they are written and nobody has changed them.
    fn land(&self, task: &Task<'_>, file: &mut File, flight: &Flight) {
        if !*flight.is_written.enter(task) {
            return;
        }
        for (at, sent) in flight.blocks().zip(&flight.pages) {
            // The flight holds its bytes until now: a writer of such a page copies it first.
            let is_unchanged = |page: &Page| page.bytes.is_same(sent);
            if file.pages.get(&at).is_some_and(is_unchanged) {
                file.pages.remove(&at);
                self.waiting.take_bytes(self.metadata.shape.block_bytes);
            }
        }
    }
}
