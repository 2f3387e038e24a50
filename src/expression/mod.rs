//! The language of paths and workloads: `name:option=value,option` joined by `/` and `+`.
//!
//! A [`Kind`] describes a name and its options; [`Term::settle`] validates a term against it and returns [`Settings`],
//! in which every option has a value. Every error points at the wrong characters and says what would be right.

mod capacity;
mod choice;
mod row;

pub use capacity::Capacity;
pub(crate) use capacity::MOST_BYTES;
pub use choice::{Choice, Words, words};
pub use row::{Row, words_of};

use crate::units;
use std::fmt;
use std::ops::Range;

/// A name of the language: a station of a path, or a generator of a workload.
#[derive(Debug)]
pub struct Kind {
    /// The name as written.
    pub name: &'static str,
    /// A one-line description.
    pub about: &'static str,
    /// The options, in display order.
    pub options: &'static [OptionKind],
}

impl Kind {
    /// True if an option takes this value.
    ///
    /// # Panics
    ///
    /// If the kind lacks the option: a bug of the caller.
    pub fn accepts(&self, option: &str, text: &str) -> bool {
        let known = self.options.iter().find(|known| known.name == option);
        known.unwrap_or_else(|| panic!("{} has no option {option}", self.name)).values.accepts(text)
    }

    /// This kind with options of the caller's: each takes the place of the one with its name, or comes last. The kind that is
    /// made stays until the program ends.
    pub fn with_options(&self, options: Vec<OptionKind>) -> &'static Kind {
        let mut all = self.options.to_vec();
        for option in options {
            match all.iter_mut().find(|known| known.name == option.name) {
                Some(known) => *known = option,
                None => all.push(option),
            }
        }
        Box::leak(Box::new(Kind { name: self.name, about: self.about, options: Vec::leak(all) }))
    }
}

/// One option of a [`Kind`].
#[derive(Clone, Copy, Debug)]
pub struct OptionKind {
    /// The name before the `=`.
    pub name: &'static str,
    /// The values it takes.
    pub values: Values,
    /// The default; an empty text means "not set", and `about` says what happens then.
    pub default: &'static str,
    /// A one-line description.
    pub about: &'static str,
}

/// The values an option takes. Bounds are inclusive.
#[derive(Debug, Clone, Copy)]
pub enum Values {
    /// Bytes, such as `4K`.
    Size(u64, u64),
    /// A whole number.
    Count(u64, u64),
    /// A real number.
    Real(f64, f64),
    /// A fraction, such as `7%` or `0.07`.
    Share(f64, f64),
    /// A share between these bounds, or a size, such as `90%` or `480G`.
    Capacity(f64, f64),
    /// A duration in nanoseconds, such as `50us`.
    Duration(u64, u64),
    /// One duration, or several joined by `+`, such as `50us+60us+70us`: the bounds of each, and the most of them.
    Durations(u64, u64, usize),
    /// An amount of writes: a size such as `4G`, or a multiple of the device such as `6x`.
    Amount,
    /// One of the words of a [`Choice`], or of a table of [`Row`]s: write `Values::Choice(words::<T>)`, or a function that
    /// answers [`words_of`] the table.
    Choice(fn() -> Words),
    /// `on` or `off`; the bare name means `on`.
    Switch,
    /// `on`, `off` or a share, such as `70%`; the bare name means `on`.
    SwitchOrShare,
    /// Shares joined by `+`, such as `40%+60%`.
    Shares,
    /// A name of at most this many bytes.
    Text(usize),
    /// A file name. It may contain `/`; a `,` or a `+` ends it.
    File,
}

/// The options whose value is a [`Values::File`], in any kind: a `/` in their values does not separate stations.
const FILE_OPTIONS: [&str; 4] = ["image", "device", "spill", "socket"];

impl Values {
    /// A description of the valid values, for messages.
    pub fn describe(&self) -> String {
        match self {
            Values::Size(low, high) => {
                format!("a size from {} to {}", units::format_size(*low), units::format_size(*high))
            }
            Values::Count(low, high) => format!("a whole number from {low} to {high}"),
            Values::Real(low, high) => format!("a number from {low} to {high}"),
            Values::Share(low, high) => format!("a share from {} to {}", percent(*low), percent(*high)),
            Values::Capacity(low, high) => {
                format!("a share from {} to {}, or a size such as 480G or 512GB", percent(*low), percent(*high))
            }
            Values::Duration(low, high) => format!(
                "a duration from {} to {}, such as 50us or 2ms",
                units::human_duration(*low as f64),
                units::human_duration(*high as f64)
            ),
            Values::Durations(low, high, most) => {
                format!("{}, or up to {most} of them joined by +", Values::Duration(*low, *high).describe())
            }
            Values::Amount => "a size such as 4G, or a multiple of the device such as 6x".to_string(),
            Values::Choice(words) => one_of(words().iter().map(|(word, _)| *word)),
            Values::Switch => "on or off".to_string(),
            Values::SwitchOrShare => "on, off or a share such as 70%".to_string(),
            Values::Shares => "shares joined by +, such as 40%+60%".to_string(),
            Values::Text(most) => format!("a name of 1 to {most} bytes"),
            Values::File => "the name of a file, without , and +".to_string(),
        }
    }

    /// True if an option with these values takes this one.
    pub(crate) fn accepts(&self, text: &str) -> bool {
        match self {
            Values::Size(low, high) => units::parse_size(text).is_some_and(|value| (*low..=*high).contains(&value)),
            Values::Count(low, high) => text.parse::<u64>().is_ok_and(|value| (*low..=*high).contains(&value)),
            Values::Real(low, high) => text.parse::<f64>().is_ok_and(|value| (*low..=*high).contains(&value)),
            // 7 is not meant as 700 %.
            Values::Share(_, high) if *high > 1.0 && is_bare_number(text) => false,
            Values::Share(low, high) => units::parse_share(text).is_some_and(|value| (*low..=*high).contains(&value)),
            Values::Capacity(low, high) => {
                Capacity::parse(text).is_some_and(|capacity| capacity.is_within(*low, *high))
            }
            Values::Duration(low, high) => {
                units::parse_duration_ns(text).is_some_and(|value| (*low..=*high).contains(&value))
            }
            Values::Durations(low, high, most) => {
                let one = Values::Duration(*low, *high);
                text.split('+').count() <= *most && text.split('+').all(|duration| one.accepts(duration))
            }
            Values::Amount => Amount::parse(text).is_some(),
            Values::Choice(words) => words().iter().any(|(word, _)| *word == text),
            Values::Switch => text == "on" || text == "off",
            Values::SwitchOrShare => parse_switch_or_share(text).is_some(),
            Values::Shares => parse_shares(text).is_some(),
            Values::Text(most) => (1..=*most).contains(&text.len()),
            Values::File => !text.is_empty(),
        }
    }
}

/// True if a share has no `%` and is 1 or more: a percentage is meant.
fn is_bare_number(share: &str) -> bool {
    share.parse::<f64>().is_ok_and(|value| value >= 1.0)
}

/// The fraction of `on`, `off` or a share from 0% to 100%; `None` for anything else.
pub fn parse_switch_or_share(text: &str) -> Option<f64> {
    match text {
        "on" => Some(1.0),
        "off" => Some(0.0),
        share => units::parse_share(share).filter(|share| (0.0..=1.0).contains(share)),
    }
}

/// An amount of writes.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Amount {
    /// A number of bytes.
    Bytes(u64),
    /// A multiple of the device's size.
    Times(f64),
}

impl Amount {
    /// Parses `4G` or `6x`.
    pub fn parse(text: &str) -> Option<Amount> {
        match text.strip_suffix('x') {
            Some(times) => times.parse::<f64>().ok().filter(|times| (0.0..1e9).contains(times)).map(Amount::Times),
            None => units::parse_size(text).map(Amount::Bytes),
        }
    }

    /// The amount in bytes, on a device of `device_bytes`.
    pub fn bytes(self, device_bytes: u64) -> u64 {
        match self {
            Amount::Bytes(bytes) => bytes,
            Amount::Times(times) => (device_bytes as f64 * times).round() as u64,
        }
    }
}

impl fmt::Display for Amount {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Amount::Bytes(bytes) => f.write_str(&units::format_size(*bytes)),
            Amount::Times(times) => write!(f, "{times}x"),
        }
    }
}

fn parse_shares(text: &str) -> Option<Vec<f64>> {
    text.split('+').map(|share| units::parse_share(share).filter(|share| (0.0..=1.0).contains(share))).collect()
}

/// A part of the source text, and its range of bytes.
#[derive(Debug, Clone, PartialEq)]
pub struct Spanned {
    /// The part.
    pub text: String,
    /// Its range of bytes in the whole text.
    pub span: Range<usize>,
}

/// A parsed `name:option=value,...`.
#[derive(Debug, Clone, PartialEq)]
pub struct Term {
    /// The name before the `:`.
    pub name: Spanned,
    /// The options: name, and value if one was written.
    pub options: Vec<(Spanned, Option<Spanned>)>,
    /// The range of the whole term.
    pub span: Range<usize>,
    source: String,
}

/// An error in an expression, and its position.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub struct ExpressionError {
    /// The whole expression.
    pub source_text: String,
    /// The characters that are wrong (a range of bytes).
    pub span: Range<usize>,
    /// The error message.
    pub message: String,
    /// The correction.
    pub help: String,
}

impl fmt::Display for ExpressionError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let before = self.source_text[..self.span.start].chars().count();
        let width = self.source_text[self.span.clone()].chars().count().max(1);
        writeln!(f, "{}", self.message)?;
        writeln!(f, "    {}", self.source_text)?;
        writeln!(f, "    {}{}", " ".repeat(before), "^".repeat(width))?;
        write!(f, "{}", self.help)
    }
}

/// `text` without the spaces around it; `offset` is its position.
fn trim_spanned(text: &str, offset: usize) -> Spanned {
    let trimmed = text.trim();
    let from = offset + text.len() - text.trim_start().len();
    Spanned { text: trimmed.to_string(), span: from..from + trimmed.len() }
}

/// Splits `text` at every `separator` into trimmed parts.
fn split_spanned(text: &str, offset: usize, separator: char) -> Vec<Spanned> {
    let mut start = offset;
    let mut parts = Vec::new();
    for part in text.split(separator) {
        parts.push(trim_spanned(part, start));
        start += part.len() + separator.len_utf8();
    }
    parts
}

/// Splits a path at every `/` outside a file name.
fn split_levels(text: &str) -> Vec<Spanned> {
    let mut levels = Vec::new();
    let (mut start, mut option_from, mut in_file_name) = (0, None, false);
    for (at, character) in text.char_indices() {
        match character {
            '/' if !in_file_name => {
                levels.push(trim_spanned(&text[start..at], start));
                (start, option_from) = (at + 1, None);
            }
            ':' | ',' | '+' if character != ':' || !in_file_name => {
                (option_from, in_file_name) = ((character != '+').then_some(at + 1), false);
            }
            '=' => {
                let option = option_from.take().map(|from: usize| text[from..at].trim());
                in_file_name |= option.is_some_and(|option| FILE_OPTIONS.contains(&option));
            }
            _ => {}
        }
    }
    levels.push(trim_spanned(&text[start..], start));
    levels
}

/// Parses a path expression: stations from top to bottom, each a list of terms side by side.
pub fn parse_path(text: &str) -> Result<Vec<Vec<Term>>, ExpressionError> {
    split_levels(text)
        .into_iter()
        .map(|level| {
            split_side_by_side(&level.text, level.span.start).into_iter().map(|part| term_of(text, part)).collect()
        })
        .collect()
}

/// A path with these values of options of its topmost station, which is of this kind, in place of those that it has; all
/// options in the kind's order.
pub fn with_top_options(path: &str, kind: &Kind, options: &[(&'static str, String)]) -> String {
    let Some(top) = split_levels(path).into_iter().next() else { return path.to_string() };
    let Ok(mut term) = term_of(path, top.clone()) else { return path.to_string() };
    for (name, value) in options {
        let value = Some(Spanned { text: value.clone(), span: top.span.clone() });
        match term.options.iter_mut().find(|(known, _)| known.text == *name) {
            Some((_, known)) => *known = value,
            None => term.options.push((Spanned { text: name.to_string(), span: top.span.clone() }, value)),
        }
    }
    term.options.sort_by_key(|(name, _)| kind.options.iter().position(|known| known.name == name.text));
    format!("{}{}", term.as_written(), &path[top.span.end..])
}

/// Splits `a+b` into two devices. A `+` after a `=` belongs to the value (`40%+60%`), unless a new `name:` or station
/// follows.
fn split_side_by_side(text: &str, offset: usize) -> Vec<Spanned> {
    let mut joined: Vec<Spanned> = Vec::new();
    for part in split_spanned(text, offset, '+') {
        let continues_value = part.text.starts_with(|c: char| c.is_ascii_digit() || c == '.');
        match joined.last_mut() {
            Some(last) if continues_value && last.text.contains('=') => {
                let from = last.span.start - offset;
                last.span.end = part.span.end;
                last.text = text[from..part.span.end - offset].to_string();
            }
            _ => joined.push(part),
        }
    }
    joined
}

/// Parses one term, such as a workload.
pub fn parse_term(text: &str) -> Result<Term, ExpressionError> {
    term_of(text, trim_spanned(text, 0))
}

fn term_of(source: &str, part: Spanned) -> Result<Term, ExpressionError> {
    let error = |span: Range<usize>, message: &str, help: &str| ExpressionError {
        source_text: source.to_string(),
        span,
        message: message.to_string(),
        help: help.to_string(),
    };
    let (name, rest) = match part.text.find(':') {
        Some(colon) => (&part.text[..colon], Some((&part.text[colon + 1..], part.span.start + colon + 1))),
        None => (part.text.as_str(), None),
    };
    let name = trim_spanned(name, part.span.start);
    if name.text.is_empty() {
        return Err(error(name.span, "a name is missing here", "write a name, such as page or nand"));
    }
    let mut options = Vec::new();
    if let Some((rest, offset)) = rest {
        for option in split_spanned(rest, offset, ',') {
            if option.text.is_empty() {
                return Err(error(
                    option.span,
                    "an option is missing here",
                    "write option=value, or remove the separator before it",
                ));
            }
            let (key, value) = match option.text.find('=') {
                Some(equals) => (
                    trim_spanned(&option.text[..equals], option.span.start),
                    Some(trim_spanned(&option.text[equals + 1..], option.span.start + equals + 1)),
                ),
                None => (option.clone(), None),
            };
            options.push((key, value));
        }
    }
    Ok(Term { name, options, span: part.span, source: source.to_string() })
}

impl Term {
    /// Finds the kind with this term's name; the error lists the valid names. `what` is the field's word for the kinds,
    /// such as "station".
    pub fn find<'k>(&self, what: &str, kinds: &[&'k Kind]) -> Result<&'k Kind, ExpressionError> {
        kinds.iter().copied().find(|kind| kind.name == self.name.text).ok_or_else(|| {
            let names = || kinds.iter().map(|kind| kind.name);
            let help = match nearest(&self.name.text, names()) {
                Some(near) => format!("did you mean {near}? There are: {}", names().collect::<Vec<_>>().join(", ")),
                None => format!("there are: {}", names().collect::<Vec<_>>().join(", ")),
            };
            self.error(self.name.span.clone(), format!("unknown {what} '{}'", self.name.text), help)
        })
    }

    /// Validates this term against `kind`: every option must be known, written once, and have a valid value.
    pub fn settle(&self, kind: &'static Kind) -> Result<Settings, ExpressionError> {
        let mut values: Vec<Setting> = kind
            .options
            .iter()
            .map(|option| Setting { option, text: option.default.to_string(), span: None })
            .collect();
        for (at, (key, value)) in self.options.iter().enumerate() {
            let Some(setting) = values.iter_mut().find(|setting| setting.option.name == key.text) else {
                let names = || kind.options.iter().map(|option| option.name);
                let help = match (names().next(), nearest(&key.text, names())) {
                    (_, None) if self.is_rest_of_a_file_name(at) => {
                        "a comma ends a file name: name the file without one, or make a link to it".to_string()
                    }
                    (None, _) => format!("{} takes no options", kind.name),
                    (_, Some(near)) => {
                        format!("did you mean {near}? {} takes: {}", kind.name, names().collect::<Vec<_>>().join(", "))
                    }
                    (_, None) => format!("{} takes: {}", kind.name, names().collect::<Vec<_>>().join(", ")),
                };
                let message = format!("{} has no option '{}'", kind.name, key.text);
                return Err(self.error(key.span.clone(), message, help));
            };
            if setting.span.is_some() {
                let help = "write it once".to_string();
                return Err(self.error(key.span.clone(), format!("option '{}' is written twice", key.text), help));
            }
            let (text, span) = match (value, setting.option.values) {
                (Some(value), _) => (value.text.clone(), value.span.clone()),
                (None, Values::Switch | Values::SwitchOrShare) => ("on".to_string(), key.span.clone()),
                (None, takes) => {
                    let help = format!("write {}= and {}", key.text, takes.describe());
                    return Err(self.error(key.span.clone(), format!("option '{}' needs a value", key.text), help));
                }
            };
            if matches!(setting.option.values, Values::File) && (text == "~" || text.starts_with("~/")) {
                let message =
                    "'~' is not your home directory here: a shell replaces it at the beginning of a word only";
                let help = "write $HOME instead; ./~ is a file or directory of this name".to_string();
                return Err(self.error(span, message.to_string(), help));
            }
            if !setting.option.values.accepts(&text) {
                let message = format!("'{text}' is not a value of {}:{}", kind.name, key.text);
                let mut help = format!("{} takes {}", key.text, setting.option.values.describe());
                let is_share =
                    matches!(setting.option.values, Values::Share(..) | Values::Capacity(..) | Values::SwitchOrShare);
                if is_share && is_bare_number(&text) {
                    help += &format!(": write {text}%");
                }
                return Err(self.error(span, message, help));
            }
            setting.text = text;
            setting.span = Some(span);
        }
        Ok(Settings { kind, values, term: self.clone() })
    }

    /// True if the option at `at` may be the rest of a file name with a comma.
    fn is_rest_of_a_file_name(&self, at: usize) -> bool {
        let before = self.options[..=at].iter().rev().find(|(_, value)| value.is_some());
        before.is_some_and(|(option, _)| FILE_OPTIONS.contains(&option.text.as_str()))
    }

    /// The expression as the user wrote it, without its spaces.
    pub fn as_written(&self) -> String {
        let options: Vec<String> = self
            .options
            .iter()
            .map(|(key, value)| match value {
                Some(value) => format!("{}={}", key.text, value.text),
                None => key.text.clone(),
            })
            .collect();
        if options.is_empty() { self.name.text.clone() } else { format!("{}:{}", self.name.text, options.join(",")) }
    }

    /// An error at `span` of the source text.
    pub fn error(&self, span: Range<usize>, message: String, help: String) -> ExpressionError {
        ExpressionError { source_text: self.source.clone(), span, message, help }
    }
}

#[derive(Debug, Clone)]
struct Setting {
    option: &'static OptionKind,
    text: String,
    /// The range of the value; `None` for a default.
    span: Option<Range<usize>>,
}

/// A term whose options all have values. A getter panics if the kind lacks the option, or if the option has another
/// type: that is a bug of the caller, since [`Term::settle`] has validated the user's text.
#[derive(Debug, Clone)]
pub struct Settings {
    kind: &'static Kind,
    values: Vec<Setting>,
    term: Term,
}

impl Settings {
    /// The kind of the term.
    pub fn kind(&self) -> &'static Kind {
        self.kind
    }

    fn get(&self, name: &str) -> &Setting {
        self.values
            .iter()
            .find(|setting| setting.option.name == name)
            .unwrap_or_else(|| panic!("{} has no option {name}", self.kind.name))
    }

    /// True if the user wrote this option.
    pub fn is_given(&self, name: &str) -> bool {
        self.get(name).span.is_some()
    }

    /// True if the option has a value, written or by default.
    pub fn is_set(&self, name: &str) -> bool {
        !self.get(name).text.is_empty()
    }

    /// The value as written, or the default.
    pub fn text(&self, name: &str) -> &str {
        &self.get(name).text
    }

    /// Sets the value of an option that the user did not write; presets use it.
    pub fn set_default(&mut self, name: &str, text: &str) {
        let at = self.values.iter().position(|setting| setting.option.name == name).expect("the kind has this option");
        let setting = &mut self.values[at];
        assert!(setting.option.values.accepts(text), "a preset's {name}={text} is not a value");
        if setting.span.is_none() {
            setting.text = text.to_string();
        }
    }

    /// Sets the values of options that the user did not write.
    pub fn set_defaults(&mut self, values: &[(&str, &str)]) {
        values.iter().for_each(|(name, text)| self.set_default(name, text));
    }

    /// A [`Values::Size`], in bytes.
    pub fn size(&self, name: &str) -> u64 {
        units::parse_size(self.text(name)).expect("checked when settled")
    }

    /// A [`Values::Count`].
    pub fn count(&self, name: &str) -> u64 {
        self.text(name).parse().expect("checked when settled")
    }

    /// A [`Values::Real`].
    pub fn real(&self, name: &str) -> f64 {
        self.text(name).parse().expect("checked when settled")
    }

    /// A [`Values::Share`], as a fraction.
    pub fn share(&self, name: &str) -> f64 {
        units::parse_share(self.text(name)).expect("checked when settled")
    }

    /// A [`Values::SwitchOrShare`], as a fraction: `on` is 1.
    pub fn switch_or_share(&self, name: &str) -> f64 {
        parse_switch_or_share(self.text(name)).expect("checked when settled")
    }

    /// A [`Values::Duration`], in nanoseconds.
    pub fn duration_ns(&self, name: &str) -> u64 {
        units::parse_duration_ns(self.text(name)).expect("checked when settled")
    }

    /// A [`Values::Durations`], in nanoseconds: one or several.
    pub fn durations_ns(&self, name: &str) -> Vec<u64> {
        let parse = |text| units::parse_duration_ns(text).expect("checked when settled");
        self.text(name).split('+').map(parse).collect()
    }

    /// A [`Values::Amount`].
    pub fn amount(&self, name: &str) -> Amount {
        Amount::parse(self.text(name)).expect("checked when settled")
    }

    /// A [`Values::Switch`].
    pub fn switch(&self, name: &str) -> bool {
        self.text(name) == "on"
    }

    /// A [`Values::Shares`], as fractions.
    pub fn shares(&self, name: &str) -> Vec<f64> {
        parse_shares(self.text(name)).expect("checked when settled")
    }

    /// The value in its normal form: a size of 4096 is 4K.
    pub fn normalised(&self, name: &str) -> String {
        let text = self.text(name);
        match self.get(name).option.values {
            Values::Size(..) => units::parse_size(text).map(units::format_size),
            Values::Count(..) => text.parse::<u64>().ok().map(|count| count.to_string()),
            _ => None,
        }
        .unwrap_or_else(|| text.to_string())
    }

    /// An error at the value of option `name`, or at the term's name for a default.
    pub fn error(&self, name: &str, message: String, help: String) -> ExpressionError {
        let span = self.get(name).span.clone().unwrap_or(self.term.name.span.clone());
        self.term.error(span, message, help)
    }

    /// The term with all option values, so that a report allows a run to be repeated. Defaults of `meaningless`
    /// options, which other options of this term rule out, are omitted.
    pub fn written_out(&self, meaningless: &[&str]) -> String {
        let options: Vec<_> = self
            .values
            .iter()
            .filter(|setting| !setting.text.is_empty())
            .filter(|setting| setting.span.is_some() || !meaningless.contains(&setting.option.name))
            .map(|setting| format!("{}={}", setting.option.name, setting.text))
            .collect();
        if options.is_empty() {
            self.kind.name.to_string()
        } else {
            format!("{}:{}", self.kind.name, options.join(","))
        }
    }
}

/// `a, b or c`.
pub fn one_of<'a>(words: impl Iterator<Item = &'a str>) -> String {
    let mut words: Vec<&str> = words.collect();
    match words.pop() {
        None => "nothing".to_string(),
        Some(last) if words.is_empty() => last.to_string(),
        Some(last) => format!("{} or {last}", words.join(", ")),
    }
}

/// Formats a share as a percentage. Rounding as text removes the error of binary fractions: 0.000001 is 0.0001%.
fn percent(share: f64) -> String {
    let rounded = format!("{:.9}", share * 100.0);
    format!("{}%", rounded.trim_end_matches('0').trim_end_matches('.'))
}

/// The word of `words` most similar to `text`: at most two edits away, or a third of its length.
pub fn nearest<'a>(text: &str, words: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    words
        .map(|word| (edit_distance(text, word), word))
        .filter(|(distance, word)| *distance <= 2.min(word.len() / 3 + 1))
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, word)| word)
}

fn edit_distance(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, from) in a.chars().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, to) in b.iter().enumerate() {
            let changed = diagonal + usize::from(from != *to);
            diagonal = row[j + 1];
            row[j + 1] = changed.min(row[j] + 1).min(diagonal + 1);
        }
    }
    row[b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    static LAMP: Kind = Kind {
        name: "lamp",
        about: "a lamp",
        options: &[
            OptionKind { name: "size", values: Values::Size(1024, 1 << 20), default: "4K", about: "" },
            OptionKind { name: "lit", values: Values::Switch, default: "off", about: "" },
            OptionKind { name: "parts", values: Values::Shares, default: "", about: "" },
            OptionKind { name: "times", values: Values::Durations(0, 1_000_000, 3), default: "5us", about: "" },
        ],
    };

    fn settle(text: &str) -> Result<Settings, ExpressionError> {
        parse_term(text)?.settle(&LAMP)
    }

    #[test]
    fn a_term_has_its_defaults_and_what_is_written() {
        let settings = settle("lamp: size = 8K , lit").unwrap();
        assert_eq!(settings.size("size"), 8192);
        assert!(settings.switch("lit"));
        assert!(!settings.is_set("parts"));
        assert_eq!(settings.written_out(&[]), "lamp:size=8K,lit=on,times=5us");
        assert_eq!(settings.durations_ns("times"), [5_000]);
        assert_eq!(settle("lamp:times=1us+2us").unwrap().durations_ns("times"), [1_000, 2_000]);
        assert_eq!(settle("lamp:size=8192").unwrap().normalised("size"), "8K");
    }

    #[test]
    fn nothing_of_a_term_is_passed_over() {
        // Characters after a zero character were once dropped silently.
        for (text, pointed) in [("lamp\0:lit", "lamp\0"), ("lamp:lit\0=off", "lit\0"), ("lamp:size=4K\0M", "4K\0M")] {
            let error = parse_term(text).and_then(|term| term.settle(term.find("thing", &[&LAMP])?)).unwrap_err();
            assert_eq!(&text[error.span.clone()], pointed);
        }
    }

    #[test]
    fn a_share_is_shown_without_what_binary_fractions_add() {
        let shown: Vec<String> = [1e-6, 0.999, 0.07, 99.0, 0.0].into_iter().map(percent).collect();
        assert_eq!(shown, ["0.0001%", "99.9%", "7%", "9900%", "0%"]);
    }

    #[test]
    fn an_error_points_at_its_characters() {
        for (text, pointed, help) in [
            ("lamp:sise=8K", "sise", "did you mean size?"),
            ("lamp:size=8X", "8X", "a size from 1K to 1M"),
            ("lamp:size=2M", "2M", "a size from 1K to 1M"),
            ("lamp:times=1us+2us+3us+4us", "1us+2us+3us+4us", "up to 3 of them joined by +"),
            ("lamp:times=1us+2ms", "1us+2ms", "a duration from"),
            ("lamp:size", "size", "write size="),
            ("lamp:lit=maybe", "maybe", "on or off"),
            ("lamp:lit,lit", "lit", "write it once"),
            ("lamp:", "", "write option=value"),
            ("", "", "write a name"),
        ] {
            let error = settle(text).unwrap_err();
            assert_eq!(&text[error.span.clone()], pointed, "{text}");
            assert!(error.help.contains(help), "{text}: {}", error.help);
        }
    }

    #[test]
    fn options_of_the_top_are_replaced_or_added() {
        let options = [("lit", "off".to_string()), ("size", "8K".to_string())];
        for (path, expected) in [
            ("lamp", "lamp:size=8K,lit=off"),
            ("lamp:lit,parts=40%+60%/x:image=a/b+y", "lamp:size=8K,lit=off,parts=40%+60%/x:image=a/b+y"),
            ("lamp:size=4K/x", "lamp:size=8K,lit=off/x"),
        ] {
            assert_eq!(with_top_options(path, &LAMP, &options), expected);
            assert_eq!(with_top_options(path, &LAMP, &[]), path);
        }
    }

    #[test]
    fn a_path_is_levels_of_terms_side_by_side() {
        let path = parse_path("dm-zoned / conv:size=1G + zns:size=4G").unwrap();
        assert_eq!(path.len(), 2);
        assert_eq!(path[1].iter().map(|term| term.name.text.as_str()).collect::<Vec<_>>(), ["conv", "zns"]);
        let shares = parse_path("lamp:parts=40%+60%,lit/x").unwrap();
        assert_eq!(shares[0].len(), 1);
        assert_eq!(shares[0][0].settle(&LAMP).unwrap().shares("parts"), [0.4, 0.6]);
    }

    #[test]
    fn a_slash_in_a_files_name_separates_no_stations() {
        let path = parse_path("dm-zoned/conv:size=1G,image=dir/a:b.img+zns: image = /dev/b ,zone=4M").unwrap();
        let names: Vec<Vec<&str>> =
            path.iter().map(|level| level.iter().map(|term| term.name.text.as_str()).collect()).collect();
        assert_eq!(names, [vec!["dm-zoned"], vec!["conv", "zns"]]);
        let value = |device: usize, option: usize| path[1][device].options[option].1.as_ref().unwrap().text.as_str();
        assert_eq!((value(0, 1), value(1, 0), value(1, 1)), ("dir/a:b.img", "/dev/b", "4M"));
        assert_eq!(parse_path("a:limit=x/b:y").unwrap().len(), 2);
    }

    #[test]
    fn the_caret_stands_under_the_wrong_characters_whatever_their_width() {
        let error = parse_term("lämp:x=1").unwrap().find("lamp", &[&LAMP]).unwrap_err();
        assert!(error.to_string().contains("    lämp:x=1\n    ^^^^\n"), "{error}");
    }
}
