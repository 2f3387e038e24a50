//! Rows of the comparison for a flash cache: what it finds, and what it writes for each byte of an object.

use super::row::{Better, Quantity, Row, make_row};
use super::{CacheResult, EngineResult, RunResult, number};

/// An engine of a cache.
type Engine = fn(&CacheResult) -> &EngineResult;

/// The engines: the names of their rows.
const ENGINES: [(&str, Engine); 2] = [("buckets", |cache| &cache.buckets), ("regions", |cache| &cache.regions)];

/// The rows; none if no workload is a cache's.
pub fn rows(results: &[RunResult]) -> Vec<Row> {
    let row = |label: String, better: Better, of: &dyn Fn(&CacheResult) -> Quantity| {
        make_row(results, label, better, &|result| of(result.cache.as_ref()?))
    };
    let mut rows = vec![
        row("hit ratio".into(), Better::Higher, &|cache| share(cache.hit_ratio?)),
        row("found in memory".into(), Better::Neither, &|cache| of_gets(cache.memory_hits, cache)),
    ];
    for (name, engine) in ENGINES {
        rows.push(row(format!("found in {name}"), Better::Neither, &|cache| of_gets(engine(cache).hits, cache)));
    }
    rows.extend([
        row("objects asked for".into(), Better::Neither, &|cache| count(cache.gets)),
        row("objects set".into(), Better::Neither, &|cache| count(cache.sets)),
        row("objects deleted".into(), Better::Neither, &|cache| count(cache.deletes).filter(|_| cache.deletes > 0)),
        row("bytes of objects set".into(), Better::Neither, &|cache| bytes(cache.set_bytes)),
        row("objects not admitted".into(), Better::Neither, &|cache| {
            count(cache.not_admitted).filter(|_| cache.not_admitted > 0)
        }),
        row("objects larger than a region".into(), Better::Lower, &|cache| {
            count(cache.too_large).filter(|_| cache.too_large > 0)
        }),
    ]);
    for (name, engine) in ENGINES {
        rows.push(row(format!("{name}, bytes of objects"), Better::Neither, &|cache| {
            bytes(engine(cache).object_bytes)
        }));
        rows.push(row(format!("{name}, written"), Better::Neither, &|cache| bytes(engine(cache).written_bytes)));
        rows.push(row(format!("{name}, written per byte of objects"), Better::Lower, &|cache| {
            factor(engine(cache).write_amplification?)
        }));
    }
    rows.push(row("written per byte of objects".into(), Better::Lower, &|cache| factor(cache.write_amplification?)));
    rows
}

fn share(value: f64) -> Quantity {
    Some((number::percent(value), value))
}

fn of_gets(hits: u64, cache: &CacheResult) -> Quantity {
    (cache.gets > 0).then(|| share(hits as f64 / cache.gets as f64)).flatten()
}

fn count(value: u64) -> Quantity {
    Some((number::count(value), value as f64))
}

fn bytes(value: u64) -> Quantity {
    Some((number::bytes(value as f64), value as f64))
}

fn factor(value: f64) -> Quantity {
    Some((number::decimal(value, 3), value))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::sample;

    #[test]
    fn a_cache_has_rows_and_another_workload_has_none() {
        let engine = |hits, written_bytes| EngineResult {
            hits,
            objects: 10,
            object_bytes: 1 << 20,
            written_bytes,
            write_amplification: Some(written_bytes as f64 / (1 << 20) as f64),
            evicted: 0,
        };
        let mut with_cache = sample::page_level("page", 1);
        with_cache.cache = Some(CacheResult {
            gets: 200,
            hit_ratio: Some(0.75),
            memory_hits: 100,
            sets: 50,
            set_bytes: 3 << 20,
            deletes: 0,
            not_admitted: 7,
            too_large: 0,
            write_amplification: Some(2.5),
            buckets: engine(30, 4 << 20),
            regions: engine(20, 1 << 20),
        });
        let rows = rows(&[with_cache, sample::page_level("page", 1)]);
        let shown: Vec<(&str, &str)> = rows
            .iter()
            .filter(|row| !row.is_empty())
            .map(|row| (row.label.as_str(), row.cells[0].text.as_str()))
            .collect();
        let expected = [
            ("hit ratio", "75.0 %"),
            ("found in memory", "50.0 %"),
            ("found in buckets", "15.0 %"),
            ("found in regions", "10.0 %"),
            ("objects asked for", "200"),
            ("objects set", "50"),
            ("bytes of objects set", "3.00 MiB"),
            ("objects not admitted", "7"),
            ("buckets, bytes of objects", "1.00 MiB"),
            ("buckets, written", "4.00 MiB"),
            ("buckets, written per byte of objects", "4.000"),
            ("regions, bytes of objects", "1.00 MiB"),
            ("regions, written", "1.00 MiB"),
            ("regions, written per byte of objects", "1.000"),
            ("written per byte of objects", "2.500"),
        ];
        assert_eq!(shown, expected);
        assert!(rows.iter().all(|row| row.cells[1].text == number::NONE));
    }
}
