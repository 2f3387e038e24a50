//! A path, a workload or an option of the command with several values in it.
//!
//! A [`Template`] is the text, and its axes: the options with several values. [`Template::text_of`] writes out one choice
//! of values. An error in that text is moved back to the place in the template where the value stands.

use crate::values::{Value, ValueFault, values};
use flashpath::expression::{ExpressionError, Kind, OptionKind, Term, Values, parse_path, parse_term};
use std::ops::Range;

/// A text with several values.
#[derive(Clone, Debug)]
pub struct Template {
    /// The text as written.
    pub source: String,
    /// The options with several values, in the order of the text.
    pub axes: Vec<Axis>,
}

/// An option with several values.
#[derive(Clone, Debug)]
pub struct Axis {
    /// The name of its column: `page.op`, `uniform.writes`, `depth`. The second station of a name is `conv-2`.
    pub name: String,
    /// The values it takes, if the option is known.
    pub takes: Option<Values>,
    /// The bytes of the text that the values replace.
    pub span: Range<usize>,
    /// The values.
    pub values: Vec<Value>,
}

/// A group in braces.
const OPENS: char = '{';
const CLOSES: char = '}';

/// The help for a group that stands in place of something other than values.
const ONLY_VALUES: &str =
    "write it behind an option's '=', as in page:op={7%,14%}/nand; for several stations give --on several times";

impl Template {
    /// A path, with stations of these kinds.
    pub fn of_path(text: &str, kinds: &[&'static Kind]) -> Result<Template, ExpressionError> {
        Template::of(text, kinds, |masked| Ok(parse_path(masked)?.into_iter().flatten().collect()))
    }

    /// A workload of these kinds.
    pub fn of_workload(text: &str, kinds: &[&'static Kind]) -> Result<Template, ExpressionError> {
        Template::of(text, kinds, |masked| Ok(vec![parse_term(masked)?]))
    }

    /// The value of an option of the command. The source is as on the command line: `--depth 1:8`.
    pub fn of_option(option: &OptionKind, text: &str) -> Result<Template, ExpressionError> {
        let source = format!("--{} {text}", option.name);
        let span = source.len() - text.len()..source.len();
        let groups = groups(&source)?;
        let values = list(&source, span.clone(), &groups, true).map_err(|fault| at_fault(&source, fault))?;
        let one = || vec![Value { text: text.to_string(), span: span.clone() }];
        let values = values.unwrap_or_else(one);
        Ok(Template {
            axes: vec![Axis { name: option.name.to_string(), takes: Some(option.values), span, values }],
            source,
        })
    }

    /// A text without options to vary, such as the name of a trace.
    pub fn literal(text: &str) -> Template {
        Template { source: text.to_string(), axes: Vec::new() }
    }

    fn of(
        text: &str,
        kinds: &[&'static Kind],
        parse: impl Fn(&str) -> Result<Vec<Term>, ExpressionError>,
    ) -> Result<Template, ExpressionError> {
        let groups = groups(text)?;
        let mut masked = text.to_string();
        for group in &groups {
            masked.replace_range(group.clone(), &"#".repeat(group.len()));
        }
        let terms = parse(&masked).map_err(|error| ExpressionError { source_text: text.to_string(), ..error })?;
        let (mut axes, mut seen, mut covered) = (Vec::new(), Vec::<String>::new(), Vec::new());
        for term in &terms {
            let kind = kinds.iter().find(|kind| kind.name == term.name.text);
            seen.push(term.name.text.clone());
            let number = seen.iter().filter(|name| **name == term.name.text).count();
            let station = if number == 1 { term.name.text.clone() } else { format!("{}-{number}", term.name.text) };
            for (key, value) in term.options.iter().filter_map(|(key, value)| Some((key, value.as_ref()?))) {
                let option = kind.and_then(|kind| kind.options.iter().find(|option| option.name == key.text));
                let takes = option.map(|option| option.values);
                // Names of files and volumes have colons and points of their own.
                let is_split = takes.is_some_and(|takes| !matches!(takes, Values::File | Values::Text(_)));
                covered.push(value.span.clone());
                let Some(values) =
                    list(text, value.span.clone(), &groups, is_split).map_err(|fault| at_fault(text, fault))?
                else {
                    continue;
                };
                axes.push(Axis { name: format!("{station}.{}", key.text), takes, span: value.span.clone(), values });
            }
        }
        let is_covered = |group: &Range<usize>| {
            covered.iter().any(|span: &Range<usize>| span.start <= group.start && group.end <= span.end)
        };
        match groups.iter().find(|group| !is_covered(group)) {
            Some(group) => {
                let message = "several values can stand in place of an option's value only".to_string();
                Err(at_fault(text, ValueFault { span: group.clone(), message, help: ONLY_VALUES.to_string() }))
            }
            None => Ok(Template { source: text.to_string(), axes }),
        }
    }

    /// The number of texts.
    pub fn count(&self) -> usize {
        self.axes.iter().fold(1, |count, axis| count.saturating_mul(axis.values.len()))
    }

    /// The numbers of the values of text `number`, the last axis first to change.
    pub fn choice(&self, mut number: usize) -> Vec<usize> {
        let mut chosen = vec![0; self.axes.len()];
        for (axis, chosen) in self.axes.iter().zip(&mut chosen).rev() {
            *chosen = number % axis.values.len();
            number /= axis.values.len();
        }
        chosen
    }

    /// The text with these values.
    pub fn text_of(&self, choice: &[usize]) -> String {
        self.pieces(choice).into_iter().map(|(text, _)| text).collect()
    }

    /// The pieces of the text with these values, and the bytes of the template that each is from.
    fn pieces(&self, choice: &[usize]) -> Vec<(&str, Range<usize>)> {
        let (mut pieces, mut from) = (Vec::new(), 0);
        for (axis, number) in self.axes.iter().zip(choice) {
            let value = &axis.values[*number];
            pieces.push((&self.source[from..axis.span.start], from..axis.span.start));
            pieces.push((value.text.as_str(), value.span.clone()));
            from = axis.span.end;
        }
        pieces.push((&self.source[from..], from..self.source.len()));
        pieces
    }

    /// An error in the text with these values, at its place in the template.
    pub fn error_in(&self, choice: &[usize], error: ExpressionError) -> ExpressionError {
        let text = self.text_of(choice);
        if self.axes.is_empty() || error.source_text != text {
            return error;
        }
        let (mut at, mut found) = (0, None::<Range<usize>>);
        for (piece, from) in self.pieces(choice) {
            let here = at..at + piece.len();
            at = here.end;
            let is_touched = match error.span.is_empty() {
                true => here.start <= error.span.start && error.span.start <= here.end,
                false => error.span.start < here.end && here.start < error.span.end,
            };
            if !is_touched {
                continue;
            }
            // A piece that is not a value has its own bytes in the template.
            let place = if &self.source[from.clone()] == piece {
                from.start + error.span.start.saturating_sub(here.start)
                    ..from.start + error.span.end.min(here.end).max(here.start) - here.start
            } else {
                from
            };
            found = Some(match found {
                // Between two pieces it is the second's.
                Some(found) if !error.span.is_empty() => found.start.min(place.start)..found.end.max(place.end),
                _ => place,
            });
        }
        let span = found.unwrap_or(0..self.source.len());
        let help = format!("{}; in {text}", error.help);
        ExpressionError { source_text: self.source.clone(), span, message: error.message, help }
    }
}

/// The groups in braces.
fn groups(text: &str) -> Result<Vec<Range<usize>>, ExpressionError> {
    let (mut groups, mut open) = (Vec::new(), None);
    let fault = |span: Range<usize>, message: &str, help: &str| {
        at_fault(text, ValueFault { span, message: message.to_string(), help: help.to_string() })
    };
    for (at, character) in text.char_indices() {
        match (character, open) {
            (OPENS, None) => open = Some(at),
            (OPENS, Some(_)) => return Err(fault(at..at + 1, "a group inside of a group", "write one list of values")),
            (CLOSES, Some(from)) => {
                groups.push(from..at + 1);
                open = None;
            }
            (CLOSES, None) => return Err(fault(at..at + 1, "no '{' is open here", "write {VALUE,VALUE}")),
            _ => {}
        }
    }
    match open {
        Some(at) => Err(fault(at..at + 1, "this '{' is not closed", "write {VALUE,VALUE}")),
        None => Ok(groups),
    }
}

/// The values at `span`: those of a group with what stands around it, or, if the option's values are split, a list.
/// `None` if it is one value.
fn list(
    text: &str,
    span: Range<usize>,
    groups: &[Range<usize>],
    is_split: bool,
) -> Result<Option<Vec<Value>>, ValueFault> {
    let within: Vec<&Range<usize>> =
        groups.iter().filter(|group| span.start <= group.start && group.end <= span.end).collect();
    match within[..] {
        [] => {
            let value = &text[span.clone()];
            let has_several = is_split && (value.contains(':') || value.contains(".."));
            has_several.then(|| values(value, span.start, ':', true)).transpose()
        }
        [group] => {
            let (before, after) = (&text[span.start..group.start], &text[group.end..span.end]);
            let mut values = values(&text[group.start + 1..group.end - 1], group.start + 1, ',', is_split)?;
            for value in &mut values {
                value.text = format!("{before}{}{after}", value.text);
            }
            Ok(Some(values))
        }
        [_, second, ..] => Err(ValueFault {
            span: second.clone(),
            message: "a second group in one value".to_string(),
            help: "write one list of whole values".to_string(),
        }),
    }
}

fn at_fault(text: &str, fault: ValueFault) -> ExpressionError {
    let ValueFault { span, message, help } = fault;
    ExpressionError { source_text: text.to_string(), span, message, help }
}

#[cfg(test)]
mod tests {
    use super::*;
    use flashpath::run::{Path, STATIONS};

    fn kinds() -> Vec<&'static Kind> {
        STATIONS.iter().map(|station| station.kind).collect()
    }

    fn path(text: &str) -> Result<Template, ExpressionError> {
        Template::of_path(text, &kinds())
    }

    fn all(template: &Template) -> Vec<String> {
        (0..template.count()).map(|number| template.text_of(&template.choice(number))).collect()
    }

    #[test]
    fn both_forms_give_the_same_paths() {
        let paths = [
            "page:op=7%,victim=greedy/nand",
            "page:op=7%,victim=fifo/nand",
            "page:op=14%,victim=greedy/nand",
            "page:op=14%,victim=fifo/nand",
        ];
        for text in [
            "page:op=7%:14%,victim=greedy:fifo/nand",
            "page:op={7%,14%},victim={greedy,fifo}/nand",
            "page:op={7,14}%,victim=greedy:fifo/nand",
            "page:op=7%..14%..7%,victim={greedy,fifo}/nand",
            "page:op={7%..14%/7%},victim={greedy,fifo}/nand",
        ] {
            let template = path(text).unwrap();
            assert_eq!(all(&template), paths, "{text}");
            assert_eq!(
                template.axes.iter().map(|axis| axis.name.as_str()).collect::<Vec<_>>(),
                ["page.op", "page.victim"]
            );
        }
    }

    #[test]
    fn one_value_is_no_axis_and_a_name_of_a_file_is_not_split() {
        for text in ["page:op=7%/nand", "page", "conv:image=../a:b.img", "zns:size=4G+conv"] {
            assert_eq!(path(text).unwrap().axes.len(), 0, "{text}");
        }
        assert_eq!(all(&path("conv:image={../a:b,c..d}").unwrap()).len(), 2);
        let twice = path("dm-zoned/conv:size=1G+zns:size=4G:8G+zns:size=1G:2G").unwrap();
        assert_eq!(twice.axes.iter().map(|axis| axis.name.as_str()).collect::<Vec<_>>(), ["zns.size", "zns-2.size"]);
        assert_eq!(twice.count(), 4);
    }

    #[test]
    fn an_error_points_at_the_value_in_the_template() {
        for (text, pointed) in [
            ("page:op=7%:99999%:8%/nand:size=1G", "99999%"),
            ("page:op=7%,victim={greedy,gredy}/nand", "gredy"),
            ("page:op={7%,14%},vctim=fifo/nand", "vctim"),
            ("page:op=7%:14%/nnd", "nnd"),
            ("page:op=7%:14%", ""),
            ("page:op=1..9/nand", "1..9"),
        ] {
            let template = path(text).unwrap();
            let refused = (0..template.count()).find_map(|number| {
                let choice = template.choice(number);
                Path::read(&template.text_of(&choice)).err().map(|error| template.error_in(&choice, error))
            });
            let error = refused.expect(text);
            assert_eq!((&error.source_text[..], &text[error.span.clone()]), (text, pointed), "{error}");
        }
        for (text, pointed) in [
            ("{page,dftl}/nand", "{page,dftl}"),
            ("page:{op=7%}/nand", "{op=7%}"),
            ("page:op={7%,14%/nand", "{"),
            ("page:op=7%}/nand", "}"),
            ("page:op={7%,}/nand", ""),
            ("page:op={7,8}{%,}/nand", "{%,}"),
            ("page:op=7%::8%/nand", ""),
        ] {
            let error = path(text).expect_err(text);
            assert_eq!((&error.source_text[..], &text[error.span.clone()]), (text, pointed), "{error}");
        }
    }
}
