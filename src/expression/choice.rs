//! Options whose value is one of a list of words.

use super::{Settings, Values};

/// A value that one of a list of words names.
///
/// The one list describes the option, validates it and parses it, so a new word cannot silently run as another: each
/// word has its own value, and a `match` on the value must name all of them.
pub trait Choice: Copy + 'static {
    /// Each word, its value, and a one-line description (empty if the word needs none).
    const WORDS: &'static [(&'static str, Self, &'static str)];

    /// The value of `word`.
    fn of_word(word: &str) -> Option<Self> {
        Self::WORDS.iter().find(|(known, ..)| *known == word).map(|(_, value, _)| *value)
    }

    /// The word of the value.
    fn word(self) -> &'static str
    where
        Self: PartialEq,
    {
        Self::WORDS.iter().find(|(_, value, _)| *value == self).expect("each value has a word").0
    }
}

/// The words of a [`Choice`] and their descriptions.
pub type Words = Vec<(&'static str, &'static str)>;

/// The words of `T`, for [`Values::Choice`].
pub fn words<T: Choice>() -> Words {
    T::WORDS.iter().map(|(word, _, about)| (*word, *about)).collect()
}

impl Settings {
    /// The value of a [`Values::Choice`] of `T`. Panics, as all getters do, if the option has no value or takes other
    /// words.
    pub fn choice<T: Choice>(&self, name: &str) -> T {
        let option = self.get(name).option;
        let takes = match option.values {
            Values::Choice(takes) => takes(),
            _ => panic!("{name} is not a choice"),
        };
        assert!(takes == words::<T>(), "{name} takes {takes:?}, and is read as one of {:?}", words::<T>());
        T::of_word(self.text(name)).expect("checked when settled")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::expression::{Kind, OptionKind, parse_term};

    #[derive(Clone, Copy, Debug, PartialEq)]
    enum Colour {
        Red,
        Blue,
    }

    impl Choice for Colour {
        const WORDS: &'static [(&'static str, Self, &'static str)] =
            &[("red", Colour::Red, "like a rose"), ("blue", Colour::Blue, "")];
    }

    #[derive(Clone, Copy, Debug)]
    struct Shade;

    impl Choice for Shade {
        const WORDS: &'static [(&'static str, Self, &'static str)] = &[("red", Shade, "")];
    }

    static KIND: Kind = Kind {
        name: "flower",
        about: "a flower",
        options: &[OptionKind {
            name: "colour",
            values: Values::Choice(words::<Colour>),
            default: "blue",
            about: "its colour",
        }],
    };

    fn settled(text: &str) -> Result<Settings, String> {
        parse_term(text).unwrap().settle(&KIND).map_err(|error| error.help)
    }

    #[test]
    fn a_word_is_what_stands_beside_it() {
        assert_eq!(settled("flower:colour=red").unwrap().choice::<Colour>("colour"), Colour::Red);
        assert_eq!(settled("flower").unwrap().choice::<Colour>("colour"), Colour::Blue);
        assert_eq!(settled("flower:colour=rose").unwrap_err(), "colour takes red or blue");
    }

    #[test]
    #[should_panic(expected = "colour takes")]
    fn an_option_is_not_read_by_the_words_of_another() {
        settled("flower:colour=red").unwrap().choice::<Shade>("colour");
    }
}
