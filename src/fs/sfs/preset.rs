//! Values of several options by one word.

use crate::expression::Choice;

/// Values for the options of `sfs`. Options beside the preset override it.
#[derive(Debug)]
pub struct Preset {
    /// Options and values.
    pub values: &'static [(&'static str, &'static str)],
}

/// All presets.
///
/// `paper`: grouping and quantizer are those of sections 3.4 and 4.2 (four groups, iterative), the cleaner, its watermark and
/// number of victims those of section 3.6. Writing follows section 3.5: write-back every five seconds; blocks that fill no
/// segment of their group are written regardless of group; copies of cleaning update W and T^m. Checkpoints follow section
/// 3.7: every 30 seconds, after 20 segments, and at each fsync. Segments have 32 MB (section 4.1). Nothing is discarded, as
/// NILFS2, on which the paper's implementation stands, does by default. The paper does not give the most dirty data.
impl Choice for &'static Preset {
    const WORDS: &'static [(&'static str, Self, &'static str)] = &[(
        "paper",
        &Preset {
            values: &[
                ("segment", "32M"),
                ("grouping", "sfs"),
                ("groups", "4"),
                ("quantizer", "iterative"),
                ("cleaner", "cost-hotness"),
                ("hotness", "all"),
                ("rest", "mixed"),
                ("watermark", "95%"),
                ("at-once", "3"),
                ("flush", "5s"),
                ("checkpoint", "30s"),
                ("checkpoint-segments", "20"),
                ("fsync", "checkpoint"),
                ("discard", "off"),
            ],
        },
        "SFS as in sections 3 and 4 of its paper (FAST 2012)",
    )];
}

#[cfg(test)]
mod tests {
    use super::super::settings::{CountedWrites, Fsync, Rest, SfsSettings};
    use crate::expression::parse_term;

    fn settings(text: &str) -> SfsSettings {
        SfsSettings::read(&parse_term(text).unwrap()).unwrap()
    }

    #[test]
    fn the_papers_system_is_one_word() {
        let all = "sfs:segment=32M,grouping=sfs,groups=4,quantizer=iterative,cleaner=cost-hotness,hotness=all,rest=mixed,\
                   watermark=95%,at-once=3,flush=5s,checkpoint=30s,checkpoint-segments=20,fsync=checkpoint,discard=off";
        let (preset, written) = (settings("sfs:preset=paper"), settings(all));
        assert_eq!(preset.written_out.replace("preset=paper,", ""), written.written_out);
        assert_eq!(
            (preset.fsync, preset.counted_writes, preset.rest),
            (Fsync::Checkpoint, CountedWrites::All, Rest::Mixed)
        );
        assert_eq!((preset.segment_bytes, preset.checkpoint_segments), (Some(32 << 20), Some(20)));
    }

    #[test]
    fn options_beside_a_preset_override_it() {
        let lfs = settings("sfs:preset=paper,grouping=none,cleaner=cost-benefit,segment=1M,fsync=log");
        assert_eq!((lfs.segment_bytes, lfs.fsync, lfs.rest), (Some(1 << 20), Fsync::Log, Rest::Mixed));
        for part in ["grouping=none", "cleaner=cost-benefit", "hotness=all"] {
            assert!(lfs.written_out.contains(part), "{}", lfs.written_out);
        }
        assert!(!lfs.written_out.contains("groups="), "one group has no number of groups: {}", lfs.written_out);
    }

    #[test]
    fn a_grouping_is_written_out_whoever_chose_it() {
        for (text, grouping) in [("sfs", "lifetime"), ("sfs:groups=3", "sfs"), ("sfs:quantizer=equi-width", "sfs")] {
            let written = settings(text).written_out;
            assert!(written.contains(&format!("grouping={grouping}")), "{text}: {written}");
            assert_eq!(settings(&written).written_out, written);
        }
    }
}
