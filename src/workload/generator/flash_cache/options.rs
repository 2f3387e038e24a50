//! The options of a flash cache, and the cache that they describe.

use super::buckets::{Buckets, largest_object};
use super::cache::FlashCache;
use super::memory::Memory;
use super::regions::{RegionOrder, RegionSizes, Regions};
use super::requests::{Drawn, Requests, Traced};
use super::workload::CacheWorkload;
use crate::expression::{ExpressionError, Kind, OptionKind, Settings, Term, Values, words};
use crate::random::Random;
use crate::units::format_size;
use crate::workload::{CacheCounts, Workload};
use std::path::PathBuf;

/// Writes and reads of the drive are of whole blocks, in bytes.
const BLOCK_BYTES: u64 = 4096;

/// The options that have a meaning with a trace alone, and those that have one without.
const OF_TRACES: [&str; 2] = ["repeat", "amplify"];
const OF_DRAWN: [&str; 5] = ["writes", "objects", "theta", "gets", "large"];

const fn option(name: &'static str, values: Values, default: &'static str, about: &'static str) -> OptionKind {
    OptionKind { name, values, default, about }
}

/// The kind.
pub static KIND: Kind = Kind {
    name: "kvcache",
    about: "a flash cache of objects by key, from a trace of keys or drawn: small ones in buckets rewritten at random (stream 1), large ones in regions written whole (stream 2)",
    options: &[
        option("trace", Values::File, "", "the trace of keys: CacheLib's or Twitter's; without it, requests are drawn"),
        option("repeat", Values::Count(1, 1 << 32), "1", "the number of times that the trace is read"),
        option(
            "amplify",
            Values::Count(1, 1 << 20),
            "1",
            "the keys for which each request of the trace is made, as cachebench's ampFactor",
        ),
        option("small", Values::Share(0.0001, 0.9999), "4%", "the share of the span that is buckets, from its start"),
        option("bucket", Values::Size(4096, 1 << 20), "4K", "the size of a bucket, in blocks of 4K"),
        option("object", Values::Size(1, 1 << 20), "1K", "the largest object of buckets: bytes of key and value"),
        option("region", Values::Size(65536, 1 << 32), "16M", "the size of a region, in blocks of 4K"),
        option("order", Values::Choice(words::<RegionOrder>), "fifo", "the region that is rewritten next"),
        option("request", Values::Size(4096, 1 << 30), "1M", "the largest request of regions, in blocks of 4K"),
        option(
            "memory",
            Values::Share(0.0, 1.0),
            "4%",
            "memory in front of the drive, as a share of the span; 0%: none",
        ),
        option(
            "admit",
            Values::Share(0.0, 1.0),
            "100%",
            "the share of the objects that leave memory which is written, at random",
        ),
        option("set-on-miss", Values::Switch, "on", "on: an object that was asked for and not there is set then"),
        option("span", Values::Share(1e-6, 1.0), "100%", "the share of the drive that the cache uses, from its start"),
        option("writes", Values::Amount, "2x", "drawn requests: bytes written to the drive"),
        option("objects", Values::Amount, "4x", "drawn requests: bytes of all objects"),
        option("theta", Values::Real(0.0, 10.0), "0.9", "drawn requests: the skew, as of zipf"),
        option(
            "gets",
            Values::Share(0.0, 1.0),
            "90%",
            "drawn requests: the share that asks for an object; the others set it",
        ),
        option(
            "large",
            Values::Share(0.0, 1.0),
            "10%",
            "drawn requests: the share of objects that are larger than object=, up to 16 times",
        ),
    ],
};

/// Requests for objects, and the bytes written after which they end.
type Asked = (Box<dyn Requests>, Option<u64>);

/// The workload that `term` describes, on a drive of `device_bytes`.
pub fn make(
    term: &Term,
    settings: &Settings,
    device_bytes: u64,
    seed: u64,
) -> Result<Box<dyn Workload>, ExpressionError> {
    let span_bytes = (device_bytes as f64 * settings.share("span")) as u64;
    let cache = cache(settings, span_bytes, seed)?;
    let (requests, most_written_bytes) = requests(settings, span_bytes, seed)?;
    let workload =
        CacheWorkload::new(term.as_written(), requests, cache, settings.switch("set-on-miss"), most_written_bytes);
    Ok(Box::new(workload))
}

/// A size in whole blocks.
fn blocks(settings: &Settings, name: &str) -> Result<u64, ExpressionError> {
    let bytes = settings.size(name);
    if bytes.is_multiple_of(BLOCK_BYTES) {
        return Ok(bytes);
    }
    let message = format!("{name}={} is not a multiple of 4K", settings.text(name));
    let help = format!("take {}", format_size(bytes.next_multiple_of(BLOCK_BYTES)));
    Err(settings.error(name, message, help))
}

fn cache(settings: &Settings, span_bytes: u64, seed: u64) -> Result<FlashCache, ExpressionError> {
    let (bucket_bytes, region_bytes) = (blocks(settings, "bucket")?, blocks(settings, "region")?);
    let (request_bytes, small_bytes) = (blocks(settings, "request")?, settings.size("object"));
    if small_bytes > largest_object(bucket_bytes) {
        let message =
            format!("an object of {} does not fit a bucket of {}", settings.text("object"), settings.text("bucket"));
        let help = format!("a bucket holds one of {} bytes at most", largest_object(bucket_bytes));
        return Err(settings.error("object", message, help));
    }
    let bucket_count = ((span_bytes as f64 * settings.share("small")) as u64 / bucket_bytes).max(1);
    let buckets = Buckets::new(bucket_count, bucket_bytes);
    let left_bytes = span_bytes.saturating_sub(buckets.bytes());
    let count = u32::try_from(left_bytes / region_bytes).unwrap_or(u32::MAX);
    if count < 2 {
        let message = format!(
            "{} beside the buckets hold fewer than two regions of {}",
            format_size(left_bytes),
            settings.text("region")
        );
        let help = "take smaller regions, a larger span or a larger device".to_string();
        return Err(settings.error("region", message, help));
    }
    let sizes = RegionSizes { start_bytes: buckets.bytes(), region_bytes, count, request_bytes };
    Ok(FlashCache {
        memory: Memory::new((span_bytes as f64 * settings.share("memory")) as u64),
        regions: Regions::new(sizes, settings.choice("order")),
        buckets,
        small_bytes,
        admitted: settings.share("admit"),
        random: Random::new(seed, "flash cache admission"),
        counts: CacheCounts::default(),
    })
}

fn requests(settings: &Settings, span_bytes: u64, seed: u64) -> Result<Asked, ExpressionError> {
    let meaningless = if settings.is_set("trace") { &OF_DRAWN[..] } else { &OF_TRACES };
    if let Some(name) = meaningless.iter().find(|name| settings.is_given(name)) {
        let (message, help) = match settings.is_set("trace") {
            true => (
                format!("{name}= describes drawn requests, and those of a trace are read"),
                "leave it out, or the trace",
            ),
            false => (format!("{name}= is for a trace, and there is none"), "leave it out, or add trace=FILE"),
        };
        return Err(settings.error(name, message, help.to_string()));
    }
    if settings.is_set("trace") {
        let traced =
            Traced::open(PathBuf::from(settings.text("trace")), settings.count("repeat"), settings.count("amplify"));
        let help = "name a file with a trace of keys; docs/traces.md shows their lines".to_string();
        let traced = traced.map_err(|error| settings.error("trace", error.to_string(), help))?;
        return Ok((Box::new(traced), None));
    }
    let amount = |name: &str| match settings.amount(name).bytes(span_bytes) {
        0 => Err(settings.error(
            name,
            format!("{name}=0 requests nothing"),
            "take at least one byte, such as 4K or 2x".to_string(),
        )),
        bytes => Ok(bytes),
    };
    let (written_bytes, objects_bytes) = (amount("writes")?, amount("objects")?);
    let (theta, gets, large) = (settings.real("theta"), settings.share("gets"), settings.share("large"));
    if gets == 1.0 && !settings.switch("set-on-miss") {
        let message = "with gets=100% and set-on-miss=off nothing is ever written".to_string();
        return Err(settings.error("gets", message, "leave one of them out".to_string()));
    }
    let random = Random::new(seed, "flash cache requests");
    let drawn = Drawn::new(objects_bytes, theta, gets, large, settings.size("object"), random);
    Ok((Box::new(drawn), Some(written_bytes)))
}
