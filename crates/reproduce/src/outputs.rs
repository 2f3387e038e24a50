//! Where reproduced figures go: the terminal, JSON, a page, Markdown with its pictures.

use crate::ReproduceError;
use flashpath::report::figure::{Reproduction, markdown, page, plot};
use flashpath::report::{WriteError, check_writable, write_file};
use std::path::{Path, PathBuf};

/// Where the results go.
pub struct Outputs {
    /// The results as JSON; `-` is standard output, and then nothing else is for there.
    pub json: Option<PathBuf>,
    /// The figures and tables as one self-contained HTML page.
    pub report: Option<PathBuf>,
    /// The tables as Markdown, in a file `NAME.md`; the figures go into the directory `NAME` beside it.
    pub markdown: Option<PathBuf>,
}

/// What stands above all papers in the Markdown.
const HEAD: &str = "# Results\n\nThe papers' figures, made again. This page is written by `flashpath reproduce --markdown` from the JSON \
beside it; nothing in it is typed by hand. `–` is not there yet.\n\n";

impl Outputs {
    /// Refuses what could not be written, before hours are spent.
    pub fn check(&self) -> Result<(), ReproduceError> {
        for file in [self.json_file(), self.report.as_deref(), self.markdown.as_deref()].into_iter().flatten() {
            check_writable(file)?;
        }
        match self.markdown.as_deref().filter(|file| file.extension().is_none()) {
            None => Ok(()),
            Some(file) => {
                let help = "its pictures go into the directory NAME".to_string();
                let message = format!("{} has no extension: name it NAME.md", file.display());
                Err(ReproduceError::input(message, Some(help)))
            }
        }
    }

    /// What is for standard output: the tables, or the JSON if that was asked for there.
    pub fn text(&self, reproductions: &[Reproduction]) -> Result<String, ReproduceError> {
        match &self.json {
            Some(file) if file == Path::new("-") => json(reproductions),
            _ => Ok(reproductions.iter().map(|paper| markdown(paper, None)).collect::<Vec<_>>().join("\n")),
        }
    }

    /// Writes the files that were asked for, and tells `progress` of each.
    pub fn write(&self, reproductions: &[Reproduction], progress: &dyn Fn(&str)) -> Result<(), ReproduceError> {
        let tell = |file: &Path| progress(&format!("wrote {}", file.display()));
        if let Some(file) = self.json_file() {
            write_file(file, &json(reproductions)?)?;
            tell(file);
        }
        if let Some(file) = &self.report {
            write_file(file, &page(reproductions).map_err(drawing)?)?;
            tell(file);
        }
        if let Some(file) = &self.markdown {
            write_markdown(file, reproductions)?;
            tell(file);
        }
        Ok(())
    }

    fn json_file(&self) -> Option<&Path> {
        self.json.as_deref().filter(|file| *file != Path::new("-"))
    }
}

fn json(reproductions: &[Reproduction]) -> Result<String, ReproduceError> {
    Ok(format!("{}\n", serde_json::to_string_pretty(reproductions).map_err(drawing)?))
}

/// No sizes or values of ours make JSON or a drawing impossible: if one does, it is told as any failure.
fn drawing(error: impl std::fmt::Display) -> ReproduceError {
    ReproduceError::failed(format!("cannot draw the results up: {error}"))
}

fn write_markdown(file: &Path, reproductions: &[Reproduction]) -> Result<(), ReproduceError> {
    let folder = file.with_extension("");
    std::fs::create_dir_all(&folder).map_err(|error| WriteError::new(&folder, error))?;
    let name = folder.file_name().unwrap_or_default().to_string_lossy();
    let papers: Vec<String> = reproductions.iter().map(|paper| markdown(paper, Some(&name))).collect();
    for figure in reproductions.iter().flat_map(|paper| &paper.figures) {
        let svg = plot(figure).map_err(drawing)?;
        write_file(&folder.join(format!("{}.svg", figure.name)), &svg)?;
    }
    Ok(write_file(file, &format!("{HEAD}{}", papers.join("\n")))?)
}
