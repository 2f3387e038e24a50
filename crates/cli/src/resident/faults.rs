//! What the servers of clients have to tell. A server that has failed ends the program: it would serve nobody any more, and
//! say nothing.

use crate::failure::Failure;
use crate::print_message;
use flashpath_nbd::{Notice, Notices};
use std::sync::{Arc, Mutex, PoisonError};

/// The first failure, and the way to end the program.
pub struct Faults {
    first: Mutex<Option<String>>,
    stopper: Mutex<Option<Box<dyn FnOnce() + Send>>>,
}

impl Faults {
    /// `stopper` ends the program as a signal does.
    pub fn new(stopper: impl FnOnce() + Send + 'static) -> Faults {
        Faults { first: Mutex::default(), stopper: Mutex::new(Some(Box::new(stopper))) }
    }

    /// Prints the notices of a server of this name, and ends the program if it fails.
    pub fn notices(self: &Arc<Self>, server: &'static str) -> Notices {
        let faults = Arc::clone(self);
        Arc::new(move |notice| {
            print_message(&format!("warning: {server}: {notice}"));
            if let Notice::Failed(_) = notice {
                faults.note(format!("{server}: {notice}"));
            }
        })
    }

    /// Notes a failure, and ends the program.
    pub fn note(&self, why: String) {
        self.first.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(why);
        if let Some(stop) = self.stopper.lock().unwrap_or_else(PoisonError::into_inner).take() {
            stop();
        }
    }

    /// The first failure.
    pub fn failure(&self) -> Result<(), Failure> {
        let first = self.first.lock().unwrap_or_else(PoisonError::into_inner).clone();
        first.map_or(Ok(()), |why| Err(Failure::failed(why)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicU64, Ordering};

    #[test]
    fn a_server_that_fails_ends_the_program_with_an_error_and_a_shortage_does_not() {
        let ends = Arc::new(AtomicU64::new(0));
        let ended = Arc::clone(&ends);
        let faults = Arc::new(Faults::new(move || {
            ended.fetch_add(1, Ordering::SeqCst);
        }));
        let notices = faults.notices("the server");
        notices(Notice::Crowded("too many open files".to_string()));
        notices(Notice::Open(3));
        assert!(faults.failure().is_ok() && ends.load(Ordering::SeqCst) == 0);
        notices(Notice::Failed("it has panicked".to_string()));
        notices(Notice::Failed("again".to_string()));
        assert_eq!(ends.load(Ordering::SeqCst), 1);
        let why = faults.failure().unwrap_err();
        assert!(why.code() == 1 && why.message().is_some_and(|text| text.contains("it has panicked")));
    }
}
