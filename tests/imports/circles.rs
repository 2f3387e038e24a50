//! The graph of imports among the parts of a folder, and its circles.
//!
//! The rule: the parts of a module (the files and folders below it, each with all that is below it) import each other
//! in one direction. The module itself (`mod.rs`) is not a part: it declares its parts and may use them, and they may
//! use its definitions. A name that it re-exports (`pub use part::Name`, or an import of its own) belongs to the part
//! that defines it. Code for tests may import anything.

use super::sources::{Modules, Names};
use std::collections::{BTreeMap, BTreeSet};

/// The parts of one module, and the others that each of them imports.
pub type Graph = BTreeMap<String, BTreeSet<String>>;

/// The maximum number of re-exports that are followed.
const MOST_HOPS: u32 = 16;

/// Resolves `names`, as written in module `from`, to the module that defines them; `None` outside the crate.
pub fn definer(modules: &Modules, from: &Names, names: &[String]) -> Option<Names> {
    follow(modules, from, names, 0)
}

fn follow(modules: &Modules, from: &Names, names: &[String], hops: u32) -> Option<Names> {
    if hops == MOST_HOPS {
        return None;
    }
    let mut module = from.clone();
    let mut rest = names;
    while let Some(name) = rest.first() {
        match name.as_str() {
            "crate" => module.clear(),
            "self" => {}
            "super" => {
                module.pop()?;
            }
            _ => break,
        }
        rest = &rest[1..];
    }
    let is_anchored = rest.len() < names.len();
    while let Some(name) = rest.first() {
        let child: Names = module.iter().cloned().chain([name.clone()]).collect();
        if modules.contains_key(&child) {
            (module, rest) = (child, &rest[1..]);
            continue;
        }
        let here = &modules[&module];
        if here.items.contains(name) {
            return Some(module);
        }
        if let Some(behind) = here.aliases.get(name)
            && behind != names
        {
            let whole: Names = behind.iter().chain(&rest[1..]).cloned().collect();
            return follow(modules, &module, &whole, hops + 1);
        }
        let behind_glob = here.globs.iter().find_map(|glob| {
            let target = follow(modules, &module, glob, hops + 1)?;
            modules[&target].items.contains(name).then_some(target)
        });
        if behind_glob.is_some() {
            return behind_glob;
        }
        // A macro defines it, or there is no such name.
        break;
    }
    (is_anchored || module != *from).then_some(module)
}

/// The graph of each module that has parts.
pub fn graphs(modules: &Modules) -> BTreeMap<Names, Graph> {
    let mut graphs: BTreeMap<Names, Graph> = BTreeMap::new();
    for (path, module) in modules.iter().filter(|(_, module)| !module.is_test) {
        for reference in module.references.iter().filter(|reference| !reference.is_test) {
            let Some(target) = definer(modules, path, &reference.names) else { continue };
            let shared = path.iter().zip(&target).take_while(|(a, b)| a == b).count();
            if shared < path.len() && shared < target.len() {
                let graph = graphs.entry(path[..shared].to_vec()).or_default();
                graph.entry(path[shared].clone()).or_default().insert(target[shared].clone());
            }
        }
    }
    graphs
}

/// The sets of parts that reach each other, each set sorted.
pub fn circles(graph: &Graph) -> Vec<Vec<String>> {
    let reach: BTreeMap<&String, BTreeSet<&String>> = graph.keys().map(|part| (part, reached(graph, part))).collect();
    let mut found: Vec<Vec<String>> = Vec::new();
    for part in graph.keys().filter(|part| reach[*part].contains(part)) {
        if !found.iter().any(|circle| circle.contains(part)) {
            let others = graph.keys().filter(|other| reach[part].contains(other) && reach[*other].contains(part));
            found.push(others.cloned().collect());
        }
    }
    found
}

fn reached<'g>(graph: &'g Graph, from: &String) -> BTreeSet<&'g String> {
    let mut seen = BTreeSet::new();
    let mut open: Vec<&String> = graph[from].iter().collect();
    while let Some(part) = open.pop() {
        if seen.insert(part) {
            open.extend(graph.get(part).into_iter().flatten());
        }
    }
    seen
}
