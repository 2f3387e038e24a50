//! What stores bits.
