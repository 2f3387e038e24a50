//! The stages of a request in the kernel's block layer.

/// A stage of a request in blktrace, blkparse and ftrace.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Stage {
    /// `Q`: queued by the file system or program. The process is known, and with it the journal.
    #[default]
    Queue,
    /// `I`: given to an I/O scheduler, which not every request is.
    Insert,
    /// `D`: issued to the device, after merging.
    Issue,
    /// `C`: completed.
    Complete,
}

/// All stages, with the letter in blkparse's output and the name.
const STAGES: [(Stage, u8, &str); 4] = [
    (Stage::Queue, b'Q', "queue"),
    (Stage::Insert, b'I', "insert"),
    (Stage::Issue, b'D', "issue"),
    (Stage::Complete, b'C', "complete"),
];

impl Stage {
    /// All stages, in the order in which a request passes them.
    pub const ALL: [Stage; 4] = [Stage::Queue, Stage::Insert, Stage::Issue, Stage::Complete];

    /// The letter in blkparse's output.
    pub fn letter(self) -> u8 {
        STAGES[self as usize].1
    }

    /// The stage of this letter or name.
    pub fn parse(text: &str) -> Option<Stage> {
        let is_it = |(_, letter, name): &&(Stage, u8, &str)| text.as_bytes() == [*letter] || text == *name;
        STAGES.iter().find(is_it).map(|(stage, ..)| *stage)
    }
}

/// Counts of requests by stage.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct StageCounts([u64; 4]);

impl StageCounts {
    pub fn add(&mut self, stage: Stage) {
        self.0[stage as usize] += 1;
    }

    /// The first stage that all of these requests have passed. Only some requests pass an I/O scheduler, so that
    /// `I` is the last choice.
    pub fn earliest(&self) -> Option<Stage> {
        let order = [Stage::Queue, Stage::Issue, Stage::Complete, Stage::Insert];
        order.into_iter().find(|stage| self.0[*stage as usize] > 0)
    }

    /// A note for the user, if requests of other stages than `chosen` were passed over.
    pub fn note(&self, chosen: Stage) -> Option<String> {
        let others = Stage::ALL.into_iter().filter(|stage| *stage != chosen && self.0[*stage as usize] > 0);
        let others: Vec<String> =
            others.map(|stage| format!("{} {}", self.0[stage as usize], stage.letter() as char)).collect();
        let (letter, others) = (chosen.letter() as char, others.join(", "));
        match self.0[chosen as usize] {
            _ if others.is_empty() => None,
            0 => Some(format!("no request is at the stage {letter}; there are {others}: choose one with --stage")),
            _ => Some(format!("only requests at the stage {letter} were read; there are also {others}")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stage_is_named_by_its_letter_or_its_name() {
        for stage in Stage::ALL {
            assert_eq!(Stage::parse(&char::from(stage.letter()).to_string()), Some(stage));
        }
        assert_eq!(Stage::parse("issue"), Some(Stage::Issue));
        assert_eq!(Stage::parse("X"), None);
    }

    #[test]
    fn the_earliest_stage_is_one_that_every_request_passes() {
        let mut counts = StageCounts::default();
        assert_eq!(counts.earliest(), None);
        for (stage, earliest) in [
            (Stage::Insert, Stage::Insert),
            (Stage::Complete, Stage::Complete),
            (Stage::Issue, Stage::Issue),
            (Stage::Queue, Stage::Queue),
        ] {
            counts.add(stage);
            assert_eq!(counts.earliest(), Some(earliest));
        }
    }
}
