//! The counts of a cache whose drive is the device of a workload.

/// The counts of a cache.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CacheCounts {
    /// Objects asked for.
    pub gets: u64,
    /// Those found in memory.
    pub memory_hits: u64,
    /// Objects set, also those that were asked for and not there.
    pub sets: u64,
    /// Their bytes, of keys and values.
    pub set_bytes: u64,
    /// Objects deleted, whether they were there or not.
    pub deletes: u64,
    /// Objects that left memory and were not admitted to the drive.
    pub not_admitted: u64,
    /// Objects that are larger than a region.
    pub too_large: u64,
    /// The engine of small objects.
    pub buckets: EngineCounts,
    /// The engine of large objects.
    pub regions: EngineCounts,
}

/// The counts of an engine.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct EngineCounts {
    /// Objects found.
    pub hits: u64,
    /// Objects put.
    pub objects: u64,
    /// Their bytes, of keys and values.
    pub object_bytes: u64,
    /// Bytes written to the drive.
    pub written_bytes: u64,
    /// Objects that left for others.
    pub evicted: u64,
}

impl CacheCounts {
    /// The counts since `earlier` ones.
    pub fn since(&self, earlier: &CacheCounts) -> CacheCounts {
        CacheCounts {
            gets: self.gets - earlier.gets,
            memory_hits: self.memory_hits - earlier.memory_hits,
            sets: self.sets - earlier.sets,
            set_bytes: self.set_bytes - earlier.set_bytes,
            deletes: self.deletes - earlier.deletes,
            not_admitted: self.not_admitted - earlier.not_admitted,
            too_large: self.too_large - earlier.too_large,
            buckets: self.buckets.since(&earlier.buckets),
            regions: self.regions.since(&earlier.regions),
        }
    }

    /// Bytes of the objects that were put to the drive.
    pub fn object_bytes(&self) -> u64 {
        self.buckets.object_bytes + self.regions.object_bytes
    }
}

impl EngineCounts {
    /// Counts an object of `bytes` that is put.
    pub(in crate::workload) fn put(&mut self, bytes: u64) {
        self.objects += 1;
        self.object_bytes += bytes;
    }

    fn since(&self, earlier: &EngineCounts) -> EngineCounts {
        EngineCounts {
            hits: self.hits - earlier.hits,
            objects: self.objects - earlier.objects,
            object_bytes: self.object_bytes - earlier.object_bytes,
            written_bytes: self.written_bytes - earlier.written_bytes,
            evicted: self.evicted - earlier.evicted,
        }
    }
}
