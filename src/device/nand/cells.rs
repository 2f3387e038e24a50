//! Cells of several bits: the pages of a word line, the operations that program them, and blocks in SLC mode.
//!
//! The cells of a word line hold `bits` pages of flash, which are neighbours in their erase block:
//!
//! ```text
//! page of flash   0     1     2     | 3     4     5     | 6 ...
//! word line       0                 | 1                 | 2
//! page of it      lower middle upper| lower middle upper|
//! ```
//!
//! | `program-passes` | a word line is programmed |
//! |---|---|
//! | not set | page by page, each with a time of its own |
//! | 1 | at once, when all its pages are there |
//! | 2 | coarsely when all its pages are there, and finely after the coarse pass of the next word line |
//!
//! A block in SLC mode holds a page for each word line. It is programmed page by page, and has times and an endurance of its
//! own.

use super::geometry::Geometry;
use crate::expression::{Choice, ExpressionError, OptionKind, Settings, Values, words};

pub(super) const CELLS: OptionKind = OptionKind {
    name: "cells",
    values: Values::Choice(words::<CellKind>),
    default: "",
    about: "the bits of a cell: so many pages of flash share a word line (not set: pages are alike)",
};
pub(super) const PROGRAM_PASSES: OptionKind = OptionKind {
    name: "program-passes",
    values: Values::Count(1, 2),
    default: "",
    about: "the programs of a whole word line, which waits in protected memory for its pages: 1 at once, 2 coarse and fine (not set: page by page); needs cells",
};
pub(super) const SLC_READ: OptionKind = OptionKind {
    name: "slc-read",
    values: Values::Duration(0, 1_000_000_000),
    default: "25us",
    about: "the time to read a page of a block in SLC mode; needs cells",
};
pub(super) const SLC_PROGRAM: OptionKind = OptionKind {
    name: "slc-program",
    values: Values::Duration(0, 1_000_000_000),
    default: "200us",
    about: "the time to program a page of a block in SLC mode; needs cells",
};
pub(super) const SLC_ENDURANCE: OptionKind = OptionKind {
    name: "slc-endurance",
    values: Values::Count(1, 10_000_000),
    default: "30000",
    about: "erases before a block that is used in SLC mode alone is worn out; needs cells",
};

/// The options that need `cells`.
const NEED_CELLS: [&str; 4] = ["program-passes", "slc-read", "slc-program", "slc-endurance"];

/// The most bits of a cell.
const MOST_BITS: usize = 4;

/// The words of `cells`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum CellKind {
    Slc = 1,
    Mlc,
    Tlc,
    Qlc,
}

impl Choice for CellKind {
    const WORDS: &'static [(&'static str, Self, &'static str)] = &[
        ("slc", CellKind::Slc, "one bit"),
        ("mlc", CellKind::Mlc, "two bits"),
        ("tlc", CellKind::Tlc, "three bits"),
        ("qlc", CellKind::Qlc, "four bits"),
    ];
}

/// The name of cells with so many bits, 1 to 4.
pub fn cell_name(bits: u32) -> &'static str {
    let known = CellKind::WORDS.iter().find(|(_, kind, _)| *kind as u32 == bits);
    known.unwrap_or_else(|| panic!("a cell has 1 to {MOST_BITS} bits, not {bits}")).0
}

/// The operations that program a word line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WordLinePrograms {
    /// One for each page.
    ByPage,
    /// One for all pages.
    OneShot,
    /// Two for all pages.
    TwoPasses,
}

/// The kind of a page that an operation reads, or of what it programs: it determines the time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PageKind(pub(super) u8);

impl PageKind {
    /// A page of a drive whose pages are alike.
    pub const ALIKE: PageKind = PageKind(0);
    /// A page of a block in SLC mode.
    pub const SLC: PageKind = PageKind(5);
    /// A word line, at once or in its coarse pass.
    pub const WORD_LINE: PageKind = PageKind(6);
    /// A word line in its fine pass.
    pub const FINE: PageKind = PageKind(7);
    /// The number of kinds.
    pub(super) const COUNT: usize = 8;

    /// A page by its place in the word line, from 0.
    pub fn of_word_line(place: u32) -> PageKind {
        assert!((place as usize) < MOST_BITS, "a word line has at most {MOST_BITS} pages");
        PageKind(1 + place as u8)
    }

    pub(super) fn index(self) -> usize {
        usize::from(self.0) % PageKind::COUNT
    }
}

/// The times of operations on one kind of page.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PageTimes {
    /// A read from the array to the register, in nanoseconds.
    pub read_ns: u64,
    /// A program from the register to the array, in nanoseconds.
    pub program_ns: u64,
    /// The pages of flash that are transferred for a program.
    pub pages: u32,
}

/// The times of all kinds.
pub(super) type KindTimes = [PageTimes; PageKind::COUNT];

/// The cells of a drive.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cells {
    /// The bits of a cell: the pages of flash of a word line, 1 to 4.
    pub bits: u32,
    /// How word lines are programmed.
    pub programs: WordLinePrograms,
    /// Erases before a block that is used in SLC mode alone is worn out.
    pub slc_endurance: u32,
    times: KindTimes,
}

impl Cells {
    /// The times of a kind of page.
    pub fn times_of(&self, kind: PageKind) -> PageTimes {
        self.times[kind.index()]
    }

    pub(super) fn times(&self) -> KindTimes {
        self.times
    }

    /// Reads the options; `None` if pages are alike. Errors point at the wrong option.
    pub(super) fn read(settings: &Settings) -> Result<Option<Cells>, ExpressionError> {
        let (reads, programs) = (settings.durations_ns("read"), settings.durations_ns("program"));
        if !settings.is_set("cells") {
            if let Some(name) = NEED_CELLS.into_iter().find(|name| settings.is_given(name)) {
                let message = format!("{name} has no effect without cells");
                return Err(settings.error(name, message, "add cells=tlc, or remove it".to_string()));
            }
            for (name, times) in [("read", reads), ("program", programs)] {
                if times.len() > 1 {
                    let message = format!("{} times, and pages that are alike", times.len());
                    let help = "write one time, or the bits of a cell, such as cells=tlc".to_string();
                    return Err(settings.error(name, message, help));
                }
            }
            return Ok(None);
        }
        let bits = settings.choice::<CellKind>("cells") as u32;
        let passes = settings.is_set("program-passes").then(|| settings.count("program-passes"));
        let kind = match passes {
            None => WordLinePrograms::ByPage,
            Some(1) => WordLinePrograms::OneShot,
            Some(_) => WordLinePrograms::TwoPasses,
        };
        let (word, cell) = (settings.text("cells"), bits as usize);
        Self::check_number(settings, "read", reads.len(), cell, &format!("a word line of {word} has {cell} pages"))?;
        let (most, why) = match kind {
            WordLinePrograms::ByPage => (cell, format!("a word line of {word} has {cell} pages")),
            WordLinePrograms::OneShot => (1, "a word line is programmed at once".to_string()),
            WordLinePrograms::TwoPasses => (2, "a word line is programmed in two passes".to_string()),
        };
        Self::check_number(settings, "program", programs.len(), most, &why)?;
        let of = |times: &[u64], place: usize| times[place.min(times.len() - 1)];
        let mut times = [PageTimes { read_ns: reads[0], program_ns: programs[0], pages: 1 }; PageKind::COUNT];
        for place in 0..bits {
            let own = &mut times[PageKind::of_word_line(place).index()];
            (own.read_ns, own.program_ns) = (of(&reads, place as usize), of(&programs, place as usize));
        }
        let slc = &mut times[PageKind::SLC.index()];
        (slc.read_ns, slc.program_ns) = (settings.duration_ns("slc-read"), settings.duration_ns("slc-program"));
        times[PageKind::WORD_LINE.index()].pages = bits;
        times[PageKind::FINE.index()] = PageTimes { program_ns: of(&programs, 1), pages: bits, ..times[0] };
        let slc_endurance = settings.count("slc-endurance") as u32;
        Ok(Some(Cells { bits, programs: kind, slc_endurance, times }))
    }

    fn check_number(
        settings: &Settings,
        name: &str,
        found: usize,
        most: usize,
        why: &str,
    ) -> Result<(), ExpressionError> {
        if found == 1 || found == most {
            return Ok(());
        }
        let help =
            if most == 1 { "write one".to_string() } else { format!("write one for all, or {most} joined by +") };
        Err(settings.error(name, format!("{found} times, and {why}"), help))
    }

    /// The pages of flash of a block as the chip has it, rounded down to whole word lines unless the user wrote a number,
    /// which must be one of whole word lines.
    pub(super) fn whole_word_lines(&self, settings: &mut Settings) -> Result<(), ExpressionError> {
        let (pages, bits) = (settings.count("pages-per-block"), u64::from(self.bits));
        if pages.is_multiple_of(bits) {
            return Ok(());
        }
        let whole = pages - pages % bits;
        if settings.is_given("pages-per-block") || whole == 0 {
            let message = format!("{pages} pages are not whole word lines of {bits}");
            let help = match whole {
                0 => format!("take pages-per-block={bits}"),
                _ => format!("take pages-per-block={whole} or {}", whole + bits),
            };
            return Err(settings.error("pages-per-block", message, help));
        }
        settings.set_default("pages-per-block", &whole.to_string());
        Ok(())
    }

    /// The geometry of a drive with these cells, if it has any.
    pub(super) fn shape(cells: Option<&Cells>, geometry: Geometry) -> Geometry {
        match cells {
            None => geometry,
            Some(cells) => geometry.with_cells(cells.bits, cells.programs != WordLinePrograms::ByPage),
        }
    }

    /// The options without effect, given the others.
    pub(super) fn meaningless(settings: &Settings) -> &'static [&'static str] {
        if settings.is_set("cells") { &[] } else { &NEED_CELLS }
    }
}
