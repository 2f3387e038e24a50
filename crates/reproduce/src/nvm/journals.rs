//! The paper's three journals, all in `ext`.

/// A journal of the paper.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Journal {
    /// Inside of the volume.
    Jfs,
    /// The same on a device in RAM.
    NJfs,
    /// In partitioned memory.
    OJfs,
}

impl Journal {
    pub const ALL: [Journal; 3] = [Journal::Jfs, Journal::NJfs, Journal::OJfs];

    pub fn name(self) -> &'static str {
        match self {
            Journal::Jfs => "JFS",
            Journal::NJfs => "N-JFS",
            Journal::OJfs => "O-JFS",
        }
    }

    /// A path with this journal: on a drive, with further options of `ext`, and with a journal of so many bytes whose second
    /// device, if it has one, has these options.
    pub fn path(self, drive: &str, options: &str, bytes: u64, second: &str) -> String {
        match self {
            Journal::Jfs => format!("ext:{options},journal-size={bytes}/{drive}"),
            Journal::NJfs => format!("ext:{options}/{drive}+conv:timing=off,size={bytes}{second}"),
            Journal::OJfs => format!("ext:{options}/{drive}+nvm:size={bytes}{second}"),
        }
    }
}
