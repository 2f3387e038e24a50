//! Monitors: in this process, or in one of their own.
//!
//! | file | role |
//! |---|---|
//! | `own` | a monitor in this process, for simulations |
//! | `process` | a monitor that is a process of its own |
//! | `protect` | the protection of committed memory that is wanted |
//! | `settings` | the station `monitor` |

mod own;
mod process;
mod protect;
mod settings;

pub use own::OwnMonitor;
pub use settings::{KIND, MonitorSettings};

/// The station's name.
const NAME: &str = "monitor";
