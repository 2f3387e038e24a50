//! Generators: workloads written as a name and options, such as `zipf:theta=1.2,writes=6x`.
//!
//! | file | what it is |
//! |---|---|
//! | `kinds` | the names, options and constructors |
//! | `stream` | the workload: a pattern's blocks as operations |
//! | `pattern` | blocks: sequential, uniform, ranked, hot and cold, a cache's buckets and regions |
//! | `flash_cache` | the requests of a flash cache's drive, from keys of objects |
//!
//! A request is aligned to its size and lies inside the device; a remainder at the end is not addressed. The same
//! expression, device size and seed give the same operations on every machine. A workload without requests is refused.

mod flash_cache;
mod kinds;
pub(crate) mod pattern;
mod stream;

use super::Workload;
use crate::expression::{ExpressionError, Kind, OptionKind, Settings, Term, Values};
use crate::random::Random;
use crate::units::format_size;
use crate::workload::draw::distribution::Distribution;
use kinds::GENERATORS;
use pattern::{CacheEngines, HotCold, Layout, Pattern, Ranked};
use std::path::PathBuf;
use stream::{Plan, Stream};

/// The tolerance for shares that add up to 100%: 7.9% and 92.1% do not in binary.
const ROUNDING: f64 = 1e-12;

/// All generators with their options.
pub fn kinds() -> Vec<&'static Kind> {
    GENERATORS.iter().map(|generator| generator.kind).collect()
}

/// True if `text` is the name of a generator and options, which may have names of files.
pub fn is_with_options(text: &str) -> bool {
    let name = text.split_once(':').map(|(name, _)| name.trim());
    name.is_some_and(|name| kinds().iter().any(|kind| kind.name == name))
}

/// The file that the generator of `term` reads, if it reads any.
pub fn file_of(term: &Term) -> Option<PathBuf> {
    let kind = term.find("generator", &kinds()).ok()?;
    let settings = term.settle(kind).ok()?;
    let is_file = |option: &&OptionKind| matches!(option.values, Values::File) && settings.is_set(option.name);
    kind.options.iter().find(is_file).map(|option| PathBuf::from(settings.text(option.name)))
}

/// The generator that `term` describes, on a device of `device_bytes`.
///
/// Errors point at the option that is unknown, has an invalid value, or does not fit this device.
pub fn generator(term: &Term, device_bytes: u64, seed: u64) -> Result<Box<dyn Workload>, ExpressionError> {
    let kind = term.find("generator", &kinds())?;
    let generator = GENERATORS.iter().find(|generator| std::ptr::eq(generator.kind, kind)).expect("it is one of them");
    let settings = term.settle(kind)?;
    (generator.make)(term, &settings, device_bytes, seed)
}

/// The parameters common to all generators.
struct Setup {
    name: String,
    plan: Plan,
    /// The number of request-sized blocks in the span.
    places: u64,
    /// Draws the layout. Apart from `random`, so that the layout's draws do not shift the requests.
    layout_random: Random,
    random: Random,
}

impl Setup {
    fn new(term: &Term, settings: &Settings, device_bytes: u64, seed: u64) -> Result<Setup, ExpressionError> {
        let request_bytes = settings.size("request");
        let span = settings.share("span");
        let span_bytes = if span == 1.0 { device_bytes } else { (device_bytes as f64 * span) as u64 };
        let places = span_bytes / request_bytes;
        if places == 0 {
            let message = format!(
                "a request of {} does not fit into a span of {}",
                settings.text("request"),
                format_size(span_bytes)
            );
            let help = "take a smaller request, a larger span or a larger device".to_string();
            return Err(settings.error(if settings.is_given("request") { "request" } else { "span" }, message, help));
        }
        let (read_share, discard_share) = (settings.share("reads"), settings.share("discards"));
        if read_share + discard_share > 1.0 + ROUNDING {
            let message =
                format!("reads={} and discards={} exceed 100%", settings.text("reads"), settings.text("discards"));
            let help = "together they are at most 100%: the rest are writes".to_string();
            return Err(settings.error("discards", message, help));
        }
        let counted_requests = settings.amount("writes").bytes(device_bytes).div_ceil(request_bytes);
        if counted_requests == 0 {
            let message = format!("writes={} requests nothing", settings.text("writes"));
            return Err(settings.error("writes", message, "take at least one byte, such as 4K or 2x".to_string()));
        }
        Ok(Setup {
            name: term.as_written(),
            plan: Plan {
                request_bytes,
                read_share,
                discard_share,
                content: settings.choice("content"),
                counted_requests,
            },
            places,
            layout_random: Random::new(seed, "generator layout"),
            random: Random::new(seed, "generator requests"),
        })
    }

    /// The workload of a pattern over the span's blocks.
    fn stream<P: Pattern + 'static>(self, pattern: impl FnOnce(u64) -> P) -> Box<dyn Workload> {
        Box::new(Stream::new(self.name, self.plan, pattern(self.places), self.random))
    }

    /// The workload of a distribution over the span's blocks.
    fn ranked<D: Distribution + 'static>(
        mut self,
        settings: &Settings,
        distribution: impl FnOnce(u64) -> D,
    ) -> Box<dyn Workload> {
        let layout = Layout::new(self.places, settings.switch("scatter"), &mut self.layout_random);
        self.stream(|places| Ranked::new(distribution(places), layout))
    }

    fn hot_cold(mut self, settings: &Settings) -> Result<Box<dyn Workload>, ExpressionError> {
        if self.places < 2 {
            let message = "hot and cold need two blocks, and one request fills the span".to_string();
            let help = "take a smaller request, a larger span or a larger device".to_string();
            return Err(settings.error("request", message, help));
        }
        // Each part keeps at least one block.
        let hot_places = ((self.places as f64 * settings.share("r")).round() as u64).clamp(1, self.places - 1);
        let layout = Layout::new(self.places, settings.switch("scatter"), &mut self.layout_random);
        let pattern = HotCold::new(self.places, hot_places, settings.share("f"), layout);
        Ok(self.stream(|_| pattern))
    }

    fn cache(self, settings: &Settings) -> Result<Box<dyn Workload>, ExpressionError> {
        if self.places < 2 {
            let message = "buckets and regions need two blocks, and one request fills the span".to_string();
            let help = "take a smaller request, a larger span or a larger device".to_string();
            return Err(settings.error("request", message, help));
        }
        let in_region = (settings.size("region") / self.plan.request_bytes).max(1);
        let bucket_places = ((self.places as f64 * settings.share("small")).round() as u64).clamp(1, self.places - 1);
        let to_buckets = settings.share("f");
        Ok(self.stream(|places| CacheEngines::new(places, bucket_places, to_buckets, in_region)))
    }
}
