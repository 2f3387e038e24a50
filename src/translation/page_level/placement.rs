//! Pages on the plane of their address: the planes of such a drive collect for themselves.
//!
//! Hosts wait for a plane that has many of their pages while others idle. The default, the next plane in turn, has no such waits.

use crate::device::nand::{Geometry, LogicalPage};
use crate::expression::{Choice, ExpressionError, OptionKind, Settings, Values, words};

pub(crate) const PLACE: OptionKind = OptionKind {
    name: "place",
    values: Values::Choice(words::<Place>),
    default: "turn",
    about: "the plane of a page: the next in turn, or that of its address, over channels (c), dies (d) and planes (p) in this order",
};

/// The rule for the plane of a page.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Place {
    /// The next plane in turn.
    Turn,
    /// By address: neighbours differ first in the first of these.
    Address([Part; 3]),
}

/// A part of the place of a plane.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Part {
    /// Its channel.
    Channel,
    /// Its die on the channel.
    Die,
    /// Its number in the die.
    Plane,
}

impl Choice for Place {
    const WORDS: &'static [(&'static str, Self, &'static str)] = {
        use Part::{Channel, Die, Plane};
        &[
            ("turn", Place::Turn, "the next plane in turn, whatever the address"),
            ("cdp", Place::Address([Channel, Die, Plane]), ""),
            ("cpd", Place::Address([Channel, Plane, Die]), ""),
            ("dcp", Place::Address([Die, Channel, Plane]), ""),
            ("dpc", Place::Address([Die, Plane, Channel]), ""),
            ("pcd", Place::Address([Plane, Channel, Die]), ""),
            ("pdc", Place::Address([Plane, Die, Channel]), ""),
        ]
    };
}

impl Place {
    /// Reads the option, if the station has it. Errors point at an option that has no meaning beside a fixed place.
    pub(super) fn read(settings: &Settings, geometry: &Geometry) -> Result<Place, ExpressionError> {
        if !settings.kind().options.iter().any(|option| option.name == PLACE.name) {
            return Ok(Place::Turn);
        }
        let place = settings.choice::<Place>(PLACE.name);
        if place == Place::Turn {
            return Ok(place);
        }
        if geometry.units() == 1 {
            let message = "a drive of one plane has one place for its pages".to_string();
            return Err(settings.error(PLACE.name, message, "add channels=2, or remove it".to_string()));
        }
        if geometry.pages_per_program > 1 {
            let message = "units of one page of flash would wait on all planes for others".to_string();
            return Err(settings.error(PLACE.name, message, "remove unit of nand, or place".to_string()));
        }
        for (option, reason) in [
            ("pace", "free space of the whole drive is kept level"),
            ("ahead", "each plane collects when it needs a block"),
            ("spare-shares", "victims are chosen by plane"),
            ("slc-cache", "the blocks of the cache are taken in turn"),
            ("wear-gap", "cold pages go to the most worn block of any plane"),
        ] {
            if settings.is_given(option) && settings.is_set(option) && settings.text(option) != "0" {
                let message = format!("{option} has no meaning with place={}: {reason}", settings.text(PLACE.name));
                return Err(settings.error(option, message, format!("remove {option}, or place")));
            }
        }
        for (option, word) in [("wear", "static"), ("scope", "drive")] {
            if settings.text(option) == word {
                let message = format!("{option}={word} takes blocks of any plane, and a page has its own");
                return Err(settings.error(option, message, format!("remove {option}, or place")));
            }
        }
        Ok(place)
    }

    /// The planes of consecutive pages, until they repeat; `None` in turn.
    pub(super) fn planes(self, geometry: &Geometry) -> Option<Box<[u32]>> {
        let Place::Address(order) = self else { return None };
        let size = |part| match part {
            Part::Channel => geometry.channels,
            Part::Die => geometry.dies,
            Part::Plane => geometry.planes,
        };
        let step = |part| match part {
            Part::Channel => 1,
            Part::Die => geometry.channels,
            Part::Plane => geometry.channels * geometry.dies,
        };
        let plane_of = |page: u32| {
            let add = |(plane, rest): (u32, u32), part| (plane + rest % size(part) * step(part), rest / size(part));
            order.into_iter().fold((0, page), add).0
        };
        Some((0..geometry.units()).map(plane_of).collect())
    }
}

/// The plane of a page, by its address.
#[inline]
pub(super) fn plane_of(planes: &[u32], page: LogicalPage) -> u32 {
    planes[page.0 as usize % planes.len()]
}
