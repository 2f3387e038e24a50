//! Sends answers: at once, or at the time at which the modelled device completes the request.

use flashpath::run::shared::DueQueue;
use flashpath::time::Time;
use std::io;
use std::sync::Arc;
use std::thread::{Builder, JoinHandle};

/// The maximum bytes of queued answers. A thread whose answer does not fit waits until there is room.
const MOST_BYTES: usize = 64 << 20;
/// The bytes counted for an answer beside its data.
const ANSWER_BYTES: usize = 256;

/// An answer that is ready to be sent.
type Answer = Box<dyn FnOnce() + Send>;

/// The sender of answers.
pub struct Answers {
    late: Option<Late>,
}

/// Queued answers, and the thread that sends them.
struct Late {
    queue: Arc<DueQueue<Answer>>,
    sender: Option<JoinHandle<()>>,
}

impl Answers {
    /// A sender that sends each answer at once.
    pub fn prompt() -> Answers {
        Answers { late: None }
    }

    /// A sender that sends each answer at its completion time by the clock `now`. Fails if the system cannot start a
    /// thread.
    pub fn paced(now: impl Fn() -> Time + Send + 'static) -> io::Result<Answers> {
        let queue = Arc::new(DueQueue::<Answer>::new(MOST_BYTES));
        let takes = Arc::clone(&queue);
        let sender = Builder::new().name("fuse-pace".into()).spawn(move || {
            // Without this, the kernel wakes a sleeping thread up to 50 us late. If the call fails, answers are that
            // much later.
            let _ = nix::sys::prctl::set_timerslack(1);
            let mut ready = Vec::new();
            while takes.take(&now, &mut ready) {
                ready.drain(..).for_each(|answer| answer());
            }
        })?;
        Ok(Answers { late: Some(Late { queue, sender: Some(sender) }) })
    }

    /// True if answers may be queued: their data must be owned.
    pub fn are_paced(&self) -> bool {
        self.late.is_some()
    }

    /// Sends the answer, with `bytes` of data, to a request that completes at `done`.
    pub fn send(&self, done: Time, bytes: usize, answer: impl FnOnce() + Send + 'static) {
        match &self.late {
            None => answer(),
            // The queue is not abandoned while this sender exists.
            Some(late) => drop(late.queue.push(done, ANSWER_BYTES + bytes, Box::new(answer))),
        }
    }
}

impl Drop for Late {
    fn drop(&mut self) {
        self.queue.close();
        if let Some(sender) = self.sender.take() {
            // If it panicked, its answers are lost, and no caller can be told.
            let _ = sender.join();
        }
    }
}
