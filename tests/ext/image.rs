//! An image of ext4, and the programs and the kernel that know it.

use crate::skipped::skipped;
use flashpath::fs::station::{Access, Mounting};
use flashpath::fs::volume::{Call, Volume};
use flashpath::run::{OpenError, Path as StationPath, open_file_system};
use flashpath::task::Task;
use flashpath::time::Time;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::Arc;
use tempfile::TempDir;

/// An image in a directory of its own.
pub struct Image {
    pub directory: TempDir,
}

/// A program of e2fsprogs or the system.
pub fn program(name: &str) -> Command {
    let mut command = Command::new(name);
    let path = format!("{}:/sbin:/usr/sbin", std::env::var("PATH").unwrap_or_default());
    command.env("PATH", path).env("LC_ALL", "C");
    command
}

/// Runs a program, which must succeed.
pub fn run(name: &str, arguments: &[&str]) -> Output {
    let output = program(name).args(arguments).output().unwrap_or_else(|error| panic!("{name}: {error}"));
    let said = String::from_utf8_lossy(&output.stderr).into_owned() + &String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{name} {arguments:?}: {said}");
    output
}

/// True if e2fsprogs is here; reports the test as skipped otherwise.
pub fn has_e2fsprogs() -> bool {
    let is_there = program("e2fsck").arg("-V").output().is_ok();
    if !is_there {
        skipped("e2fsck is not installed");
    }
    is_there
}

/// True if this process may mount images; reports the test as skipped otherwise.
pub fn can_mount() -> bool {
    if !has_e2fsprogs() {
        return false;
    }
    let image = Image::of_bytes(4 << 20);
    image.mke2fs(&["-t", "ext4"]);
    if let Err(why) = image.try_mount("") {
        skipped(&format!("images of ext4 cannot be mounted here: {why}"));
        return false;
    }
    true
}

/// The loop device that has this file.
pub fn loop_device_of(path: &Path) -> Option<String> {
    let listed = run("losetup", &["--noheadings", "--output", "NAME", "--associated", &path.display().to_string()]);
    String::from_utf8(listed.stdout).unwrap().lines().next().map(|name| name.trim().to_string())
}

/// An image that the kernel has mounted, until it is dropped.
pub struct Mounted {
    pub directory: PathBuf,
}

impl Drop for Mounted {
    fn drop(&mut self) {
        // Whoever looks at all mounts of the machine keeps this one busy for a moment.
        let unmount = |_| {
            let is_done = program("umount").arg(&self.directory).output().is_ok_and(|output| output.status.success());
            if !is_done {
                std::thread::sleep(std::time::Duration::from_millis(100));
            }
            is_done
        };
        let is_unmounted = (0..100).any(unmount);
        // A loop device goes when the last process that looks at it does.
        let image = self.directory.with_file_name("image");
        let is_free = |_| {
            let is_free = loop_device_of(&image).is_none();
            if !is_free {
                std::thread::sleep(std::time::Duration::from_millis(100));
            }
            is_free
        };
        let is_unmounted = is_unmounted && (0..100).any(is_free);
        if !std::thread::panicking() {
            assert!(is_unmounted, "it can be unmounted");
        }
    }
}

impl Image {
    /// One of zeros.
    pub fn of_bytes(bytes: u64) -> Image {
        let image = Image { directory: TempDir::new().unwrap() };
        File::create(image.path()).unwrap().set_len(bytes).unwrap();
        image
    }

    pub fn path(&self) -> PathBuf {
        self.directory.path().join("image")
    }

    pub fn text(&self) -> String {
        self.path().display().to_string()
    }

    pub fn mke2fs(&self, arguments: &[&str]) {
        run("mke2fs", &[arguments, &["-q", "-F", &self.text()]].concat());
    }

    pub fn debugfs(&self, request: &str) -> String {
        String::from_utf8(run("debugfs", &["-w", "-R", request, &self.text()]).stdout).unwrap()
    }

    /// What `e2fsck -fn` finds; `None` if nothing.
    pub fn findings(&self) -> Option<String> {
        let output = program("e2fsck").args(["-fn", &self.text()]).output().unwrap();
        let said = String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
        (!output.status.success()).then_some(said)
    }

    pub fn check(&self) {
        if let Some(findings) = self.findings() {
            panic!("e2fsck -fn: {findings}");
        }
    }

    /// Has the kernel mount it. Other processes of the machine take loop devices at the same time: if one that was free is
    /// taken, the next is tried.
    fn try_mount(&self, options: &str) -> Result<Mounted, String> {
        let directory = self.directory.path().join("mnt");
        std::fs::create_dir_all(&directory).unwrap();
        let options = format!("loop,noatime{options}");
        let mut tries = 0;
        loop {
            let mut mount = program("mount");
            mount.args(["-t", "ext4", "-o", &options]).arg(self.path()).arg(&directory);
            let output = mount.output().unwrap();
            if output.status.success() {
                return Ok(Mounted { directory });
            }
            let why = String::from_utf8_lossy(&output.stderr).into_owned();
            if tries == 50 || !why.contains("loop device") {
                return Err(format!("mount {}: {why}", self.text()));
            }
            tries += 1;
            std::thread::sleep(std::time::Duration::from_millis(100));
        }
    }

    /// The same, which must succeed.
    pub fn mount(&self, options: &str) -> Mounted {
        self.try_mount(options).unwrap_or_else(|why| panic!("{why}"))
    }

    /// Opens it with this program.
    pub fn open(&self, options: &str, access: Access) -> Result<Arc<dyn Volume>, OpenError> {
        let path = StationPath::read(&format!("ext{options}/conv:image={}", self.text())).unwrap();
        let now = std::time::SystemTime::UNIX_EPOCH.elapsed().unwrap().as_nanos() as i64;
        open_file_system(&path, &Mounting::at(7, now), access)
    }

    /// The same, which must succeed.
    pub fn volume(&self, options: &str, access: Access) -> Arc<dyn Volume> {
        self.open(options, access).unwrap_or_else(|error| panic!("{error}"))
    }
}

/// Makes a call as root.
pub fn call<T>(act: impl FnOnce(&Call) -> T) -> T {
    let task = Task::at(Time::ZERO);
    act(&Call::by_root(&task))
}
