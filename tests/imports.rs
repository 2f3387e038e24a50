//! The import table: which room may use which. The source files themselves are read, so that the table cannot drift.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

/// Words that all rooms share; they import only each other.
const SHARED: [&str; 5] = ["expression", "label", "random", "time", "units"];

/// Each room, and the rooms it may import besides the shared words and itself.
const ROOMS: [(&str, &[&str]); 7] = [
    ("device", &[]),
    ("layout", &[]),
    ("translation", &["device"]),
    ("fs", &["device"]),
    ("workload", &[]),
    ("report", &[]),
    ("run", &["device", "layout", "translation", "fs", "workload", "report"]),
];

fn rust_files(folder: &Path, files: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            rust_files(&path, files);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            files.push(path);
        }
    }
}

/// Every name that follows `crate::` in the code of a file, braces included.
fn imports(text: &str) -> Vec<String> {
    let code: String = text.lines().filter(|line| !line.trim_start().starts_with("//")).collect::<Vec<_>>().join("\n");
    let mut names = Vec::new();
    for (at, found) in code.match_indices("crate::") {
        let rest = &code[at + found.len()..];
        let part = |text: &str| text.chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect::<String>();
        match rest.strip_prefix('{') {
            Some(group) => {
                // The top level of the braces: crate::{a::B, c::{D, E}}.
                let (mut depth, mut fresh) = (0, true);
                for (index, character) in group.char_indices() {
                    match character {
                        '{' => depth += 1,
                        '}' if depth == 0 => break,
                        '}' => depth -= 1,
                        ',' if depth == 0 => fresh = true,
                        c if depth == 0 && fresh && c.is_alphabetic() => {
                            names.push(part(&group[index..]));
                            fresh = false;
                        }
                        _ => {}
                    }
                }
            }
            None => names.push(part(rest)),
        }
    }
    names
}

/// The imports that the table does not allow, by file.
fn violations(source: &Path) -> BTreeMap<String, Vec<String>> {
    let mut files = Vec::new();
    rust_files(source, &mut files);
    assert!(files.len() > 20, "the sources were found");
    let mut wrong = BTreeMap::new();
    for file in files {
        let place = file.strip_prefix(source).unwrap();
        let room = place.iter().next().unwrap().to_str().unwrap().trim_end_matches(".rs").to_string();
        if room == "lib" {
            continue;
        }
        let allowed: Vec<&str> = match ROOMS.iter().find(|(name, _)| *name == room) {
            Some((_, rooms)) => rooms.to_vec(),
            None => {
                assert!(SHARED.contains(&room.as_str()), "{room} is not in the table: say what it may import");
                Vec::new()
            }
        };
        let bad: Vec<String> = imports(&fs::read_to_string(&file).unwrap())
            .into_iter()
            .filter(|name| *name != room && !SHARED.contains(&name.as_str()) && !allowed.contains(&name.as_str()))
            .collect();
        if !bad.is_empty() {
            wrong.insert(place.display().to_string(), bad);
        }
    }
    wrong
}

#[test]
fn every_room_imports_only_what_the_table_allows() {
    let wrong = violations(&Path::new(env!("CARGO_MANIFEST_DIR")).join("src"));
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn the_reader_of_imports_sees_them_all() {
    let text = "use crate::device::nand::{A, B};\nuse crate::{label::{X, Y}, run::Z};\nlet x = crate::report::q();\n// crate::no";
    assert_eq!(imports(text), ["device", "label", "run", "report"]);
}
