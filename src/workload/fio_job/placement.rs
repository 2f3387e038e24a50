//! `dataplacement`: the placement hints of a job's writes.
//!
//! fio takes the numbers of placement identifiers (`plids`) from the drive if a job gives none. A workload knows no drive, so
//! that a job has to give them.

use super::values::Value;
use crate::random::Random;
use crate::workload::WorkloadError;

/// The hints of a job's writes: one, or several.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Hints {
    /// This one; 0 for none.
    One(u8),
    /// One after the other.
    InTurn(Vec<u8>),
    /// Any, equally likely.
    AtRandom(Vec<u8>),
}

impl Hints {
    /// The hint of the next write, after so many others.
    pub fn next(&self, writes: u64, random: &mut Random) -> u8 {
        match self {
            Hints::One(hint) => *hint,
            Hints::InTurn(hints) => hints[(writes % hints.len() as u64) as usize],
            Hints::AtRandom(hints) => hints[random.below(hints.len() as u64) as usize],
        }
    }
}

/// The largest number in a list: hints have 8 bits, and 0 is none.
const MOST: u64 = u8::MAX as u64 - 1;

#[derive(Clone, Copy, PartialEq)]
enum Kind {
    None,
    Fdp,
    Streams,
}

#[derive(Clone, Copy, PartialEq)]
enum Select {
    InTurn,
    AtRandom,
}

const WRITE_HINTS: [(&str, u8); 5] = [("none", 0), ("short", 1), ("medium", 2), ("long", 3), ("extreme", 4)];
const KINDS: [(&str, Kind); 3] = [("none", Kind::None), ("fdp", Kind::Fdp), ("streams", Kind::Streams)];
const SELECTS: [(&str, Select); 2] = [("roundrobin", Select::InTurn), ("random", Select::AtRandom)];

/// The keys of a job's placement, as far as it has them.
pub(super) struct Keys<'a> {
    pub write_hint: Option<Value<'a>>,
    pub fdp: Option<Value<'a>>,
    pub dataplacement: Option<Value<'a>>,
    pub plids: Option<Value<'a>>,
    pub plid_select: Option<Value<'a>>,
}

impl<'a> Keys<'a> {
    /// The hints of `write_hint`, or of `dataplacement`, which `fdp=1` is short for.
    pub fn hints(&self) -> Result<Hints, WorkloadError> {
        let hint = self.write_hint.map_or(Ok(0), |value| value.choose(WRITE_HINTS))?;
        let select = self.plid_select.map_or(Ok(Select::InTurn), |value| value.choose(SELECTS))?;
        let Some((kind, key)) = self.kind()? else { return Ok(Hints::One(hint)) };
        if let Some(value) = self.write_hint.filter(|_| hint != 0) {
            return Err(value.error("the writes have the hints of dataplacement: remove one of the two"));
        }
        let Some(list) = self.plids else {
            let reason = "a job does not know the drive's placement identifiers: add those to use, plids=0,1 (fdp_pli)";
            return Err(key.error(reason));
        };
        let hints = numbers(&list, kind)?;
        Ok(match select {
            _ if hints.len() == 1 => Hints::One(hints[0]),
            Select::InTurn => Hints::InTurn(hints),
            Select::AtRandom => Hints::AtRandom(hints),
        })
    }

    /// The kind of placement, and the key that says so.
    fn kind(&self) -> Result<Option<(Kind, Value<'a>)>, WorkloadError> {
        let is_fdp = self.fdp.map_or(Ok(false), |value| value.switch())?;
        let kind = self.dataplacement.map_or(Ok(Kind::None), |value| value.choose(KINDS))?;
        Ok(match kind {
            Kind::None => self.fdp.filter(|_| is_fdp).map(|value| (Kind::Fdp, value)),
            kind => self.dataplacement.map(|value| (kind, value)),
        })
    }

    /// A key that has no effect.
    pub fn without_effect(&self) -> Result<Option<Value<'a>>, WorkloadError> {
        let unused = || self.plids.or(self.plid_select);
        Ok(if self.kind()?.is_none() { unused() } else { None })
    }
}

/// The hints of a list of numbers: placement identifiers from 0, of streams from 1.
fn numbers(list: &Value, kind: Kind) -> Result<Vec<u8>, WorkloadError> {
    let least = u64::from(kind == Kind::Streams);
    let number = |text: &str| text.trim().parse::<u64>().ok().filter(|number| (least..=MOST).contains(number));
    let hint = |number: u64| (number + 1 - least) as u8;
    let all: Option<Vec<u8>> = list.text().split(',').map(|text| number(text).map(hint)).collect();
    all.ok_or_else(|| list.error(format_args!("expected numbers from {least} to {MOST}, joined by commas")))
}

#[cfg(test)]
mod tests {
    use super::super::ini::Entry;
    use super::*;

    fn hints(keys: &[(&str, &str)]) -> Result<Hints, String> {
        let entries: Vec<Entry> = (1..)
            .zip(keys)
            .map(|(line, (key, value))| Entry { key: key.to_string(), value: value.to_string(), line })
            .collect();
        let get = |key: &str| {
            let entry = entries.iter().find(|entry| entry.key == key)?;
            Some(Value { file: "x.fio", entry })
        };
        let keys = Keys {
            write_hint: get("write_hint"),
            fdp: get("fdp"),
            dataplacement: get("dataplacement"),
            plids: get("plids"),
            plid_select: get("plid_select"),
        };
        keys.hints().map_err(|error| error.to_string())
    }

    #[test]
    fn identifiers_are_counted_from_0_and_streams_from_1() {
        assert_eq!(hints(&[]).unwrap(), Hints::One(0));
        assert_eq!(hints(&[("write_hint", "long")]).unwrap(), Hints::One(3));
        assert_eq!(hints(&[("fdp", "0"), ("plids", "5")]).unwrap(), Hints::One(0));
        assert_eq!(hints(&[("fdp", "1"), ("plids", "0")]).unwrap(), Hints::One(1));
        assert_eq!(hints(&[("dataplacement", "fdp"), ("plids", "0, 3")]).unwrap(), Hints::InTurn(vec![1, 4]));
        assert_eq!(hints(&[("dataplacement", "streams"), ("plids", "1,3")]).unwrap(), Hints::InTurn(vec![1, 3]));
        let random = [("fdp", "1"), ("plids", "2,254"), ("plid_select", "random")];
        assert_eq!(hints(&random).unwrap(), Hints::AtRandom(vec![3, 255]));
    }

    #[test]
    fn a_wrong_list_is_refused_with_the_numbers_that_are_right() {
        for (keys, expected) in [
            (&[("fdp", "1")][..], "x.fio:1: fdp=1: a job does not know"),
            (&[("fdp", "1"), ("plids", "1,255")], "x.fio:2: plids=1,255: expected numbers from 0 to 254"),
            (&[("dataplacement", "streams"), ("plids", "0")], "x.fio:2: plids=0: expected numbers from 1 to 254"),
            (&[("fdp", "1"), ("plids", "1,,2")], "expected numbers"),
            (&[("fdp", "1"), ("plids", "1"), ("write_hint", "short")], "remove one of the two"),
            (&[("fdp", "1"), ("plids", "1"), ("plid_select", "scheme")], "expected roundrobin or random"),
        ] {
            let error = hints(keys).unwrap_err();
            assert!(error.contains(expected), "{error}");
        }
    }

    #[test]
    fn hints_are_taken_in_turn_or_drawn_from_all() {
        let mut random = Random::new(1, "hints");
        let mut taken = |hints: Hints| (0..200).map(|writes| hints.next(writes, &mut random)).collect::<Vec<u8>>();
        assert_eq!(taken(Hints::InTurn(vec![1, 4, 2]))[..5], [1, 4, 2, 1, 4]);
        let drawn = taken(Hints::AtRandom(vec![1, 4]));
        assert!([1, 4].iter().all(|hint| drawn.iter().filter(|drawn| *drawn == hint).count() > 50));
        assert!(taken(Hints::One(9)).iter().all(|hint| *hint == 9));
    }
}
