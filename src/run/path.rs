//! Parses a path: a tree of stations.
//!
//! `a/b` puts b below a. `a/b+c` puts b and c below a: a `+` adds a device to the nearest station before it that can
//! still take one of that kind. So `dm-zoned/cache/conv+zns` is dm-zoned on a cached conventional device and a zoned one.

use super::drive::{DriveSettings, flash_below};
use super::outcome::PathName;
use super::stations::{FileSystemSettings, Read, STATIONS, Station, named, names_offering};
use crate::device::nand::NandSettings;
use crate::device::station::{DeviceNode, Offer};
use crate::expression::{ExpressionError, Term, one_of, parse_path};
use crate::fs::kernel::KernelSettings;
use crate::fs::station::VolumeSettings;
use std::any::Any;
use std::sync::Arc;

/// A path: a device, and the file system on top, if there is one.
#[derive(Debug, Clone)]
pub struct Path {
    /// The text as written.
    pub text: String,
    /// The text with all option values.
    pub in_full: String,
    /// The file system on top.
    pub file_system: Option<FileSystemSettings>,
    /// The devices below it, or the one below the workload; none if the file system stands on nothing.
    pub devices: Vec<DeviceNode>,
}

impl Path {
    /// Parses a path. Errors point at the wrong station, option or value, and name valid ones.
    ///
    /// ```
    /// use flashpath::run::Path;
    ///
    /// let path = Path::read("dm-zoned:journal-zone/conv:size=1G+zns:size=4G")?;
    /// assert!(path.in_full.contains("journal-zone=on"), "every option is written out");
    ///
    /// let error = Path::read("page:victim=gready/nand").unwrap_err();
    /// assert_eq!(&error.source_text[error.span.clone()], "gready");
    /// assert!(error.help.contains("greedy"));
    /// # Ok::<(), flashpath::expression::ExpressionError>(())
    /// ```
    pub fn read(text: &str) -> Result<Path, ExpressionError> {
        Path::read_with(text, STATIONS)
    }

    /// Parses a path of these stations.
    pub fn read_with(text: &str, stations: &[Station]) -> Result<Path, ExpressionError> {
        Path::read_tree(text, Tree { stations, open: Vec::new(), takes_zones: false })
    }

    /// Parses a path whose device may be one of zones alone, such as `zns`: it carries no workload, but can be served as what
    /// it is.
    pub fn read_drive(text: &str) -> Result<Path, ExpressionError> {
        Path::read_tree(text, Tree { stations: STATIONS, open: Vec::new(), takes_zones: true })
    }

    fn read_tree(text: &str, mut tree: Tree<'_>) -> Result<Path, ExpressionError> {
        for level in parse_path(text)? {
            for (at, term) in level.into_iter().enumerate() {
                if at == 0 { tree.put_below(term)? } else { tree.put_beside(term)? }
            }
        }
        let (file_system, devices) = tree.read()?;
        let on_top = file_system.iter().map(|settings| settings.written_out().to_string());
        let below = devices.iter().map(DeviceNode::written_out).collect::<Vec<_>>().join("+");
        let below = Some(below).filter(|below| !below.is_empty());
        let in_full = on_top.chain(below).collect::<Vec<_>>().join("/");
        Ok(Path { text: text.to_string(), in_full, file_system, devices })
    }

    /// The device of the workload or of a file system that stands on one; the first of several.
    pub fn device(&self) -> Option<&DeviceNode> {
        self.devices.first()
    }

    /// Its name in results.
    pub(super) fn named(&self) -> PathName<'_> {
        PathName { path: &self.text, in_full: &self.in_full }
    }

    /// The kernel's file system on top, if there is one.
    pub fn kernel(&self) -> Option<&KernelSettings> {
        match &self.file_system {
            Some(FileSystemSettings::Kernel(settings)) => Some(settings),
            Some(FileSystemSettings::Own(_)) | None => None,
        }
    }

    /// The options of the file system of this program on top, if there is one.
    pub fn volume_settings(&self) -> Option<&dyn VolumeSettings> {
        match &self.file_system {
            Some(FileSystemSettings::Own(settings)) => Some(&**settings),
            Some(FileSystemSettings::Kernel(_)) | None => None,
        }
    }

    /// The same, if they are of this type.
    pub fn settings<S: VolumeSettings>(&self) -> Option<&S> {
        let settings: &dyn Any = self.volume_settings()?;
        settings.downcast_ref()
    }

    /// True if the device is one of zones, without a layer above it.
    pub fn is_zoned_drive(&self) -> bool {
        self.file_system.is_none() && self.device().is_some_and(|device| device.offers == Offer::Zones)
    }

    /// The drive, if the device is a translation layer on flash.
    pub fn drive(&self) -> Option<&DriveSettings> {
        self.device()?.settings()
    }
}

/// A station whose lower terms are not complete yet.
struct OpenStation<'s> {
    station: &'s Station,
    term: Term,
    below: Vec<Part>,
}

/// A parsed station with all those below it.
enum Part {
    Flash(Box<NandSettings>, Term),
    Device(DeviceNode),
    Files(FileSystemSettings, Vec<DeviceNode>),
}

/// The stations from the top of the tree to the last term.
struct Tree<'s> {
    stations: &'s [Station],
    open: Vec<OpenStation<'s>>,
    /// True if zones may be on top.
    takes_zones: bool,
}

impl<'s> Tree<'s> {
    fn put_below(&mut self, term: Term) -> Result<(), ExpressionError> {
        let station = named(self.stations, &term)?;
        if let Some(above) = self.open.last() {
            self.check_order(above.station, 0, station, &term)?;
        }
        self.open.push(OpenStation { station, term, below: Vec::new() });
        Ok(())
    }

    fn put_beside(&mut self, term: Term) -> Result<(), ExpressionError> {
        let station = named(self.stations, &term)?;
        // The last one is already below the one before it.
        let above = self.open.iter().take(self.open.len() - 1);
        let has_room = |open: &&OpenStation| open.below.len() + 1 < open.station.below.count.1;
        let takes = |open: &&OpenStation| open.station.below.takes_at(open.below.len() + 1, station.offers);
        let Some(at) =
            above.clone().enumerate().filter(|(_, open)| has_room(open) && takes(open)).map(|(at, _)| at).next_back()
        else {
            if let Some(above) = above.clone().rfind(has_room) {
                self.check_order(above.station, above.below.len() + 1, station, &term)?;
            }
            let (above, most) = above
                .clone()
                .next_back()
                .map_or(("the workload", 1), |above| (above.station.kind.name, above.station.below.count.1));
            let most = if most == 1 { "one device".to_string() } else { format!("at most {most} devices") };
            let help = format!("remove it: {above} takes {most}");
            return Err(term.error(term.span.clone(), "nothing here takes another device".to_string(), help));
        };
        self.close_down_to(at)?;
        self.open.push(OpenStation { station, term, below: Vec::new() });
        Ok(())
    }

    /// Checks that `above` can use the interface of `below` for its device at `position`.
    fn check_order(
        &self,
        above: &Station,
        position: usize,
        below: &Station,
        term: &Term,
    ) -> Result<(), ExpressionError> {
        if above.below.takes_at(position, below.offers) {
            return Ok(());
        }
        let (name, below_name) = (above.kind.name, below.kind.name);
        let later = if position > 0 { above.below.later } else { &[] };
        let (message, help) = match above.below.takes {
            [] => (
                format!("nothing can stand below {name}"),
                format!("{name} stores bits: write it last, and {below_name} before it"),
            ),
            _ if above.below.later.contains(&below.offers) => {
                let first = one_of(names_offering(self.stations, above.below.takes));
                (
                    format!("{name} cannot stand on {below_name} alone"),
                    format!("write a device before it, and {below_name} as the second: {name} takes {first} first"),
                )
            }
            takes => (
                match below.offers {
                    Offer::Zones => format!("{name} cannot stand on {below_name}: zones are written in order"),
                    Offer::Memory => format!("{name} cannot stand on {below_name}: memory has no blocks"),
                    Offer::Flash | Offer::Blocks | Offer::Files => format!("{name} cannot stand on {below_name}"),
                },
                format!("{name} takes {}", one_of(names_offering(self.stations, &[takes, later].concat()))),
            ),
        };
        Err(term.error(term.span.clone(), message, help))
    }

    /// Completes the stations after the one at `at`, which becomes the last.
    fn close_down_to(&mut self, at: usize) -> Result<(), ExpressionError> {
        while self.open.len() > at + 1 {
            let last = self.open.pop().expect("there are more");
            let part = self.read_station(last)?;
            self.open.last_mut().expect("there is one at least").below.push(part);
        }
        Ok(())
    }

    /// Reads all of it. What is on top must offer files, or blocks that can be written again.
    fn read(mut self) -> Result<(Option<FileSystemSettings>, Vec<DeviceNode>), ExpressionError> {
        let last = self.open.last().expect("a path has a station");
        self.check_end(last)?;
        let (top, term) = (self.open[0].station, self.open[0].term.clone());
        let is_zoned_drive = self.takes_zones && top.offers == Offer::Zones;
        if !top.carries_workloads() && !is_zoned_drive {
            let name = top.kind.name;
            if top.offers == Offer::Memory {
                let above = self.stations.iter().filter(|station| station.below.later.contains(&top.offers));
                let above: Vec<String> = above.map(|station| format!("{}/DEVICE+{name}", station.kind.name)).collect();
                let help = format!("write it behind a device: {}", one_of(above.iter().map(String::as_str)));
                return Err(term.error(term.name.span.clone(), format!("{name} has no blocks and no files"), help));
            }
            let layers = self.stations.iter().filter(|station| station.below.takes.contains(&top.offers));
            let layers: Vec<String> = layers.map(|station| format!("{}/", station.kind.name)).collect();
            let layers = one_of(layers.iter().map(String::as_str));
            let message = format!("{name} has no addresses that can be written again: a translation layer is missing");
            return Err(term.error(term.name.span.clone(), message, format!("write {layers} before it")));
        }
        self.close_down_to(0)?;
        let top = self.open.pop().expect("a path has a station");
        match self.read_station(top)? {
            Part::Files(settings, devices) => Ok((Some(settings), devices)),
            Part::Device(device) => Ok((None, vec![device])),
            Part::Flash(..) => unreachable!("flash carries no workload"),
        }
    }

    fn check_end(&self, last: &OpenStation) -> Result<(), ExpressionError> {
        let OpenStation { station, term, below } = last;
        if below.len() >= station.below.count.0 {
            return Ok(());
        }
        let message = format!("{} has no device below it", station.kind.name);
        let help = match station.below.example {
            Some(example) => format!("write {example}"),
            None => format!("write /{} after it", one_of(names_offering(self.stations, station.below.takes))),
        };
        Err(term.error(term.span.end..term.span.end, message, help))
    }

    fn read_station(&self, open: OpenStation) -> Result<Part, ExpressionError> {
        self.check_end(&open)?;
        let OpenStation { station, term, below } = open;
        let devices = |below: Vec<Part>| -> Vec<DeviceNode> {
            let device = |part| match part {
                Part::Device(device) => device,
                Part::Flash(..) | Part::Files(..) => unreachable!("no station of this kind takes flash or files"),
            };
            below.into_iter().map(device).collect()
        };
        Ok(match station.read {
            Read::Flash => {
                let layer = self.open.last().expect("flash carries no workload: it is below a layer");
                let flash = flash_below(&layer.term, &term)?;
                // Above the layer on it.
                let flash = match self.open.iter().rev().nth(1) {
                    Some(above) => flash.below(above.station.kind.name, &term)?,
                    None => flash,
                };
                Part::Flash(Box::new(flash), term)
            }
            Read::Layer(read) => {
                let Some(Part::Flash(flash, of_flash)) = below.into_iter().next() else {
                    unreachable!("a layer takes flash only");
                };
                let drive = DriveSettings::read(read, &term, *flash, &of_flash)?;
                Part::Device(DeviceNode::new(term, station.offers, Arc::new(drive), Vec::new()))
            }
            Read::Device(read) => {
                let below = devices(below);
                let settings = read(&term, &below)?;
                Part::Device(DeviceNode::new(term, station.offers, settings, below))
            }
            Read::Volume(read) => Part::Files(FileSystemSettings::Own(read(&term)?), devices(below)),
            Read::Kernel(read) => Part::Files(FileSystemSettings::Kernel(read(&term)?), devices(below)),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wrong_path_is_pointed_at_with_what_could_stand_there() {
        for (text, pointed, help) in [
            ("nand", "nand", "write page/, dftl/, fast/ or superblock/ before it"),
            ("page", "", "write /nand after it"),
            ("page/page/nand", "page", "page takes nand"),
            ("page/nand/page", "page", "write it last"),
            ("page/nand+nand:size=1G", "nand:size=1G", "one device"),
            ("pgae/nand", "pgae", "did you mean page?"),
            ("page/nand:size=8Q", "8Q", "a size from"),
            ("page/nand:page=3K", "3K", "2K, 4K, 8K or 16K"),
            ("page/nand:unit=8K", "8K", "at most unit=4K, or page=8K"),
            ("page/nand:page=16K,unit=3K", "3K", "2K, 4K, 8K or 16K"),
            ("fast/nand:page=16K,unit=4K", "fast", "take page, dftl or superblock"),
            ("superblock/nand:page=16K,unit=4K", "superblock", "add buffer=32M"),
            (
                "superblock:buffer=1M,buffer-policy=volatile/nand:page=16K,unit=4K",
                "superblock:buffer=1M,buffer-policy=volatile",
                "add buffer=32M",
            ),
            ("page:buffer=512K/nand:preset=tlc", "512K", "at least buffer=1M"),
            ("fast:buffer=1T/nand", "1T", "such as buffer=128M"),
            ("page:buffer-policy=volatile/nand", "volatile", "add buffer=32M"),
            ("dftl:buffer=1M,buffer-policy=flushed/nand", "flushed", "protected or volatile"),
            ("page/nand:suspend=reads", "reads", "waiting, erases, programs or both"),
            ("page/nand:suspend-time=1us", "1us", "add suspend=both"),
            ("page/nand:suspend-reads=1", "1", "add suspend=both"),
            ("page/nand:suspend=waiting,suspend-time=1us", "1us", "take suspend=both"),
            ("page/nand:suspend=both,suspend-reads=0", "0", "from 1"),
            ("page/nand:timing=off,suspend=both", "both", "remove timing=off"),
            ("sfs/page/nand:suspend=both", "both", "a block workload on the translation layer alone"),
            ("cache/conv:size=1G+page/nand:suspend=erases", "erases", "remove suspend"),
            ("page:op=7%,export=90%/nand", "7%", "write one of them"),
            ("page:export=90/nand", "90", "write 90%"),
            ("page:export=7G,op=7%/nand:size=8G", "8G", "remove size="),
            ("page:export=7G/nand:size=7G", "7G", "take size="),
            ("page:export=64M,op=1%/nand", "1%", "take op="),
            ("fast:export=64M,op=1%/nand", "1%", "take op="),
            ("superblock:export=64M,op=1%/nand", "1%", "take op="),
            ("dftl:export=900T,op=9900%/nand", "dftl:export=900T,op=9900%", "take at most 512T"),
            ("page:export=100%/nand", "100%", "a share from 1%"),
            ("page/", "", "write a name"),
            ("", "", "write a name"),
            ("page:d=3/nand", "3", "victim=d-choices"),
            ("page/nand:size=1M,pages-per-block=4,channels=64,dies=64", "page", "take size=1312M"),
        ] {
            let error = Path::read(text).expect_err(text);
            assert_eq!(&text[error.span.clone()], pointed, "{text}: {error}");
            assert!(error.help.contains(help), "{text}: {error}");
        }
    }

    #[test]
    fn devices_side_by_side_are_what_dm_zoned_can_stand_on() {
        for (text, pointed, help) in [
            ("zns", "zns", "write sfs/ or dm-zoned/ before it"),
            ("dm-zoned", "", "conv:size=1G+zns:size=4G"),
            (
                "dm-zoned/nand",
                "nand",
                "dm-zoned takes cache, hold-journal, dm-zoned, page, dftl, fast, superblock, conv or zns",
            ),
            ("dm-zoned/conv+nand", "nand", "conv or zns"),
            ("dm-zoned/conv:size=1G", "", "+zns"),
            ("dm-zoned/zns", "zns", "conv:size=1G+ before it, or conventional=16"),
            ("dm-zoned/zns+conv", "conv", "before the zns"),
            ("dm-zoned/conv+conv:size=2G+zns", "conv:size=2G", "make the first one larger"),
            ("dm-zoned/zns:conventional=4+zns", "zns", "conv:size=1G+ before the first"),
            ("dm-zoned/conv+zns/nand", "nand", "write it last"),
            ("dm-zoned:start=101/conv+zns", "101", "from 0 to 100"),
            ("conv+conv", "conv", "the workload takes one device"),
            ("kernel-ext4", "", "after it"),
            ("kernel-ext4/zns", "zns", "kernel-ext4 takes cache, hold-journal, dm-zoned"),
            ("dm-zoned/conv+znss", "znss", "did you mean zns?"),
            ("conv/kernel-xfs", "kernel-xfs", "write it last"),
            ("cache", "", "after it"),
            ("cache/zns", "zns", "cache takes cache, hold-journal, dm-zoned"),
            ("cache/conv+conv+conv:size=2G", "conv:size=2G", "cache takes at most 2 devices"),
            ("cache:access=2us/conv+conv", "2us", "leave it out"),
            ("cache:policy=mru/conv", "mru", "lru, fifo or clock"),
            ("sfs/conv+conv:size=2G", "conv:size=2G", "sfs takes one device"),
            ("sfs/zns+conv", "conv", "sfs takes one device"),
            ("kernel-ext4/conv+conv:size=2G", "conv:size=2G", "kernel-ext4 takes one device"),
            (
                "ext/conv+zns",
                "zns",
                "ext takes cache, hold-journal, dm-zoned, page, dftl, fast, superblock, conv, nvm or monitor",
            ),
            ("ext/zns", "zns", "ext takes cache, hold-journal, dm-zoned, page, dftl, fast, superblock or conv"),
            ("nvm", "nvm", "write it behind a device: ext/DEVICE+nvm"),
            ("ext/nvm", "nvm", "write a device before it, and nvm as the second"),
            ("ext/nvm:size=1G+conv", "nvm:size=1G", "write a device before it"),
            ("sfs/nvm", "nvm", "sfs takes cache, hold-journal, dm-zoned, page, dftl, fast, superblock, conv or zns"),
            ("kernel-ext4/nvm", "nvm", "kernel-ext4 takes cache"),
            ("cache/conv+nvm", "nvm", "cache takes cache"),
            (
                "dm-zoned/conv+nvm",
                "nvm",
                "dm-zoned takes cache, hold-journal, dm-zoned, page, dftl, fast, superblock, conv or zns",
            ),
            ("page/nvm", "nvm", "page takes nand"),
            ("ext/conv+nvm+nvm:size=2G", "nvm:size=2G", "ext takes at most 2 devices"),
            ("ext/conv+nvm/conv", "conv", "write it last"),
            ("ext/conv+nvm:persist=msync", "msync", "nt, clwb, clflushopt or clflush"),
            ("ext/page/nand+znss", "znss", "did you mean zns?"),
            ("ext/conv+conv+conv:size=2G", "conv:size=2G", "ext takes at most 2 devices"),
            ("ext/conv:size=1G+conv:size=8Q", "8Q", "a size from"),
        ] {
            let error = Path::read(text).expect_err(text);
            assert_eq!(&text[error.span.clone()], pointed, "{text}: {error}");
            assert!(error.help.contains(help), "{text}: {error}");
        }
        for text in [
            "conv:size=1G",
            "dm-zoned/conv:size=1G+zns:size=4G,zone=64M",
            "dm-zoned:journal-zone/conv+zns+zns:size=1G",
            "dm-zoned/zns:conventional=16",
            "kernel-ext4:data=journal/dm-zoned:journal-zone/conv:size=1G+zns:size=4G,zone=64M",
            "kernel-xfs/page/nand:size=1G",
            "sfs/cache:size=1M/conv",
            "cache/conv:size=64M+dm-zoned/conv+zns",
            "dm-zoned/cache/conv+zns",
            "dm-zoned/page/nand+zns:size=1G",
            "ext/page/nand:size=1G+conv:size=128M",
            "ext/cache/conv+conv:size=2G+conv:size=128M",
            "ext/conv:image=v.img+nvm:image=/dev/shm/j,size=1G",
            "ext/page/nand+nvm:size=1G",
            "ext/cache/conv+nvm:model=optane,persist=clflush",
            "ext/dm-zoned/conv+zns+nvm:model=cxl",
            "ext:data=journal/conv+dm-zoned:journal-zone/conv:size=1G+zns:size=4G,zone=64M",
        ] {
            let path = Path::read(text).unwrap();
            assert_eq!(Path::read(&path.in_full).unwrap().in_full, path.in_full, "{text}");
        }
    }

    /// A `+` adds a device to a station above the last one.
    #[test]
    fn a_device_is_added_to_the_nearest_station_that_takes_it() {
        fn names(node: &DeviceNode) -> String {
            let below: Vec<String> = node.below.iter().map(names).collect();
            format!(
                "{}{}",
                node.term.name.text,
                if below.is_empty() { String::new() } else { format!("({})", below.join(" ")) }
            )
        }
        for (text, tree) in [
            ("dm-zoned/cache/conv+zns", "dm-zoned(cache(conv) zns)"),
            ("dm-zoned/cache/conv+conv+zns", "dm-zoned(cache(conv conv) zns)"),
            ("cache/conv+dm-zoned/conv+zns+zns:size=1G", "cache(conv dm-zoned(conv zns zns))"),
            ("sfs/cache/cache/conv+page/nand", "cache(cache(conv page))"),
            ("dm-zoned/page/nand+zns", "dm-zoned(page zns)"),
        ] {
            assert_eq!(names(Path::read(text).unwrap().device().unwrap()), tree, "{text}");
        }
    }

    #[test]
    fn a_drive_too_small_for_its_reserves_is_refused_with_sizes_that_do() {
        let text = "page/nand:size=16M";
        let error = Path::read(text).expect_err(text);
        assert!(error.message.contains("too small for its reserves"), "{error}");
        let size = error.help.strip_prefix("take size=").unwrap().split(',').next().unwrap();
        Path::read(&format!("page/nand:size={size}")).unwrap();
        let export = error.help.split("export=").nth(1).unwrap();
        Path::read(&format!("page:export={export}/nand:size=16M")).unwrap();
    }

    #[test]
    fn a_path_written_out_means_the_same() {
        // A report shows the path in full as the command that repeats the run. It once wrote export=90% beside op=28%,
        // and d=10 without d-choices, and was refused.
        for text in [
            "page/nand",
            "page:op=28%,victim=fifo/nand:preset=tlc",
            "page:victim=d-choices,wear=static,streams=hint/nand:size=64G,page=16K",
            "page/nand:suspend=both,suspend-reads=3",
            "page/nand:suspend=waiting",
        ] {
            let path = Path::read(text).unwrap();
            let again = Path::read(&path.in_full).unwrap();
            assert_eq!(format!("{:?}", path.drive()), format!("{:?}", again.drive()));
        }
        let path = Path::read("page:op=28%,victim=fifo/nand:preset=tlc").unwrap();
        assert!(path.in_full.contains("channels=8"), "{}", path.in_full);
        let drive = Path::read("page/nand").unwrap();
        assert_eq!(drive.drive().unwrap().exported_bytes(), (2097152 * 9 / 10) * 4096);
    }

    #[test]
    fn the_exported_size_is_held_while_the_spare_space_varies() {
        for layer in ["page", "dftl", "fast", "superblock"] {
            for nand in ["nand", "nand:channels=3,dies=2", "nand:preset=tlc", "nand:page=16K,pages-per-block=100"] {
                let mut before = 0;
                for op in [30, 50, 100] {
                    let path = Path::read(&format!("{layer}:export=6GB,op={op}%/{nand}")).unwrap();
                    let drive = path.drive().unwrap();
                    let geometry = drive.nand.geometry;
                    let raw = geometry.raw_bytes();
                    let block = raw / u64::from(geometry.blocks);
                    let exported = drive.exported_bytes();
                    let is_exact = ["page", "dftl"].contains(&layer);
                    let rounded = if is_exact { u64::from(geometry.page_bytes) } else { raw / 50 };
                    assert!(
                        (6_000_000_000..6_000_000_000 + rounded).contains(&exported),
                        "{exported}: {}",
                        path.in_full
                    );
                    let wanted = 60_000_000 * (100 + op);
                    assert!(
                        (wanted..wanted + block * u64::from(geometry.units())).contains(&raw),
                        "{raw}: {}",
                        path.in_full
                    );
                    assert_eq!(geometry.blocks % geometry.units(), 0, "{}", path.in_full);
                    assert!(raw > before);
                    before = raw;
                    // The path in full has the size: it is what follows, and is taken.
                    let again = Path::read(&path.in_full).unwrap();
                    assert_eq!((&again.in_full, again.drive().unwrap().nand.geometry), (&path.in_full, geometry));
                }
            }
        }
    }

    #[test]
    fn a_size_to_export_takes_what_the_flash_leaves_or_the_default_spare_space() {
        let bytes = |path: &str| {
            let path = Path::read(path).unwrap();
            let drive = path.drive().unwrap();
            (drive.exported_bytes(), drive.nand.geometry.raw_bytes())
        };
        assert_eq!(bytes("page:export=5G/nand:size=8G"), (5 << 30, 8 << 30));
        let (exported, raw) = bytes("page:export=9G/nand");
        assert_eq!((exported, raw), (9 << 30, 10 << 30), "90 % of it");
    }
}
