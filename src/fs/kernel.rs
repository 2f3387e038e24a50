//! Stations of the running kernel's file systems: their options. The program makes and mounts them, which takes root.

use crate::expression::{Choice, ExpressionError, Kind, OptionKind, Settings, Term, Values, words};
use crate::units::format_size;

/// The station `kernel-ext4`.
pub static EXT4: Kind = Kind {
    name: "kernel-ext4",
    about: "ext4 of the running kernel, made and mounted on the path for the run (needs root)",
    options: &[
        OptionKind {
            name: "data",
            values: Values::Choice(words::<JournalledData>),
            default: "ordered",
            about: "the part of a write that goes through the journal",
        },
        JOURNAL,
        OptionKind {
            name: "commit",
            values: Values::Duration(1_000_000_000, 300_000_000_000),
            default: "5s",
            about: "the maximum time between commits of the journal, in whole seconds",
        },
        OptionKind {
            name: "lazy",
            values: Values::Switch,
            default: "off",
            about: "mkfs leaves the inode tables and the journal unwritten",
        },
        DISCARD,
        MOUNT,
        MKFS,
    ],
};

/// The station `kernel-btrfs`.
pub static BTRFS: Kind = Kind {
    name: "kernel-btrfs",
    about: "btrfs of the running kernel, made and mounted on the path for the run (needs root)",
    options: &[
        OptionKind {
            name: "cow",
            values: Values::Switch,
            default: "on",
            about: "copy on write; off writes data in place, without checksums",
        },
        DISCARD,
        MOUNT,
        MKFS,
    ],
};

/// The station `kernel-xfs`.
pub static XFS: Kind = Kind {
    name: "kernel-xfs",
    about: "XFS of the running kernel, made and mounted on the path for the run (needs root)",
    options: &[JOURNAL, DISCARD, MOUNT, MKFS],
};

/// The station `kernel-f2fs`.
pub static F2FS: Kind = Kind {
    name: "kernel-f2fs",
    about: "f2fs of the running kernel, made and mounted on the path for the run (needs root)",
    options: &[DISCARD, MOUNT, MKFS],
};

/// The station `kernel-nilfs2`.
pub static NILFS2: Kind = Kind {
    name: "kernel-nilfs2",
    about: "NILFS2 of the running kernel, without its cleaner, made and mounted on the path for the run (needs root)",
    options: &[DISCARD, MOUNT, MKFS],
};

const JOURNAL: OptionKind = OptionKind {
    name: "journal",
    values: Values::Size(1 << 20, 1 << 40),
    default: "",
    about: "the journal's size, a multiple of 1M (not set: mkfs chooses)",
};
const DISCARD: OptionKind =
    OptionKind { name: "discard", values: Values::Switch, default: "off", about: "discard freed blocks at once" };
const MOUNT: OptionKind = OptionKind {
    name: "mount",
    values: Values::Text(256),
    default: "",
    about: "more mount options, joined by @, such as noatime@lazytime",
};
const MKFS: OptionKind = OptionKind {
    name: "mkfs",
    values: Values::Text(256),
    default: "",
    about: "more arguments for mkfs, joined by @, such as -O@^metadata_csum",
};

/// A value of ext4's mount option `data`.
#[derive(Clone, Copy)]
struct JournalledData(&'static str);

impl Choice for JournalledData {
    const WORDS: &'static [(&'static str, Self, &'static str)] = &[
        ("ordered", JournalledData("ordered"), "metadata goes through the journal, after the data it refers to"),
        ("journal", JournalledData("journal"), "data and metadata go through the journal"),
        ("writeback", JournalledData("writeback"), "metadata goes through the journal, data is written at any time"),
    ];
}

/// A file system of the running kernel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KernelFileSystem {
    /// ext4.
    Ext4,
    /// btrfs.
    Btrfs,
    /// XFS.
    Xfs,
    /// f2fs.
    F2fs,
    /// NILFS2.
    Nilfs2,
}

impl KernelFileSystem {
    /// All kernel file systems, with their stations.
    pub const ALL: [(KernelFileSystem, &'static Kind); 5] = [
        (KernelFileSystem::Ext4, &EXT4),
        (KernelFileSystem::Btrfs, &BTRFS),
        (KernelFileSystem::Xfs, &XFS),
        (KernelFileSystem::F2fs, &F2FS),
        (KernelFileSystem::Nilfs2, &NILFS2),
    ];

    /// The station's name.
    pub fn station(self) -> &'static str {
        match self {
            KernelFileSystem::Ext4 => EXT4.name,
            KernelFileSystem::Btrfs => BTRFS.name,
            KernelFileSystem::Xfs => XFS.name,
            KernelFileSystem::F2fs => F2FS.name,
            KernelFileSystem::Nilfs2 => NILFS2.name,
        }
    }
}

/// The options of a file system of the kernel.
#[derive(Debug, Clone, PartialEq)]
pub struct KernelSettings {
    /// The file system.
    pub file_system: KernelFileSystem,
    /// ext4's mount option `data`, in its own words.
    pub data: Option<String>,
    /// Bytes of the journal; `None` if not set.
    pub journal_bytes: Option<u64>,
    /// True if mkfs may leave metadata unwritten.
    pub is_lazy: bool,
    /// The mount options, as mount(8) takes them.
    pub mount_options: String,
    /// More arguments for mkfs.
    pub mkfs_arguments: Vec<String>,
    /// The term with all options written out.
    pub written_out: String,
}

impl KernelSettings {
    /// Reads a term of one of these stations. Errors point at the option that is wrong.
    pub fn read(term: &Term, file_system: KernelFileSystem, kind: &'static Kind) -> Result<Self, ExpressionError> {
        let settings = term.settle(kind)?;
        let has = |name: &str| kind.options.iter().any(|option| option.name == name);
        let journal_bytes = (has("journal") && settings.is_set("journal")).then(|| settings.size("journal"));
        if let Some(bytes) = journal_bytes.filter(|bytes| !bytes.is_multiple_of(1 << 20)) {
            let (below, above) = (bytes >> 20 << 20, bytes.next_multiple_of(1 << 20));
            let help = format!("journal={} or journal={} would do", format_size(below), format_size(above));
            return Err(settings.error("journal", "the journal's size is not a multiple of 1M".to_string(), help));
        }
        let words = |name: &str| -> Vec<String> {
            let words = settings.text(name).split('@').filter(|word| !word.is_empty());
            words.map(str::to_string).collect()
        };
        Ok(KernelSettings {
            file_system,
            data: has("data").then(|| settings.choice::<JournalledData>("data").0.to_string()),
            journal_bytes,
            is_lazy: has("lazy") && settings.switch("lazy"),
            mount_options: mount_options(&settings, file_system, words("mount"))?,
            mkfs_arguments: words("mkfs"),
            written_out: settings.written_out(&[]),
        })
    }
}

/// The mount options. Defaults that depend on the kernel are written out, so that runs are comparable.
fn mount_options(
    settings: &Settings,
    file_system: KernelFileSystem,
    more: Vec<String>,
) -> Result<String, ExpressionError> {
    let mut options = Vec::new();
    match file_system {
        KernelFileSystem::Ext4 => {
            let commit_ns = settings.duration_ns("commit");
            if !commit_ns.is_multiple_of(1_000_000_000) {
                let message = "ext4 counts its commits in whole seconds".to_string();
                return Err(settings.error("commit", message, "write commit=5s or the like".to_string()));
            }
            options.push(format!("data={}", settings.choice::<JournalledData>("data").0));
            options.push(format!("commit={}", commit_ns / 1_000_000_000));
        }
        KernelFileSystem::Btrfs if !settings.switch("cow") => options.push("nodatacow".to_string()),
        KernelFileSystem::Btrfs | KernelFileSystem::Xfs | KernelFileSystem::F2fs | KernelFileSystem::Nilfs2 => {}
    }
    options.push(
        match (settings.switch("discard"), file_system) {
            (false, _) => "nodiscard",
            (true, KernelFileSystem::Btrfs) => "discard=sync",
            (true, _) => "discard",
        }
        .to_string(),
    );
    options.extend(more);
    Ok(options.join(","))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::expression::parse_term;

    fn read(text: &str) -> Result<KernelSettings, ExpressionError> {
        let term = parse_term(text)?;
        let (file_system, kind) =
            KernelFileSystem::ALL.into_iter().find(|(_, kind)| kind.name == term.name.text).unwrap();
        KernelSettings::read(&term, file_system, kind)
    }

    #[test]
    fn defaults_that_depend_on_the_kernel_are_written_out() {
        let options = |text: &str| read(text).unwrap().mount_options;
        assert_eq!(options("kernel-ext4"), "data=ordered,commit=5,nodiscard");
        assert_eq!(options("kernel-ext4:data=journal,commit=60s,discard,mount=noatime@lazytime"), {
            "data=journal,commit=60,discard,noatime,lazytime"
        });
        assert_eq!(options("kernel-btrfs:cow=off,mount=compress=zstd:3"), "nodatacow,nodiscard,compress=zstd:3");
        assert_eq!(options("kernel-xfs"), "nodiscard");
        assert_eq!(options("kernel-f2fs:mount=background_gc=off"), "nodiscard,background_gc=off");
        assert_eq!(options("kernel-nilfs2:discard"), "discard");
        assert_eq!(read("kernel-xfs:mkfs=-m@crc=0").unwrap().mkfs_arguments, ["-m", "crc=0"]);
    }

    #[test]
    fn an_error_points_at_the_wrong_option() {
        for (text, pointed, said) in [
            ("kernel-ext4:journal=1500K", "1500K", "journal=1M or journal=2M"),
            ("kernel-ext4:commit=1500ms", "1500ms", "commit=5s"),
            ("kernel-xfs:data=journal", "data", "kernel-xfs takes"),
            ("kernel-btrfs:journal=8M", "journal", "kernel-btrfs takes"),
        ] {
            let error = read(text).unwrap_err();
            assert_eq!(&text[error.span.clone()], pointed, "{error}");
            assert!(error.help.contains(said), "{error}");
        }
    }
}
