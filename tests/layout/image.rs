//! A file system in a file, and its tools.

use flashpath::layout::{Layout, LayoutError, Region};
use std::collections::BTreeSet;
use std::fs::File;
use std::io;
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::path::PathBuf;
use std::process::Command;
use tempfile::TempDir;

pub struct Image {
    pub directory: TempDir,
    pub size_bytes: u64,
}

/// True if all of these programs are installed; prints a missing one.
pub fn has_programs(names: &[&str]) -> bool {
    let path = format!("{}:/sbin:/usr/sbin", std::env::var("PATH").unwrap_or_default());
    let missing: Vec<&&str> =
        names.iter().filter(|name| !std::env::split_paths(&path).any(|place| place.join(name).exists())).collect();
    if !missing.is_empty() {
        crate::skipped::skipped(&format!("{missing:?} not installed"));
    }
    missing.is_empty()
}

impl Image {
    /// A sparse file of `size_bytes` on which `program` was run.
    pub fn make(size_bytes: u64, program: &str, arguments: &[&str]) -> Image {
        let image = Image { directory: TempDir::new().unwrap(), size_bytes };
        File::create(image.path()).unwrap().set_len(size_bytes).unwrap();
        image.run(program, arguments);
        image
    }

    pub fn path(&self) -> PathBuf {
        self.directory.path().join("image")
    }

    /// Runs a program with the image as its last argument, and returns its output.
    pub fn run(&self, program: &str, arguments: &[&str]) -> String {
        let path = format!("{}:/sbin:/usr/sbin", std::env::var("PATH").unwrap_or_default());
        let output = Command::new(program)
            .args(arguments)
            .arg(self.path())
            .env("PATH", path)
            .env("LC_ALL", "C")
            .current_dir(self.directory.path())
            .output()
            .unwrap();
        let message = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{program} {arguments:?}: {message}");
        String::from_utf8(output.stdout).unwrap()
    }

    pub fn layout(&self) -> Layout {
        self.try_layout().unwrap()
    }

    pub fn try_layout(&self) -> Result<Layout, LayoutError> {
        let file = File::open(self.path()).unwrap();
        let mut read = |offset: u64, buffer: &mut [u8]| -> io::Result<()> { file.read_exact_at(buffer, offset) };
        Layout::read_with_files(&mut read, self.size_bytes)
    }
}

/// The numbers of the blocks of `region` in a layout.
pub fn blocks_of(layout: &Layout, region: Region) -> BTreeSet<u64> {
    layout
        .regions
        .of(region)
        .flat_map(|range| range.start / layout.block_bytes..range.end / layout.block_bytes)
        .collect()
}

/// `12-15` or `12`, both ends included.
pub fn inclusive(text: &str) -> Option<Range<u64>> {
    let mut ends = text.trim().splitn(2, '-').map(|end| end.trim().parse::<u64>().ok());
    let first = ends.next()??;
    let last = ends.next().unwrap_or(Some(first))?;
    Some(first..last + 1)
}
