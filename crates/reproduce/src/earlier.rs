//! Figures that earlier runs made, as they wrote them with `--json`.

use crate::{ReproduceError, Selection};
use flashpath::report::figure::Reproduction;
use std::path::{Path, PathBuf};

/// The results that earlier runs wrote into these files, as far as they are wanted, shown together.
pub fn read(files: &[PathBuf], wanted: &Selection) -> Result<Vec<Reproduction>, ReproduceError> {
    let read = files.iter().map(|file| read_one(file, wanted)).collect::<Result<Vec<_>, _>>()?;
    Ok(together(read.concat(), wanted))
}

/// Of one paper, made at one scale from one seed, the figures of all files are one part, in the paper's order.
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
        // A figure that is in several files is as the last has it.
        same.figures.retain(|figure| next.figures.iter().all(|newer| newer.name != figure.name));
        same.figures.append(&mut next.figures);
        same.figures.sort_by_key(|figure| order.place_of(figure));
    }
    together
}

/// The results of one file, as far as they are wanted.
fn read_one(file: &Path, wanted: &Selection) -> Result<Vec<Reproduction>, ReproduceError> {
    let name = file.display();
    let text = std::fs::read_to_string(file)
        .map_err(|error| ReproduceError::input(format!("cannot read {name}: {error}"), None))?;
    let all: Vec<Reproduction> = serde_json::from_str(&text).map_err(|error| {
        let help = "write it with flashpath reproduce --json".to_string();
        ReproduceError::input(format!("{name} holds no reproduced figures: {error}"), Some(help))
    })?;
    let papers = all.into_iter().map(|mut paper| {
        paper.figures.retain(|figure| wanted.place_of(figure).is_some());
        paper
    });
    let papers: Vec<_> = papers.filter(|paper| !paper.figures.is_empty()).collect();
    if papers.is_empty() {
        return Err(ReproduceError::input(format!("{name} has none of the figures that were asked for"), None));
    }
    Ok(papers)
}
