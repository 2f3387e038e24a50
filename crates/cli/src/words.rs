//! Command-line options whose value is one of a list of words, with one table of words and values.

use clap::builder::{PossibleValuesParser, TypedValueParser};

/// A parser of the words of `table` that gives their values.
pub fn one_of<T: Copy + Send + Sync + 'static>(
    table: &'static [(&'static str, T)],
) -> impl TypedValueParser<Value = T> {
    let words = PossibleValuesParser::new(table.iter().map(|(word, _)| *word));
    words.map(move |read| table.iter().find(|(word, _)| **word == read).expect("clap takes no other word").1)
}
