//! Opening a volume.
//!
//! | file | content |
//! |---|---|
//! | `open` | the steps of a mount |
//! | `replay` | what the log says that is not home |

mod open;
mod replay;
