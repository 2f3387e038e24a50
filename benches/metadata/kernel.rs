//! The kernel's ext4.

use crate::flow::{DIRECTORIES, Files, Name};
use std::fs::{self, File, OpenOptions};
use std::io::{Read, Write};
use std::path::PathBuf;
use std::process::Command;
use tempfile::TempDir;

/// An image in RAM that the kernel has mounted.
pub struct Theirs {
    directory: TempDir,
}

fn run(program: &str, arguments: &[&str]) -> Result<(), String> {
    let path = format!("{}:/sbin:/usr/sbin", std::env::var("PATH").unwrap_or_default());
    let output = Command::new(program).args(arguments).env("PATH", path).output();
    let output = output.map_err(|error| format!("{program}: {error}"))?;
    match output.status.success() {
        true => Ok(()),
        false => Err(format!("{program}: {}", String::from_utf8_lossy(&output.stderr).trim())),
    }
}

impl Theirs {
    /// One of 4 GiB, sparse.
    pub fn new() -> Result<Theirs, String> {
        let directory = TempDir::new_in("/dev/shm").map_err(|error| error.to_string())?;
        let (image, mount) = (directory.path().join("image"), directory.path().join("mnt"));
        let make = || -> std::io::Result<()> {
            File::create(&image)?.set_len(4 << 30)?;
            fs::create_dir(&mount)
        };
        make().map_err(|error| error.to_string())?;
        let image = image.display().to_string();
        run("mke2fs", &["-q", "-F", "-t", "ext4", "-E", "lazy_itable_init=0,lazy_journal_init=0", &image])?;
        run("mount", &["-o", "loop", &image, &mount.display().to_string()])?;
        let theirs = Theirs { directory };
        (0..DIRECTORIES)
            .for_each(|number| fs::create_dir(theirs.place().join(number.to_string())).expect("it is made"));
        Ok(theirs)
    }

    fn place(&self) -> PathBuf {
        self.directory.path().join("mnt")
    }

    fn path(&self, name: Name) -> PathBuf {
        self.place().join(name.directory.to_string()).join(name.text())
    }
}

impl Drop for Theirs {
    fn drop(&mut self) {
        if let Err(why) = run("umount", &[&self.place().display().to_string()]) {
            eprintln!("{why}");
        }
    }
}

impl Files for Theirs {
    fn remove(&self, name: Name) {
        fs::remove_file(self.path(name)).expect("it is there");
    }

    fn make(&self, name: Name, bytes: &[u8]) {
        let mut file = OpenOptions::new().write(true).create_new(true).open(self.path(name)).expect("it is made");
        file.write_all(bytes).expect("there is room");
    }

    fn read(&self, name: Name, appended: &[u8], buffer: &mut [u8]) {
        let mut file = OpenOptions::new().read(true).append(true).open(self.path(name)).expect("it is there");
        while file.read(buffer).expect("it is read") > 0 {}
        if !appended.is_empty() {
            file.write_all(appended).expect("there is room");
        }
    }

    /// The kernel does its own.
    fn work(&self) {}
}
