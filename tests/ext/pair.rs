//! A volume and its journal's own device, as images.

use crate::image::{Image, Mounted, program, run};
use crate::replay::copied;
use flashpath::fs::station::{Access, Mounting};
use flashpath::fs::volume::Volume;
use flashpath::run::{OpenError, Path, make_volume, open_file_system};
use std::path::Path as FilePath;
use std::sync::Arc;

/// A loop device, until it is dropped.
pub struct LoopDevice {
    pub name: String,
}

impl LoopDevice {
    /// Other processes of the machine take loop devices at the same time: if one that was free is taken, the next is tried.
    pub fn on(image: &FilePath) -> LoopDevice {
        let mut tries = 0;
        loop {
            let output = program("losetup").args(["-f", "--show"]).arg(image).output().unwrap();
            if output.status.success() {
                return LoopDevice { name: String::from_utf8(output.stdout).unwrap().trim().to_string() };
            }
            assert!(tries < 50, "losetup: {}", String::from_utf8_lossy(&output.stderr));
            tries += 1;
            std::thread::sleep(std::time::Duration::from_millis(100));
        }
    }
}

impl Drop for LoopDevice {
    fn drop(&mut self) {
        let _ = program("losetup").args(["-d", &self.name]).output();
        // Others may look at the device at this moment: the kernel detaches it when they have closed it.
        let attached = self.name.replace("/dev/", "/sys/block/") + "/loop/backing_file";
        for _ in 0..500 {
            if !FilePath::new(&attached).exists() {
                break;
            }
            std::thread::sleep(std::time::Duration::from_millis(10));
        }
    }
}

/// A volume that the kernel has mounted with its journal; the journal's loop device goes last.
pub struct MountedPair {
    pub volume: Mounted,
    _journal: LoopDevice,
}

pub struct Pair {
    pub volume: Image,
    pub journal: Image,
}

impl Pair {
    /// One of zeros.
    pub fn of_bytes(volume: u64, journal: u64) -> Pair {
        Pair { volume: Image::of_bytes(volume), journal: Image::of_bytes(journal) }
    }

    /// One that mke2fs has made, of blocks of so many bytes.
    pub fn of_mke2fs(volume: u64, journal: u64, block: &str, arguments: &[&str]) -> Pair {
        let pair = Pair::of_bytes(volume, journal);
        pair.journal.mke2fs(&["-O", "journal_dev", "-b", block]);
        let device = LoopDevice::on(&pair.journal.path());
        let option = format!("device={}", device.name);
        pair.volume.mke2fs(&[arguments, &["-b", block, "-J", &option]].concat());
        pair
    }

    /// One that this program has made.
    pub fn of_ours(volume: &str, journal: &str, options: &str) -> Pair {
        let pair = Pair::of_bytes(0, 0);
        let (to, of) = (pair.volume.text(), pair.journal.text());
        let text = format!("ext{options}/conv:image={to},size={volume}+conv:image={of},size={journal}");
        make_volume(&Path::read(&text).unwrap(), true, 9, 1_700_000_000_000_000_000, None).unwrap();
        pair
    }

    pub fn path(&self, options: &str) -> Path {
        let (volume, journal) = (self.volume.text(), self.journal.text());
        Path::read(&format!("ext{options}/conv:image={volume}+conv:image={journal}")).unwrap()
    }

    pub fn open(&self, options: &str, access: Access) -> Result<Arc<dyn Volume>, OpenError> {
        let now = std::time::SystemTime::UNIX_EPOCH.elapsed().unwrap().as_nanos() as i64;
        open_file_system(&self.path(options), &Mounting::at(7, now), access)
    }

    /// The same, which must succeed.
    pub fn opened(&self, options: &str, access: Access) -> Arc<dyn Volume> {
        self.open(options, access).unwrap_or_else(|error| panic!("{error}"))
    }

    /// The kernel mounts it with its journal.
    pub fn mount(&self, options: &str) -> MountedPair {
        let journal = LoopDevice::on(&self.journal.path());
        let volume = self.volume.mount(&format!("{options},journal_path={}", journal.name));
        MountedPair { volume, _journal: journal }
    }

    /// A copy, mounted or not: what a crash would leave. The journal is first: what it has let go is home by then.
    pub fn copied(&self) -> Pair {
        let journal = copied(&self.journal);
        Pair { journal, volume: copied(&self.volume) }
    }

    /// `e2fsck -fn` finds nothing.
    pub fn check(&self) {
        run("e2fsck", &["-fn", "-j", &self.journal.text(), &self.volume.text()]);
    }

    /// e2fsck replays the journal.
    pub fn preen(&self) {
        let arguments = ["-fp", "-j", &self.journal.text(), &self.volume.text()];
        let output = program("e2fsck").args(arguments).output().unwrap();
        assert!(output.status.code().is_some_and(|code| code <= 1), "{output:?}");
    }
}
