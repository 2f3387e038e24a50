//! The methods of each type of the library by file, and the calls on `self` between these files.
//!
//! Files that hold methods of one struct need no import of each other, so the test of imports does not see that they call each
//! other in a circle. This one reads `self.name(...)` and `Self::name(...)`, in macros too. A call goes to the file that
//! defines the method: in an inherent `impl` of the type or, if there is none, in its `impl` of a trait. Calls on other
//! variables are not seen, as their types are unknown here. As with imports, a `mod.rs` is not a part: the files below it may
//! call its methods.

use super::circles::{Graph, circles, definer};
use super::project;
use super::sources::{Modules, Names, is_for_tests, read_crate};
use proc_macro2::{Delimiter, TokenStream, TokenTree};
use std::collections::{BTreeMap, BTreeSet};
use syn::visit::{self, Visit};

/// The most files that hold inherent methods of a type, and the most of these methods, unless it is in [`LARGE`].
const MOST_FILES: usize = 4;
const MOST_METHODS: usize = 70;

/// Methods by which a type in [`LARGE`] may stay below its count before the count must be lowered.
const SLACK: usize = 8;

/// Types beyond the limits: inherent methods, and the files that hold them. Neither may grow.
const LARGE: &[(&str, usize, usize)] = &[
    ("fs::ext::journal::nvm::NvmJournal", 37, 5),
    ("fs::ext::recovery::check::Check", 156, 17),
    ("fs::posix::Posix", 38, 9),
    ("translation::page_level::PageLevel", 65, 6),
    ("translation::zoned::Volume", 89, 10),
];

/// The remaining circles: a type, the number of pairs of files of which one calls the other within the circle, and its files. A
/// circle that is not in the list fails, and so does one with a new file or a new pair; an entry that is too long must be
/// shortened.
const KNOWN: &[(&str, usize, &[&str])] = &[
    ("fs::ext::journal::nvm::NvmJournal", 2, &["fs/ext/journal/nvm/joining.rs", "fs/ext/journal/nvm/storing.rs"]),
    (
        "fs::ext::recovery::check::Check",
        18,
        &[
            "fs/ext/recovery/check/attributes.rs",
            "fs/ext/recovery/check/directories.rs",
            "fs/ext/recovery/check/fast.rs",
            "fs/ext/recovery/check/inodes.rs",
            "fs/ext/recovery/check/log.rs",
            "fs/ext/recovery/check/rebuilding.rs",
            "fs/ext/recovery/check/repair.rs",
            "fs/ext/recovery/check/reserved.rs",
        ],
    ),
    ("run::files::runner::Runner", 2, &["run/files/calls.rs", "run/files/runner.rs"]),
    (
        "translation::page_level::PageLevel",
        9,
        &[
            "translation/page_level/collection.rs",
            "translation/page_level/map_pages.rs",
            "translation/page_level/pacing.rs",
            "translation/page_level/slc_cache.rs",
            "translation/page_level/upkeep.rs",
        ],
    ),
    (
        "translation::zoned::Volume",
        23,
        &[
            "translation/zoned/commit.rs",
            "translation/zoned/join.rs",
            "translation/zoned/journal.rs",
            "translation/zoned/lost.rs",
            "translation/zoned/place.rs",
            "translation/zoned/reclaim.rs",
            "translation/zoned/room.rs",
            "translation/zoned/victim.rs",
        ],
    ),
];

/// A method, or a call of one.
#[derive(Clone, Debug)]
struct Call {
    caller: String,
    callee: String,
}

/// The methods of one type.
#[derive(Debug, Default)]
struct Methods {
    /// Files of inherent methods, with the number of methods in each.
    inherent: BTreeMap<String, usize>,
    /// The file that defines each method.
    defined_in: BTreeMap<String, String>,
    /// Methods of traits that it implements, and their files.
    of_traits: BTreeMap<String, String>,
    /// The calls on `self` in each file.
    calls: Vec<(String, Call)>,
}

/// A call from one file to another.
type Edges = BTreeMap<(String, String), Call>;

impl Methods {
    /// One call for each pair of files of which one calls the other.
    fn edges(&self) -> Edges {
        let mut edges = Edges::new();
        for (file, call) in &self.calls {
            let target = self.defined_in.get(&call.callee).or_else(|| self.of_traits.get(&call.callee));
            if let Some(target) = target.filter(|target| *target != file && !is_above(target, file)) {
                edges.entry((file.clone(), target.clone())).or_insert_with(|| call.clone());
            }
        }
        edges
    }

    /// Circles of files, each with the pairs within it.
    fn circles(&self) -> Vec<(Vec<String>, Edges)> {
        let edges = self.edges();
        let mut graph = Graph::new();
        for (from, to) in edges.keys() {
            graph.entry(from.clone()).or_default().insert(to.clone());
        }
        let within = |files: Vec<String>| {
            let has = |file: &String| files.contains(file);
            let inside = edges.iter().filter(|((from, to), _)| has(from) && has(to));
            let inside = inside.map(|(pair, call)| (pair.clone(), call.clone())).collect();
            (files, inside)
        };
        circles(&graph).into_iter().map(within).collect()
    }
}

/// True if `above` is the `mod.rs` of a folder in which `file` lies.
fn is_above(above: &str, file: &str) -> bool {
    above.strip_suffix("mod.rs").is_some_and(|folder| file.starts_with(folder))
}

/// The calls on `self` in a method.
#[derive(Default)]
struct OnSelf(BTreeSet<String>);

impl<'ast> Visit<'ast> for OnSelf {
    fn visit_expr_method_call(&mut self, call: &'ast syn::ExprMethodCall) {
        if matches!(&*call.receiver, syn::Expr::Path(path) if path.path.is_ident("self")) {
            self.0.insert(call.method.to_string());
        }
        visit::visit_expr_method_call(self, call);
    }

    fn visit_path(&mut self, path: &'ast syn::Path) {
        if path.segments.len() == 2 && path.segments[0].ident == "Self" {
            self.0.insert(path.segments[1].ident.to_string());
        }
        visit::visit_path(self, path);
    }

    fn visit_macro(&mut self, call: &'ast syn::Macro) {
        visit::visit_macro(self, call);
        calls_in(call.tokens.clone(), &mut self.0);
    }
}

/// Calls `self.name(...)` among the tokens of a macro.
fn calls_in(tokens: TokenStream, found: &mut BTreeSet<String>) {
    let tokens: Vec<TokenTree> = tokens.into_iter().collect();
    for four in tokens.windows(4) {
        if let [TokenTree::Ident(it), TokenTree::Punct(dot), TokenTree::Ident(name), TokenTree::Group(arguments)] = four
            && it == "self"
            && dot.as_char() == '.'
            && arguments.delimiter() == Delimiter::Parenthesis
        {
            found.insert(name.to_string());
        }
    }
    for token in tokens {
        if let TokenTree::Group(group) = token {
            calls_in(group.stream(), found);
        }
    }
}

/// The path of the type that an `impl` is for.
fn path_of(own: &syn::Type) -> Option<Names> {
    match own {
        syn::Type::Path(path) if path.qself.is_none() => {
            Some(path.path.segments.iter().map(|segment| segment.ident.to_string()).collect())
        }
        syn::Type::Reference(reference) => path_of(&reference.elem),
        _ => None,
    }
}

/// The types of a crate, by the module that defines them and their name.
fn types(modules: &Modules, source: &std::path::Path) -> BTreeMap<String, Methods> {
    let mut types = BTreeMap::new();
    let mut read = BTreeSet::new();
    // The module of a file comes before those within it.
    for (path, module) in modules.iter().filter(|(_, module)| !module.is_test) {
        if read.insert(module.file.clone()) {
            let text = std::fs::read_to_string(source.join(&module.file)).unwrap();
            let file = module.file.display().to_string();
            read_items(modules, path, &file, &syn::parse_file(&text).unwrap().items, &mut types);
        }
    }
    types
}

fn read_items(modules: &Modules, path: &Names, file: &str, items: &[syn::Item], types: &mut BTreeMap<String, Methods>) {
    for item in items {
        match item {
            syn::Item::Mod(inner) if !is_for_tests(&inner.attrs) => {
                let below: Names = path.iter().cloned().chain([inner.ident.to_string()]).collect();
                let items = inner.content.as_ref().map_or(&[][..], |(_, items)| items);
                read_items(modules, &below, file, items, types);
            }
            syn::Item::Impl(block) if !is_for_tests(&block.attrs) => {
                let Some(names) = path_of(&block.self_ty) else { continue };
                let Some(mut whole) = definer(modules, path, &names).or_else(|| defined_here(modules, path, &names))
                else {
                    continue;
                };
                whole.push(names.last().unwrap().clone());
                read_methods(types.entry(whole.join("::")).or_default(), file, block);
            }
            _ => {}
        }
    }
}

/// The module itself, if it defines a type that is named without a path.
fn defined_here(modules: &Modules, path: &Names, names: &[String]) -> Option<Names> {
    (names.len() == 1 && modules[path].items.contains(&names[0])).then(|| path.clone())
}

fn read_methods(methods: &mut Methods, file: &str, block: &syn::ItemImpl) {
    for item in &block.items {
        let syn::ImplItem::Fn(method) = item else { continue };
        if is_for_tests(&method.attrs) {
            continue;
        }
        let name = method.sig.ident.to_string();
        if block.trait_.is_none() {
            *methods.inherent.entry(file.to_string()).or_default() += 1;
            methods.defined_in.insert(name.clone(), file.to_string());
        } else {
            methods.of_traits.insert(name.clone(), file.to_string());
        }
        let mut calls = OnSelf::default();
        calls.visit_block(&method.block);
        let calls = calls.0.into_iter().map(|callee| (file.to_string(), Call { caller: name.clone(), callee }));
        methods.calls.extend(calls);
    }
}

fn types_of_the_library() -> BTreeMap<String, Methods> {
    let types = types(&read_crate(&project("src/lib.rs")), &project("src"));
    assert!(types.len() > 500, "the types were found");
    types
}

/// `Sfs` had 314 methods in 48 files. Most of them touch two fields at the most: such a type can be split.
#[test]
fn no_type_has_more_methods_or_files_than_its_limit() {
    let types = types_of_the_library();
    let mut wrong = Vec::new();
    for (name, methods) in &types {
        let (count, files) = (methods.inherent.values().sum::<usize>(), methods.inherent.len());
        match LARGE.iter().find(|(large, ..)| large == name) {
            None if count > MOST_METHODS || files > MOST_FILES => wrong.push(format!(
                "{name}: {count} methods in {files} files; the limits are {MOST_METHODS} and {MOST_FILES}: give a part of \
                 its fields and methods to a type of their own"
            )),
            None => {}
            Some((_, most, most_files)) if count > *most || files > *most_files => wrong.push(format!(
                "{name}: {count} methods in {files} files, and it had {most} in {most_files}: it may not grow"
            )),
            Some(_) if count <= MOST_METHODS && files <= MOST_FILES => {
                wrong.push(format!("{name} is within the limits: remove it from LARGE"))
            }
            Some((_, most, most_files)) if count + SLACK < *most || files < *most_files => {
                wrong.push(format!("{name}: lower its entry to ({count}, {files})"))
            }
            Some(_) => {}
        }
    }
    wrong.extend(LARGE.iter().filter(|(name, ..)| !types.contains_key(*name)).map(|(name, ..)| format!("no {name}")));
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// The calls within a circle, for a message.
fn calls_of(edges: &Edges, is_known: impl Fn(&str) -> bool) -> String {
    let new = |(from, to): &(String, String)| !(is_known(from) && is_known(to));
    let has_new = edges.keys().any(new);
    let shown = edges.iter().filter(|(pair, _)| !has_new || new(pair));
    shown
        .map(|((from, to), Call { caller, callee })| format!("  {from}: {caller} calls {callee}, defined in {to}\n"))
        .collect()
}

#[test]
fn no_files_of_a_type_call_each_other_in_a_new_circle() {
    let mut wrong = String::new();
    let mut used = BTreeSet::new();
    for (name, methods) in types_of_the_library() {
        for (files, edges) in methods.circles() {
            let overlap = |known: &[&str]| files.iter().filter(|file| known.contains(&file.as_str())).count();
            let known = (0..).zip(KNOWN).filter(|(_, known)| known.0 == name && overlap(known.2) > 0);
            let Some((index, (_, pairs, known))) = known.max_by_key(|(_, known)| overlap(known.2)) else {
                wrong += &format!(
                    "{name}: a new circle of {files:?}, {} pairs:\n{}",
                    edges.len(),
                    calls_of(&edges, |_| false)
                );
                continue;
            };
            used.insert(index);
            let is_known = |file: &str| known.contains(&file);
            if files.iter().any(|file| !is_known(file)) {
                wrong += &format!("{name}: a circle has new files:\n{}", calls_of(&edges, is_known));
            } else if edges.len() > *pairs {
                wrong += &format!(
                    "{name}: a circle of {pairs} pairs of files has {}, one of which is new:\n{}",
                    edges.len(),
                    calls_of(&edges, is_known)
                );
            } else if files.len() < known.len() || edges.len() < *pairs {
                wrong += &format!(
                    "{name}: the circle has shrunk to {} pairs of {files:?}: shorten its entry\n",
                    edges.len()
                );
            }
        }
    }
    for (index, (name, _, files)) in KNOWN.iter().enumerate().filter(|(index, _)| !used.contains(index)) {
        wrong += &format!("{name}: entry {index}, of {files:?}, is no circle any more: remove it\n");
    }
    assert!(wrong.is_empty(), "{wrong}");
}

#[test]
fn a_circle_of_calls_on_self_is_seen() {
    let (folder, modules) = super::crate_of(&[
        ("lib.rs", "mod room; mod other;"),
        (
            "room/mod.rs",
            "mod a; mod b; mod c; pub struct Sfs; impl Sfs { fn new() -> Sfs { Sfs } fn all(&self) { self.second(0); } }
             #[cfg(test)] impl Sfs { fn tested(&self) { self.first() } }",
        ),
        ("room/a.rs", "use super::Sfs; impl Sfs { fn first(&self) { assert!(self.second(self.third()) > 0); } }"),
        // Calls of a method of the folder make no circle, nor does one on a field.
        ("room/b.rs", "impl super::Sfs { fn second(&self, _: u32) -> u32 { Self::new(); self.field.first(); 1 } }"),
        ("room/c.rs", "use super::*; trait T { fn third(&self); } impl T for Sfs { fn third(&self) { self.first() } }"),
        // Another type of this name.
        ("other.rs", "struct Sfs; impl Sfs { fn first(&self) { self.second() } fn second(&self) { self.first() } }"),
    ]);
    let types = types(&modules, folder.path());
    let names: Vec<&String> = types.keys().collect();
    assert_eq!(names, ["other::Sfs", "room::Sfs"]);
    let methods = &types["room::Sfs"];
    assert_eq!(methods.inherent.values().sum::<usize>(), 4, "{:?}", methods.inherent);
    let circles = methods.circles();
    let files: Vec<&Vec<String>> = circles.iter().map(|(files, _)| files).collect();
    assert_eq!(files, [&vec!["room/a.rs".to_string(), "room/c.rs".to_string()]]);
    let told = calls_of(&circles[0].1, |_| false);
    assert!(told.contains("room/a.rs: first calls third, defined in room/c.rs"), "{told}");
    assert!(told.contains("room/c.rs: third calls first, defined in room/a.rs"), "{told}");
    assert!(types["other::Sfs"].circles().is_empty(), "one file makes no circle");
}
