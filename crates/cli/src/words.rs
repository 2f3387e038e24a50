//! Options of the command line whose value is one of a list of words: what stands for what is in one table.

use clap::builder::{PossibleValuesParser, TypedValueParser};

/// Reads one of these words as what it stands for.
pub fn one_of<T: Copy + Send + Sync + 'static>(
    table: &'static [(&'static str, T)],
) -> impl TypedValueParser<Value = T> {
    let words = PossibleValuesParser::new(table.iter().map(|(word, _)| *word));
    words.map(move |read| table.iter().find(|(word, _)| **word == read).expect("clap takes no other word").1)
}
