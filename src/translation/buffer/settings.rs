//! The options of a write buffer, which all translation layers on flash have.

use crate::device::nand::Geometry;
use crate::expression::{Choice, ExpressionError, OptionKind, Settings, Values, words};
use crate::units::format_size;

/// The size of the buffer.
pub(crate) const BUFFER: OptionKind = OptionKind {
    name: "buffer",
    values: Values::Size(4096, 1 << 40),
    default: "",
    about: "bytes of RAM in which writes are answered, joined, and packed into pages of flash (not set: none)",
};

/// Its behaviour at a flush and at a power cut.
pub(crate) const BUFFER_POLICY: OptionKind = OptionKind {
    name: "buffer-policy",
    values: Values::Choice(words::<BufferPolicy>),
    default: "protected",
    about: "what keeps the buffer through a power cut; needs buffer",
};

/// The words of `buffer-policy`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum BufferPolicy {
    Protected,
    Volatile,
}

impl Choice for BufferPolicy {
    const WORDS: &'static [(&'static str, Self, &'static str)] = &[
        ("protected", BufferPolicy::Protected, "capacitors: a write is safe in the buffer, and a flush costs nothing"),
        (
            "volatile",
            BufferPolicy::Volatile,
            "nothing: a flush programs the buffer, and pads the pages of flash that are not full",
        ),
    ];
}

/// The parsed options of a write buffer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BufferSettings {
    /// Pages that it holds, those under way to the flash included.
    pub pages: u32,
    /// True if it outlasts a power cut.
    pub is_protected: bool,
}

impl BufferSettings {
    /// Reads the options for a drive of this geometry; `None` without a buffer. Errors point at the wrong option.
    pub(crate) fn read(settings: &Settings, geometry: &Geometry) -> Result<Option<BufferSettings>, ExpressionError> {
        let waits = geometry.waits_for_word_lines;
        let why = "word lines that are programmed as a whole (program-passes= of nand) wait for their pages in memory that a power cut does not clear";
        if waits && !settings.is_set("buffer") {
            let help = "add buffer=32M, or remove program-passes behind nand:".to_string();
            return Err(settings.error("buffer", why.to_string(), help));
        }
        if !settings.is_set("buffer") {
            if settings.is_given("buffer-policy") {
                let message = "buffer-policy has no effect without buffer".to_string();
                return Err(settings.error("buffer-policy", message, "add buffer=32M, or remove it".to_string()));
            }
            return Ok(None);
        }
        let (bytes, stripe) = (settings.size("buffer"), stripe_bytes(geometry));
        if bytes < stripe {
            let planes = geometry.units();
            let message = format!(
                "the buffer is smaller than a stripe, a page on each of {planes} planes: {} bytes for {stripe}",
                settings.text("buffer")
            );
            return Err(settings.error("buffer", message, format!("take at least buffer={}", format_size(stripe))));
        }
        let pages = bytes / u64::from(geometry.page_bytes);
        if pages > geometry.pages() {
            let message = format!("the buffer is larger than the flash, of {}", format_size(geometry.raw_bytes()));
            let most = geometry.raw_bytes() / 64;
            let help = format!("take at most a small part of it, such as buffer={}", format_size(most.max(stripe)));
            return Err(settings.error("buffer", message, help));
        }
        let is_protected = settings.choice::<BufferPolicy>("buffer-policy") == BufferPolicy::Protected;
        if waits && !is_protected {
            let help = "take buffer-policy=protected, or remove program-passes behind nand:".to_string();
            return Err(settings.error("buffer-policy", why.to_string(), help));
        }
        Ok(Some(BufferSettings { pages: pages as u32, is_protected }))
    }

    /// The options without effect: `buffer-policy` without a buffer.
    pub(crate) fn meaningless(settings: &Settings) -> Option<&'static str> {
        (!settings.is_set("buffer")).then_some("buffer-policy")
    }
}

/// Bytes of a page of flash on each plane.
fn stripe_bytes(geometry: &Geometry) -> u64 {
    u64::from(geometry.program_bytes()) * u64::from(geometry.units())
}
