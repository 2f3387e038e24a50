//! The conformance suite of [`Volume`](flashpath::fs::volume::Volume): the same tests for each file system, with the
//! rules of `fs::posix` around it, by root and ordinary users.

#[path = "volumes/content.rs"]
mod content;
#[path = "volumes/names.rs"]
mod names;
#[path = "volumes/permissions.rs"]
mod permissions;
#[path = "volumes/random_calls.rs"]
mod random_calls;
#[path = "volumes/remounts.rs"]
mod remounts;
#[path = "volumes/threads.rs"]
mod threads;
#[path = "volumes/world.rs"]
mod world;
