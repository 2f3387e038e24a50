//! How answers leave: promptly, or when their time has come.

use flashpath::run::shared::DueQueue;
use flashpath::time::Time;
use std::io;
use std::sync::Arc;
use std::thread::{Builder, JoinHandle};

/// Bytes of answers that may wait; who asks for more waits itself.
const MOST_BYTES: usize = 64 << 20;
/// What an answer takes beside its data.
const ANSWER_BYTES: usize = 256;

/// An answer that is ready to be sent.
type Answer = Box<dyn FnOnce() + Send>;

/// Where answers go.
pub struct Answers {
    late: Option<Late>,
}

/// Answers that wait, and the thread that sends them.
struct Late {
    queue: Arc<DueQueue<Answer>>,
    sender: Option<JoinHandle<()>>,
}

impl Answers {
    /// Answers that leave promptly.
    pub fn prompt() -> Answers {
        Answers { late: None }
    }

    /// Answers that wait for their time by the clock `now`. Fails if the system starts no thread.
    pub fn paced(now: impl Fn() -> Time + Send + 'static) -> io::Result<Answers> {
        let queue = Arc::new(DueQueue::<Answer>::new(MOST_BYTES));
        let takes = Arc::clone(&queue);
        let sender = Builder::new().name("fuse-pace".into()).spawn(move || {
            // Without this, the kernel wakes a sleeper up to 50 us late. If it refuses, answers are so much later.
            let _ = nix::sys::prctl::set_timerslack(1);
            let mut ready = Vec::new();
            while takes.take(&now, &mut ready) {
                ready.drain(..).for_each(|answer| answer());
            }
        })?;
        Ok(Answers { late: Some(Late { queue, sender: Some(sender) }) })
    }

    /// Whether answers may have to wait, and their data must be kept until then.
    pub fn are_late(&self) -> bool {
        self.late.is_some()
    }

    /// Sends an answer with `bytes` of data to what was done at `done`.
    pub fn send(&self, done: Time, bytes: usize, answer: impl FnOnce() + Send + 'static) {
        match &self.late {
            None => answer(),
            // The queue is abandoned by nobody as long as this is there.
            Some(late) => drop(late.queue.push(done, ANSWER_BYTES + bytes, Box::new(answer))),
        }
    }
}

impl Drop for Late {
    fn drop(&mut self) {
        self.queue.close();
        if let Some(sender) = self.sender.take() {
            // If it panicked, its answers are lost, and there is nobody to tell.
            let _ = sender.join();
        }
    }
}
