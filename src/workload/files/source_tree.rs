//! A tree of source files, unpacked by [`super::untar`] and built by [`super::compile`]. Names and sizes are computed
//! from the seed; only the file counts of the directories are kept in memory.
//!
//! The defaults are those of Linux 2.6.11: 17,000 files, about 1,000 directories, about 200 MB. Measured on two public
//! partial copies (9,246 files: i386 with drivers; 2,245 files: i386 without drivers): 17.6 and 7.3 files in a
//! directory; 5.9 and 5.3 subdirectories in a directory that has any; a deviation of the logarithm of the sizes of 1.52
//! and 1.57, a median of 6.7 and 4.5 KB, a mean of 16.4 and 10.8 KB; 50% and 44% C sources, 34% and 38% headers. A
//! median of 4 KiB gives the whole tree its 200 MB.

use super::contents::mix;
use super::draws::log_normal;
use super::{Name, ROOT};
use crate::expression::Settings;
use crate::random::Random;
use std::fmt::Write;
use std::ops::Range;

/// The type of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FileType {
    /// A source file, which can be compiled.
    Source,
    /// A header.
    Header,
    /// Any other file.
    Other,
}

/// The tree. Names are the directories, level by level from the root (the subdirectories of k begin at `fan_out` k +
/// 1), then the files.
#[derive(Clone, Debug)]
pub struct SourceTree {
    root: &'static str,
    fan_out: u64,
    /// The number of the first file of each directory; the last entry is the number of files.
    first_files: Vec<u64>,
    seed: u64,
    median: f64,
    sigma: f64,
    largest: u64,
    sources: f64,
    headers: f64,
}

impl SourceTree {
    /// The tree of these settings under `root`. `sources` and `headers` are shares of the files.
    pub fn new(root: &'static str, settings: &Settings, (sources, headers): (f64, f64), seed: u64) -> SourceTree {
        let mut random = Random::new(seed, "source tree");
        let files = settings.count("files");
        let mean = settings.real("files-per-directory");
        let mut first_files = vec![0];
        let mut placed = 0;
        while placed < files {
            // An exponential draw, rounded down, is geometric. Rounding takes a half off the mean.
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

    /// The number of directories, with the root.
    pub fn directories(&self) -> u64 {
        self.first_files.len() as u64 - 1
    }

    /// The number of files.
    pub fn files(&self) -> u64 {
        self.first_files[self.first_files.len() - 1]
    }

    /// The number of names: directories and files.
    pub fn names(&self) -> Name {
        self.directories() + self.files()
    }

    /// The subdirectories of a directory.
    pub fn subdirectories(&self, directory: u64) -> Range<u64> {
        let first = directory * self.fan_out + 1;
        first.min(self.directories())..(first + self.fan_out).min(self.directories())
    }

    /// The names of the files in a directory.
    pub fn files_in(&self, directory: u64) -> Range<Name> {
        let number = directory as usize;
        self.directories() + self.first_files[number]..self.directories() + self.first_files[number + 1]
    }

    /// The directory of a file.
    pub fn directory_of(&self, file: Name) -> u64 {
        let number = file - self.directories();
        self.first_files.partition_point(|first| *first <= number) as u64 - 1
    }

    /// The size of a file, in bytes.
    pub fn size(&self, file: Name) -> u64 {
        let mut random = Random::new(mix(self.seed ^ file), "size");
        (log_normal(&mut random, self.median, self.sigma) as u64).clamp(1, self.largest)
    }

    /// The type of a file.
    pub fn file_type(&self, file: Name) -> FileType {
        let unit = self.unit(file, 1);
        if unit < self.sources {
            FileType::Source
        } else if unit < self.sources + self.headers {
            FileType::Header
        } else {
            FileType::Other
        }
    }

    /// A number in [0, 1), fixed for a file and a purpose.
    pub fn unit(&self, file: Name, purpose: u64) -> f64 {
        (mix(self.seed.wrapping_add(purpose) ^ mix(file)) >> 11) as f64 * (1.0 / (1u64 << 53) as f64)
    }

    /// Appends the path of a directory or file to `path`.
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
            let extension = match self.file_type(name) {
                FileType::Source => ".c",
                FileType::Header => ".h",
                FileType::Other => "",
            };
            write!(path, "/file{}{extension}", name - self.files_in(directory).start)
        };
    }
}

/// The directories of a tree in the order of an archive: each before its content.
#[derive(Clone, Debug)]
pub struct ArchiveOrder {
    /// The pending directories, the next one last.
    stack: Vec<u64>,
}

impl ArchiveOrder {
    /// Starts at the root.
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
