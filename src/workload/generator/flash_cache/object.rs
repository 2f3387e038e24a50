//! An object of a cache.

/// An object of the cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Object {
    /// The hash of its key.
    pub key: u64,
    /// Bytes of key and value.
    pub bytes: u64,
    /// The second from which it is not valid any more; 0: it is for ever.
    pub expires_s: u64,
}

impl Object {
    /// True if it is valid at this second.
    pub fn is_valid(&self, now_s: u64) -> bool {
        self.expires_s == 0 || now_s < self.expires_s
    }
}
