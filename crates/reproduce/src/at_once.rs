//! Runs of an experiment beside each other.

use crate::ReproduceError;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Makes one result of each of `wanted`, as many at once as there are processors. The results are in their order; the error is the
/// first one's.
pub fn at_once<W: Sync, M: Send>(
    wanted: &[W],
    make: impl Fn(&W) -> Result<M, ReproduceError> + Sync,
) -> Result<Vec<M>, ReproduceError> {
    let workers = std::thread::available_parallelism().map_or(1, usize::from).min(wanted.len());
    let next = AtomicUsize::new(0);
    let made: Vec<Mutex<Option<Result<M, ReproduceError>>>> = wanted.iter().map(|_| Mutex::default()).collect();
    std::thread::scope(|scope| {
        for _ in 0..workers {
            scope.spawn(|| {
                while let Some((wanted, made)) = {
                    let number = next.fetch_add(1, Ordering::Relaxed);
                    wanted.get(number).zip(made.get(number))
                } {
                    *made.lock().expect("no run panics") = Some(make(wanted));
                }
            });
        }
    });
    let made = made.into_iter().map(|made| made.into_inner().expect("no run panics").expect("every run was made"));
    made.collect()
}
