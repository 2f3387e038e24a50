//! The options of `page` with `fdp=`.

use super::FdpLayer;
use crate::device::nand::{Geometry, Nand, Timing};
use crate::device::{Isolation, MOST_IDENTIFIERS};
use crate::expression::{ExpressionError, Settings, Term};
use crate::label::Content;
use crate::translation::exported::Exported;
use crate::translation::page_level::settings::{StreamKind, Wear};
use crate::translation::page_level::{KIND, VICTIMS};
use crate::translation::{BufferSettings, FlashLayer, VictimPolicy};

/// The property by which a write gets its handle.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PlacedBy {
    /// None: all writes go to the default handle.
    Nothing,
    /// The content: the handle of its number.
    Content,
    /// The host's hint: none, or a placement identifier.
    Identifier,
}

/// The parsed options of `page` with `fdp=`.
#[derive(Debug, Clone)]
pub struct FdpSettings {
    /// Pages offered to the host.
    pub exported_pages: u64,
    /// The policy of victim selection, among the units of a group.
    pub victim: VictimPolicy,
    /// The property by which a write gets its handle.
    pub placed_by: PlacedBy,
    /// The isolation of each handle.
    pub handles: Vec<Isolation>,
    /// Reclaim groups.
    pub groups: u32,
    /// The handle of writes without an identifier.
    pub default_handle: u8,
    /// Erased units of each group reserved for copies.
    pub reserve: u32,
    /// True if the least worn erased unit is taken first.
    pub by_wear: bool,
    /// The target of background collection: a share of a group's units.
    pub background: f64,
    /// True if a page of flash that waits for more pages would be lost in a power cut: it is filled before an erase.
    pub fills_before_erase: bool,
    /// The write buffer, if there is one.
    pub buffer: Option<BufferSettings>,
    /// The term with all option values.
    pub written_out: String,
}

/// Options of blocks, which have no meaning with units, and the remedy.
const OF_BLOCKS: [(&str, &str); 7] = [
    ("frontiers", "copies go to units of their own, as the isolation of the handles says: remove it"),
    ("hints", "the handles are those of fdp: remove it"),
    ("spare-shares", "fdp divides no spare space: remove it, or take streams=hint without fdp"),
    ("scope", "a reclaim group collects its own units: take fdp-groups"),
    ("ahead", "units are collected when a handle needs one: remove it"),
    ("pace", "units are collected whole: remove it, or take streams=hint without fdp"),
    ("place", "a unit has a block on each plane, and is written over all of them: remove it"),
];

impl FdpSettings {
    /// Parses a term of `page` for a drive of this geometry. Errors point at the wrong option.
    pub fn read(term: &Term, geometry: &Geometry) -> Result<FdpSettings, ExpressionError> {
        let mut settings = term.settle(&KIND)?;
        settings.set_default("streams", "hint");
        if let Some((option, remedy)) = OF_BLOCKS.into_iter().find(|(option, _)| settings.is_given(option)) {
            let message = format!("{option} has no effect on reclaim units (fdp)");
            return Err(settings.error(option, message, remedy.to_string()));
        }
        if settings.choice::<Wear>("wear") == Wear::Static || settings.is_given("wear-gap") {
            let option = if settings.is_given("wear-gap") { "wear-gap" } else { "wear" };
            let message = "units are not moved to even out their wear".to_string();
            return Err(settings.error(option, message, "take wear=dynamic or wear=none".to_string()));
        }
        let victim = settings.row("victim", VICTIMS)(&settings)?;
        let draws = matches!(victim, VictimPolicy::DChoices(_));
        if settings.is_given("d") && !draws {
            let help = "add victim=d-choices, or remove it".to_string();
            return Err(settings.error("d", "d has no effect without victim=d-choices".to_string(), help));
        }
        let handles = isolations(&settings)?;
        let groups = groups(&settings, handles.len() as u32, geometry)?;
        let default_handle = settings.count("fdp-default");
        if default_handle >= handles.len() as u64 {
            let message = format!("there is no handle {default_handle}: {} are numbered from 0", handles.len());
            return Err(settings.error("fdp-default", message, format!("take at most {}", handles.len() - 1)));
        }
        let placed_by = match settings.choice::<StreamKind>("streams") {
            StreamKind::None => PlacedBy::Nothing,
            StreamKind::Content if handles.len() < Content::COUNT => {
                let message = format!("{} contents have no handle each", Content::COUNT);
                return Err(settings.error("streams", message, format!("take fdp={} or more", Content::COUNT)));
            }
            StreamKind::Content => PlacedBy::Content,
            StreamKind::Hint => PlacedBy::Identifier,
        };
        let exported = Exported::read(&settings)?;
        let buffer = BufferSettings::read(&settings, geometry)?;
        let keeps_open_pages = buffer.is_some_and(|buffer| buffer.is_protected);
        let read = FdpSettings {
            exported_pages: exported.count(geometry.pages(), 1, geometry.page_bytes.into()),
            victim,
            placed_by,
            handles,
            groups,
            default_handle: default_handle as u8,
            reserve: settings.count("reserve") as u32,
            by_wear: settings.choice::<Wear>("wear") == Wear::Dynamic,
            background: settings.share("background"),
            fills_before_erase: geometry.pages_per_program > 1 && !keeps_open_pages,
            buffer,
            written_out: settings.written_out(&meaningless(&settings, draws)),
        };
        read.check_room(&settings, geometry)?;
        Ok(read)
    }

    /// The number of open units for copies in a group; one of them is shared.
    pub fn open_for_copies(&self) -> usize {
        1 + self.persistent(self.handles.len())
    }

    /// The handles below `end` that are persistently isolated.
    fn persistent(&self, end: usize) -> usize {
        self.handles[..end].iter().filter(|isolation| **isolation == Isolation::Persistent).count()
    }

    /// The number, in its group, of the open unit for the copies of a handle.
    pub fn place_of_copies(&self, handle: usize) -> usize {
        match self.handles[handle] {
            Isolation::Initial => 0,
            Isolation::Persistent => 1 + self.persistent(handle),
        }
    }

    /// The placement identifiers.
    pub fn identifiers(&self) -> usize {
        self.groups as usize * self.handles.len()
    }

    /// The pages of a unit.
    fn unit_pages(&self, geometry: &Geometry) -> u64 {
        u64::from(geometry.units() / self.groups) * u64::from(geometry.pages_per_block)
    }

    /// The units of a group that can be open or in reserve at once, and one of invalid pages, from which collection gains.
    fn held_back(&self) -> u64 {
        let are_all_persistent = self.persistent(self.handles.len()) == self.handles.len();
        let copies = self.open_for_copies() - usize::from(are_all_persistent);
        (self.handles.len() + copies) as u64 + u64::from(self.reserve) + 1
    }

    /// The pages of a group with so many usable units that may be valid.
    pub(super) fn most_valid(&self, usable: u32, geometry: &Geometry) -> u64 {
        let usable = u64::from(usable).saturating_sub(self.held_back());
        // Collection may add padding itself: to each open page of flash at each erase.
        let open = if self.fills_before_erase { self.handles.len() + self.open_for_copies() } else { 0 };
        let padding = (open as u64 * u64::from(geometry.pages_per_program - 1)).min(self.unit_pages(geometry));
        usable * (self.unit_pages(geometry) - padding)
    }

    fn check_room(&self, settings: &Settings, geometry: &Geometry) -> Result<(), ExpressionError> {
        let rows = geometry.blocks / geometry.units().max(1);
        let most = u64::from(self.groups) * self.most_valid(rows, geometry);
        if self.exported_pages > 0 && self.exported_pages <= most {
            return Ok(());
        }
        let message = format!(
            "the drive is too small for its reserves: of the {rows} units of a group, {} can be open or in reserve",
            self.held_back()
        );
        let percent = (most as f64 / geometry.pages().max(1) as f64 * 1000.0).floor() / 10.0;
        let fewer = format!(
            "take a larger size, smaller blocks (pages-per-block=), fewer handles than fdp={}",
            self.handles.len()
        );
        let help = if percent >= 1.0 { format!("{fewer}, or export={percent}%") } else { fewer };
        let option = if settings.is_given("op") { "op" } else { "export" };
        Err(settings.error(option, message, help))
    }
}

/// The isolation of each handle.
fn isolations(settings: &Settings) -> Result<Vec<Isolation>, ExpressionError> {
    let count = settings.count("fdp") as usize;
    let all = settings.choice::<Isolation>("fdp-isolation");
    let mut handles = vec![all; count];
    if !settings.is_set("fdp-persistent") {
        return Ok(handles);
    }
    if all == Isolation::Persistent {
        let message = "all handles are persistently isolated".to_string();
        return Err(settings.error("fdp-persistent", message, "remove it, or fdp-isolation".to_string()));
    }
    for word in settings.text("fdp-persistent").split('+') {
        let handle = word.parse::<usize>().ok().filter(|handle| *handle < count);
        let Some(handle) = handle else {
            let message = format!("'{word}' is no handle: {count} are numbered from 0");
            let help = format!("write numbers up to {} joined by +, such as 0+{}", count - 1, count - 1);
            return Err(settings.error("fdp-persistent", message, help));
        };
        handles[handle] = Isolation::Persistent;
    }
    Ok(handles)
}

/// The number of reclaim groups.
fn groups(settings: &Settings, handles: u32, geometry: &Geometry) -> Result<u32, ExpressionError> {
    let (groups, planes) = (settings.count("fdp-groups") as u32, geometry.units());
    if !planes.is_multiple_of(groups) {
        let message = format!("the {planes} planes are no {groups} equal groups");
        let fitting: Vec<String> = (1..=planes.min(MOST_IDENTIFIERS))
            .filter(|some| planes.is_multiple_of(*some))
            .map(|some| some.to_string())
            .collect();
        return Err(settings.error("fdp-groups", message, format!("take {}", fitting.join(", "))));
    }
    if groups * handles > MOST_IDENTIFIERS {
        let message = format!("{groups} groups of {handles} handles have {} placement identifiers", groups * handles);
        return Err(settings.error("fdp-groups", message, format!("take at most {MOST_IDENTIFIERS} in all")));
    }
    Ok(groups)
}

/// Options without effect, given the others.
fn meaningless(settings: &Settings, draws: bool) -> Vec<&'static str> {
    let ruled_out = [("export", settings.is_given("op")), ("d", !draws), ("wear-gap", true)];
    let ruled_out = ruled_out.into_iter().filter(|(_, is_ruled_out)| *is_ruled_out).map(|(name, _)| name);
    let of_blocks = OF_BLOCKS.into_iter().map(|(option, _)| option);
    ruled_out.chain(of_blocks).chain(BufferSettings::meaningless(settings)).collect()
}

impl FlashLayer for FdpSettings {
    type On<T: Timing + Send + 'static> = FdpLayer<T>;

    fn read(term: &Term, geometry: &Geometry) -> Result<FdpSettings, ExpressionError> {
        FdpSettings::read(term, geometry)
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
        Some(("gives up no block of a reclaim unit (fdp)", "remove fdp, or errors"))
    }

    fn on<T: Timing + Send + 'static>(&self, flash: Nand<T>, seed: u64) -> FdpLayer<T> {
        FdpLayer::new(flash, self, seed)
    }
}
