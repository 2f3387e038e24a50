//! The commands that a die takes: for one plane or several, and for the next page while it programs.

use crate::expression::{Choice, ExpressionError, OptionKind, Settings, Values, words};

pub(super) const PLANE_COMMANDS: OptionKind = OptionKind {
    name: "plane-commands",
    values: Values::Choice(words::<PlaneCommands>),
    default: "independent",
    about: "the work that the planes of a die do at the same time",
};
pub(super) const CACHE_PROGRAM: OptionKind = OptionKind {
    name: "cache-program",
    values: Values::Switch,
    default: "off",
    about: "on: the next page of a block is transferred while the page before it is programmed",
};

/// The work that the planes of a die do at the same time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum PlaneCommands {
    /// Anything: each plane works for itself.
    #[default]
    Independent,
    /// One command, which may program pages of the same number, or erase blocks, in several planes.
    Multi,
    /// The same, if the blocks have the same number in their planes.
    SameBlock,
    /// One operation.
    Single,
}

impl Choice for PlaneCommands {
    const WORDS: &'static [(&'static str, Self, &'static str)] = &[
        ("independent", PlaneCommands::Independent, "each plane works for itself"),
        (
            "multi",
            PlaneCommands::Multi,
            "a die does one command at a time, which programs pages of one number, or erases, in several planes",
        ),
        ("multi-same-block", PlaneCommands::SameBlock, "so, if the blocks have the same number in their planes"),
        ("single", PlaneCommands::Single, "a die does one operation at a time"),
    ];
}

/// The commands that a die takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct DieCommands {
    /// The work of its planes at the same time.
    pub planes: PlaneCommands,
    /// True if the next page of a block is transferred while the page before it is programmed.
    pub cache_program: bool,
}

impl DieCommands {
    /// Reads the options. Errors point at one that would have no effect, or that has no meaning beside another.
    pub(super) fn read(settings: &Settings) -> Result<DieCommands, ExpressionError> {
        let commands = DieCommands {
            planes: settings.choice::<PlaneCommands>("plane-commands"),
            cache_program: settings.switch("cache-program"),
        };
        let has_planes = settings.count("planes") > 1;
        let refuse = |name, message: &str, help: &str| Err(settings.error(name, message.to_string(), help.to_string()));
        if commands.planes != PlaneCommands::Independent {
            if !has_planes {
                return refuse("plane-commands", "a die of one plane has no others", "add planes=2, or remove it");
            }
            if !settings.switch("timing") {
                return refuse(
                    "plane-commands",
                    "without times no plane waits for another",
                    "remove timing=off, or it",
                );
            }
        }
        if commands.cache_program {
            if !settings.switch("timing") {
                return refuse("cache-program", "without times a transfer takes none", "remove timing=off, or it");
            }
            if settings.is_set("suspend") {
                let message = "a read that interrupts a program needs the register in which the next page is";
                return refuse("cache-program", message, "remove suspend, or cache-program=on");
            }
        }
        Ok(commands)
    }

    /// True if later operations join a command, or wait in a register.
    pub(super) fn depend_on_later(self) -> bool {
        match self.planes {
            PlaneCommands::Multi | PlaneCommands::SameBlock => true,
            PlaneCommands::Independent | PlaneCommands::Single => self.cache_program,
        }
    }

    /// The parts of a drive of which each does one command at a time: its planes, or its dies.
    pub(super) fn lanes(self, geometry: &super::Geometry) -> u32 {
        match self.planes {
            PlaneCommands::Independent => geometry.units(),
            PlaneCommands::Multi | PlaneCommands::SameBlock | PlaneCommands::Single => {
                geometry.channels * geometry.dies
            }
        }
    }
}
