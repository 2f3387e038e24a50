//! The names in docs/papers.md: each file and function that it leads to exists.

use proc_macro2::{TokenStream, TokenTree};
use std::collections::BTreeSet;
use std::path::Path;

/// The words before a name that is defined.
const DEFINERS: [&str; 7] = ["fn", "struct", "enum", "trait", "type", "const", "static"];

/// A place that a page names: a file, and names that it defines.
#[derive(Debug, PartialEq, Eq)]
struct Place {
    file: String,
    names: Vec<String>,
}

/// The text between backticks, in its order.
fn quoted(line: &str) -> impl Iterator<Item = &str> {
    line.split('`').skip(1).step_by(2)
}

/// The places in a page: a file of the sources between backticks, and the names behind it up to the next one.
fn places(page: &str) -> Vec<Place> {
    let mut places: Vec<Place> = Vec::new();
    for line in page.lines() {
        let mut is_in_place = false;
        for text in quoted(line) {
            if text.ends_with(".rs") {
                is_in_place = true;
                places.push(Place { file: text.to_string(), names: Vec::new() });
            } else if is_in_place && let Some(place) = places.last_mut() {
                place.names.push(text.to_string());
            }
        }
    }
    places
}

/// The names that a source defines.
fn defined(tokens: TokenStream, names: &mut BTreeSet<String>) {
    let mut is_definer = false;
    for token in tokens {
        match token {
            TokenTree::Ident(word) => {
                let word = word.to_string();
                let was_definer = std::mem::replace(&mut is_definer, DEFINERS.contains(&word.as_str()));
                if was_definer {
                    names.insert(word);
                }
            }
            TokenTree::Group(group) => defined(group.stream(), names),
            TokenTree::Punct(_) | TokenTree::Literal(_) => is_definer = false,
        }
    }
}

/// The places of a page that do not exist.
fn missing(page: &str, root: &Path) -> Vec<String> {
    let mut missing = Vec::new();
    for Place { file, names } in places(page) {
        let Ok(text) = std::fs::read_to_string(root.join(&file)) else {
            missing.push(format!("{file}: there is no such file"));
            continue;
        };
        if names.is_empty() {
            missing.push(format!("{file}: the page names nothing in it"));
        }
        let mut found = BTreeSet::new();
        defined(text.parse().unwrap(), &mut found);
        let gone = names.iter().filter(|name| !found.contains(*name));
        missing.extend(gone.map(|name| format!("{file}: it defines no {name}")));
    }
    missing
}

#[test]
fn the_page_of_the_papers_leads_to_places_that_exist() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let page = std::fs::read_to_string(root.join("docs/papers.md")).unwrap();
    assert!(places(&page).len() > 60, "the places were found");
    let missing = missing(&page, root);
    assert!(missing.is_empty(), "{}", missing.join("\n"));
}

#[test]
fn a_place_that_is_gone_is_seen() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("a.rs"), "impl A { /// fn no\n pub(crate) fn b() {} } pub struct S;").unwrap();
    let page = "`x` | `a.rs`: `b`, `S`; `gone.rs`: `b`\n| `a.rs`: `no` |\n`a.rs`";
    let found = missing(page, folder.path());
    let wanted = ["gone.rs: there is no such file", "a.rs: it defines no no", "a.rs: the page names nothing in it"];
    assert_eq!(found, wanted);
}
