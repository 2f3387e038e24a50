//! The stages of a request in blktrace.

/// A stage of a request in blktrace.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Stage {
    /// `Q`: queued by the file system or program. The process is known, and with it the journal.
    #[default]
    Queue,
    /// `D`: issued to the device, after merging.
    Issue,
    /// `C`: completed.
    Complete,
}

impl Stage {
    /// The letter in blkparse's output.
    pub fn letter(self) -> u8 {
        match self {
            Stage::Queue => b'Q',
            Stage::Issue => b'D',
            Stage::Complete => b'C',
        }
    }

    /// The stage of this letter.
    pub fn parse(letter: &str) -> Option<Stage> {
        [Stage::Queue, Stage::Issue, Stage::Complete].into_iter().find(|stage| letter.as_bytes() == [stage.letter()])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stage_is_named_by_its_letter() {
        assert_eq!(Stage::parse("D"), Some(Stage::Issue));
        assert_eq!(Stage::parse("X"), None);
    }
}
