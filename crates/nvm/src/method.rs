//! The methods of persistence.

/// A method by which stored lines reach memory before a fence.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Method {
    /// Non-temporal stores, which pass the caches. Ranges that cover a line in part are stored plainly, and written back.
    NonTemporal,
    /// Plain stores; `clwb` writes lines back, and they may stay in the caches.
    WriteBack,
    /// Plain stores; `clflushopt` writes lines back and removes them from the caches.
    FlushOptimised,
    /// Plain stores; `clflush` does so one line after the other.
    Flush,
}

impl Method {
    /// All of them, the preferred one first.
    pub const ALL: [Method; 4] = [Method::NonTemporal, Method::WriteBack, Method::FlushOptimised, Method::Flush];

    /// The instruction's name.
    pub fn instruction(self) -> &'static str {
        match self {
            Method::NonTemporal => "non-temporal stores",
            Method::WriteBack => "clwb",
            Method::FlushOptimised => "clflushopt",
            Method::Flush => "clflush",
        }
    }
}
