//! Traces of a cache's keys: requests for objects, which have no addresses.
//!
//! | source | lines |
//! |---|---|
//! | CacheLib's cachebench | a header of named fields: `key`, `op`, `size` and, in any order, `key_size`, `op_count`, `op_time`, `ttl`; others are ignored. Without a header: `key,op,size,op_count,key_size,ttl` |
//! | Twitter's cache-trace | `timestamp,key,key size,value size,client,operation,TTL` |
//!
//! Sizes are bytes, times seconds. Sources: the README of Twitter's traces, and CacheLib's `KVReplayGenerator`.

use super::fields::{Reason, number};
use super::open::{Compression, Input, LONGEST_LINE, Line};
use super::rejected::{Place, Rejected, Rejections};
use super::unusable;
use crate::workload::WorkloadError;
use std::fs::File;
use std::io;
use std::path::Path;

/// The fields, in the order of their places.
const FIELDS: [&[u8]; 7] = [b"key", b"op", b"size", b"op_count", b"key_size", b"ttl", b"op_time"];
const KEY: usize = 0;
const OPERATION: usize = 1;
const SIZE: usize = 2;
const COUNT: usize = 3;
const KEY_SIZE: usize = 4;
const TTL: usize = 5;
const TIME: usize = 6;
/// The fields without which there is no request.
const REQUIRED: usize = 3;

/// CacheLib's order without a header.
const IN_ORDER: Places = [Some(0), Some(1), Some(2), Some(3), Some(4), Some(5), None];
/// Twitter's order.
const TWITTER: Places = [Some(1), Some(5), Some(3), None, Some(2), Some(6), Some(0)];
const TWITTER_FIELDS: usize = 7;

/// The most fields of a line.
const MOST_FIELDS: usize = 64;
/// The largest object, in bytes: more is a damaged line.
const LARGEST_OBJECT: u64 = 1 << 40;

/// The place of each field in a line, from 0.
type Places = [Option<usize>; FIELDS.len()];

/// What a request asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeyAction {
    /// The object.
    Get,
    /// That the object has this value.
    Set,
    /// The same, if the cache does not have it.
    Add,
    /// The same, if the cache has it.
    Replace,
    /// That the cache forgets it.
    Delete,
}

const ACTIONS: [(&str, KeyAction); 16] = [
    ("get", KeyAction::Get),
    ("gets", KeyAction::Get),
    ("get_lease", KeyAction::Get),
    ("set", KeyAction::Set),
    ("set_lease", KeyAction::Set),
    ("add", KeyAction::Add),
    ("replace", KeyAction::Replace),
    ("cas", KeyAction::Replace),
    ("append", KeyAction::Replace),
    ("prepend", KeyAction::Replace),
    ("incr", KeyAction::Replace),
    ("decr", KeyAction::Replace),
    ("increment", KeyAction::Replace),
    ("decrement", KeyAction::Replace),
    ("delete", KeyAction::Delete),
    ("del", KeyAction::Delete),
];

/// A request for an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KeyRequest {
    /// A hash of the key, which stands for it.
    pub key: u64,
    /// Bytes of the key.
    pub key_bytes: u64,
    /// Bytes of the value; 0 if the trace does not tell it.
    pub value_bytes: u64,
    /// What it asks for.
    pub action: KeyAction,
    /// The number of times that it is made.
    pub count: u64,
    /// The time in seconds, if the trace has times.
    pub time_s: Option<u64>,
    /// Seconds for which a value that is set is valid; 0: without end.
    pub ttl_s: u64,
}

/// A hash of `bytes` that is the same on every machine: FNV-1a, and a step that mixes its bits.
fn hash_of(bytes: &[u8]) -> u64 {
    let fold = |hash: u64, byte: &u8| (hash ^ u64::from(*byte)).wrapping_mul(0x100_0000_01b3);
    mixed(bytes.iter().fold(0xcbf2_9ce4_8422_2325, fold))
}

/// A permutation of the numbers in which each bit depends on all (the end of SplitMix64; Steele and others, OOPSLA 2014).
pub(crate) fn mixed(number: u64) -> u64 {
    let number = (number ^ (number >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let number = (number ^ (number >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    number ^ (number >> 31)
}

/// The places of the fields in a header; `None` if the line is none.
fn places_in(header: &[u8]) -> Option<Places> {
    let mut places: Places = [None; FIELDS.len()];
    for (at, name) in header.split(|byte| *byte == b',').take(MOST_FIELDS).enumerate() {
        if let Some(field) = FIELDS.iter().position(|known| known.eq_ignore_ascii_case(name.trim_ascii())) {
            places[field] = Some(at);
        }
    }
    places[..REQUIRED].iter().all(Option::is_some).then_some(places)
}

/// The request of a line whose fields have these places.
fn request(line: &[u8], places: &Places) -> Result<KeyRequest, Reason> {
    let mut fields = [None; FIELDS.len()];
    for (at, field) in line.split(|byte| *byte == b',').take(MOST_FIELDS).enumerate() {
        if let Some(place) = places.iter().position(|place| *place == Some(at)) {
            fields[place] = Some(field.trim_ascii());
        }
    }
    let (Some(key), Some(word), Some(size)) = (fields[KEY], fields[OPERATION], fields[SIZE]) else {
        return Err("there are fewer fields than key, op and size");
    };
    let known = ACTIONS.iter().find(|(known, _)| known.as_bytes().eq_ignore_ascii_case(word));
    let action =
        known.map(|(_, action)| *action).ok_or("the operation is not get, set, delete or another of a cache")?;
    let value_bytes = number(size).ok_or("the size is not a whole number of bytes")?;
    let optional = |field: usize, reason: Reason| match fields[field] {
        None | Some(b"") => Ok(None),
        Some(text) => number(text).map(Some).ok_or(reason),
    };
    let key_bytes = optional(KEY_SIZE, "the size of the key is not a whole number of bytes")?;
    let key_bytes = key_bytes.unwrap_or(key.len() as u64);
    if key_bytes > LARGEST_OBJECT || value_bytes > LARGEST_OBJECT {
        return Err("the object is larger than 1 TiB");
    }
    let count = optional(COUNT, "op_count is not a whole number")?.unwrap_or(1);
    if count == 0 {
        return Err("op_count is zero");
    }
    let time_s = optional(TIME, "the time is not a whole number of seconds")?;
    let ttl_s = optional(TTL, "the TTL is not a whole number of seconds")?.unwrap_or(0);
    Ok(KeyRequest { key: hash_of(key), key_bytes, value_bytes, action, count, time_s, ttl_s })
}

/// The places of the fields, by the first line, and true if that is a header.
fn layout_of(line: &[u8]) -> Option<(Places, bool)> {
    if let Some(places) = places_in(line) {
        return Some((places, true));
    }
    let count = line.split(|byte| *byte == b',').count();
    let fits = |places: &Places| request(line, places).is_ok();
    if count == TWITTER_FIELDS && fits(&TWITTER) {
        return Some((TWITTER, false));
    }
    ((4..=6).contains(&count) && fits(&IN_ORDER)).then_some((IN_ORDER, false))
}

/// True if `line`, the first of a text, is that of a trace of keys.
pub(super) fn begins_trace(line: &[u8]) -> bool {
    // A header of other traces may have a key and an op; none has the size of a key or a count of operations beside them.
    let is_sure = |places: &Places| places[COUNT].is_some() || places[KEY_SIZE].is_some();
    layout_of(line).is_some_and(|(places, _)| is_sure(&places))
}

/// Reads a trace of keys once, from its first request to its last.
pub struct KeyReader {
    name: String,
    input: Input,
    places: Places,
    rejections: Rejections,
    requests: u64,
    /// The size of an uncompressed file.
    bytes: Option<u64>,
}

impl KeyReader {
    /// Opens a file, compressed by gzip or zstd or not.
    pub fn open(path: &Path) -> Result<KeyReader, WorkloadError> {
        let name = path.display().to_string();
        let read = |source: io::Error| WorkloadError::Read { file: name.clone(), source };
        let file = File::open(path).map_err(read)?;
        let metadata = file.metadata().map_err(read)?;
        if !metadata.is_file() {
            return Err(unusable(&name, "not a regular file".to_string()));
        }
        let mut input = Input::new(Box::new(file)).map_err(read)?;
        let bytes = (input.compression() == Compression::None).then_some(metadata.len());
        let head = input.peek(LONGEST_LINE).map_err(read)?;
        let first = head.split(|byte| *byte == b'\n').next().unwrap_or_default().trim_ascii();
        let Some((places, is_header)) = layout_of(first) else {
            let why = "not a trace of a cache's keys: its first line is neither a header with key, op and size (CacheLib), nor \
                       timestamp,key,key size,value size,client,operation,TTL (Twitter)";
            return Err(unusable(&name, why.to_string()));
        };
        if is_header {
            input.line().map_err(read)?;
        }
        Ok(KeyReader { name, input, places, rejections: Rejections::default(), requests: 0, bytes })
    }

    /// The next request; `None` at the end. Errors: the file cannot be read, its compressed data is damaged, or it has no
    /// request at all.
    pub fn next_request(&mut self) -> Result<Option<KeyRequest>, WorkloadError> {
        loop {
            let number = self.input.line_number() + 1;
            let line = self.input.line().map_err(|source| WorkloadError::Read { file: self.name.clone(), source })?;
            let bytes = match line {
                None if self.requests == 0 => {
                    let first = self.rejections.first.first().map_or(String::new(), |first| format!(", first {first}"));
                    let why = format!("there is no request: {} lines rejected{first}", self.rejections.count);
                    return Err(unusable(&self.name, why));
                }
                None => return Ok(None),
                Some(Line::TooLong) => {
                    self.rejections.add(Place::Line(number), "longer than 64 KiB", b"");
                    continue;
                }
                Some(Line::Bytes(bytes)) => bytes,
            };
            // Files that were joined have a header each.
            if bytes.trim_ascii().is_empty() || places_in(bytes).is_some() {
                continue;
            }
            match request(bytes, &self.places) {
                Ok(request) => {
                    self.requests += 1;
                    return Ok(Some(request));
                }
                Err(reason) => self.rejections.add(Place::Line(number), reason, bytes),
            }
        }
    }

    /// True if its requests have times.
    pub fn has_times(&self) -> bool {
        self.places[TIME].is_some()
    }

    /// The share that is read, from 0 to 1; `None` of a compressed file.
    pub fn progress(&self) -> Option<f64> {
        self.bytes.map(|bytes| self.input.consumed_bytes() as f64 / (bytes as f64).max(1.0))
    }

    /// The number of lines rejected so far.
    pub fn rejected(&self) -> u64 {
        self.rejections.count
    }

    /// A warning about the lines rejected so far, if there are any.
    pub fn warning(&self) -> Option<String> {
        let first: Vec<String> = self.rejections.first.iter().map(Rejected::to_string).collect();
        let more = if self.rejections.count > first.len() as u64 { "; ..." } else { "" };
        let (name, count) = (&self.name, self.rejections.count);
        (count > 0).then(|| format!("{name}: {count} lines rejected: {}{more}", first.join("; ")))
    }
}

#[cfg(test)]
mod tests {
    use super::super::samples;
    use super::*;
    use std::io::Write;
    use tempfile::NamedTempFile;

    fn reader_of(bytes: &[u8]) -> Result<KeyReader, WorkloadError> {
        let mut file = NamedTempFile::new().unwrap();
        file.write_all(bytes).unwrap();
        KeyReader::open(file.path())
    }

    fn all(bytes: &[u8]) -> (Vec<KeyRequest>, u64) {
        let mut reader = reader_of(bytes).unwrap();
        let mut requests = Vec::new();
        while let Some(request) = reader.next_request().unwrap() {
            requests.push(request);
        }
        (requests, reader.rejected())
    }

    /// The action, and the bytes of key and value, count, time and life.
    fn facts(request: &KeyRequest) -> (KeyAction, [u64; 4], Option<u64>) {
        let KeyRequest { action, key_bytes, value_bytes, count, ttl_s, time_s, .. } = *request;
        (action, [key_bytes, value_bytes, count, ttl_s], time_s)
    }

    #[test]
    fn fields_are_found_by_the_header_in_any_order() {
        let (requests, rejected) = all(samples::CACHELIB);
        assert_eq!(rejected, 0);
        assert_eq!(requests[0].key, requests[1].key);
        assert_eq!(facts(&requests[0]), (KeyAction::Set, [40, 82, 1, 0], None));
        let newer = b"op_time,key,key_size,op,op_count,size,cache_hits,ttl,usecase,sub_usecase\r\n\
            7,a,16,GET_LEASE,3,0,,,u,s\r\n\
            9,b,17,SET,1,500,0,3600,u,s\r\n";
        let (requests, _) = all(newer);
        assert_eq!(facts(&requests[0]), (KeyAction::Get, [16, 0, 3, 0], Some(7)));
        assert_eq!(facts(&requests[1]), (KeyAction::Set, [17, 500, 1, 3600], Some(9)));
    }

    #[test]
    fn twitters_lines_and_cachelibs_without_a_header_are_told_by_their_operations() {
        let (requests, _) = all(b"0,q:q:1:8WTfjZU14ee,17,213,4,get,0\n5,yDqF,17,20,1,incr,60\n");
        assert_eq!(facts(&requests[0]), (KeyAction::Get, [17, 213, 1, 0], Some(0)));
        assert_eq!(facts(&requests[1]), (KeyAction::Replace, [17, 20, 1, 60], Some(5)));
        let (requests, _) = all(b"ab,DELETE,0,2,2\nabcd,SET,9,1,4,5\n");
        assert_eq!(facts(&requests[0]), (KeyAction::Delete, [2, 0, 2, 0], None));
        assert_eq!(facts(&requests[1]), (KeyAction::Set, [4, 9, 1, 5], None));
        for no_trace in [&b"1,2,3\n"[..], b"timestamp,hostname\n", b"", b"time,op,key\n1,get,a\n"] {
            assert!(
                reader_of(no_trace).is_err_and(|error| error.to_string().contains("not a trace of a cache's keys"))
            );
        }
    }

    #[test]
    fn wrong_lines_are_counted_and_a_trace_of_them_alone_is_an_error() {
        let mut reader = reader_of(b"key,op,size,op_count\na,GET,1,1\na,FETCH,1,1\na,GET,x,1\na,GET,1,0\na\n").unwrap();
        while reader.next_request().unwrap().is_some() {}
        assert_eq!(reader.rejected(), 4);
        let warning = reader.warning().unwrap();
        for part in ["4 lines", "line 3: the operation is not", "line 4: the size", "op_count is zero", "fewer fields"]
        {
            assert!(warning.contains(part), "{warning}");
        }
        let error = reader_of(b"key,op,size\na,FETCH,1\n").unwrap().next_request().unwrap_err().to_string();
        assert!(error.contains("no request: 1 lines rejected, first line 2"), "{error}");
    }

    #[test]
    fn a_compressed_trace_is_read_alike() {
        let plain = all(samples::CACHELIB);
        assert_eq!(all(&zstd::encode_all(samples::CACHELIB, 1).unwrap()), plain);
    }
}
