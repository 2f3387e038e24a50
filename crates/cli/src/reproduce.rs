//! `flashpath reproduce`: the command line of the papers' experiments in crates/reproduce.

use crate::failure::Failure;
use crate::output::{print, print_message, today};
use flashpath::report::figure::Reproduction;
use flashpath_reproduce::{Outputs, Selection, Settings, make, moved, read};
use std::path::PathBuf;
use std::sync::Once;
use std::sync::atomic::{AtomicBool, Ordering};

/// Reproduce the papers' figures: their experiments, with the paper's numbers beside ours (captures need root)
#[derive(clap::Args)]
pub struct Reproduce {
    /// Figures, such as vma-fig4, or papers, such as vma [default: all]
    #[arg(value_name = "FIGURE")]
    figures: Vec<String>,
    /// Our sizes over the paper's: 1/16, or 1 for the full size
    #[arg(long, value_name = "SCALE", default_value = "1/16", value_parser = scale)]
    scale: f64,
    /// The seed of all randomness
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Keep the captured traces in this directory, and reuse those found there
    #[arg(long, value_name = "DIR")]
    traces: Option<PathBuf>,
    /// The directory for the devices' files [default: the system's temporary directory]
    #[arg(long, value_name = "DIR")]
    dir: Option<PathBuf>,
    /// Run nothing: show the results in this file of an earlier --json; several files are shown together
    #[arg(long, value_name = "FILE", conflicts_with_all = ["scale", "seed", "traces", "dir"])]
    from: Vec<PathBuf>,
    /// Make the figures again at the scale and seed of the results in this file, and fail if a number differs by more than
    /// 0.5 %; without figures, those that need neither a capture, a recorded load nor real time
    #[arg(long, value_name = "FILE", conflicts_with_all = ["scale", "seed", "from", "json", "report", "markdown"])]
    check: Option<PathBuf>,
    #[command(flatten)]
    results: Results,
    /// No progress
    #[arg(long, help_heading = "Results")]
    quiet: bool,
}

/// The destinations of the results.
#[derive(clap::Args)]
#[command(next_help_heading = "Results")]
struct Results {
    /// Write the results as JSON; - is standard output, instead of the tables
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// Write the figures and tables as one self-contained HTML page
    #[arg(long, value_name = "FILE.html")]
    report: Option<PathBuf>,
    /// Write the tables as Markdown, and the figures into the directory NAME beside it
    #[arg(long, value_name = "NAME.md")]
    markdown: Option<PathBuf>,
}

fn scale(text: &str) -> Result<f64, String> {
    let value = match text.split_once('/') {
        Some((over, under)) => {
            over.parse::<f64>().ok().zip(under.parse::<f64>().ok()).map(|(over, under)| over / under)
        }
        None => text.parse().ok(),
    };
    let wrong = || "expected a share such as 1/16 or 0.0625, from 1/256 to 1".to_string();
    value.filter(|scale| (1.0 / 256.0..=1.0).contains(scale)).ok_or_else(wrong)
}

impl Reproduce {
    /// Makes the figures and writes the outputs.
    pub fn run(mut self) -> Result<(), Failure> {
        if let Some(file) = self.check.take() {
            return self.check(file);
        }
        let selection = Selection::of(&self.figures)?;
        let Results { json, report, markdown } = &mut self.results;
        let outputs = Outputs { json: json.take(), report: report.take(), markdown: markdown.take() };
        outputs.check()?;
        let reproductions = match &self.from[..] {
            [] => self.make(&selection, self.scale, self.seed)?,
            files => read(files, &selection)?,
        };
        print(&outputs.text(&reproductions)?)?;
        Ok(outputs.write(&reproductions, &|line| self.progress(line))?)
    }

    /// Makes stored figures again, and fails if their numbers have moved.
    fn check(&self, file: PathBuf) -> Result<(), Failure> {
        let selection = match &self.figures[..] {
            [] => Selection::repeatable(),
            names => Selection::of(names)?,
        };
        let name = file.display().to_string();
        let (mut compared, mut all) = (0, Vec::new());
        for stored in read(&[file], &selection)? {
            let figures: Vec<String> = stored.figures.iter().map(|figure| figure.name.clone()).collect();
            let now = self.make(&Selection::of(&figures)?, stored.scale, stored.seed)?;
            compared += figures.len();
            all.extend(moved(&[stored], &now));
        }
        if all.is_empty() {
            return print(&format!("{name}: {compared} figures are made again as they are stored\n"));
        }
        let lines: Vec<String> = all.iter().map(|one| format!("  {one}")).collect();
        let message =
            format!("{} numbers of {name} are not what the program makes now:\n{}", all.len(), lines.join("\n"));
        Err(Failure::failed(message))
    }

    fn make(&self, selection: &Selection, scale: f64, seed: u64) -> Result<Vec<Reproduction>, Failure> {
        static STOP: AtomicBool = AtomicBool::new(false);
        static HANDLER: Once = Once::new();
        let mut handled = Ok(());
        HANDLER.call_once(|| handled = ctrlc::set_handler(|| STOP.store(true, Ordering::SeqCst)));
        handled.map_err(|error| Failure::failed(format!("cannot catch interrupts: {error}")))?;
        let program = std::env::current_exe()
            .map_err(|error| Failure::failed(format!("cannot find the program itself: {error}")))?;
        let settings = Settings {
            scale,
            seed,
            traces: self.traces.as_deref(),
            devices: self.dir.as_deref(),
            program: &program,
            version: flashpath_environment::program(),
            date: today(),
            progress: &|line| self.progress(line),
            stop: &STOP,
        };
        Ok(make(selection, &settings)?)
    }

    fn progress(&self, line: &str) {
        if !self.quiet {
            print_message(line);
        }
    }
}
