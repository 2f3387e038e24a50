//! A path: which stations there are, what each can stand on, and the path that a text means.

use crate::device::nand::{self, Geometry, NandSettings};
use crate::expression::{ExpressionError, Kind, Term, one_of, parse_path};
use crate::translation::dftl::{self, DftlSettings};
use crate::translation::fast::{self, FastSettings};
use crate::translation::page_level::{self, PageSettings};
use crate::translation::superblock::{self, SuperblockSettings};

/// A kind of station, and its place.
#[derive(Debug)]
pub struct Station {
    /// Name, options, and what they mean.
    pub kind: &'static Kind,
    /// The level it belongs to, in words.
    pub level: &'static str,
    /// The names of the stations it can stand on; empty for media, which stand at the bottom.
    pub stands_on: &'static [&'static str],
}

/// All stations, from the top of a path to the bottom.
pub static STATIONS: &[Station] = &[
    Station { kind: &page_level::KIND, level: "translation", stands_on: &["nand"] },
    Station { kind: &dftl::KIND, level: "translation", stands_on: &["nand"] },
    Station { kind: &fast::KIND, level: "translation", stands_on: &["nand"] },
    Station { kind: &superblock::KIND, level: "translation", stands_on: &["nand"] },
    Station { kind: &nand::KIND, level: "media", stands_on: &[] },
];

/// A translation layer on flash.
#[derive(Debug, Clone)]
pub enum Layer {
    /// `page`.
    Page(PageSettings),
    /// `dftl`.
    Dftl(DftlSettings),
    /// `fast`.
    Fast(FastSettings),
    /// `superblock`.
    Superblock(SuperblockSettings),
}

impl Layer {
    fn read(term: &Term, kind: &Kind, geometry: &Geometry) -> Result<Layer, ExpressionError> {
        Ok(match kind.name {
            "page" => Layer::Page(PageSettings::read(term, geometry)?),
            "dftl" => Layer::Dftl(DftlSettings::read(term, geometry)?),
            "fast" => Layer::Fast(FastSettings::read(term, geometry)?),
            "superblock" => Layer::Superblock(SuperblockSettings::read(term, geometry)?),
            name => unreachable!("{name} is no translation layer on flash"),
        })
    }

    fn exported_pages(&self) -> u64 {
        match self {
            Layer::Page(settings) => settings.exported_pages,
            Layer::Dftl(settings) => settings.page.exported_pages,
            Layer::Fast(settings) => settings.exported_pages,
            Layer::Superblock(settings) => settings.exported_pages,
        }
    }

    fn written_out(&self) -> &str {
        match self {
            Layer::Page(settings) => &settings.written_out,
            Layer::Dftl(settings) => &settings.page.written_out,
            Layer::Fast(settings) => &settings.written_out,
            Layer::Superblock(settings) => &settings.written_out,
        }
    }
}

/// A path that can be run.
#[derive(Debug, Clone)]
pub struct Path {
    /// The text it was read from.
    pub text: String,
    /// The text with every option written out.
    pub in_full: String,
    /// The translation layer.
    pub layer: Layer,
    /// The flash.
    pub nand: NandSettings,
}

impl Path {
    /// Reads a path. Errors point at the station, option or value that is wrong, and name what could stand there.
    pub fn read(text: &str) -> Result<Path, ExpressionError> {
        let levels = parse_path(text)?;
        let kinds: Vec<&Kind> = STATIONS.iter().map(|station| station.kind).collect();
        let mut stations = Vec::new();
        for level in &levels {
            let term = &level[0];
            let kind = term.find("station", &kinds)?;
            if let Some(beside) = level.get(1) {
                let help = format!("take it away: what is below {} is one device", stations_above(&stations));
                return Err(beside.error(beside.span.clone(), "nothing here takes two devices".to_string(), help));
            }
            let station = STATIONS.iter().find(|station| station.kind.name == kind.name).expect("found among them");
            stations.push((station, term));
        }
        Self::check_order(&stations)?;
        let nand = NandSettings::read(stations[1].1)?;
        let layer = Layer::read(stations[0].1, stations[0].0.kind, &nand.geometry)?;
        let in_full = format!("{}/{}", layer.written_out(), nand.written_out);
        Ok(Path { text: text.to_string(), in_full, layer, nand })
    }

    /// Every station must be able to stand on the one below it, and the whole must offer a drive.
    fn check_order(stations: &[(&Station, &Term)]) -> Result<(), ExpressionError> {
        for (above, below) in stations.iter().zip(stations.iter().skip(1)) {
            let (name, below_name) = (above.0.kind.name, below.0.kind.name);
            if !above.0.stands_on.contains(&below_name) {
                let (message, help) = match above.0.stands_on {
                    [] => (
                        format!("nothing can stand below {name}"),
                        format!("{name} stores bits: write it last, and {below_name} before it"),
                    ),
                    names => (
                        format!("{name} cannot stand on {below_name}"),
                        format!("below {name} stands {}", one_of(names.iter().copied())),
                    ),
                };
                return Err(below.1.error(below.1.span.clone(), message, help));
            }
        }
        let (last, term) = stations.last().expect("a path has a station");
        if !last.stands_on.is_empty() {
            let end = term.span.end..term.span.end;
            let message = format!("{} stands on nothing", last.kind.name);
            let needs = one_of(last.stands_on.iter().copied());
            return Err(term.error(end, message, format!("write /{needs} behind it")));
        }
        let (first, term) = stations[0];
        if first.stands_on.is_empty() {
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

    /// Bytes that the path offers.
    pub fn exported_bytes(&self) -> u64 {
        self.layer.exported_pages() * u64::from(self.nand.geometry.page_bytes)
    }

    /// Whether the path has a timing model.
    pub fn is_timed(&self) -> bool {
        self.nand.latencies.is_some()
    }
}

fn stations_above(stations: &[(&Station, &Term)]) -> String {
    stations.last().map_or("the workload".to_string(), |(station, _)| station.kind.name.to_string())
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
        // A report shows the path in full as the command that repeats the run. It once wrote export=90% beside op=28%, and
        // d=10 without d-choices, and was refused.
        for text in [
            "page/nand",
            "page:op=28%,victim=fifo/nand:preset=tlc",
            "page:victim=d-choices,wear=static,streams=hint/nand:size=64G,page=16K",
        ] {
            let path = Path::read(text).unwrap();
            let again = Path::read(&path.in_full).unwrap();
            assert_eq!(format!("{:?}{:?}", path.layer, path.nand), format!("{:?}{:?}", again.layer, again.nand));
        }
        let path = Path::read("page:op=28%,victim=fifo/nand:preset=tlc").unwrap();
        assert!(path.in_full.contains("channels=8"), "{}", path.in_full);
        assert_eq!(Path::read("page/nand").unwrap().exported_bytes(), (2097152 * 9 / 10) * 4096);
    }
}
