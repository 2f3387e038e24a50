//! The requests of a flash cache's drive: objects are asked for by key, and two engines place them on the drive, as those of
//! CacheLib do (Berg et al., "The CacheLib Caching Engine", OSDI 2020).
//!
//! | file | what it is |
//! |---|---|
//! | `options` | the options, and the cache that they describe |
//! | `requests` | requests for objects: of a trace of keys, or drawn |
//! | `workload` | the workload: requests for objects as operations of the drive |
//! | `cache` | the cache: memory in front of two engines, and what it counts |
//! | `object` | an object: its key, its bytes, and its end |
//! | `memory` | objects in memory, the least recently used of which leaves first |
//! | `buckets` | small objects: each in the bucket of its key, which is read and written as a whole |
//! | `regions` | large objects: one behind the other in regions, which are written and forgotten as a whole |
//! | `operations` | reads and writes of a range of the drive |
//!
//! Nothing is read before it was written. What the cache has in memory (keys of regions, filters of buckets) is exact: a bucket
//! is read for a key only if it has the key.

mod buckets;
mod cache;
mod memory;
mod object;
mod operations;
mod options;
mod regions;
mod requests;
mod workload;

pub(super) use options::{KIND, make};
