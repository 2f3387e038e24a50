//! Dirty pages of several files are written out: all, the oldest, those of rewritten files.

use super::write_back::WriteBack;
use crate::fs::volume::VolumeError;
use crate::task::Task;

impl WriteBack<'_> {
    /// Writes out all that waits now.
    pub fn write_out_all(&self, task: &Task<'_>) -> Result<(), VolumeError> {
        self.waiting.all().into_iter().try_for_each(|number| self.sweep(task, number))
    }

    /// Writes out files that were cut to nothing and rewritten: the running transaction has the cut, and a commit of that
    /// alone would leave no bytes of them, neither old nor new. The task is behind no gate.
    pub fn write_out_rewritten(&self, task: &Task<'_>) -> Result<(), VolumeError> {
        for number in self.waiting.rewritten() {
            let has_bytes = self.inodes.nodes.get(number).is_ok_and(|node| !node.gate.read(task).pages.is_empty());
            if has_bytes {
                self.sweep(task, number)?;
                self.waiting.is_emptied_no_more(number);
            }
        }
        Ok(())
    }

    /// Writes out the dirty pages of a file, in pieces. Others go through its gate between two of them: pages that they write
    /// then may wait.
    pub fn sweep(&self, task: &Task<'_>, number: u32) -> Result<(), VolumeError> {
        let began = task.now();
        let (mut at, mut end) = (0, None);
        loop {
            // One that has left meanwhile was freed.
            let Ok(node) = self.inodes.nodes.get(number) else { return Ok(()) };
            let entered = self.enter_alone(task, &node);
            if entered.is_freed {
                return Ok(());
            }
            let end = *end.get_or_insert_with(|| entered.pages.last_key_value().map_or(0, |(last, _)| last + 1));
            let mut file;
            (at, file) = self.write_piece_beside(task, &node, entered, at..end)?;
            if at >= end {
                let stored_size = file.stored_size;
                self.store_rest(task, &mut file, stored_size)?;
                self.waiting.renew(number, began);
                return Ok(());
            }
        }
    }

    /// Writes out a piece of the file that waits longest, of those that no other thread is at. True if this was all of it, and another waits longest now.
    pub fn write_oldest(&self, task: &Task<'_>) -> Result<bool, VolumeError> {
        let Some(taken) = self.waiting.take() else { return Ok(false) };
        // One that has left meanwhile was freed, and waits no more.
        let Ok(node) = self.inodes.nodes.get(taken.number) else { return Ok(true) };
        let file = self.enter_alone(task, &node);
        if file.is_freed {
            return Ok(true);
        }
        // Not from the beginning: there may be pages that are written again and again.
        let is_behind = file.pages.range(file.next_out..).next().is_some();
        let from = if is_behind { file.next_out } else { 0 };
        let (at, mut file) = self.write_piece_beside(task, &node, file, from..u64::MAX)?;
        file.next_out = at;
        Ok(file.pages.is_empty())
    }

    /// Writes out pieces of the files that wait longest, as long as too much waits: the writer waits for that.
    pub fn relieve(&self, task: &Task<'_>) -> Result<(), VolumeError> {
        while self.waiting.is_beyond(1) {
            self.write_oldest(task)?;
        }
        Ok(())
    }

    /// True if half of the most bytes are dirty: they are written out in the background, so that no writer comes to wait.
    pub fn half_waits(&self) -> bool {
        self.waiting.is_beyond(2)
    }
}
