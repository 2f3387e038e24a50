//! The import table: the allowed imports of each room of the library and of each crate, and no import circles among the
//! parts of a folder. The sources themselves are parsed, so that the table cannot drift. `methods` does the same for the calls
//! between the files of one type.

#[path = "imports/circles.rs"]
mod circles;
#[path = "imports/methods.rs"]
mod methods;
#[path = "imports/sources.rs"]
mod sources;

use circles::{Graph, circles, graphs};
use sources::{Modules, read_crate};
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

/// Modules that all rooms share; they import only each other.
const SHARED: [&str; 8] = ["crc", "expression", "label", "random", "tables", "task", "time", "units"];

/// Each room, and the rooms it may import besides the shared modules and itself.
const ROOMS: [(&str, &[&str]); 7] = [
    ("device", &[]),
    ("layout", &["fs"]),
    ("translation", &["device"]),
    ("fs", &["device"]),
    ("workload", &[]),
    ("report", &[]),
    ("run", &["device", "layout", "translation", "fs", "workload", "report"]),
];

/// A crate besides the library, and its allowed imports.
struct Front {
    /// The file at its root.
    root: &'static str,
    /// Rooms of the library, besides the shared modules; `None`: not even those.
    rooms: Option<&'static [&'static str]>,
    /// Other crates of this workspace.
    crates: &'static [&'static str],
}

const FRONTS: [Front; 13] = [
    Front { root: "crates/kernel/src/lib.rs", rooms: None, crates: &[] },
    Front { root: "crates/nvm/src/lib.rs", rooms: None, crates: &[] },
    Front { root: "crates/vmm/src/lib.rs", rooms: None, crates: &[] },
    Front { root: "crates/nbd/src/lib.rs", rooms: Some(&["run"]), crates: &[] },
    Front { root: "crates/nvme/src/lib.rs", rooms: Some(&["device", "run"]), crates: &["flashpath_nbd"] },
    Front { root: "crates/vhost/src/lib.rs", rooms: Some(&["run"]), crates: &["flashpath_nbd"] },
    Front { root: "crates/fuse/src/lib.rs", rooms: Some(&["device", "fs", "run", "workload"]), crates: &[] },
    Front {
        root: "crates/reproduce/src/lib.rs",
        rooms: Some(&["device", "fs", "layout", "report", "run", "translation", "workload"]),
        crates: &["flashpath_kernel", "flashpath_sweep"],
    },
    Front { root: "crates/environment/src/lib.rs", rooms: Some(&["report"]), crates: &[] },
    Front {
        root: "crates/instructions/src/lib.rs",
        rooms: Some(&["device", "run", "workload"]),
        crates: &["flashpath_nbd"],
    },
    Front {
        root: "crates/sweep/src/lib.rs",
        rooms: Some(&["report", "run", "workload"]),
        crates: &["flashpath_environment"],
    },
    Front {
        root: "crates/cli/src/main.rs",
        rooms: Some(&["device", "fs", "layout", "report", "run", "translation", "workload"]),
        crates: &[
            "flashpath_environment",
            "flashpath_fuse",
            "flashpath_kernel",
            "flashpath_nbd",
            "flashpath_nvme",
            "flashpath_reproduce",
            "flashpath_sweep",
            "flashpath_vhost",
            "flashpath_vmm",
        ],
    },
    Front {
        root: "crates/python/src/lib.rs",
        rooms: Some(&["device", "fs", "report", "run", "translation", "workload"]),
        crates: &["flashpath_environment", "flashpath_sweep"],
    },
];

/// The remaining circles, each a folder and the parts that import each other. A new circle fails, and so does an entry
/// with a part that has left its circle: the list may only shrink.
const CIRCLES: &[(&str, &[&str])] = &[];

fn project(file: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(file)
}

/// The folder of the library that uses each crate of this workspace.
const CRATES_OF_LIBRARY: [(&str, &str); 2] = [("flashpath_nvm", "device/nvm"), ("flashpath_vmm", "device")];

/// The forbidden imports of the library, by file.
fn violations(library: &Modules) -> BTreeMap<PathBuf, BTreeSet<String>> {
    let mut wrong: BTreeMap<PathBuf, BTreeSet<String>> = BTreeMap::new();
    for (path, module) in library.iter().filter(|(path, _)| !path.is_empty()) {
        let room = path[0].as_str();
        let allowed = ROOMS.iter().find(|(name, _)| *name == room).map_or(&[][..], |(_, rooms)| *rooms);
        assert!(
            SHARED.contains(&room) || ROOMS.iter().any(|(name, _)| *name == room),
            "{room} is not in the table: add what it may import"
        );
        for target in module.references.iter().filter_map(|reference| circles::definer(library, path, &reference.names))
        {
            // The root of the crate declares the rooms, and has nothing of its own.
            let name = target.first().map_or("crate", String::as_str);
            if name != room && !SHARED.contains(&name) && !allowed.contains(&name) {
                wrong.entry(module.file.clone()).or_default().insert(name.to_string());
            }
        }
    }
    wrong
}

/// The forbidden imports of a crate besides the library, by file.
fn violations_of(front: &Front) -> BTreeMap<PathBuf, BTreeSet<String>> {
    let mut wrong: BTreeMap<PathBuf, BTreeSet<String>> = BTreeMap::new();
    for module in read_crate(&project(front.root)).values() {
        for reference in &module.references {
            let is_wrong = match reference.names[0].as_str() {
                "flashpath" => {
                    let room = reference.names[1].as_str();
                    front.rooms.is_none_or(|rooms| !rooms.contains(&room) && !SHARED.contains(&room))
                }
                name if name.starts_with("flashpath_") => !front.crates.contains(&name),
                _ => false,
            };
            if is_wrong {
                wrong.entry(module.file.clone()).or_default().insert(reference.names.join("::"));
            }
        }
    }
    wrong
}

#[test]
fn every_room_imports_only_what_the_table_allows() {
    let library = read_crate(&project("src/lib.rs"));
    assert!(library.len() > 200, "the sources were found");
    let wrong = violations(&library);
    assert!(wrong.is_empty(), "{wrong:#?}");
    for module in library.values() {
        for reference in module.references.iter().filter(|reference| reference.names[0].starts_with("flashpath_")) {
            let is_allowed = CRATES_OF_LIBRARY
                .iter()
                .any(|(name, folder)| reference.names[0] == *name && module.file.starts_with(folder));
            assert!(is_allowed, "{}: {}", module.file.display(), reference.names.join("::"));
        }
    }
}

#[test]
fn every_crate_imports_only_what_the_table_allows() {
    for front in &FRONTS {
        let wrong = violations_of(front);
        assert!(wrong.is_empty(), "{}: {wrong:#?}", front.root);
    }
    let folders: BTreeSet<String> = std::fs::read_dir(project("crates"))
        .unwrap()
        .map(|folder| format!("crates/{}/src", folder.unwrap().file_name().display()))
        .collect();
    let known = FRONTS.iter().map(|front| Path::new(front.root).parent().unwrap().display().to_string()).collect();
    assert_eq!(folders, known, "each crate is in the table");
}

/// File systems of this program. Who mounts, checks or serves one reaches it through the table of stations.
const FILE_SYSTEMS: [&str; 3] = ["ext", "sfs", "tree"];

#[test]
fn the_program_and_its_mounts_know_no_file_system_by_name() {
    for root in ["crates/fuse/src/lib.rs", "crates/cli/src/main.rs"] {
        for module in read_crate(&project(root)).values() {
            for reference in &module.references {
                let names: Vec<&str> = reference.names.iter().map(String::as_str).collect();
                let is_named = matches!(names[..], ["flashpath", "fs", name, ..] if FILE_SYSTEMS.contains(&name));
                assert!(!is_named, "{}: {}", module.file.display(), reference.names.join("::"));
            }
        }
    }
}

#[test]
fn no_parts_of_a_folder_import_each_other_in_a_circle() {
    let mut found = BTreeSet::new();
    for root in ["src/lib.rs"].into_iter().chain(FRONTS.iter().map(|front| front.root)) {
        let source = Path::new(root).parent().unwrap();
        for (path, graph) in graphs(&read_crate(&project(root))) {
            let folder = source.join(path.join("/")).display().to_string();
            found.extend(circles(&graph).into_iter().map(|parts| (folder.trim_end_matches('/').to_string(), parts)));
        }
    }
    let known: BTreeSet<(String, Vec<String>)> = CIRCLES
        .iter()
        .map(|(folder, parts)| (folder.to_string(), parts.iter().map(|part| part.to_string()).collect()))
        .collect();
    let (new, gone): (Vec<_>, Vec<_>) = (found.difference(&known).collect(), known.difference(&found).collect());
    assert!(new.is_empty(), "circles of imports that are not in the list: {new:#?}");
    assert!(gone.is_empty(), "these circles are gone: remove them from the list: {gone:#?}");
}

#[test]
fn every_source_file_is_a_module_that_was_read() {
    for root in ["src/lib.rs"].into_iter().chain(FRONTS.iter().map(|front| front.root)) {
        let source = project(root).parent().unwrap().to_path_buf();
        let read: BTreeSet<PathBuf> = read_crate(&project(root)).into_values().map(|module| module.file).collect();
        let mut files = BTreeSet::new();
        rust_files(&source, &source, &mut files);
        assert_eq!(files, read, "{root}");
    }
}

fn rust_files(source: &Path, folder: &Path, files: &mut BTreeSet<PathBuf>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            rust_files(source, &path, files);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            files.insert(path.strip_prefix(source).unwrap().to_path_buf());
        }
    }
}

/// A crate in a folder of its own, from file names and contents.
fn crate_of(files: &[(&str, &str)]) -> (tempfile::TempDir, Modules) {
    let folder = tempfile::tempdir().unwrap();
    for (name, text) in files {
        let file = folder.path().join(name);
        std::fs::create_dir_all(file.parent().unwrap()).unwrap();
        std::fs::write(file, text).unwrap();
    }
    let modules = read_crate(&folder.path().join("lib.rs"));
    (folder, modules)
}

fn graph_of<'g>(graphs: &'g BTreeMap<Vec<String>, Graph>, path: &str) -> Vec<(&'g str, Vec<&'g str>)> {
    let path: Vec<String> = path.split("::").filter(|name| !name.is_empty()).map(str::to_string).collect();
    let graph = graphs.get(&path).into_iter().flatten();
    graph.map(|(part, others)| (part.as_str(), others.iter().map(String::as_str).collect())).collect()
}

#[test]
fn the_reader_of_imports_sees_them_all() {
    let (_folder, modules) = crate_of(&[
        ("lib.rs", "mod a; mod b; mod c; mod d; mod e; mod f; mod g; mod h; mod q;"),
        (
            "a.rs",
            "use crate::{b::{X, Y}, c::Z as W};
             // use crate::q::No;
             fn f() { let x = crate::d::q(); println!(\"crate::q {}\", crate::e::E); }
             struct S(super::f::F);
             mod inner { use super::super::g::G; pub(in crate::q) struct P; }
             #[cfg(test)] mod tests { use crate::q::No; }
             #[cfg(test)] fn t() { crate::q::no() }",
        ),
        ("b.rs", "pub struct X; pub struct Y;"),
        ("c.rs", "pub struct Z;"),
        ("d.rs", "pub fn q() -> Option<crate::h::H> { None }"),
        ("e.rs", ""),
        ("f.rs", ""),
        ("g.rs", ""),
        ("h.rs", ""),
        ("q.rs", ""),
    ]);
    let found = graphs(&modules);
    assert_eq!(graph_of(&found, ""), [("a", vec!["b", "c", "d", "e", "f", "g"]), ("d", vec!["h"])]);
}

#[test]
fn a_reexport_counts_as_an_import_of_the_defining_part() {
    let (_folder, modules) = crate_of(&[
        ("lib.rs", "mod room; mod other;"),
        ("room/mod.rs", "mod a; mod b; mod c; pub use a::A; use b::*; pub struct Own; use c::C;"),
        ("room/a.rs", "use super::{Own, B}; pub struct A;"),
        ("room/b.rs", "use crate::room::C as D; pub struct B;"),
        ("room/c.rs", "pub struct C; fn f() -> super::A { super::A }"),
        ("other.rs", "use crate::room::A;"),
    ]);
    let found = graphs(&modules);
    // Own belongs to the folder, and makes no part import another.
    assert_eq!(graph_of(&found, "room"), [("a", vec!["b"]), ("b", vec!["c"]), ("c", vec!["a"])]);
    assert_eq!(graph_of(&found, ""), [("other", vec!["room"])]);
    assert_eq!(circles(&found[&vec!["room".to_string()]]), [["a", "b", "c"]]);
}

#[test]
fn a_folder_is_one_part_of_the_folder_above() {
    let (_folder, modules) = crate_of(&[
        ("lib.rs", "mod low; mod high;"),
        ("low.rs", "use crate::high::deep::x::X; use crate::high::deep::y::Y;"),
        ("high/mod.rs", "pub mod deep;"),
        ("high/deep/mod.rs", "pub mod x; pub mod y;"),
        ("high/deep/x.rs", "pub struct X;"),
        ("high/deep/y.rs", "use crate::low::Low; pub struct Y;"),
    ]);
    assert_eq!(circles(&graphs(&modules)[&Vec::new()]), [["high", "low"]]);
}
