//! The options of `-o`: those of mount(8) and of fstab, and this program's own.

use crate::failure::Failure;
use crate::image_lock::patience;
use flashpath::fs::posix::AccessTimes;
use flashpath_fuse::{Caching, Forbidden};
use std::path::PathBuf;
use std::time::Duration;

/// The options of a mount.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MountOptions {
    /// Changes the options of an existing mount.
    pub remount: bool,
    /// Refuses all changes.
    pub read_only: bool,
    /// Lets other users use it.
    pub allow_other: bool,
    /// Delays answers until the device's timing model is done.
    pub pace: bool,
    /// The kernel's caching of writes.
    pub caching: Caching,
    /// The reads that set the time of access.
    pub access_times: AccessTimes,
    /// Reads of directories do not set it.
    pub ignores_directory_reads: bool,
    /// The uses of its files that are forbidden.
    pub forbidden: Forbidden,
    /// The seed, if it is not the default.
    pub seed: Option<u64>,
    /// The file for messages of the background process.
    pub log: Option<PathBuf>,
    /// The time to wait for an image in use, if it is not the default.
    pub wait: Option<Duration>,
}

/// Options without effect: defaults, and those for programs that read fstab.
const IGNORED: [&str; 18] = [
    "defaults",
    "auto",
    "noauto",
    "user",
    "nouser",
    "users",
    "owner",
    "group",
    "nofail",
    "_netdev",
    "silent",
    "loud",
    "default_permissions",
    "async",
    "nostrictatime",
    "noiversion",
    "nolazytime",
    "nomand",
];
/// The beginnings of others without effect, among them those of /proc/mounts, which mount(8) repeats to remount.
const IGNORED_BEGINNINGS: [&str; 7] = ["x-", "X-", "user=", "comment=", "user_id=", "group_id=", "max_read="];

impl MountOptions {
    /// Adds options separated by commas; the last of contradicting ones counts. Unknown ones are refused, unless `sloppy`.
    pub fn add(&mut self, words: &str, sloppy: bool) -> Result<(), Failure> {
        for word in words.split(',').filter(|word| !word.is_empty()) {
            if !self.add_one(word)? && !sloppy {
                return Err(Failure::input(
                    format!("-o {word}: there is no such mount option"),
                    Some(advice(word).to_string()),
                ));
            }
        }
        Ok(())
    }

    /// True if the option is known.
    fn add_one(&mut self, word: &str) -> Result<bool, Failure> {
        let (name, value) = word.split_once('=').map_or((word, None), |(name, value)| (name, Some(value)));
        let wrong = |why: &str| Failure::input(format!("-o {word}: {why}"), None);
        match (name, value) {
            ("remount", None) => self.remount = true,
            ("ro", None) => self.read_only = true,
            ("rw", None) => self.read_only = false,
            ("suid", None) => self.forbidden.set_id = false,
            ("nosuid", None) => self.forbidden.set_id = true,
            ("dev", None) => self.forbidden.devices = false,
            ("nodev", None) => self.forbidden.devices = true,
            ("exec", None) => self.forbidden.programs = false,
            ("noexec", None) => self.forbidden.programs = true,
            ("noatime", None) => self.access_times = AccessTimes::Never,
            ("strictatime", None) => self.access_times = AccessTimes::Strict,
            ("relatime" | "atime" | "norelatime", None) => self.access_times = AccessTimes::Relative,
            ("nodiratime", None) => self.ignores_directory_reads = true,
            ("diratime", None) => self.ignores_directory_reads = false,
            ("allow_other", None) => self.allow_other = true,
            ("pace", None) => self.pace = true,
            ("writeback", None) => self.caching = Caching::WriteBack,
            ("seed", Some(value)) => self.seed = Some(value.parse().map_err(|_| wrong("write a whole number"))?),
            ("wait", Some(value)) => self.wait = Some(patience(value).map_err(|why| wrong(&why))?),
            ("log", Some(value)) if !value.is_empty() => self.log = Some(PathBuf::from(value)),
            _ => return Ok(IGNORED.contains(&word) || IGNORED_BEGINNINGS.iter().any(|begins| word.starts_with(begins))),
        }
        Ok(true)
    }
}

fn advice(word: &str) -> &'static str {
    match word {
        "sync" | "dirsync" => "fsync makes a file durable; no option makes every change durable at once",
        _ => {
            "there are ro, rw, remount, [no]suid, [no]dev, [no]exec, noatime, relatime, strictatime, [no]diratime, \
             allow_other, writeback, pace, log=FILE, wait=SECONDS, seed=N, and options for readers of fstab, which have no effect"
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(words: &str) -> Option<MountOptions> {
        let mut options = MountOptions::default();
        options.add(words, false).ok().map(|()| options)
    }

    #[test]
    fn the_options_of_fstab_are_understood_or_refused_by_name() {
        let plain = MountOptions::default();
        assert_eq!(
            read("defaults,noauto,user,nofail,_netdev,x-systemd.automount,user=me,rw,relatime"),
            Some(plain.clone())
        );
        let all = Forbidden { set_id: true, devices: true, programs: true };
        let quiet = read("ro,nosuid,nodev,noexec,noatime").unwrap();
        assert_eq!((quiet.read_only, quiet.forbidden, quiet.access_times), (true, all, AccessTimes::Never));
        assert_eq!(read("ro,noexec,nosuid,nodev,strictatime,rw,exec,suid,dev,atime"), Some(plain), "the last counts");
        assert_eq!(read("strictatime").unwrap().access_times, AccessTimes::Strict);
        let again = read("remount,ro").unwrap();
        assert_eq!((again.remount, again.read_only), (true, true));
        assert!(read("nodiratime").unwrap().ignores_directory_reads);
        assert_eq!(read("nodiratime,diratime"), Some(MountOptions::default()));
        let own = read("pace,writeback,seed=7,wait=1.5,log=/a/b,allow_other").unwrap();
        assert_eq!((own.pace, own.caching, own.seed, own.allow_other), (true, Caching::WriteBack, Some(7), true));
        assert_eq!((own.wait, own.log), (Some(Duration::from_millis(1500)), Some("/a/b".into())));
        for wrong in ["sync", "nosuch", "seed=x", "wait=-1", "log=", "ro=1", "uid=5", "noatime=1"] {
            assert_eq!(read(wrong), None, "{wrong}");
        }
        assert!(MountOptions::default().add("nosuch,ro", true).is_ok());
    }
}
