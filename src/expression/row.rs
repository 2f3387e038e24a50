//! Options whose value names a row of a table that can grow.
//!
//! A [`Choice`](super::Choice) is closed: every use of the enum names all its values. A table of rows is open: the caller
//! that parses a term passes the table, with additional rows if needed, and each row has the value of its word.

use super::{Settings, Values, Words};

/// A row of a table.
#[derive(Clone, Copy, Debug)]
pub struct Row<T> {
    /// The word that names it.
    pub word: &'static str,
    /// A one-line description.
    pub about: &'static str,
    /// Its value.
    pub value: T,
}

/// The words of a table, for [`Values::Choice`].
pub fn words_of<T>(rows: &[Row<T>]) -> Words {
    rows.iter().map(|row| (row.word, row.about)).collect()
}

impl Settings {
    /// The value of the row that a [`Values::Choice`] names. Panics, as all getters do, if the option has no value or takes
    /// other words than the table's.
    pub fn row<'r, T>(&self, name: &str, rows: &'r [Row<T>]) -> &'r T {
        let takes = match self.get(name).option.values {
            Values::Choice(takes) => takes(),
            _ => panic!("{name} is not a choice"),
        };
        assert!(takes == words_of(rows), "{name} takes {takes:?}, and is read by the rows {:?}", words_of(rows));
        let word = self.text(name);
        &rows.iter().find(|row| row.word == word).expect("checked when settled").value
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::expression::{Kind, OptionKind, parse_term};

    static SHAPES: [Row<u32>; 2] =
        [Row { word: "triangle", about: "three", value: 3 }, Row { word: "square", about: "four", value: 4 }];
    static MORE: [Row<u32>; 3] = [SHAPES[0], SHAPES[1], Row { word: "pentagon", about: "five", value: 5 }];

    static KIND: Kind = Kind {
        name: "tile",
        about: "a tile",
        options: &[
            OptionKind {
                name: "shape",
                values: Values::Choice(|| words_of(&SHAPES)),
                default: "square",
                about: "its shape",
            },
            OptionKind { name: "glazed", values: Values::Switch, default: "off", about: "" },
        ],
    };

    #[test]
    fn a_word_is_what_its_row_brings() {
        let settings = |text| parse_term(text).unwrap().settle(&KIND).unwrap();
        assert_eq!(settings("tile").row("shape", &SHAPES), &4);
        assert_eq!(settings("tile:shape=triangle").row("shape", &SHAPES), &3);
    }

    #[test]
    fn a_kind_with_another_option_keeps_its_other_options() {
        let shape = OptionKind {
            values: Values::Choice(|| words_of(&MORE)),
            ..*KIND.options.iter().find(|option| option.name == "shape").unwrap()
        };
        let sides = OptionKind { name: "thick", values: Values::Count(1, 9), default: "1", about: "" };
        let kind = KIND.with_options(vec![shape, sides]);
        let settings = parse_term("tile:shape=pentagon,glazed,thick=2").unwrap().settle(kind).unwrap();
        assert_eq!(settings.row("shape", &MORE), &5);
        assert_eq!(settings.written_out(&[]), "tile:shape=pentagon,glazed=on,thick=2");
        assert!(parse_term("tile:shape=pentagon").unwrap().settle(&KIND).is_err(), "the kind itself is as it was");
    }

    #[test]
    #[should_panic(expected = "shape takes")]
    fn an_option_is_not_read_by_the_rows_of_another_table() {
        parse_term("tile:shape=square").unwrap().settle(&KIND).unwrap().row("shape", &MORE);
    }
}
