//! The modules of a crate, parsed from its sources: the declarations, imports and paths of each.
//!
//! `use` items and paths that begin at `crate`, `self`, `super` or at another crate are found; method calls are not, as
//! their types are unknown here.

use proc_macro2::{TokenStream, TokenTree};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use syn::visit::{self, Visit};

/// The names of a path, from left to right.
pub type Names = Vec<String>;

/// One module: a file, or a `mod name { ... }` in one.
#[derive(Debug, Default)]
pub struct Module {
    /// Its file, below the crate's `src`.
    pub file: PathBuf,
    /// True if it is compiled for tests only.
    pub is_test: bool,
    /// Names imported by `use`, with the path of each.
    pub aliases: BTreeMap<String, Names>,
    /// Paths of `use a::b::*`.
    pub globs: Vec<Names>,
    /// Names of its own items.
    pub items: BTreeSet<String>,
    /// Paths in its code, imports included.
    pub references: Vec<Reference>,
}

/// A path in the code of a module.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reference {
    /// Its names as written.
    pub names: Names,
    /// True if it is compiled for tests only.
    pub is_test: bool,
}

/// A crate's modules, by their path from its root (which is empty).
pub type Modules = BTreeMap<Names, Module>;

/// Parses the crate with the root file `root`, following its `mod` declarations.
pub fn read_crate(root: &Path) -> Modules {
    let mut modules = Modules::new();
    read_file(root.parent().unwrap(), root, Vec::new(), false, &mut modules);
    modules
}

fn read_file(source: &Path, file: &Path, path: Names, is_test: bool, modules: &mut Modules) {
    let text = fs::read_to_string(file).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
    let parsed = syn::parse_file(&text).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
    let below = file.strip_prefix(source).unwrap().to_path_buf();
    for child in read_module(&parsed.items, below, path.clone(), is_test, modules) {
        let folder = source.join(child.path[..child.path.len() - 1].join("/"));
        let name = child.path.last().unwrap();
        let beside = folder.join(format!("{name}.rs"));
        let file = if beside.exists() { beside } else { folder.join(name).join("mod.rs") };
        read_file(source, &file, child.path, child.is_test, modules);
    }
}

/// A `mod name;` whose file is not parsed yet.
struct Declared {
    path: Names,
    is_test: bool,
}

/// Parses `items` as module `path`, with its inline modules. Returns the modules in other files.
fn read_module(items: &[syn::Item], file: PathBuf, path: Names, is_test: bool, modules: &mut Modules) -> Vec<Declared> {
    let mut module = Module { file: file.clone(), is_test, ..Module::default() };
    let mut declared = Vec::new();
    for item in items {
        match item {
            syn::Item::Mod(inner) => {
                let child: Names = path.iter().cloned().chain([inner.ident.to_string()]).collect();
                let is_test = is_test || is_for_tests(&inner.attrs);
                match &inner.content {
                    Some((_, items)) => declared.extend(read_module(items, file.clone(), child, is_test, modules)),
                    // Such a file is shared with other crates' tests.
                    None if inner.attrs.iter().any(|attribute| attribute.path().is_ident("path")) => {}
                    None => declared.push(Declared { path: child, is_test }),
                }
            }
            _ => Reader { module: &mut module, is_test }.visit_item(item),
        }
    }
    modules.insert(path, module);
    declared
}

/// True for `#[cfg(test)]` and `#[test]`.
pub fn is_for_tests(attributes: &[syn::Attribute]) -> bool {
    attributes.iter().any(|attribute| {
        attribute.path().is_ident("test")
            || attribute.path().is_ident("cfg")
                && attribute.parse_args::<syn::Path>().is_ok_and(|condition| condition.is_ident("test"))
    })
}

/// Collects the names in one item of a module.
struct Reader<'m> {
    module: &'m mut Module,
    is_test: bool,
}

impl Reader<'_> {
    fn refer(&mut self, names: Names) {
        self.module.references.push(Reference { names, is_test: self.is_test });
    }

    /// Adds a `use` tree with the prefix `before`.
    fn import(&mut self, tree: &syn::UseTree, before: Names) {
        let with = |name: &syn::Ident| before.iter().cloned().chain([name.to_string()]).collect::<Names>();
        match tree {
            syn::UseTree::Path(path) => self.import(&path.tree, with(&path.ident)),
            syn::UseTree::Name(name) => self.import_as(&name.ident.to_string(), with(&name.ident)),
            syn::UseTree::Rename(rename) => self.import_as(&rename.rename.to_string(), with(&rename.ident)),
            syn::UseTree::Glob(_) => {
                self.module.globs.push(before.clone());
                self.refer(before);
            }
            syn::UseTree::Group(group) => {
                for tree in &group.items {
                    self.import(tree, before.clone());
                }
            }
        }
    }

    fn import_as(&mut self, alias: &str, mut names: Names) {
        // use a::{self}: the module a.
        let alias = if names.len() > 1 && names.last().unwrap() == "self" {
            names.pop();
            if alias == "self" { names.last().unwrap().clone() } else { alias.to_string() }
        } else {
            alias.to_string()
        };
        self.module.aliases.insert(alias, names.clone());
        self.refer(names);
    }
}

impl<'ast> Visit<'ast> for Reader<'_> {
    fn visit_item(&mut self, item: &'ast syn::Item) {
        let (name, attributes) = match item {
            syn::Item::Const(item) => (Some(&item.ident), &item.attrs),
            syn::Item::Enum(item) => (Some(&item.ident), &item.attrs),
            syn::Item::Fn(item) => (Some(&item.sig.ident), &item.attrs),
            syn::Item::Impl(item) => (None, &item.attrs),
            syn::Item::Macro(item) => (item.ident.as_ref(), &item.attrs),
            syn::Item::Static(item) => (Some(&item.ident), &item.attrs),
            syn::Item::Struct(item) => (Some(&item.ident), &item.attrs),
            syn::Item::Trait(item) => (Some(&item.ident), &item.attrs),
            syn::Item::Type(item) => (Some(&item.ident), &item.attrs),
            syn::Item::Union(item) => (Some(&item.ident), &item.attrs),
            syn::Item::Use(item) => (None, &item.attrs),
            _ => return visit::visit_item(self, item),
        };
        let outside = self.is_test;
        self.is_test |= is_for_tests(attributes);
        self.module.items.extend(name.map(|name| name.to_string()));
        visit::visit_item(self, item);
        self.is_test = outside;
    }

    fn visit_item_use(&mut self, item: &'ast syn::ItemUse) {
        self.import(&item.tree, Vec::new());
    }

    fn visit_path(&mut self, path: &'ast syn::Path) {
        if path.segments.len() > 1 {
            self.refer(path.segments.iter().map(|segment| segment.ident.to_string()).collect());
        }
        visit::visit_path(self, path);
    }

    /// The arguments of a macro are tokens until it is expanded: paths in it are names between colons.
    fn visit_macro(&mut self, call: &'ast syn::Macro) {
        visit::visit_macro(self, call);
        let mut found = Vec::new();
        paths_in(call.tokens.clone(), &mut found);
        found.into_iter().for_each(|names| self.refer(names));
    }

    /// `pub(in path)` imports nothing.
    fn visit_vis_restricted(&mut self, _: &'ast syn::VisRestricted) {}
}

fn paths_in(tokens: TokenStream, found: &mut Vec<Names>) {
    let (mut names, mut colons) = (Names::new(), 0);
    for tree in tokens {
        match tree {
            TokenTree::Punct(mark) if mark.as_char() == ':' => {
                colons += 1;
                continue;
            }
            TokenTree::Ident(name) if colons == 2 && !names.is_empty() => names.push(name.to_string()),
            TokenTree::Ident(name) => end_path(&mut names, vec![name.to_string()], found),
            TokenTree::Group(group) => {
                end_path(&mut names, Names::new(), found);
                paths_in(group.stream(), found);
            }
            _ => end_path(&mut names, Names::new(), found),
        }
        colons = 0;
    }
    end_path(&mut names, Names::new(), found);
}

/// Adds `names` if they are a path, and starts again with `next`.
fn end_path(names: &mut Names, next: Names, found: &mut Vec<Names>) {
    let ended = std::mem::replace(names, next);
    if ended.len() > 1 {
        found.push(ended);
    }
}
