//! `flashpath mkfs`, `fsck` and `inspect`: volumes on images. `files` is what they do with one of a file system,
//! `owner` who owns a new one; the rest here is of dm-zoned.

mod files;
pub mod owner;

use crate::failure::Failure;
use crate::image_lock::Patience;
use flashpath::device::ImageError;
use flashpath::device::station::StationError;
use flashpath::run::{OpenError, Path, check_volume, inspect_file_system, make_volume, repair_volume, survey_volume};
use flashpath::translation::zoned::{Remedy, Survey};
use flashpath::units::{BLOCK_BYTES, format_size};
use std::fmt::Write;
use std::io::Read;
use std::path::{Path as FilePath, PathBuf};

/// e2fsck's exit bits.
const CORRECTED: u8 = 1;
const LEFT: u8 = 4;
const OPERATIONAL: u8 = 8;
const USAGE: u8 = 16;

/// Make an empty volume on images, or the image of a zoned drive
#[derive(clap::Args)]
pub struct Mkfs {
    /// The path, from top to bottom, with an image= for every device
    #[arg(value_name = "PATH")]
    path: String,
    /// Replace images that are there already
    #[arg(long)]
    force: bool,
    /// The owner of the root directory of a file system, by names or numbers [default: the user of this program]
    #[arg(long, value_name = "USER[:GROUP]")]
    owner: Option<String>,
    #[command(flatten)]
    patience: Patience,
    /// The seed of the volume's numbers (UUIDs) [default: drawn at random]
    #[arg(long)]
    seed: Option<u64>,
}

impl Mkfs {
    /// Makes it, and says what it is.
    pub fn run(self) -> Result<(), Failure> {
        let path = Path::read_drive(&self.path)?;
        let seed = self.seed.map_or_else(drawn_seed, Ok)?;
        if self.owner.is_some() && path.volume_settings().is_none() {
            let message = format!(
                "{} has no file system of this program on top, and so no directory that --owner could own",
                self.path
            );
            return Err(Failure::input(message, None));
        }
        let owner = self.owner.as_deref().map_or_else(|| Ok(owner::myself()), owner::read)?;
        let make = || make_volume(&path, self.force, seed, crate::resident::wall_time_ns(), Some(owner));
        self.patience.open(make).map_err(|error| match error {
            OpenError::Station(StationError::Image(ImageError::Exists { .. })) => {
                Failure::input(error.to_string(), Some("--force makes it anew, and what it holds is lost".into()))
            }
            error => error.into(),
        })?;
        if path.volume_settings().is_some() {
            return crate::print(&format!("{}: an empty volume\n", path.text));
        }
        if path.is_zoned_drive() {
            return crate::print(&format!("{}: an empty drive of zones\n", path.text));
        }
        let survey = survey_volume(&path)?;
        crate::print(&summary(&survey))
    }
}

fn drawn_seed() -> Result<u64, Failure> {
    let mut bytes = [0; 8];
    let read = std::fs::File::open("/dev/urandom").and_then(|mut file| file.read_exact(&mut bytes));
    read.map_err(|error| Failure::failed(format!("cannot draw the volume's numbers from /dev/urandom: {error}")))?;
    Ok(u64::from_le_bytes(bytes))
}

/// Check a volume on images, and repair it; the exit code has e2fsck's bits: 0 clean, 1 repaired, 4 errors left, 8 it failed,
/// 16 wrong use
#[derive(clap::Args)]
pub struct Fsck {
    /// The path, from top to bottom, with an image= for every device
    #[arg(value_name = "PATH")]
    path: String,
    /// Only check: change nothing
    #[arg(short = 'n', long)]
    dry_run: bool,
    #[command(flatten)]
    patience: Patience,
}

impl Fsck {
    /// Checks, repairs, and answers by exit code.
    pub fn run(self) -> Result<(), Failure> {
        let path = Path::read(&self.path).map_err(|error| ended(error.into(), USAGE))?;
        if path.volume_settings().is_some() {
            return files::fsck(&path, self.dry_run, self.patience);
        }
        let failed = |error: OpenError| {
            let code = match error {
                OpenError::NoVolume { .. } => USAGE,
                // The devices work, and what is on them is no volume, or not this one.
                OpenError::Station(StationError::Volume { is_damaged: true, .. }) => LEFT,
                _ => OPERATIONAL,
            };
            ended(error.into(), code)
        };
        let findings = self.patience.open(|| check_volume(&path)).map_err(failed)?;
        let has = |remedy| findings.iter().any(|finding| finding.remedy == remedy);
        let (can_repair, is_whole) = (!has(Remedy::Refuse), findings.iter().all(|one| one.remedy == Remedy::Note));
        let repairs = !self.dry_run && can_repair && has(Remedy::Repair);
        if repairs {
            repair_volume(&path).map_err(failed)?;
        }
        let mut text = String::new();
        for finding in &findings {
            let state = match (finding.remedy, repairs) {
                (Remedy::Repair, true) => "repaired",
                (Remedy::Repair, false) => "can be repaired",
                (Remedy::Refuse | Remedy::None, _) => "cannot be repaired",
                (Remedy::Note, _) => "note",
            };
            // Writing to a String cannot fail.
            let _ = writeln!(text, "{state}: {}", finding.what);
        }
        if is_whole {
            let _ = writeln!(text, "{}: clean", self.path);
        } else if !can_repair {
            let _ = writeln!(text, "nothing was changed: what cannot be repaired is in the way");
        }
        crate::print(&text)?;
        match (is_whole, repairs) {
            (true, _) => Ok(()),
            (false, true) if has(Remedy::None) => Err(Failure::Quiet(CORRECTED | LEFT)),
            (false, true) => Err(Failure::Quiet(CORRECTED)),
            (false, false) => Err(Failure::Quiet(LEFT)),
        }
    }
}

/// Says why, and ends with this code.
fn ended(failure: Failure, code: u8) -> Failure {
    crate::output::report(failure);
    Failure::Quiet(code)
}

/// Show what a volume on images holds: chunks, zones and metadata sets, or segments and groups of like hotness
#[derive(clap::Args)]
pub struct Inspect {
    /// The path, from top to bottom, with an image= for every device
    #[arg(value_name = "PATH")]
    path: String,
    /// Write it as JSON; - is standard output
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// Draw it as SVG, of a volume of a file system; - is standard output
    #[arg(long, value_name = "FILE")]
    picture: Option<PathBuf>,
    /// List every zone or segment, too
    #[arg(long, alias = "segments")]
    zones: bool,
}

impl Inspect {
    /// Prints it.
    pub fn run(self) -> Result<(), Failure> {
        let path = Path::read(&self.path)?;
        if path.volume_settings().is_some() {
            let inspection = inspect_file_system(&path)?;
            if let Some(file) = &self.picture {
                write(file, &files::picture(&path, &inspection.picture)?)?;
            }
            let parts = if self.zones { &inspection.parts[..] } else { "" };
            return match (&self.json, &self.picture) {
                (Some(file), _) => write(file, &inspection.json),
                (None, Some(_)) => Ok(()),
                (None, None) => crate::print(&(inspection.summary + parts)),
            };
        }
        if self.picture.is_some() {
            let message =
                format!("{} has no file system of this program on top, and only its volumes are drawn", self.path);
            return Err(Failure::input(message, None));
        }
        let survey = survey_volume(&path)?;
        if let Some(file) = &self.json {
            return write(file, &json(serde_json::to_string_pretty(&survey))?);
        }
        crate::print(&(summary(&survey) + &chunks(&survey) + &if self.zones { zones(&survey) } else { String::new() }))
    }
}

fn json(made: serde_json::Result<String>) -> Result<String, Failure> {
    made.map_err(|error| Failure::failed(error.to_string()))
}

/// Writes to a file, or to standard output if that is `-`.
fn write(file: &FilePath, text: &str) -> Result<(), Failure> {
    match file.as_os_str() == "-" {
        true => crate::print(&format!("{text}\n")),
        false => Ok(flashpath::report::write_file(file, text)?),
    }
}

fn summary(survey: &Survey) -> String {
    let generation = |generation: Option<u64>| generation.map_or("damaged".to_string(), |number| number.to_string());
    let [first, second] = survey.generations.map(generation);
    let warnings: String = survey.warnings.iter().map(|warning| format!("warning: {warning}\n")).collect();
    format!(
        "volume '{}', zones of {}, {} reserved, metadata sets of generation {first} and {second}\n{}\n{warnings}",
        survey.label,
        format_size(u64::from(survey.zone_blocks) * BLOCK_BYTES),
        survey.reserved_zones,
        survey.status
    )
}

fn ranges(ranges: &[(u32, u32)]) -> String {
    let shown = ranges.iter().take(8).map(|(first, last)| match first == last {
        true => first.to_string(),
        false => format!("{first}-{last}"),
    });
    let mut text = shown.collect::<Vec<_>>().join(" ");
    if ranges.len() > 8 {
        let _ = write!(text, " and {} more ranges", ranges.len() - 8);
    }
    if ranges.is_empty() { "none".to_string() } else { text }
}

fn chunks(survey: &Survey) -> String {
    let mut text = String::new();
    for chunk in &survey.chunks {
        let _ =
            write!(text, "chunk {}: data zone {}, blocks {}", chunk.chunk, chunk.data_zone, ranges(&chunk.data_blocks));
        if let Some(buffer) = chunk.buffer_zone {
            let _ = write!(text, "; buffer zone {buffer}, blocks {}", ranges(&chunk.buffer_blocks));
        }
        text.push('\n');
    }
    text
}

fn zones(survey: &Survey) -> String {
    let mut text = String::new();
    for zone in &survey.zones {
        let _ = write!(text, "zone {}: {}, {}", zone.zone, zone.class, zone.used_as);
        if let Some(chunk) = zone.chunk {
            let _ = write!(text, " of chunk {chunk}, {} valid blocks", zone.valid_blocks);
        }
        if let Some(pointer) = zone.write_pointer {
            let _ = write!(text, ", write pointer {pointer}");
        }
        text.push('\n');
    }
    text
}
