//! Where reproduced figures go: the terminal, JSON, a page, Markdown with its pictures.

use super::Paper;
use crate::failure::Failure;
use flashpath::report::figure::{Figure, Reproduction, markdown, page, plot};
use std::path::{Path, PathBuf};

/// Where the results go.
#[derive(clap::Args)]
#[command(next_help_heading = "Results")]
pub struct Outputs {
    /// Write the results as JSON; - is standard output, and then nothing else is written there
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// Write the figures and tables as one self-contained HTML page
    #[arg(long, value_name = "FILE.html")]
    report: Option<PathBuf>,
    /// Write the tables as Markdown, and the figures into the directory NAME beside it
    #[arg(long, value_name = "NAME.md")]
    markdown: Option<PathBuf>,
}

/// What stands above all papers in the Markdown.
const HEAD: &str = "# Results\n\nThe papers' figures, made again. This page is written by `flashpath reproduce --markdown` from the JSON \
beside it; nothing in it is typed by hand. `–` is not there yet.\n\n";

impl Outputs {
    /// Refuses what could not be written, before hours are spent.
    pub fn check(&self) -> Result<(), Failure> {
        let json = self.json.as_deref().filter(|file| *file != Path::new("-"));
        for file in [json, self.report.as_deref(), self.markdown.as_deref()].into_iter().flatten() {
            crate::check_writable(file)?;
        }
        match self.markdown.as_deref().filter(|file| file.extension().is_none()) {
            None => Ok(()),
            Some(file) => {
                let help = "its pictures go into the directory NAME".to_string();
                Err(Failure::input(format!("{} has no extension: name it NAME.md", file.display()), Some(help)))
            }
        }
    }

    /// Prints the results, and writes the files that were asked for.
    pub fn write(&self, reproductions: &[Reproduction], quiet: bool) -> Result<(), Failure> {
        let json = format!("{}\n", serde_json::to_string_pretty(reproductions).map_err(drawing)?);
        if self.json.as_deref() == Some(Path::new("-")) {
            crate::print(&json)?;
        } else {
            let tables: Vec<String> = reproductions.iter().map(|paper| markdown(paper, None)).collect();
            crate::print(&tables.join("\n"))?;
        }
        let tell = |file: &Path| {
            if !quiet {
                crate::tell(&format!("wrote {}", file.display()));
            }
        };
        if let Some(file) = self.json.as_deref().filter(|file| *file != Path::new("-")) {
            crate::write_file(file, &json)?;
            tell(file);
        }
        if let Some(file) = &self.report {
            crate::write_file(file, &page(reproductions).map_err(drawing)?)?;
            tell(file);
        }
        if let Some(file) = &self.markdown {
            write_markdown(file, reproductions)?;
            tell(file);
        }
        Ok(())
    }
}

/// No sizes or values of ours make JSON or a drawing impossible: if one does, it is told as any failure.
fn drawing(error: impl std::fmt::Display) -> Failure {
    Failure::failed(format!("cannot draw the results up: {error}"))
}

fn write_markdown(file: &Path, reproductions: &[Reproduction]) -> Result<(), Failure> {
    let folder = file.with_extension("");
    std::fs::create_dir_all(&folder).map_err(|error| Failure::write(&folder.display().to_string(), error))?;
    let name = folder.file_name().unwrap_or_default().to_string_lossy();
    let papers: Vec<String> = reproductions.iter().map(|paper| markdown(paper, Some(&name))).collect();
    for figure in reproductions.iter().flat_map(|paper| &paper.figures) {
        let svg = plot(figure).map_err(drawing)?;
        crate::write_file(&folder.join(format!("{}.svg", figure.name)), &svg)?;
    }
    crate::write_file(file, &format!("{HEAD}{}", papers.join("\n")))
}

/// Results of several files, shown together: of one paper, made at one scale from one seed, the figures of all files are one part, in the
/// paper's order.
pub fn together(read: Vec<Reproduction>, order: &[(&'static Paper, Vec<&'static str>)]) -> Vec<Reproduction> {
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
        let place =
            |figure: &Figure| order.iter().flat_map(|(_, figures)| figures).position(|name| *name == figure.name);
        same.figures.sort_by_key(place);
    }
    together
}

/// The results that an earlier run wrote, as far as they are wanted.
pub fn read(file: &Path, wanted: &[(&'static Paper, Vec<&'static str>)]) -> Result<Vec<Reproduction>, Failure> {
    let name = file.display();
    let text =
        std::fs::read_to_string(file).map_err(|error| Failure::input(format!("cannot read {name}: {error}"), None))?;
    let all: Vec<Reproduction> = serde_json::from_str(&text).map_err(|error| {
        let help = "write it with flashpath reproduce --json".to_string();
        Failure::input(format!("{name} holds no reproduced figures: {error}"), Some(help))
    })?;
    let is_wanted = |figure: &Figure| wanted.iter().any(|(_, figures)| figures.contains(&figure.name.as_str()));
    let papers = all.into_iter().map(|mut paper| {
        paper.figures.retain(is_wanted);
        paper
    });
    let papers: Vec<_> = papers.filter(|paper| !paper.figures.is_empty()).collect();
    if papers.is_empty() {
        return Err(Failure::input(format!("{name} has none of the figures that were asked for"), None));
    }
    Ok(papers)
}
