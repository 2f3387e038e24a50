//! What assembles a path and drives it.
