//! Figures of earlier runs, read from their JSON.

use crate::{ReproduceError, Selection};
use flashpath::report::figure::Reproduction;
use std::path::{Path, PathBuf};

/// The selected results in these files of earlier runs, merged.
pub fn read(files: &[PathBuf], wanted: &Selection) -> Result<Vec<Reproduction>, ReproduceError> {
    let read = files.iter().map(|file| read_one(file, wanted)).collect::<Result<Vec<_>, _>>()?;
    Ok(together(read.concat(), wanted))
}

/// Merges the figures of one paper, scale and seed from all files, in the paper's order.
fn together(read: Vec<Reproduction>, order: &Selection) -> Vec<Reproduction> {
    let mut together: Vec<Reproduction> = Vec::new();
    for mut next in read {
        let is_same = |other: &&mut Reproduction| {
            (&other.paper, other.scale.to_bits(), other.seed) == (&next.paper, next.scale.to_bits(), next.seed)
        };
        let Some(same) = together.iter_mut().find(is_same) else {
            together.push(next);
            continue;
        };
        next.conditions.retain(|condition| !same.conditions.contains(condition));
        same.conditions.append(&mut next.conditions);
        // Of a figure in several files, the last counts.
        same.figures.retain(|figure| next.figures.iter().all(|newer| newer.name != figure.name));
        same.figures.append(&mut next.figures);
        same.figures.sort_by_key(|figure| order.place_of(figure));
    }
    together
}

/// The selected results of one file.
fn read_one(file: &Path, wanted: &Selection) -> Result<Vec<Reproduction>, ReproduceError> {
    let name = file.display();
    let text = std::fs::read_to_string(file)
        .map_err(|error| ReproduceError::input(format!("cannot read {name}: {error}"), None))?;
    let all: Vec<Reproduction> = serde_json::from_str(&text).map_err(|error| {
        let help = "use a file of flashpath reproduce --json".to_string();
        ReproduceError::input(format!("{name} is not a file of reproduced figures: {error}"), Some(help))
    })?;
    let papers = all.into_iter().map(|mut paper| {
        paper.figures.retain(|figure| wanted.place_of(figure).is_some());
        paper
    });
    let papers: Vec<_> = papers.filter(|paper| !paper.figures.is_empty()).collect();
    if papers.is_empty() {
        return Err(ReproduceError::input(format!("{name} has none of the requested figures"), None));
    }
    Ok(papers)
}
