//! The loads: the paper's four, or their stand-ins, and recorded ones.

use crate::recording::Recording;
use std::sync::Arc;

/// A load in a file.
#[derive(Clone, Debug, PartialEq)]
pub enum Load {
    /// A name and a generator's expression without an amount.
    Made(&'static str, String),
    /// A name and a trace.
    Recorded(&'static str, Arc<Recording>),
}

impl Load {
    /// The name in figures.
    pub fn name(&self) -> &'static str {
        match self {
            Load::Made(name, _) | Load::Recorded(name, _) => name,
        }
    }

    /// A description of the writes.
    pub fn about(&self) -> String {
        match self {
            Load::Made(name, expression) => format!("{name}: `{expression}`"),
            Load::Recorded(name, recording) => format!("{name}: {}", recording.trace.display()),
        }
    }
}

/// The paper gives no exponent.
pub fn zipf(theta: f64) -> Load {
    Load::Made("Zipf", format!("zipf:theta={theta}"))
}

/// 29 % of the writes go to 1.6 % of the pages, as section 2.3 cites for TPC-C.
pub fn tpcc() -> Load {
    Load::Made("TPC-C-like", "hotcold:r=1.6%,f=29%,scatter=on".to_string())
}

/// A fifth of the blocks gets 55 % of the writes: the middle of the 45 to 66 % that section 2.3 cites for desktops.
pub fn desktop() -> Load {
    Load::Made("desktop-like", "hotcold:r=20%,f=55%,scatter=on".to_string())
}

pub fn uniform() -> Load {
    Load::Made("uniform", "uniform:request=4K".to_string())
}

/// Zipf, the stand-ins for TPC-C and RES, uniform: the order of figures 8 to 10.
pub fn all() -> Vec<Load> {
    vec![zipf(1.0), tpcc(), desktop(), uniform()]
}
