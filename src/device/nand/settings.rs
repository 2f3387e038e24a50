//! The options of `nand`.

use super::cells::{CELLS, Cells, PROGRAM_PASSES, SLC_ENDURANCE, SLC_PROGRAM, SLC_READ};
use super::die_commands::{CACHE_PROGRAM, DieCommands, PLANE_COMMANDS};
use super::energy::{ENERGY, ERASE_POWER, EnergySettings, IDLE_POWER, PROGRAM_POWER, READ_POWER, TRANSFER_POWER};
use super::errors::{
    ECC, ERASE_FAILURES, ERRORS, ErrorSettings, PROGRAM_FAILURES, RBER, RBER_WEAR, READ_DISTURB, REFRESH, RETENTION,
    RETRY, RETRY_GAIN, SCRUB,
};
use super::preset::Preset;
use super::suspension::{SUSPEND, SUSPEND_READS, SUSPEND_TIME, Suspension};
use super::timing::CommandTimes;
use super::{Geometry, Latencies};
use crate::expression::{Choice, ExpressionError, Kind, OptionKind, Settings, Term, Values, words};
use crate::units::format_size;

/// The station `nand`. Without a preset it is the textbook drive of theory: one die, and the times of TLC.
pub static KIND: Kind = Kind {
    name: "nand",
    about: "NAND flash: channels, dies and planes of blocks that are programmed in order, erased whole, and wear out",
    options: &[
        OptionKind {
            name: "preset",
            values: Values::Choice(words::<&'static Preset>),
            default: "",
            about: "a known drive; options written beside it take precedence (not set: the defaults below)",
        },
        OptionKind {
            name: "size",
            values: Values::Size(1 << 16, 1 << 50),
            default: "8G",
            about: "bytes of flash, exported and spare; rounded down to whole blocks. It follows from export= and op= of the layer above, if both are written and export is a size",
        },
        OptionKind {
            name: "page",
            values: Values::Choice(words::<PageBytes>),
            default: "4K",
            about: "bytes of a page, the unit of programs",
        },
        OptionKind {
            name: "unit",
            values: Values::Choice(words::<PageBytes>),
            default: "",
            about: "bytes of the unit of the mapping, of which several are programmed as one page (not set: the page)",
        },
        OptionKind {
            name: "pages-per-block",
            values: Values::Count(2, 16384),
            default: "256",
            about: "pages of a block, the unit of erases",
        },
        OptionKind {
            name: "channels",
            values: Values::Count(1, 64),
            default: "1",
            about: "buses that transfer at once",
        },
        OptionKind { name: "dies", values: Values::Count(1, 64), default: "1", about: "dies on each channel" },
        OptionKind { name: "planes", values: Values::Count(1, 16), default: "1", about: "planes in each die" },
        OptionKind {
            name: "timing",
            values: Values::Switch,
            default: "on",
            about: "on: operations take time; off is faster and counts the same",
        },
        OptionKind {
            name: "read",
            values: Values::Durations(0, 1_000_000_000, 4),
            default: "50us",
            about: "the time to read a page from the array to its register; with cells also one for each page of a word line, such as 50us+60us+70us",
        },
        OptionKind {
            name: "program",
            values: Values::Durations(0, 1_000_000_000, 4),
            default: "500us",
            about: "the time to program a page from its register to the array; with cells also one for each page of a word line, and with program-passes that of each pass of a whole word line",
        },
        OptionKind { name: "erase", values: Values::Duration(0, 10_000_000_000), default: "3ms", about: "a block" },
        OptionKind {
            name: "transfer",
            values: Values::Duration(0, 1_000_000_000),
            default: "10us",
            about: "the time to transfer a page over the channel",
        },
        OptionKind {
            name: "read-transfer",
            values: Values::Duration(0, 1_000_000_000),
            default: "",
            about: "the same for a page that was read (not set: that of transfer)",
        },
        OptionKind {
            name: "program-transfer",
            values: Values::Duration(0, 1_000_000_000),
            default: "",
            about: "the same for a page to program (not set: that of transfer)",
        },
        OptionKind {
            name: "command",
            values: Values::Durations(0, 1_000_000_000, 3),
            default: "",
            about: "the time of an operation's command and address on the channel: one, or those of a read, of a page to program and of an erase, joined by + (not set: none)",
        },
        CELLS,
        PROGRAM_PASSES,
        SLC_READ,
        SLC_PROGRAM,
        SLC_ENDURANCE,
        PLANE_COMMANDS,
        CACHE_PROGRAM,
        SUSPEND,
        SUSPEND_TIME,
        SUSPEND_READS,
        OptionKind {
            name: "endurance",
            values: Values::Count(1, 10_000_000),
            default: "3000",
            about: "erases before a block is worn out",
        },
        ERRORS,
        RBER,
        RBER_WEAR,
        RETENTION,
        READ_DISTURB,
        ECC,
        RETRY,
        RETRY_GAIN,
        PROGRAM_FAILURES,
        ERASE_FAILURES,
        REFRESH,
        SCRUB,
        ENERGY,
        READ_POWER,
        PROGRAM_POWER,
        ERASE_POWER,
        TRANSFER_POWER,
        IDLE_POWER,
    ],
};

/// Bytes of a page of flash: the values of `page`.
#[derive(Clone, Copy, Debug)]
pub struct PageBytes(pub u32);

impl Choice for PageBytes {
    const WORDS: &'static [(&'static str, Self, &'static str)] = &[
        ("2K", PageBytes(2048), ""),
        ("4K", PageBytes(4096), ""),
        ("8K", PageBytes(8192), ""),
        ("16K", PageBytes(16384), ""),
    ];
}

/// The parsed options of `nand`.
#[derive(Debug, Clone)]
pub struct NandSettings {
    /// The geometry.
    pub geometry: Geometry,
    /// The timing model; `None` for `timing=off`.
    pub latencies: Option<Latencies>,
    /// The cells; `None` if pages are alike.
    pub cells: Option<Cells>,
    /// The commands that a die takes.
    pub commands: DieCommands,
    /// The rules of reads that go first; `None` if planes work in order.
    pub suspension: Option<Suspension>,
    /// The maximum number of erases of a block.
    pub endurance: u32,
    /// The errors; `None` if there are none.
    pub errors: Option<ErrorSettings>,
    /// The powers of operations; `None` if energy is not asked for.
    pub energy: Option<EnergySettings>,
    /// The term with all option values.
    pub written_out: String,
}

impl NandSettings {
    /// Parses a term. Errors point at the wrong option.
    pub fn read(term: &Term) -> Result<NandSettings, ExpressionError> {
        NandSettings::of(term.settle(&KIND)?, None)
    }

    /// Parses a term without a size: the flash has at least `bytes`, and whole blocks on all planes.
    ///
    /// # Panics
    ///
    /// If the term has a size: the caller knows which of the two is right.
    pub fn holding(term: &Term, bytes: u64) -> Result<NandSettings, ExpressionError> {
        let settings = term.settle(&KIND)?;
        assert!(!settings.is_given("size"), "a size that is written is not replaced");
        NandSettings::of(settings, Some(bytes))
    }

    /// The settings of a term, on flash of at least so many bytes, if that is asked for.
    fn of(mut settings: Settings, least_bytes: Option<u64>) -> Result<NandSettings, ExpressionError> {
        let set_size = |settings: &mut Settings, bytes: u64| settings.set_default("size", &format_size(bytes));
        if settings.is_set("preset") {
            let preset = settings.choice::<&'static Preset>("preset");
            settings.set_defaults(preset.values);
            least_bytes.into_iter().for_each(|bytes| set_size(&mut settings, bytes));
            let planes = ["channels", "dies", "planes"].map(|name| settings.count(name)).iter().product::<u64>();
            let page_bytes = settings.choice::<PageBytes>("page").0;
            let (pages, bytes_per_plane) = (settings.count("pages-per-block"), settings.size("size") / planes);
            let pages = preset.pages_per_block(pages, bytes_per_plane, page_bytes.into());
            settings.set_default("pages-per-block", &pages.to_string());
        }
        let cells = Cells::read(&settings)?;
        if let Some(cells) = &cells {
            cells.whole_word_lines(&mut settings)?;
        }
        let page = settings.choice::<PageBytes>("page").0;
        let unit = if settings.is_set("unit") { settings.choice::<PageBytes>("unit").0 } else { page };
        if unit > page {
            let message = format!("a unit of {} is larger than a page", settings.text("unit"));
            let help = format!("take at most unit={0}, or page={1}", settings.text("page"), settings.text("unit"));
            return Err(settings.error("unit", message, help));
        }
        if let Some(bytes) = least_bytes {
            let planes = ["channels", "dies", "planes"].map(|name| settings.count(name)).iter().product::<u64>();
            let blocks_bytes = settings.count("pages-per-block") * u64::from(page) * planes;
            set_size(&mut settings, bytes.next_multiple_of(blocks_bytes));
        }
        let count = |name: &str| settings.count(name) as u32;
        let geometry = Geometry::in_units(
            settings.size("size"),
            unit,
            page,
            count("pages-per-block"),
            (count("channels"), count("dies"), count("planes")),
        )
        .map_err(|help| Self::does_not_fit(&settings, help))?;
        let geometry = Cells::shape(cells.as_ref(), geometry);
        let command = command_times(&settings)?;
        let latencies = settings.switch("timing").then(|| Latencies {
            read_ns: settings.durations_ns("read")[0],
            program_ns: settings.durations_ns("program")[0],
            erase_ns: settings.duration_ns("erase"),
            read_transfer_ns: transfer_ns(&settings, "read-transfer"),
            program_transfer_ns: transfer_ns(&settings, "program-transfer"),
            command,
        });
        let meaningless = [
            Suspension::meaningless(&settings),
            Cells::meaningless(&settings),
            &ErrorSettings::meaningless(&settings),
            &EnergySettings::meaningless(&settings),
        ]
        .concat();
        let energy = EnergySettings::read(&settings, latencies, cells.as_ref())?;
        Ok(NandSettings {
            geometry,
            latencies,
            cells,
            commands: DieCommands::read(&settings)?,
            suspension: Suspension::read(&settings)?,
            endurance: count("endurance"),
            errors: ErrorSettings::read(&settings)?,
            energy,
            written_out: settings.written_out(&meaningless),
        })
    }

    /// The option that asks for a timing model with queues, in which an operation that is issued later interrupts an
    /// earlier one; none if the end of an operation can be told when it is issued.
    pub fn needs_queues(&self) -> Option<&'static str> {
        self.suspension.map(|_| "suspend")
    }

    /// The same below a station that must know the end of a request before it makes the next one. `term` is the one that was
    /// read.
    pub fn below(self, above: &str, term: &Term) -> Result<NandSettings, ExpressionError> {
        if let Some(name) = self.needs_queues() {
            let settings = term.settle(&KIND)?;
            let message =
                format!("{above} asks for the end of each request at once, before a later read could suspend it");
            let help = format!("remove {name}, or run a block workload on the translation layer alone");
            return Err(settings.error(name, message, help));
        }
        Ok(self)
    }

    /// The error of a layer that has no answer to errors. `term` is that of the flash.
    pub fn errors_refused(layer: &str, (reason, help): (&str, &str), term: &Term) -> ExpressionError {
        match term.settle(&KIND) {
            Ok(settings) => settings.error("errors", format!("{layer} {reason}"), help.to_string()),
            Err(error) => error,
        }
    }

    fn does_not_fit(settings: &Settings, help: String) -> ExpressionError {
        settings.error("size", format!("a drive of {} cannot have this shape", settings.text("size")), help)
    }
}

/// The time of a transfer one way: its own, or that of both.
fn transfer_ns(settings: &Settings, name: &str) -> u64 {
    settings.duration_ns(if settings.is_set(name) { name } else { "transfer" })
}

/// The times of commands. Fails for two: it is not clear of which operations they are.
fn command_times(settings: &Settings) -> Result<CommandTimes, ExpressionError> {
    if !settings.is_set("command") {
        return Ok(CommandTimes::default());
    }
    match settings.durations_ns("command")[..] {
        [ns] => Ok(CommandTimes { read_ns: ns, program_ns: ns, erase_ns: ns }),
        [read_ns, program_ns, erase_ns] => Ok(CommandTimes { read_ns, program_ns, erase_ns }),
        ref times => {
            let message = format!("{} times, and operations of three kinds", times.len());
            let help = "write one for all, or those of a read, a program and an erase joined by +".to_string();
            Err(settings.error("command", message, help))
        }
    }
}
