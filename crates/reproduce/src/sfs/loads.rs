//! What is written: the paper's four loads, or what stands for them, and recorded ones.

use super::compact::Recording;
use std::sync::Arc;

/// A load in a file.
#[derive(Clone, Debug, PartialEq)]
pub enum Load {
    /// A name and a generator's expression, without an amount.
    Made(&'static str, String),
    /// A name and a trace.
    Recorded(&'static str, Arc<Recording>),
}

impl Load {
    /// What it is called in figures.
    pub fn name(&self) -> &'static str {
        match self {
            Load::Made(name, _) | Load::Recorded(name, _) => name,
        }
    }

    /// What is written, in words.
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

/// 29 % of the writes go to 1.6 % of the pages: what section 2.3 cites of TPC-C.
pub fn tpcc() -> Load {
    Load::Made("TPC-C-like", "hotcold:r=1.6%,f=29%,scatter=on".to_string())
}

/// A fifth of the blocks gets 55 % of the writes: the middle of what section 2.3 cites of desktops, 45 to 66 %.
pub fn desktop() -> Load {
    Load::Made("desktop-like", "hotcold:r=20%,f=55%,scatter=on".to_string())
}

pub fn uniform() -> Load {
    Load::Made("uniform", "uniform:request=4K".to_string())
}

/// Zipf, what stands for TPC-C and RES, uniform: the order of figures 8 to 10.
pub fn all() -> Vec<Load> {
    vec![zipf(1.0), tpcc(), desktop(), uniform()]
}
