//! Writes reproduced figures: to the terminal, as JSON, as a page, as Markdown with pictures.

use crate::ReproduceError;
use flashpath::report::figure::{Reproduction, markdown, page, plot, summary};
use flashpath::report::{WriteError, check_writable, write_file};
use std::path::{Path, PathBuf};

/// The destinations of the results.
pub struct Outputs {
    /// The results as JSON; `-` is standard output, instead of the tables.
    pub json: Option<PathBuf>,
    /// The figures and tables as one self-contained HTML page.
    pub report: Option<PathBuf>,
    /// The tables as Markdown, in a file `NAME.md`; the figures go into the directory `NAME` beside it.
    pub markdown: Option<PathBuf>,
}

/// The head of the Markdown.
const HEAD: &str = "# Results\n\nThe papers' figures, reproduced. `flashpath reproduce --markdown` writes this page from the JSON \
beside it; nothing in it is typed by hand. `–` marks missing values.\n\nThe claims, by verdict: *inside* the paper's bounds, or within 15 % \
of its single number; *outside* for a cause that an ablation shows, in the figure that is named; *not reproduced* where the cause is a guess. \
[reproduce.md](reproduce.md) has the rules.\n\n";

impl Outputs {
    /// Checks that the files can be written, before a run of hours.
    pub fn check(&self) -> Result<(), ReproduceError> {
        for file in [self.json_file(), self.report.as_deref(), self.markdown.as_deref()].into_iter().flatten() {
            check_writable(file)?;
        }
        match self.markdown.as_deref().filter(|file| file.extension().is_none()) {
            None => Ok(()),
            Some(file) => {
                let help = "the pictures go to the directory NAME".to_string();
                let message = format!("{} has no extension: name it NAME.md", file.display());
                Err(ReproduceError::input(message, Some(help)))
            }
        }
    }

    /// The text for standard output: the tables, or the JSON if requested.
    pub fn text(&self, reproductions: &[Reproduction]) -> Result<String, ReproduceError> {
        match &self.json {
            Some(file) if file == Path::new("-") => json(reproductions),
            _ => Ok(reproductions.iter().map(|paper| markdown(paper, None)).collect::<Vec<_>>().join("\n")),
        }
    }

    /// Writes the requested files, and reports each to `progress`.
    pub fn write(&self, reproductions: &[Reproduction], progress: &dyn Fn(&str)) -> Result<(), ReproduceError> {
        let report = |file: &Path| progress(&format!("wrote {}", file.display()));
        if let Some(file) = self.json_file() {
            write_file(file, &json(reproductions)?)?;
            report(file);
        }
        if let Some(file) = &self.report {
            write_file(file, page(reproductions))?;
            report(file);
        }
        if let Some(file) = &self.markdown {
            write_markdown(file, reproductions)?;
            report(file);
        }
        Ok(())
    }

    fn json_file(&self) -> Option<&Path> {
        self.json.as_deref().filter(|file| *file != Path::new("-"))
    }
}

fn json(reproductions: &[Reproduction]) -> Result<String, ReproduceError> {
    Ok(format!("{}\n", serde_json::to_string_pretty(reproductions).map_err(formatting)?))
}

/// The error of a formatter. Our values do not cause any.
fn formatting(error: impl std::fmt::Display) -> ReproduceError {
    ReproduceError::failed(format!("cannot format the results: {error}"))
}

fn write_markdown(file: &Path, reproductions: &[Reproduction]) -> Result<(), ReproduceError> {
    let folder = file.with_extension("");
    std::fs::create_dir_all(&folder).map_err(|error| WriteError::new(&folder, error))?;
    let name = folder.file_name().unwrap_or_default().to_string_lossy();
    let papers: Vec<String> = reproductions.iter().map(|paper| markdown(paper, Some(&name))).collect();
    for figure in reproductions.iter().flat_map(|paper| &paper.figures) {
        write_file(&folder.join(format!("{}.svg", figure.name)), plot(figure))?;
    }
    Ok(write_file(file, format!("{HEAD}{}\n{}", summary(reproductions), papers.join("\n")))?)
}
