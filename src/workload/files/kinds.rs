//! The file workloads: names, options with defaults, and constructors.

use super::sync_call::SYNC_CALL;
use super::{Parts, Setup, compile, dbench, one_file, postmark, tokubench, untar, varmail};
use crate::expression::{ExpressionError, Kind, OptionKind, Settings, Values};

/// The limits of file sizes, of the sizes of single writes, and of the number of files.
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
    about: "on: sync the whole file system at the end, as part of the result",
};
const FSYNC_EVERY: OptionKind =
    count("fsync-every", (1, u64::MAX), "", "the number of writes between fsyncs; not set: no fsync");
const OWN_FILE: OptionKind = threads("1", "the number of threads, each with a file of its own");

/// A file workload and its constructor.
pub(super) struct Row {
    pub kind: &'static Kind,
    /// Its stages and lanes.
    pub lanes: fn(&Settings, u64) -> Result<Parts, ExpressionError>,
    /// The least that the uncounted stages create.
    pub setup: fn(&Settings) -> Setup,
}

fn no_setup(_: &Settings) -> Setup {
    Setup::default()
}

/// A file workload: its own options, then the common ones.
macro_rules! row {
    ($lanes:expr, $setup:expr, $name:literal, $about:literal $(, $own:expr)*) => {
        Row {
            kind: &Kind { name: $name, about: $about, options: &[$($own,)* SYNC] },
            lanes: $lanes,
            setup: $setup,
        }
    };
}

/// A workload on a source tree: the tree's options, then its own.
macro_rules! tree_row {
    ($lanes:expr, $name:literal, $about:literal $(, $own:expr)*) => {
        row!(
            $lanes,
            no_setup,
            $name,
            $about,
            files("17000", "the number of files; the defaults resemble Linux 2.6.11"),
            OptionKind {
                name: "files-per-directory",
                values: Values::Real(1.0, 1e6),
                default: "17",
                about: "the mean number of files in a directory; the counts are geometric",
            },
            count("fan-out", (1, 65_536), "6", "the number of subdirectories of a directory; the tree fills level by level"),
            size("median", LARGEST_BLOCK, "4K", "the median file size; the sizes are log-normal"),
            OptionKind {
                name: "sigma",
                values: Values::Real(0.0, 5.0),
                default: "1.5",
                about: "the deviation of the logarithm of the sizes",
            },
            size("largest", LARGEST_BLOCK, "1M", "the largest file size")
            $(, $own)*
        )
    };
}

/// The file workloads in the order of listings.
pub(super) static ROWS: [Row; 8] = [
    row!(
        |settings, _| Ok(one_file::sequential(settings)),
        no_setup,
        "seq_write",
        "creates a file and appends to it up to its size (Huang and Chang's seq_write)",
        size("file", LARGEST_FILE, "600M", "the final size of the file"),
        size("append", LARGEST_BLOCK, "8K", "the size of an append"),
        FSYNC_EVERY,
        SYNC_CALL,
        OWN_FILE
    ),
    row!(
        one_file::random,
        no_setup,
        "rnd_write",
        "overwrites random blocks of a file that the setup wrote (Huang and Chang's rnd_write)",
        size("file", LARGEST_FILE, "512M", "the size of the file"),
        size("request", LARGEST_BLOCK, "4K", "the size of a write; offsets are multiples of it"),
        OptionKind {
            name: "writes",
            values: Values::Amount,
            default: "128M",
            about: "the total written, rounded up to whole requests; 2x is twice the file",
        },
        FSYNC_EVERY,
        SYNC_CALL,
        OWN_FILE
    ),
    row!(
        postmark::lanes,
        no_setup,
        "postmark",
        "creates, reads, appends to and deletes the small files of a mail server, as postmark 1.5 does",
        files("500", "the initial number of files"),
        count(
            "transactions",
            (0, u64::MAX),
            "500",
            "the number of transactions; each creates or deletes, and reads or appends"
        ),
        size("smallest", LARGEST_BLOCK, "500", "the smallest size of a file"),
        size("largest", LARGEST_BLOCK, "10000", "the largest size of a file; sizes are uniform"),
        count("subdirectories", (0, 1_000_000), "0", "the number of directories for the files; 0: the root holds them"),
        size("read-block", LARGEST_BLOCK, "512", "the size of a read"),
        size("write-block", LARGEST_BLOCK, "512", "the size of a write"),
        bias("read-bias", "of ten reads and appends, the number of reads"),
        bias("create-bias", "of ten creations and deletions, the number of creations"),
        OptionKind {
            name: "buffered",
            values: Values::Switch,
            default: "on",
            about: "on: smaller blocks are buffered to 4K, as stdio does; off: each is a call of its own",
        },
        threads("1", "the number of threads, which share the files and the transactions")
    ),
    tree_row!(
        |settings, seed| Ok(untar::lanes(settings, seed)),
        "untar",
        "unpacks an archive of a source tree, without reading the archive",
        size("record", LARGEST_BLOCK, "10K", "the size of tar's record, the largest write")
    ),
    tree_row!(
        |settings, seed| Ok(compile::lanes(settings, seed)),
        "compile",
        "builds a source tree: reads sources and headers, writes objects, archives and links them",
        OptionKind {
            name: "sources",
            values: Values::Share(0.0, 1.0),
            default: "50%",
            about: "the share of the files that are sources",
        },
        OptionKind {
            name: "headers",
            values: Values::Share(0.0, 1.0),
            default: "34%",
            about: "the share of the files that are headers; at most the rest after the sources",
        },
        OptionKind {
            name: "built",
            values: Values::Share(0.0, 1.0),
            default: "25%",
            about: "the share of the sources that are built, as by a configuration",
        },
        count("headers-read", (0, 100_000), "100", "the mean number of headers that a source includes"),
        OptionKind {
            name: "theta",
            values: Values::Real(0.0, 10.0),
            default: "1",
            about: "the skew of the choice of headers: the k-th has a weight of k^-theta",
        },
        OptionKind {
            name: "temporaries",
            values: Values::Switch,
            default: "on",
            about: "on: the assembly goes through a file; off: through a pipe, without file operations",
        },
        OptionKind {
            name: "assembly",
            values: Values::Real(0.01, 1000.0),
            default: "2",
            about: "the size of the assembly, as a multiple of its source",
        },
        OptionKind {
            name: "object",
            values: Values::Real(0.01, 1000.0),
            default: "0.7",
            about: "the size of an object, as a multiple of its source",
        },
        size("block", LARGEST_BLOCK, "4K", "the size of a write; stdio's by default"),
        threads("1", "the number of jobs, each with its share of the directories")
    ),
    row!(
        varmail::lanes,
        varmail::setup,
        "varmail",
        "deletes, writes, fsyncs and reads the small files of a mail server, as filebench's varmail does",
        files("1000", "the largest number of files"),
        threads("16", "the number of threads, each with its share of the files"),
        count("loops", (1, u64::MAX), "10000", "the number of loops of 13 steps, over all threads"),
        OptionKind {
            name: "prealloc",
            values: Values::Share(0.0, 1.0),
            default: "80%",
            about: "the share of the files that the setup creates",
        },
        size("size", LARGEST_BLOCK, "16K", "the mean size of a file at first"),
        OptionKind {
            name: "shape",
            values: Values::Real(0.1, 1000.0),
            default: "",
            about: "the shape of a gamma distribution of sizes, such as 1.5; not set: all have the mean size",
        },
        size("append", LARGEST_BLOCK, "16K", "appends are shorter than this; their lengths are uniform"),
        size("read", LARGEST_BLOCK, "1M", "the size of a read"),
        SYNC_CALL
    ),
    row!(
        |settings, seed| Ok(tokubench::lanes(settings, seed)),
        no_setup,
        "tokubench",
        "creates many small files in a tree of directories, as BetrFS's tokubench does",
        files("100000", "the number of files; O-JFS's evaluation has 3000000"),
        count(
            "children",
            (2, 65_536),
            "128",
            "the number of subdirectories of a directory, and the most files planned for a leaf"
        ),
        size("iosize", LARGEST_BLOCK, "4K", "the size of a write"),
        count("count", (0, 1 << 20), "1", "the number of writes to a file"),
        threads("1", "the number of threads, each with leaves of its own")
    ),
    row!(
        dbench::lanes,
        dbench::setup,
        "dbench",
        "opens, reads, replaces and renames files of a file server, with the shares of dbench's calls",
        files("400", "the number of files"),
        threads("4", "the number of clients, each with its share of the files and a directory"),
        count("loops", (1, u64::MAX), "10000", "the number of opens, over all clients"),
        size("largest", LARGEST_BLOCK, "256K", "the largest size of a file; sizes are uniform"),
        size("block", LARGEST_BLOCK, "64K", "the size of a read and a write"),
        OptionKind {
            name: "flush",
            values: Values::Share(0.0, 1.0),
            default: "34.7%",
            about: "the share of the written files that are synced",
        },
        SYNC_CALL
    ),
];
