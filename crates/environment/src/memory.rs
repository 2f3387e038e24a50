//! The default memory of a mount, and of a sweep: half of the machine's, or of the limit of the program's control group,
//! whichever is less.

use std::fs;
use std::path::{Path, PathBuf};

/// The assumed memory if the system does not tell it.
const UNKNOWN: u64 = 1 << 30;

/// The share of this program, in bytes.
pub fn machine_share() -> u64 {
    share(Path::new("/proc"), Path::new("/sys/fs/cgroup"))
}

fn share(proc: &Path, groups: &Path) -> u64 {
    let machine = fs::read_to_string(proc.join("meminfo")).ok().and_then(|text| total_of(&text));
    let own = fs::read_to_string(proc.join("self/cgroup")).unwrap_or_default();
    let limits = limit_files(&own, groups).into_iter().filter_map(|file| limit_of(&fs::read_to_string(file).ok()?));
    limits.chain(machine).min().map_or(UNKNOWN, |least| least / 2)
}

/// The machine's memory, as `/proc/meminfo` tells it.
fn total_of(meminfo: &str) -> Option<u64> {
    let line = meminfo.lines().find_map(|line| line.strip_prefix("MemTotal:"))?;
    let kibibytes: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    kibibytes.checked_mul(1024)
}

/// The files that hold the limits of the groups that `/proc/self/cgroup` names, and of the groups above them. A line is
/// `ID:CONTROLLERS:PATH`, and of version 2 `0::PATH`.
fn limit_files(own: &str, groups: &Path) -> Vec<PathBuf> {
    let mut files = Vec::new();
    for line in own.lines() {
        let mut parts = line.splitn(3, ':');
        let (Some(_), Some(controllers), Some(path)) = (parts.next(), parts.next(), parts.next()) else { continue };
        let (roots, name) = match controllers {
            // Beside groups of version 1 it lies one level lower.
            "" => (vec![groups.to_path_buf(), groups.join("unified")], "memory.max"),
            _ if controllers.split(',').any(|controller| controller == "memory") => {
                (vec![groups.join("memory")], "memory.limit_in_bytes")
            }
            _ => continue,
        };
        let path = Path::new(path.trim_start_matches('/'));
        for root in roots {
            // In a container the path may be one of outside: what is mounted is the group itself then.
            files.extend(path.ancestors().map(|group| root.join(group).join(name)));
        }
    }
    files
}

/// A limit in bytes: "max" is none, and so is the greatest number that version 1 can say.
fn limit_of(text: &str) -> Option<u64> {
    text.trim().parse().ok().filter(|bytes| *bytes < 1 << 60)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A machine with 8 GiB, in which the program runs in a group.
    fn machine(own: &str, limits: &[(&str, &str)]) -> (tempfile::TempDir, u64) {
        let place = tempfile::TempDir::new().unwrap();
        let write = |name: &str, text: &str| {
            let file = place.path().join(name);
            fs::create_dir_all(file.parent().unwrap()).unwrap();
            fs::write(file, text).unwrap();
        };
        write("proc/meminfo", "MemTotal:        8388608 kB\nMemFree:          123456 kB\n");
        write("proc/self/cgroup", own);
        limits.iter().for_each(|(name, text)| write(&format!("cgroup/{name}"), text));
        let share = share(&place.path().join("proc"), &place.path().join("cgroup"));
        (place, share)
    }

    #[test]
    fn a_program_takes_half_of_the_machine_or_of_the_least_group_around_it() {
        let (_, none) = machine("0::/\n", &[]);
        assert_eq!(none, 4 << 30);
        let (_, unlimited) = machine("0::/a/b\n", &[("a/b/memory.max", "max\n"), ("a/memory.max", "max\n")]);
        assert_eq!(unlimited, 4 << 30);
        let (_, second) = machine("0::/a/b\n", &[("a/b/memory.max", "max\n"), ("a/memory.max", "268435456\n")]);
        assert_eq!(second, 128 << 20, "the group above counts, too");
        let limit = [("memory/a/memory.limit_in_bytes", "536870912\n")];
        let (_, first) = machine("5:cpu,cpuacct:/a\n4:memory:/a\n0::/\n", &limit);
        assert_eq!(first, 256 << 20);
        let unlimited = [("memory/a/memory.limit_in_bytes", "9223372036854771712\n")];
        let (_, first) = machine("4:memory:/a\n", &unlimited);
        assert_eq!(first, 4 << 30);
        let (_, in_container) = machine("0::/kubepods/pod\n", &[("memory.max", "134217728\n")]);
        assert_eq!(in_container, 64 << 20);
    }

    #[test]
    fn an_unknown_memory_size_counts_as_a_gibibyte() {
        let place = tempfile::TempDir::new().unwrap();
        assert_eq!(share(place.path(), place.path()), UNKNOWN);
        assert_eq!(total_of("MemTotal: many kB"), None);
        assert_eq!(limit_of("none"), None);
    }
}
