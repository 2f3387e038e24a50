//! Draws of places: distributions, and a permutation that scatters them.
//!
//! | file | what it is |
//! |---|---|
//! | `distribution` | ranks: fio's zipf, pareto and normal |
//! | `permutation` | a permutation of a range, computed and not stored |
//! | `power`, `zeta` | the mathematics of distributions |

pub(crate) mod distribution;
pub(crate) mod permutation;
mod power;
mod zeta;
