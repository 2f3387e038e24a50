//! What maps addresses.
