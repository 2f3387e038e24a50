//! A path with a short name: `base=page:op=7%/nand`.

/// The most characters of a name.
const MOST: usize = 64;

/// A path as written, and its short name, if it has one.
#[derive(Clone, Debug, PartialEq)]
pub struct NamedPath {
    /// The name.
    pub name: Option<String>,
    /// The path.
    pub path: String,
}

impl NamedPath {
    /// Splits the text at its first `=`, if it comes before all options and stations. No station has a `=` in its name.
    ///
    /// Fails if the name is empty, too long, or has characters other than letters, digits, `-`, `_`, `.` and spaces.
    pub fn read(text: &str) -> Result<NamedPath, String> {
        let Some((name, path)) = text.split_once('=').filter(|(before, _)| !before.contains(['/', ':', ',', '+']))
        else {
            return Ok(NamedPath { name: None, path: text.to_string() });
        };
        let name = name.trim();
        let is_allowed = |character: char| character.is_alphanumeric() || "-_. ".contains(character);
        if name.is_empty() || name.chars().count() > MOST || !name.chars().all(is_allowed) {
            return Err(format!(
                "a name has 1 to {MOST} letters, digits, '-', '_', '.' or spaces, such as base={path}"
            ));
        }
        Ok(NamedPath { name: Some(name.to_string()), path: path.to_string() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_ends_at_the_first_equals_sign_unless_an_option_does() {
        let read = |text: &str| NamedPath::read(text).map(|named| (named.name, named.path));
        let named = |name: &str, path: &str| Ok((Some(name.to_string()), path.to_string()));
        let alone = |path: &str| Ok((None, path.to_string()));
        assert_eq!(read("base=page:op=7%/nand"), named("base", "page:op=7%/nand"));
        assert!(read("7 % spare=page/nand").is_err());
        assert_eq!(read("a b=conv:image=x=y"), named("a b", "conv:image=x=y"));
        for path in ["page:op=7%/nand", "page/nand:size=1G", "page", ""] {
            assert_eq!(read(path), alone(path));
        }
        for wrong in ["=page/nand", "  =page", "a\nb=page", &format!("{}=page", "x".repeat(65))] {
            assert!(read(wrong).is_err(), "{wrong}");
        }
    }
}
