//! How a volume is shared, as whoever mounts it wishes.

/// Which reads are noted in a file's time of access.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum AccessTimes {
    /// The first after each change, and one a day.
    #[default]
    Relative,
    /// All that come here.
    Strict,
    /// None.
    Never,
}

/// How a volume is shared.
#[derive(Clone, Copy, Debug, Default)]
pub struct VolumeSharing {
    /// Nothing may be changed.
    pub read_only: bool,
    /// A request is answered when the time that the device names has come, and not before.
    pub paced: bool,
    /// Which reads are noted.
    pub access_times: AccessTimes,
    /// Reads of directories are not.
    pub ignores_directory_reads: bool,
    /// The wall clock's time at the clock's zero, in nanoseconds since 1970: what the volume was opened with.
    pub wall_origin_ns: i64,
}
