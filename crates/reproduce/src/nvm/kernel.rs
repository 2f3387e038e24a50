//! ext4 of the running kernel on loop devices, with its journal inside or on a device of its own.

use crate::ReproduceError;
use std::ffi::OsStr;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// A mounted volume. It is unmounted and removed when it is dropped.
pub struct KernelVolume {
    directory: PathBuf,
    loops: Vec<String>,
    files: Vec<PathBuf>,
    is_mounted: bool,
}

impl KernelVolume {
    /// What this machine lacks for it, if something.
    pub fn missing() -> Option<String> {
        let programs = ["losetup", "mke2fs", "mount", "umount"];
        if let Some(program) = programs.into_iter().find(|program| command(program).arg("--version").output().is_err())
        {
            return Some(format!("there is no {program}"));
        }
        // The first free loop device, which only root may ask for.
        let free = command("losetup").arg("-f").output().ok().is_some_and(|output| output.status.success());
        let is_root = std::fs::metadata("/proc/self").is_ok_and(|own| std::os::unix::fs::MetadataExt::uid(&own) == 0);
        (!(free && is_root)).then(|| "it needs root and loop devices".to_string())
    }

    /// Makes a volume in a directory, with its journal in it or in another file, and mounts it with data=journal.
    pub fn mount(
        place: &Path,
        bytes: u64,
        journal: Option<&Path>,
        journal_bytes: u64,
    ) -> Result<KernelVolume, ReproduceError> {
        let directory = place.join("mounted");
        std::fs::create_dir_all(&directory)
            .map_err(|error| ReproduceError::failed(format!("cannot make {}: {error}", directory.display())))?;
        let mut volume = KernelVolume { directory, loops: Vec::new(), files: Vec::new(), is_mounted: false };
        let device = volume.attach(&place.join("kernel"), bytes)?;
        let size = format!("size={}", journal_bytes >> 20);
        let journal = match journal {
            Some(file) => {
                let device = volume.attach(file, journal_bytes)?;
                done(command("mke2fs").args(["-q", "-F", "-O", "journal_dev", "-b", "4096", &device]))?;
                format!("device={device}")
            }
            None => size,
        };
        let lazy = "lazy_itable_init=0,lazy_journal_init=0";
        done(command("mke2fs").args(["-q", "-F", "-t", "ext4", "-b", "4096", "-E", lazy, "-J", &journal, &device]))?;
        done(command("mount").args(["-t", "ext4", "-o", "noatime,data=journal", &device]).arg(&volume.directory))?;
        volume.is_mounted = true;
        Ok(volume)
    }

    pub fn directory(&self) -> &Path {
        &self.directory
    }

    /// A loop device of a new sparse file.
    fn attach(&mut self, file: &Path, bytes: u64) -> Result<String, ReproduceError> {
        let made = File::create(file).and_then(|made| made.set_len(bytes));
        made.map_err(|error| ReproduceError::failed(format!("cannot make {}: {error}", file.display())))?;
        self.files.push(file.to_path_buf());
        let device = done(command("losetup").args(["-f", "--show"]).arg(file))?;
        let device = device.trim().to_string();
        self.loops.push(device.clone());
        Ok(device)
    }
}

impl Drop for KernelVolume {
    fn drop(&mut self) {
        // Best effort, and in this order.
        if self.is_mounted {
            let _ = done(command("umount").arg(&self.directory));
        }
        for device in &self.loops {
            let _ = done(command("losetup").args(["-d", device]));
        }
        for file in &self.files {
            let _ = std::fs::remove_file(file);
        }
    }
}

/// A program of the system, which may be where only root looks.
fn command(program: impl AsRef<OsStr>) -> Command {
    let mut command = Command::new(program);
    let path = std::env::var("PATH").unwrap_or_default();
    command.env("PATH", format!("{path}:/usr/sbin:/sbin")).stdin(Stdio::null());
    command
}

/// What the program printed. Fails if it does.
fn done(command: &mut Command) -> Result<String, ReproduceError> {
    let name = command.get_program().to_string_lossy().into_owned();
    let output = command.output().map_err(|error| ReproduceError::failed(format!("cannot run {name}: {error}")))?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr);
        return Err(ReproduceError::failed(format!("{name} failed: {}", said.trim())));
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}
