//! The options of `page`.

use super::placement::{PLACE, Place};
use super::slc_settings::{SLC_CACHE, SLC_FULL, SLC_SHARE, SlcSettings};
use super::{PaceSettings, PageLevel, RamMap};
use crate::device::nand::{Geometry, Nand, Timing};
use crate::device::{Isolation, MOST_IDENTIFIERS};
use crate::expression::{Choice, ExpressionError, Kind, OptionKind, Row, Settings, Term, Values, words, words_of};
use crate::translation::buffer::{BUFFER, BUFFER_POLICY};
use crate::translation::exported::{EXPORT, Exported, OP};
use crate::translation::{BufferSettings, FlashLayer, VictimPolicy};
use crate::units::format_size;

/// The station `page`.
pub static KIND: Kind = Kind {
    name: "page",
    about: "the page-level translation layer: maps any page anywhere, and collects garbage",
    options: &[
        EXPORT,
        OP,
        VICTIM,
        D,
        FRONTIERS,
        STREAMS,
        HINTS,
        SPARE_SHARES,
        RESERVE,
        SCOPE,
        PLACE,
        AHEAD,
        PACE,
        WEAR,
        WEAR_GAP,
        BACKGROUND,
        SLC_CACHE,
        SLC_SHARE,
        SLC_FULL,
        BUFFER,
        BUFFER_POLICY,
        FDP,
        FDP_GROUPS,
        FDP_ISOLATION,
        FDP_PERSISTENT,
        FDP_DEFAULT,
    ],
};

pub(crate) const VICTIM: OptionKind = OptionKind {
    name: "victim",
    values: Values::Choice(|| words_of(VICTIMS)),
    default: "greedy",
    about: "the policy that selects the block to collect",
};
pub(crate) const D: OptionKind = OptionKind {
    name: "d",
    values: Values::Count(1, 1000),
    default: "10",
    about: "the number of blocks that d-choices draws",
};
pub(crate) const FRONTIERS: OptionKind = OptionKind {
    name: "frontiers",
    values: Values::Choice(words::<Frontiers>),
    default: "separate",
    about: "the destination of copies",
};
pub(crate) const STREAMS: OptionKind = OptionKind {
    name: "streams",
    values: Values::Choice(words::<StreamKind>),
    default: "none",
    about: "the property by which pages are separated",
};
pub(crate) const HINTS: OptionKind = OptionKind {
    name: "hints",
    values: Values::Count(1, 64),
    default: "2",
    about: "the number of separate hints; a hint is taken modulo this",
};
pub(crate) const SPARE_SHARES: OptionKind = OptionKind {
    name: "spare-shares",
    values: Values::Shares,
    default: "",
    about: "each stream's share of the spare space, such as 49%+51% (not set: victims decide)",
};
pub(crate) const RESERVE: OptionKind = OptionKind {
    name: "reserve",
    values: Values::Count(1, 100_000),
    default: "2",
    about: "erased blocks reserved for copies",
};
pub(crate) const AHEAD: OptionKind = OptionKind {
    name: "ahead",
    values: Values::Count(0, 100_000),
    default: "",
    about: "erased blocks beyond the reserve that collection makes ahead of the host, so that victims on several planes are collected at once (not set: none on one plane or with pace, else two for each plane, at most a sixteenth of the spare blocks)",
};
pub(crate) const PACE: OptionKind = OptionKind {
    name: "pace",
    values: Values::Count(1, 1 << 16),
    default: "",
    about: "pages of flash that are copied at once: victims are collected in such steps between the writes of the host, and free space stays level (not set: a victim at once, when the host needs a block)",
};
pub(crate) const WEAR: OptionKind =
    OptionKind { name: "wear", values: Values::Choice(words::<Wear>), default: "dynamic", about: "wear levelling" };
pub(crate) const WEAR_GAP: OptionKind = OptionKind {
    name: "wear-gap",
    values: Values::Count(1, 1_000_000),
    default: "50",
    about: "the erase count by which a block may lag before static wear levelling moves its pages",
};
pub(crate) const BACKGROUND: OptionKind = OptionKind {
    name: "background",
    values: Values::Share(0.0, 0.5),
    default: "0%",
    about: "collect in idle time until this share of the blocks is erased; needs timing and a timed replay",
};

pub(crate) const SCOPE: OptionKind = OptionKind {
    name: "scope",
    values: Values::Choice(words::<Scope>),
    default: "plane",
    about: "the blocks among which a victim is chosen",
};

pub(crate) const FDP: OptionKind = OptionKind {
    name: "fdp",
    values: Values::Count(1, MOST_IDENTIFIERS as u64),
    default: "",
    about: "flexible data placement with so many reclaim unit handles: a block on each plane is a reclaim unit, which is written by one handle, collected and erased as a whole (not set: blocks are)",
};
pub(crate) const FDP_GROUPS: OptionKind = OptionKind {
    name: "fdp-groups",
    values: Values::Count(1, MOST_IDENTIFIERS as u64),
    default: "1",
    about: "reclaim groups, among which the planes are divided",
};
pub(crate) const FDP_ISOLATION: OptionKind = OptionKind {
    name: "fdp-isolation",
    values: Values::Choice(words::<Isolation>),
    default: "initial",
    about: "the isolation of the handles",
};
pub(crate) const FDP_PERSISTENT: OptionKind = OptionKind {
    name: "fdp-persistent",
    values: Values::Text(512),
    default: "",
    about: "handles with fdp-isolation=persistent among others, such as 0+3 (not set: none)",
};
pub(crate) const FDP_DEFAULT: OptionKind = OptionKind {
    name: "fdp-default",
    values: Values::Count(0, MOST_IDENTIFIERS as u64 - 1),
    default: "0",
    about: "the handle of writes without a placement identifier",
};

/// The options that need `fdp`.
pub(crate) const OF_FDP: [&str; 4] = ["fdp-groups", "fdp-isolation", "fdp-persistent", "fdp-default"];

/// Reads the options of a victim policy.
pub type ReadVictim = fn(&Settings) -> Result<VictimPolicy, ExpressionError>;

/// The victim policies of this program. A caller with policies of its own passes a table with more rows to
/// [`PageSettings::read_with`].
pub static VICTIMS: &[Row<ReadVictim>] = &[
    Row { word: "greedy", about: "the block with the most invalid pages", value: |_| Ok(VictimPolicy::Greedy) },
    Row { word: "fifo", about: "the block that was closed first", value: |_| Ok(VictimPolicy::Fifo) },
    Row { word: "random", about: "any block", value: |_| Ok(VictimPolicy::Random) },
    Row {
        word: "d-choices",
        about: "the best of d blocks drawn at random",
        value: |settings| Ok(VictimPolicy::DChoices(settings.count("d") as u32)),
    },
    Row {
        word: "cost-benefit",
        about: "the largest age x (1 - u) / 2u, with u the valid share",
        value: |_| Ok(VictimPolicy::CostBenefit),
    },
];

/// The destination of copies.
#[derive(Clone, Copy, PartialEq)]
pub(crate) enum Frontiers {
    /// Blocks of their own.
    Separate,
    /// The blocks of host writes.
    Shared,
}

impl Frontiers {
    /// The number of frontiers for each stream.
    pub fn count(self) -> u64 {
        match self {
            Frontiers::Separate => 2,
            Frontiers::Shared => 1,
        }
    }
}

impl Choice for Frontiers {
    const WORDS: &'static [(&'static str, Self, &'static str)] = &[
        ("separate", Frontiers::Separate, "host writes and copies go to blocks of their own"),
        ("shared", Frontiers::Shared, "they share blocks"),
    ];
}

/// The words of `streams`: [`Streams`] without its number.
#[derive(Clone, Copy, PartialEq)]
pub(crate) enum StreamKind {
    /// No property.
    None,
    /// The content.
    Content,
    /// The host's hint.
    Hint,
}

impl Choice for StreamKind {
    const WORDS: &'static [(&'static str, Self, &'static str)] = &[
        ("none", StreamKind::None, "all writes go to the same blocks"),
        ("content", StreamKind::Content, "data, metadata, journal and mapping go to blocks of their own"),
        ("hint", StreamKind::Hint, "each placement hint of the host goes to blocks of its own"),
    ];
}

/// The words of `wear`: [`WearLevelling`] without its number.
#[derive(Clone, Copy, PartialEq)]
pub(crate) enum Wear {
    /// None.
    None,
    /// By the erased blocks.
    Dynamic,
    /// Also by blocks that hold pages.
    Static,
}

impl Choice for Wear {
    const WORDS: &'static [(&'static str, Self, &'static str)] = &[
        ("none", Wear::None, "erased blocks are used in the order in which they were erased"),
        ("dynamic", Wear::Dynamic, "the least worn erased block is used first"),
        ("static", Wear::Static, "dynamic, and pages that do not change are moved to the most worn blocks"),
    ];
}

/// Refuses the options of reclaim units: another layer has them ([`crate::translation::fdp`]).
fn refuse_fdp(settings: &Settings) -> Result<(), ExpressionError> {
    if !settings.kind().options.iter().any(|option| option.name == FDP.name) {
        return Ok(());
    }
    if settings.is_set(FDP.name) {
        let message = "a station with victim policies of its own collects blocks, not reclaim units".to_string();
        return Err(settings.error(
            FDP.name,
            message,
            "take the station page of the library, or remove the options of fdp".to_string(),
        ));
    }
    match OF_FDP.into_iter().find(|option| settings.is_given(option)) {
        Some(option) => {
            let message = format!("{option} has no effect without fdp");
            Err(settings.error(option, message, "add fdp=8, or remove it".to_string()))
        }
        None => Ok(()),
    }
}

/// The blocks among which a victim is chosen.
#[derive(Clone, Copy, PartialEq)]
pub(crate) enum Scope {
    Plane,
    Drive,
}

impl Choice for Scope {
    const WORDS: &'static [(&'static str, Self, &'static str)] = &[
        (
            "plane",
            Scope::Plane,
            "those of the plane with the fewest erased ones; with spare-shares those of the stream",
        ),
        ("drive", Scope::Drive, "all"),
    ];
}

/// The property by which pages are separated into streams.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Streams {
    /// None: one stream.
    None,
    /// The content: data, metadata, journal, mapping.
    Content,
    /// The host's placement hint, modulo this.
    Hint(u8),
}

impl Streams {
    /// The number of streams.
    pub fn count(self) -> usize {
        match self {
            Streams::None => 1,
            Streams::Content => crate::label::Content::COUNT,
            Streams::Hint(hints) => hints as usize,
        }
    }
}

/// Wear levelling.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WearLevelling {
    /// None.
    None,
    /// The least worn erased block is taken first.
    Dynamic,
    /// Dynamic; and a block whose erase count lags by this much is emptied.
    Static(u32),
}

/// The parsed options of `page`.
#[derive(Debug, Clone)]
pub struct PageSettings {
    /// Pages offered to the host.
    pub exported_pages: u64,
    /// The policy of victim selection.
    pub victim: VictimPolicy,
    /// True if copies go to the blocks of host writes.
    pub shared_frontier: bool,
    /// The property by which pages are separated.
    pub streams: Streams,
    /// Each stream's share of the spare space, if they are set.
    pub spare_shares: Option<Vec<f64>>,
    /// True if a victim is chosen among the blocks of a plane.
    pub is_by_plane: bool,
    /// The rule for the plane of a page.
    pub place: Place,
    /// Erased blocks reserved for copies; of a drive whose pages have places a multiple of its planes.
    pub reserve: u32,
    /// Blocks beyond those that hold the exported pages, and are open or in reserve.
    pub spare_blocks: u32,
    /// Erased blocks beyond the reserve that collection makes ahead of the host.
    pub ahead: u32,
    /// Collection in steps; `None`: a victim is collected at once.
    pub pace: Option<PaceSettings>,
    /// Wear levelling.
    pub wear: WearLevelling,
    /// The target of background collection, in erased blocks.
    pub background_blocks: u32,
    /// The cache in SLC mode, if there is one.
    pub slc: Option<SlcSettings>,
    /// True if a page of flash that waits for more pages would be lost in a power cut: it is filled before an erase.
    pub fills_before_erase: bool,
    /// The write buffer, if there is one.
    pub buffer: Option<BufferSettings>,
    /// The term with all option values.
    pub written_out: String,
}

impl PageSettings {
    /// Parses a term for a drive of this geometry. Errors point at the wrong option; a drive too small for its open
    /// blocks and its reserve is rejected with a size or share that fits.
    pub fn read(term: &Term, geometry: &Geometry) -> Result<PageSettings, ExpressionError> {
        PageSettings::read_with(term, geometry, &KIND, VICTIMS)
    }

    /// Parses a term with the caller's victim policies: `kind` is [`KIND`], perhaps with another name, in which `victim`
    /// takes their names ([`Kind::with_options`]).
    ///
    /// # Panics
    ///
    /// If `kind` lacks an option of [`KIND`], or the words of its `victim` are not those of `victims`: a bug of the caller.
    pub fn read_with(
        term: &Term,
        geometry: &Geometry,
        kind: &'static Kind,
        victims: &[Row<ReadVictim>],
    ) -> Result<PageSettings, ExpressionError> {
        PageSettings::of(&term.settle(kind)?, geometry, victims, |_| 0)
    }

    /// The same for a station with these options and more. `beside` returns the pages of flash that it needs beyond a
    /// number of exported ones.
    pub(crate) fn of(
        settings: &Settings,
        geometry: &Geometry,
        victims: &[Row<ReadVictim>],
        beside: impl Fn(u64) -> u64,
    ) -> Result<PageSettings, ExpressionError> {
        refuse_fdp(settings)?;
        let exported = Exported::read(settings)?;
        let victim = settings.row("victim", victims)(settings)?;
        let (kind, wear) = (settings.choice("streams"), settings.choice::<Wear>("wear"));
        let draws = matches!(victim, VictimPolicy::DChoices(_));
        if settings.is_given("d") && !draws {
            let help = "add victim=d-choices, or remove it".to_string();
            return Err(settings.error("d", "d has no effect without victim=d-choices".to_string(), help));
        }
        if settings.is_given("hints") && kind != StreamKind::Hint {
            let help = "add streams=hint, or remove it".to_string();
            return Err(settings.error("hints", "hints has no effect without streams=hint".to_string(), help));
        }
        if settings.is_given("wear-gap") && wear != Wear::Static {
            let help = "add wear=static, or remove it".to_string();
            return Err(settings.error("wear-gap", "wear-gap has no effect without wear=static".to_string(), help));
        }
        let streams = match kind {
            StreamKind::None => Streams::None,
            StreamKind::Content => Streams::Content,
            StreamKind::Hint => Streams::Hint(settings.count("hints") as u8),
        };
        let buffer = BufferSettings::read(settings, geometry)?;
        let keeps_open_pages = buffer.is_some_and(|buffer| buffer.is_protected);
        let shared_frontier = settings.choice::<Frontiers>("frontiers") == Frontiers::Shared;
        let place = Place::read(settings, geometry)?;
        let reserve = settings.count("reserve") as u32;
        let page = PageSettings {
            place,
            exported_pages: exported.count(geometry.pages(), 1, geometry.page_bytes.into()),
            victim,
            shared_frontier,
            streams,
            spare_shares: Self::spare_shares(settings, streams)?,
            reserve: match place {
                Place::Turn => reserve,
                // A victim's pages must fit on its plane.
                Place::Address(_) => reserve.next_multiple_of(geometry.units()),
            },
            is_by_plane: settings.choice::<Scope>("scope") == Scope::Plane,
            spare_blocks: 0,
            ahead: 0,
            pace: None,
            wear: match wear {
                Wear::None => WearLevelling::None,
                Wear::Dynamic => WearLevelling::Dynamic,
                Wear::Static => WearLevelling::Static(settings.count("wear-gap") as u32),
            },
            background_blocks: (f64::from(geometry.blocks) * settings.share("background")) as u32,
            slc: SlcSettings::read(settings, geometry, shared_frontier)?,
            fills_before_erase: geometry.pages_per_program > 1 && !keeps_open_pages,
            buffer,
            written_out: settings.written_out(&Self::meaningless(settings, draws)),
        };
        let spare_blocks = page.check_room(settings, geometry, exported, beside(page.exported_pages))?;
        let spare_blocks = SlcSettings::check_room(page.slc.as_ref(), settings, geometry, spare_blocks)?;
        let ahead = match settings.is_set("ahead") {
            true => settings.count("ahead") as u32,
            false if geometry.units() == 1 || settings.is_set("pace") || place != Place::Turn => 0,
            false => (2 * geometry.units()).min(spare_blocks / 16),
        };
        if ahead > spare_blocks {
            let message =
                format!("{ahead} blocks are not to be had: {spare_blocks} are spare, and neither open nor in reserve");
            return Err(settings.error("ahead", message, format!("take at most ahead={spare_blocks}")));
        }
        let pace = settings.is_set("pace").then(|| {
            let step = settings.count("pace") as u32;
            let open_blocks = page.open_blocks(geometry) as u32;
            PaceSettings::new(step, geometry.units(), spare_blocks, (page.reserve + ahead, open_blocks))
        });
        Ok(PageSettings { spare_blocks, ahead, pace, ..page })
    }

    /// Options without effect, given the others; they are rejected if written.
    fn meaningless(settings: &Settings, draws: bool) -> Vec<&'static str> {
        let ruled_out = [
            ("export", settings.is_given("op")),
            ("d", !draws),
            ("hints", settings.choice::<StreamKind>("streams") != StreamKind::Hint),
            ("wear-gap", settings.choice::<Wear>("wear") != Wear::Static),
        ];
        let ruled_out = ruled_out.into_iter().filter(|(_, is_ruled_out)| *is_ruled_out).map(|(name, _)| name);
        let of_cache = SlcSettings::meaningless(settings).iter().copied();
        ruled_out.chain(BufferSettings::meaningless(settings)).chain(of_cache).chain(OF_FDP).collect()
    }

    fn spare_shares(settings: &Settings, streams: Streams) -> Result<Option<Vec<f64>>, ExpressionError> {
        if !settings.kind().options.iter().any(|option| option.name == "spare-shares")
            || !settings.is_set("spare-shares")
        {
            return Ok(None);
        }
        let shares = settings.shares("spare-shares");
        let help = || format!("write {} shares that add up to 100%", streams.count());
        if streams.count() == 1 {
            let message = "there is one stream: it has all the spare space".to_string();
            let help = "add streams=hint or streams=content, or remove it".to_string();
            return Err(settings.error("spare-shares", message, help));
        }
        if shares.len() != streams.count() {
            let message = format!("{} shares for {} streams", shares.len(), streams.count());
            return Err(settings.error("spare-shares", message, help()));
        }
        let sum: f64 = shares.iter().sum();
        if (sum - 1.0).abs() > 0.001 {
            let message = format!("the shares add up to {:.1}%", sum * 100.0);
            return Err(settings.error("spare-shares", message, help()));
        }
        Ok(Some(shares))
    }

    /// The blocks that are always in SLC mode.
    pub fn fixed_slc_blocks(&self) -> u32 {
        self.slc.as_ref().map_or(0, SlcSettings::fixed_blocks)
    }

    /// Blocks of all frontiers.
    fn open_blocks(&self, geometry: &Geometry) -> u64 {
        let frontiers = if self.shared_frontier { 1 } else { 2 };
        self.streams.count() as u64 * frontiers * u64::from(geometry.units())
    }

    /// Blocks that can be open or in reserve at once, and therefore cannot be collected.
    fn uncollectable_blocks(&self, geometry: &Geometry) -> u64 {
        let wear = u64::from(matches!(self.wear, WearLevelling::Static(_)));
        // Planes that collect for themselves have one each that no other can lend, and may have a block less than others.
        let apart = if self.place == Place::Turn { 0 } else { 2 * u64::from(geometry.units()) };
        self.open_blocks(geometry) + u64::from(self.reserve) + wear + apart
    }

    /// Pages that may be padding in blocks which collection gains nothing from: as many in each as it may add itself.
    fn most_padding(&self, geometry: &Geometry) -> u64 {
        if !self.fills_before_erase {
            return 0;
        }
        // An open page of flash for the hosts of each stream, two for those of a map, and one for the copies.
        let open = self.streams.count() as u64 + 3;
        u64::from(geometry.blocks) * open * u64::from(geometry.pages_per_program - 1)
    }

    fn check_room(
        &self,
        settings: &Settings,
        geometry: &Geometry,
        exported: Exported,
        beside: u64,
    ) -> Result<u32, ExpressionError> {
        let per_block = u64::from(geometry.pages_per_block);
        let beside = beside + self.most_padding(geometry);
        let held_back = self.uncollectable_blocks(geometry) + 1 + beside.div_ceil(per_block);
        let needed = held_back * per_block;
        let spare = geometry.pages().saturating_sub(self.exported_pages);
        if self.exported_pages > 0 && spare >= needed {
            return Ok(((spare - needed) / per_block) as u32);
        }
        let page_bytes = u64::from(geometry.page_bytes);
        let block_bytes = per_block * page_bytes;
        let message = format!(
            "the drive is too small for its reserves: {} blocks can be open or in reserve, and {} are spare",
            held_back,
            spare / per_block,
        );
        let exported_share = match exported {
            Exported::Share(share) => share,
            Exported::Bytes(_) => {
                let help = Exported::more_spare(settings, geometry, self.exported_pages * page_bytes, held_back);
                return Err(settings.error(if settings.is_given("op") { "op" } else { "export" }, message, help));
            }
        };
        // Padding grows with the size, the rest does not.
        let padding = self.most_padding(geometry);
        let left = (1.0 - exported_share) - padding as f64 / geometry.pages().max(1) as f64;
        let size = ((needed - padding.min(needed)) as f64 / left.max(1e-3) * page_bytes as f64) as u64;
        let size = size.div_ceil(block_bytes) * block_bytes + block_bytes;
        // Rounded up to a readable size, at most a thirty-second larger.
        let size = size.next_multiple_of(1 << (size.ilog2() - 5));
        let share = 1.0 - needed as f64 / geometry.pages() as f64;
        let percent = (share * 1000.0).floor() / 10.0;
        let help = match (left > 0.0, share > 0.01) {
            (true, true) => format!("take size={}, or export={percent}%", format_size(size)),
            (true, false) => format!("take size={}", format_size(size)),
            (false, true) => format!("take export={percent}%, or blocks of more pages (pages-per-block=)"),
            (false, false) => "take blocks of more pages (pages-per-block=)".to_string(),
        };
        let option = if settings.is_given("op") { "op" } else { "export" };
        Err(settings.error(option, message, help))
    }
}

impl FlashLayer for PageSettings {
    type On<T: Timing + Send + 'static> = PageLevel<T, RamMap>;

    fn read(term: &Term, geometry: &Geometry) -> Result<PageSettings, ExpressionError> {
        PageSettings::read(term, geometry)
    }

    fn written_out(&self) -> &str {
        &self.written_out
    }

    fn exported_pages(&self) -> u64 {
        self.exported_pages
    }

    fn buffer(&self) -> Option<BufferSettings> {
        self.buffer
    }

    fn refuses_errors(&self) -> Option<(&'static str, &'static str)> {
        let of_cache = self.slc.map(|_| ("gives up no block of its cache in SLC mode", "remove slc-cache, or errors"));
        let has_place = self.place != Place::Turn;
        of_cache.or(has_place.then_some(("has no block for a page whose plane has none", "remove place, or errors")))
    }

    fn on<T: Timing + Send + 'static>(&self, flash: Nand<T>, seed: u64) -> PageLevel<T, RamMap> {
        PageLevel::new(flash, self, RamMap::new(self.exported_pages), seed)
    }
}
