//! A tree of source files as [`super::untar`] unpacks it and [`super::compile`] builds it: directories, files and sizes
//! that are computed from the seed, and only the directories' file counts are kept.
//!
//! The defaults are those of Linux 2.6.11: 17,000 files, about 1,000 directories, about 200 MB. Measured on two public
//! copies of it that hold a part (one of 9,246 files, i386 and the drivers; one of 2,245, i386 without drivers): 17.6 and 7.3
//! files a directory; 5.9 and 5.3 subdirectories in a directory that has any; the logarithm of the sizes has a
//! deviation of 1.52 and 1.57, their median is 6.7 and 4.5 KB, and the mean 16.4 and 10.8 KB; 50% and 44% are C sources,
//! 34% and 38% headers. A median of 4 KiB is what gives the whole tree about its 200 MB.

use super::contents::mix;
use super::draws::log_normal;
use super::{Name, ROOT};
use crate::expression::Settings;
use crate::random::Random;
use std::fmt::Write;
use std::ops::Range;

/// What a file of the tree is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sort {
    /// A source file, which can be compiled.
    Source,
    /// A header.
    Header,
    /// Anything else.
    Other,
}

/// The tree. Its names are the directories, from the root on, level by level (the subdirectories of k begin with
/// `fan_out` k + 1), and behind them the files.
#[derive(Clone, Debug)]
pub struct SourceTree {
    root: &'static str,
    fan_out: u64,
    /// The number of the first file of each directory, and behind them the number of files.
    first_files: Vec<u64>,
    seed: u64,
    median: f64,
    sigma: f64,
    largest: u64,
    sources: f64,
    headers: f64,
}

impl SourceTree {
    /// The tree under `root` that these settings describe. `sources` and `headers` are the shares of the files that are.
    pub fn new(root: &'static str, settings: &Settings, (sources, headers): (f64, f64), seed: u64) -> SourceTree {
        let mut random = Random::new(seed, "source tree");
        let files = settings.count("files");
        let mean = settings.real("files-per-directory");
        let mut first_files = vec![0];
        let mut placed = 0;
        while placed < files {
            // An exponential draw, rounded down, is a geometric one. It needs a mean half more to have this mean.
            let drawn = (-(mean + 0.5) * libm::log(1.0 - random.unit())) as u64;
            placed += drawn.min(files - placed);
            first_files.push(placed);
        }
        SourceTree {
            root,
            fan_out: settings.count("fan-out"),
            first_files,
            seed: random.bits(),
            median: settings.size("median") as f64,
            sigma: settings.real("sigma"),
            largest: settings.size("largest"),
            sources,
            headers,
        }
    }

    /// How many directories there are, with the root.
    pub fn directories(&self) -> u64 {
        self.first_files.len() as u64 - 1
    }

    /// How many files there are.
    pub fn files(&self) -> u64 {
        self.first_files[self.first_files.len() - 1]
    }

    /// How many names there are: directories and files.
    pub fn names(&self) -> Name {
        self.directories() + self.files()
    }

    /// The subdirectories of a directory.
    pub fn subdirectories(&self, directory: u64) -> Range<u64> {
        let first = directory * self.fan_out + 1;
        first.min(self.directories())..(first + self.fan_out).min(self.directories())
    }

    /// The names of the files that lie in a directory.
    pub fn files_in(&self, directory: u64) -> Range<Name> {
        let number = directory as usize;
        self.directories() + self.first_files[number]..self.directories() + self.first_files[number + 1]
    }

    /// The directory in which a file lies.
    pub fn directory_of(&self, file: Name) -> u64 {
        let number = file - self.directories();
        self.first_files.partition_point(|first| *first <= number) as u64 - 1
    }

    /// The size of a file, in bytes.
    pub fn size(&self, file: Name) -> u64 {
        let mut random = Random::new(mix(self.seed ^ file), "size");
        (log_normal(&mut random, self.median, self.sigma) as u64).clamp(1, self.largest)
    }

    /// What a file is.
    pub fn sort(&self, file: Name) -> Sort {
        let unit = self.unit(file, 1);
        if unit < self.sources {
            Sort::Source
        } else if unit < self.sources + self.headers {
            Sort::Header
        } else {
            Sort::Other
        }
    }

    /// A number in [0, 1) that belongs to a file; another for each purpose.
    pub fn unit(&self, file: Name, purpose: u64) -> f64 {
        (mix(self.seed.wrapping_add(purpose) ^ mix(file)) >> 11) as f64 * (1.0 / (1u64 << 53) as f64)
    }

    /// Writes the path of a directory or file behind what `path` holds.
    pub fn write_path(&self, name: Name, path: &mut String) {
        // Writing to a String cannot fail.
        let _ = if name == ROOT {
            path.push_str(self.root);
            Ok(())
        } else if name < self.directories() {
            self.write_path((name - 1) / self.fan_out, path);
            write!(path, "/directory{}", (name - 1) % self.fan_out)
        } else {
            let directory = self.directory_of(name);
            self.write_path(directory, path);
            let extension = match self.sort(name) {
                Sort::Source => ".c",
                Sort::Header => ".h",
                Sort::Other => "",
            };
            write!(path, "/file{}{extension}", name - self.files_in(directory).start)
        };
    }
}

/// The directories of a tree in the order of an archive: each before what lies in it.
#[derive(Clone, Debug)]
pub struct ArchiveOrder {
    /// The directories that come next, the next one last.
    stack: Vec<u64>,
}

impl ArchiveOrder {
    /// From the root on.
    pub fn new() -> ArchiveOrder {
        ArchiveOrder { stack: vec![ROOT] }
    }

    /// The next directory.
    pub fn next(&mut self, tree: &SourceTree) -> Option<u64> {
        let directory = self.stack.pop()?;
        self.stack.extend(tree.subdirectories(directory).rev());
        Some(directory)
    }
}
