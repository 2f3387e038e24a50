//! The journal on memory whose lines may be lost.
