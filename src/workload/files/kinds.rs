//! What a file workload can be written as: the options of each, with their defaults, and what makes it.

use super::{Parts, Setup, compile, one_file, postmark, tokubench, untar, varmail};
use crate::expression::{ExpressionError, Kind, OptionKind, Settings, Values};

/// No file, and no block that is written at once, is larger.
const LARGEST_FILE: u64 = 1 << 40;
const LARGEST_BLOCK: u64 = 64 << 20;
const MOST_FILES: u64 = 100_000_000;

const fn size(name: &'static str, largest: u64, default: &'static str, about: &'static str) -> OptionKind {
    OptionKind { name, values: Values::Size(1, largest), default, about }
}

const fn count(name: &'static str, values: (u64, u64), default: &'static str, about: &'static str) -> OptionKind {
    OptionKind { name, values: Values::Count(values.0, values.1), default, about }
}

const fn threads(default: &'static str, about: &'static str) -> OptionKind {
    count("threads", (1, 256), default, about)
}

const fn files(default: &'static str, about: &'static str) -> OptionKind {
    count("files", (1, MOST_FILES), default, about)
}

const fn bias(name: &'static str, about: &'static str) -> OptionKind {
    count(name, (0, 10), "5", about)
}

const SYNC: OptionKind = OptionKind {
    name: "sync",
    values: Values::Switch,
    default: "off",
    about: "on: at the end the whole file system is made durable, and that is counted too",
};
const FSYNC_EVERY: OptionKind =
    count("fsync-every", (1, u64::MAX), "", "an fsync after so many writes; not set: none at all");
const OWN_FILE: OptionKind = threads("1", "how many threads, each with a file of its own");

/// A file workload, and what makes it.
pub(super) struct Row {
    pub kind: &'static Kind,
    /// Its stages and lanes.
    pub lanes: fn(&Settings, u64) -> Result<Parts, ExpressionError>,
    /// What is made before anything is counted.
    pub setup: fn(&Settings) -> Setup,
}

fn no_setup(_: &Settings) -> Setup {
    Setup::default()
}

/// A file workload: its kind has its own options, then those that all of them take.
macro_rules! row {
    ($lanes:expr, $setup:expr, $name:literal, $about:literal $(, $own:expr)*) => {
        Row {
            kind: &Kind { name: $name, about: $about, options: &[$($own,)* SYNC] },
            lanes: $lanes,
            setup: $setup,
        }
    };
}

/// A tree of source files: its options, and those of what is done with it.
macro_rules! tree_row {
    ($lanes:expr, $name:literal, $about:literal $(, $own:expr)*) => {
        row!(
            $lanes,
            no_setup,
            $name,
            $about,
            files("17000", "the files of the tree; the defaults are about Linux 2.6.11"),
            OptionKind {
                name: "files-per-directory",
                values: Values::Real(1.0, 1e6),
                default: "17",
                about: "how many files a directory has on average; the counts are geometric",
            },
            count("fan-out", (1, 65_536), "6", "subdirectories of a directory, which fills the tree level by level"),
            size("median", LARGEST_BLOCK, "4K", "half of the files are smaller; the sizes are log-normal"),
            OptionKind {
                name: "sigma",
                values: Values::Real(0.0, 5.0),
                default: "1.5",
                about: "the deviation of the logarithm of the sizes",
            },
            size("largest", LARGEST_BLOCK, "1M", "no file is larger")
            $(, $own)*
        )
    };
}

/// The file workloads, as they are listed.
pub(super) static ROWS: [Row; 7] = [
    row!(
        |settings, _| Ok(one_file::sequential(settings)),
        no_setup,
        "seq_write",
        "a file is made and appended to until it has its size (Huang and Chang's seq_write)",
        size("file", LARGEST_FILE, "600M", "the size of the file in the end"),
        size("append", LARGEST_BLOCK, "8K", "how much is appended at once"),
        FSYNC_EVERY,
        OWN_FILE
    ),
    row!(
        one_file::random,
        no_setup,
        "rnd_write",
        "random places of a file are written; the setup writes it whole (Huang and Chang's rnd_write)",
        size("file", LARGEST_FILE, "512M", "the size of the file"),
        size("request", LARGEST_BLOCK, "4K", "how much is written at once, and what its offset is a multiple of"),
        OptionKind {
            name: "writes",
            values: Values::Amount,
            default: "128M",
            about: "how much is written in all, rounded up to whole requests; 2x is twice the file",
        },
        FSYNC_EVERY,
        OWN_FILE
    ),
    row!(
        postmark::lanes,
        no_setup,
        "postmark",
        "small files of a mail server are made, read, appended to and deleted, as postmark 1.5 does",
        files("500", "files in the pool at first"),
        count("transactions", (0, u64::MAX), "500", "how many; each creates or deletes, and reads or appends"),
        size("smallest", LARGEST_BLOCK, "500", "the smallest size of a file"),
        size("largest", LARGEST_BLOCK, "10000", "the largest size; sizes between are equally likely"),
        count("subdirectories", (0, 1_000_000), "0", "so many directories hold the files; 0: the root does"),
        size("read-block", LARGEST_BLOCK, "512", "how much is read at once"),
        size("write-block", LARGEST_BLOCK, "512", "how much is written at once"),
        bias("read-bias", "reads among ten of reads and appends"),
        bias("create-bias", "creations among ten of creations and deletions"),
        OptionKind {
            name: "buffered",
            values: Values::Switch,
            default: "on",
            about: "on: smaller blocks are gathered to 4K, as stdio does; off: each is a call of its own",
        },
        threads("1", "how many threads share the files and the transactions")
    ),
    tree_row!(
        |settings, seed| Ok(untar::lanes(settings, seed)),
        "untar",
        "an archive of a source tree is unpacked; the archive itself is not read",
        size("record", LARGEST_BLOCK, "10K", "tar's record, and so the largest write")
    ),
    tree_row!(
        |settings, seed| Ok(compile::lanes(settings, seed)),
        "compile",
        "a source tree is built: sources and headers are read, objects written, archived and linked",
        OptionKind {
            name: "sources",
            values: Values::Share(0.0, 1.0),
            default: "50%",
            about: "the share of the files that can be compiled",
        },
        OptionKind {
            name: "headers",
            values: Values::Share(0.0, 1.0),
            default: "34%",
            about: "the share of the files that are headers, at most what the sources leave",
        },
        OptionKind {
            name: "built",
            values: Values::Share(0.0, 1.0),
            default: "25%",
            about: "the share of the sources that are built: a configuration takes some",
        },
        count("headers-read", (0, 100_000), "100", "how many headers a source reads on average"),
        OptionKind {
            name: "theta",
            values: Values::Real(0.0, 10.0),
            default: "1",
            about: "how skewed the choice of headers is: the k-th has a weight of k^-theta",
        },
        OptionKind {
            name: "temporaries",
            values: Values::Switch,
            default: "on",
            about: "on: the assembly goes through a file; off: through a pipe, and nothing is asked",
        },
        OptionKind {
            name: "assembly",
            values: Values::Real(0.01, 1000.0),
            default: "2",
            about: "the size of the assembly, in sizes of its source",
        },
        OptionKind {
            name: "object",
            values: Values::Real(0.01, 1000.0),
            default: "0.7",
            about: "the size of an object, in sizes of its source",
        },
        size("block", LARGEST_BLOCK, "4K", "how much is written at once, as stdio does"),
        threads("1", "how many jobs; the directories are dealt out to them")
    ),
    row!(
        varmail::lanes,
        varmail::setup,
        "varmail",
        "a mail server deletes, writes, fsyncs and reads small files, as filebench's varmail does",
        files("1000", "how many files there may be"),
        threads("16", "how many threads, each with its share of the files"),
        count("loops", (1, u64::MAX), "10000", "how often the 13 steps are gone through, by all threads together"),
        OptionKind {
            name: "prealloc",
            values: Values::Share(0.0, 1.0),
            default: "80%",
            about: "the share of the files that the setup makes",
        },
        size("size", LARGEST_BLOCK, "16K", "the mean size of those"),
        OptionKind {
            name: "shape",
            values: Values::Real(0.1, 1000.0),
            default: "",
            about: "the shape of a gamma distribution of sizes, such as 1.5; not set: all have the mean",
        },
        size("append", LARGEST_BLOCK, "16K", "an append is shorter than this, every length being as likely"),
        size("read", LARGEST_BLOCK, "1M", "how much of a file is read at once")
    ),
    row!(
        |settings, seed| Ok(tokubench::lanes(settings, seed)),
        no_setup,
        "tokubench",
        "many small files are made in a tree of directories, as BetrFS's tokubench does",
        files("100000", "how many files; O-JFS's evaluation has 3000000"),
        count(
            "children",
            (2, 65_536),
            "128",
            "subdirectories of a directory, and the most files a leaf is planned for"
        ),
        size("iosize", LARGEST_BLOCK, "4K", "how much is written at once"),
        count("count", (0, 1 << 20), "1", "how often a file is written to"),
        threads("1", "how many threads, each with leaves of its own")
    ),
];
