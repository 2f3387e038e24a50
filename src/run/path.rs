//! The path that a text means.

use super::stations::{DriveSettings, STATIONS, Station};
use crate::device::conv::ConvSettings;
use crate::device::zns::ZnsSettings;
use crate::expression::{ExpressionError, Kind, Term, one_of, parse_path};
use crate::fs::kernel::{KernelFileSystem, KernelSettings};
use crate::fs::sfs::{self, SfsSettings};
use crate::translation::zoned::ZonedSettings;

/// A path: what stores blocks, and the kernel's file system on top, if there is one.
#[derive(Debug, Clone)]
pub struct Path {
    /// The text it was read from.
    pub text: String,
    /// The text with every option written out.
    pub in_full: String,
    /// The file system on top.
    pub file_system: Option<FileSystemSettings>,
    /// What is below it, or below the workload.
    pub stack: Stack,
}

/// A file system on top of a path.
#[derive(Debug, Clone)]
pub enum FileSystemSettings {
    /// One of the running kernel's.
    Kernel(KernelSettings),
    /// sfs.
    Sfs(Box<SfsSettings>),
}

impl FileSystemSettings {
    fn written_out(&self) -> &str {
        match self {
            FileSystemSettings::Kernel(settings) => &settings.written_out,
            FileSystemSettings::Sfs(settings) => &settings.written_out,
        }
    }
}

/// What offers blocks, or, for sfs, zones.
#[derive(Debug, Clone)]
pub enum Stack {
    /// A translation layer on flash.
    Drive(DriveSettings),
    /// A conventional device alone.
    Conventional(ConvSettings),
    /// dm-zoned.
    Zoned {
        /// Its options.
        settings: ZonedSettings,
        /// Its conventional device; without one, its zoned device has conventional zones.
        conventional: Option<ConvSettings>,
        /// Its zoned devices, at least one.
        zoned: Vec<ZnsSettings>,
    },
    /// A zoned device alone, on which only sfs can stand.
    Zones(ZnsSettings),
}

/// A station of a path, with its term.
type Standing<'a> = (&'static Station, &'a Term);

impl Path {
    /// Reads a path. Errors point at the station, option or value that is wrong, and name what could stand there.
    pub fn read(text: &str) -> Result<Path, ExpressionError> {
        let levels = parse_path(text)?;
        let kinds: Vec<&Kind> = STATIONS.iter().map(|station| station.kind).collect();
        let station_of = |term: &Term| -> Result<&'static Station, ExpressionError> {
            let kind = term.find("station", &kinds)?;
            Ok(STATIONS.iter().find(|station| station.kind.name == kind.name).expect("found among them"))
        };
        let mut levels_of_stations: Vec<Vec<Standing>> = Vec::new();
        for level in &levels {
            let above = levels_of_stations.last().map_or("the workload", |above| above[0].0.kind.name);
            if let Some(beside) = level.get(1).filter(|_| above != "dm-zoned") {
                let help = format!("take it away: what is below {above} is one device");
                return Err(beside.error(beside.span.clone(), "nothing here takes two devices".to_string(), help));
            }
            let stations = level.iter().map(|term| Ok((station_of(term)?, term)));
            levels_of_stations.push(stations.collect::<Result<_, ExpressionError>>()?);
        }
        check_order(&levels_of_stations)?;
        Path::of(text, &levels_of_stations)
    }

    fn of(text: &str, levels: &[Vec<Standing>]) -> Result<Path, ExpressionError> {
        let (top, top_term) = levels[0][0];
        let kernel = KernelFileSystem::ALL.into_iter().find(|(_, kind)| kind.name == top.kind.name);
        let file_system = match kernel {
            Some((file_system, kind)) => {
                Some(FileSystemSettings::Kernel(KernelSettings::read(top_term, file_system, kind)?))
            }
            None if top.kind.name == sfs::KIND.name => {
                Some(FileSystemSettings::Sfs(Box::new(SfsSettings::read(top_term)?)))
            }
            None => None,
        };
        let below = if file_system.is_some() { &levels[1..] } else { levels };
        let (head, term) = below[0][0];
        let stack = match head.kind.name {
            "conv" => Stack::Conventional(ConvSettings::read(term)?),
            "dm-zoned" => zoned_stack(term, &below[1])?,
            "zns" => Stack::Zones(ZnsSettings::read(term)?),
            _ => Stack::Drive(DriveSettings::read(term, below[1][0].1)?),
        };
        let on_top = file_system.iter().map(|settings| settings.written_out().to_string());
        let in_full = on_top.chain([stack.written_out()]).collect::<Vec<_>>().join("/");
        Ok(Path { text: text.to_string(), in_full, file_system, stack })
    }

    /// The kernel's file system on top, if there is one.
    pub fn kernel(&self) -> Option<&KernelSettings> {
        match &self.file_system {
            Some(FileSystemSettings::Kernel(settings)) => Some(settings),
            _ => None,
        }
    }

    /// The options of sfs, if that is on top.
    pub fn sfs(&self) -> Option<&SfsSettings> {
        match &self.file_system {
            Some(FileSystemSettings::Sfs(settings)) => Some(settings),
            _ => None,
        }
    }

    /// Tells sfs, if that is on top, how much memory it may take unless the path says so.
    pub fn with_machine_memory(mut self, bytes: u64) -> Path {
        if let Some(FileSystemSettings::Sfs(settings)) = &mut self.file_system {
            settings.machine_memory_bytes = Some(bytes);
        }
        self
    }

    /// The drive, if the path is a translation layer on flash, whatever stands on it.
    pub fn drive(&self) -> Option<&DriveSettings> {
        match &self.stack {
            Stack::Drive(drive) => Some(drive),
            _ => None,
        }
    }
}

impl Stack {
    fn written_out(&self) -> String {
        match self {
            Stack::Drive(drive) => drive.written_out(),
            Stack::Conventional(settings) => settings.written_out.clone(),
            Stack::Zones(settings) => settings.written_out.clone(),
            Stack::Zoned { settings, conventional, zoned } => {
                let devices = conventional.iter().map(|device| device.written_out.as_str());
                let devices: Vec<&str> =
                    devices.chain(zoned.iter().map(|device| device.written_out.as_str())).collect();
                format!("{}/{}", settings.written_out, devices.join("+"))
            }
        }
    }
}

/// Every station must be able to stand on those below it, and the whole must offer blocks that can be written again.
fn check_order(levels: &[Vec<Standing>]) -> Result<(), ExpressionError> {
    for (above, below) in levels.iter().zip(levels.iter().skip(1)) {
        for (station, term) in below {
            let (name, below_name) = (above[0].0.kind.name, station.kind.name);
            if !above[0].0.stands_on.contains(&below_name) {
                let (message, help) = match above[0].0.stands_on {
                    [] => (
                        format!("nothing can stand below {name}"),
                        format!("{name} stores bits: write it last, and {below_name} before it"),
                    ),
                    names => (
                        format!("{name} cannot stand on {below_name}"),
                        format!("below {name} stands {}", one_of(names.iter().copied())),
                    ),
                };
                return Err(term.error(term.span.clone(), message, help));
            }
        }
    }
    let (last, term) = levels.last().expect("a path has a level")[0];
    if !last.stands_on.is_empty() {
        let end = term.span.end..term.span.end;
        let message = format!("{} stands on nothing", last.kind.name);
        let help = match last.kind.name {
            "dm-zoned" => "write /conv:size=1G+zns:size=4G behind it, or /zns:conventional=16".to_string(),
            _ => format!("write /{} behind it", one_of(last.stands_on.iter().copied())),
        };
        return Err(term.error(end, message, help));
    }
    let (first, term) = levels[0][0];
    if !first.is_rewritable() {
        let name = first.kind.name;
        let layers = STATIONS.iter().filter(|station| station.stands_on.contains(&name));
        let layers: Vec<String> = layers.map(|station| format!("{}/", station.kind.name)).collect();
        let layers = one_of(layers.iter().map(String::as_str));
        let message = format!("{name} has no addresses that can be written again: a translation layer is missing");
        let help = format!("write {layers} before it");
        return Err(term.error(term.name.span.clone(), message, help));
    }
    Ok(())
}

/// dm-zoned stands on one conventional device and zoned ones behind it, or on one zoned device that has conventional
/// zones.
fn zoned_stack(term: &Term, devices: &[Standing]) -> Result<Stack, ExpressionError> {
    let is_conventional = |device: &Standing| device.0.kind.name == "conv";
    let (conventional, zoned) = match devices {
        [first, rest @ ..] if is_conventional(first) => (Some(first.1), rest),
        all => (None, all),
    };
    if let Some((_, wrong)) = zoned.iter().find(|device| is_conventional(device)) {
        let (message, help) = match conventional {
            Some(_) => ("dm-zoned has one conventional device", "take it away, or make the first one larger"),
            None => ("the conventional device comes first", "write conv before the zns, and + between them"),
        };
        return Err(wrong.error(wrong.span.clone(), message.to_string(), help.to_string()));
    }
    if let (Some(alone), []) = (conventional, zoned) {
        let message = "dm-zoned has no zones here: a zoned device is missing".to_string();
        let end = alone.span.end..alone.span.end;
        return Err(alone.error(end, message, "write +zns:size=4G behind it".to_string()));
    }
    if let (None, [_, second, ..]) = (conventional, zoned) {
        let message = "several zoned devices need a conventional one before them".to_string();
        let help = "write conv:size=1G+ before the first, or take this one away".to_string();
        return Err(second.1.error(second.1.span.clone(), message, help));
    }
    let read = zoned.iter().map(|(_, term)| ZnsSettings::read(term)).collect::<Result<Vec<_>, _>>()?;
    // An image has a shape of its own, which is looked at when it is opened.
    if conventional.is_none() && read[0].is_in_memory() && read[0].shape()?.conventional == 0 {
        let term = zoned[0].1;
        let message = "dm-zoned keeps its metadata and what is written anew in conventional zones, and there are none";
        let help = "write conv:size=1G+ before it, or conventional=16 among its options".to_string();
        return Err(term.error(term.span.clone(), message.to_string(), help));
    }
    let conventional = conventional.map(ConvSettings::read).transpose()?;
    Ok(Stack::Zoned { settings: ZonedSettings::read(term)?, conventional, zoned: read })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wrong_path_is_pointed_at_with_what_could_stand_there() {
        for (text, pointed, said) in [
            ("nand", "nand", "write page/, dftl/, fast/ or superblock/ before it"),
            ("page", "", "write /nand behind it"),
            ("page/page/nand", "page", "below page stands nand"),
            ("page/nand/page", "page", "write it last"),
            ("page/nand+nand:size=1G", "nand:size=1G", "one device"),
            ("pgae/nand", "pgae", "did you mean page?"),
            ("page/nand:size=8Q", "8Q", "a size from"),
            ("page/nand:page=3K", "3K", "2K, 4K, 8K or 16K"),
            ("page:op=7%,export=90%/nand", "7%", "write one of them"),
            ("page:export=100%/nand", "100%", "a share from 1%"),
            ("page/", "", "write a name"),
            ("", "", "write a name"),
            ("page:d=3/nand", "3", "victim=d-choices"),
            ("page/nand:size=1M,pages-per-block=4,channels=64,dies=64", "page", "size=1312M would do"),
        ] {
            let error = Path::read(text).expect_err(text);
            assert_eq!(&text[error.span.clone()], pointed, "{text}: {error}");
            assert!(error.help.contains(said), "{text}: {error}");
        }
    }

    #[test]
    fn devices_side_by_side_are_what_dm_zoned_can_stand_on() {
        for (text, pointed, said) in [
            ("zns", "zns", "write sfs/ or dm-zoned/ before it"),
            ("dm-zoned", "", "conv:size=1G+zns:size=4G"),
            ("dm-zoned/nand", "nand", "below dm-zoned stands conv or zns"),
            ("dm-zoned/conv+nand", "nand", "below dm-zoned stands conv or zns"),
            ("dm-zoned/conv:size=1G", "", "+zns"),
            ("dm-zoned/zns", "zns", "conv:size=1G+ before it, or conventional=16"),
            ("dm-zoned/zns+conv", "conv", "before the zns"),
            ("dm-zoned/conv+conv:size=2G+zns", "conv:size=2G", "make the first one larger"),
            ("dm-zoned/zns:conventional=4+zns", "zns", "conv:size=1G+ before the first"),
            ("dm-zoned/conv+zns/nand", "nand", "write it last"),
            ("dm-zoned:start=101/conv+zns", "101", "from 0 to 100"),
            ("conv+conv", "conv", "below the workload is one device"),
            ("kernel-ext4", "", "behind it"),
            ("kernel-ext4/zns", "zns", "below kernel-ext4 stands dm-zoned"),
            ("dm-zoned/conv+znss", "znss", "did you mean zns?"),
            ("conv/kernel-xfs", "kernel-xfs", "write it last"),
        ] {
            let error = Path::read(text).expect_err(text);
            assert_eq!(&text[error.span.clone()], pointed, "{text}: {error}");
            assert!(error.help.contains(said), "{text}: {error}");
        }
        for text in [
            "conv:size=1G",
            "dm-zoned/conv:size=1G+zns:size=4G,zone=64M",
            "dm-zoned:journal-zone/conv+zns+zns:size=1G",
            "dm-zoned/zns:conventional=16",
            "kernel-ext4:data=journal/dm-zoned:journal-zone/conv:size=1G+zns:size=4G,zone=64M",
            "kernel-xfs/page/nand:size=1G",
        ] {
            let path = Path::read(text).unwrap();
            assert_eq!(Path::read(&path.in_full).unwrap().in_full, path.in_full, "{text}");
        }
    }

    #[test]
    fn a_drive_too_small_for_its_reserves_is_refused_with_sizes_that_do() {
        let text = "page/nand:size=16M";
        let error = Path::read(text).expect_err(text);
        assert!(error.message.contains("too small for its reserves"), "{error}");
        let size = error.help.strip_prefix("size=").unwrap().split(' ').next().unwrap();
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
        ] {
            let path = Path::read(text).unwrap();
            let again = Path::read(&path.in_full).unwrap();
            assert_eq!(format!("{:?}", path.stack), format!("{:?}", again.stack));
        }
        let path = Path::read("page:op=28%,victim=fifo/nand:preset=tlc").unwrap();
        assert!(path.in_full.contains("channels=8"), "{}", path.in_full);
        let drive = Path::read("page/nand").unwrap();
        assert_eq!(drive.drive().unwrap().exported_bytes(), (2097152 * 9 / 10) * 4096);
    }
}
