//! A memory limit for a process and its page cache: a control group of version 2 or 1.

use crate::{KernelError, failed};
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// A control group. Dropping the guard removes it; it must have no processes then.
#[derive(Debug)]
pub struct MemoryLimit {
    group: PathBuf,
    /// The group of this process before.
    home: PathBuf,
}

/// A hierarchy with the memory controller.
struct Hierarchy {
    mount: PathBuf,
    /// The group of this process, relative to the mount.
    own: PathBuf,
    limit_file: &'static str,
}

impl MemoryLimit {
    /// A group of `bytes` for its processes and the page cache of their files.
    ///
    /// Fails if no writable hierarchy has the memory controller.
    pub fn new(bytes: u64) -> Result<MemoryLimit, KernelError> {
        let hierarchy = hierarchy().ok_or_else(|| {
            KernelError::missing(
                "the memory controller is missing: no mounted control group hierarchy of this machine has it",
                "mount one (mount -t cgroup2 none /sys/fs/cgroup, and +memory in its cgroup.subtree_control)",
            )
        })?;
        static MADE: std::sync::atomic::AtomicU32 = std::sync::atomic::AtomicU32::new(0);
        let number = MADE.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        let group = hierarchy.mount.join(format!("flashpath-{}-{number}", std::process::id()));
        fs::create_dir(&group).map_err(failed(format!("make the control group {}", group.display())))?;
        let limit = MemoryLimit { group, home: hierarchy.mount.join(hierarchy.own) };
        let file = limit.group.join(hierarchy.limit_file);
        fs::write(&file, bytes.to_string()).map_err(failed(format!("write {bytes} to {}", file.display())))?;
        // The file is missing on a kernel without swap; no limit is needed then.
        let _ = fs::write(limit.group.join("memory.swap.max"), "0");
        Ok(limit)
    }

    /// Calls `start` while this process is in the group, so that child processes are in it from their first
    /// instruction.
    pub fn within<T>(&self, start: impl FnOnce() -> T) -> Result<T, KernelError> {
        enter(&self.group)?;
        let started = start();
        enter(&self.home)?;
        Ok(started)
    }
}

fn enter(group: &Path) -> Result<(), KernelError> {
    let file = group.join("cgroup.procs");
    fs::write(&file, std::process::id().to_string()).map_err(failed(format!("enter {}", group.display())))
}

impl Drop for MemoryLimit {
    fn drop(&mut self) {
        // A killed process leaves its group a moment later.
        for _ in 0..100 {
            if fs::remove_dir(&self.group).is_ok() {
                break;
            }
            std::thread::sleep(Duration::from_millis(20));
        }
    }
}

/// The hierarchy of version 2 if its root enables the memory controller, or that of version 1.
fn hierarchy() -> Option<Hierarchy> {
    let mounts = fs::read_to_string("/proc/self/mountinfo").ok()?;
    let groups = fs::read_to_string("/proc/self/cgroup").ok()?;
    let has_word = |text: &str, separator: char| text.trim().split(separator).any(|word| word == "memory");
    for line in mounts.lines() {
        let Some((fields, kind)) = line.split_once(" - ") else { continue };
        let Some(place) = fields.split(' ').nth(4) else { continue };
        let mount = PathBuf::from(place.replace("\\040", " "));
        let options = kind.split(' ').nth(2).unwrap_or_default();
        let (is_there, limit_file) = if kind.starts_with("cgroup2 ") {
            (
                fs::read_to_string(mount.join("cgroup.subtree_control")).is_ok_and(|text| has_word(&text, ' ')),
                "memory.max",
            )
        } else {
            (kind.starts_with("cgroup ") && has_word(options, ','), "memory.limit_in_bytes")
        };
        // `5:memory:/place`, or `0::/place` for version 2.
        let own = groups.lines().find_map(|line| {
            let mut parts = line.splitn(3, ':').skip(1);
            let (controllers, place) = (parts.next()?, parts.next()?);
            let fits = if limit_file == "memory.max" { controllers.is_empty() } else { has_word(controllers, ',') };
            fits.then(|| PathBuf::from(place.trim_start_matches('/')))
        });
        if let (true, Some(own)) = (is_there, own) {
            return Some(Hierarchy { mount, own, limit_file });
        }
    }
    None
}
