//! The description of a sweep: the arguments, and a file of TOML with the same names.
//!
//! ```toml
//! workload = ["uniform:writes=6x", "zipf:theta=1.2,writes=6x"]
//! on = "page:op=7%:14%:28%,victim=greedy:cost-benefit/nand:size=1G"
//! seed = "1..10"
//! depth = [1, 8, 32]
//! x = "page.op"
//! by = "page.victim"
//! ```

use super::Sweep;
use crate::failure::Failure;
use crate::run::NamedPath;
use crate::trace_file::TraceFile;
use crate::workload::Source;
use flashpath_sweep::{COMMAND, Request, WorkloadRequest};
use std::ffi::{OsStr, OsString};
use std::path::Path;

/// The keys of a file besides the options of the command.
const KEYS: [&str; 5] = ["workload", "on", "x", "y", "by"];

/// The characters that a shell would expand, and the advice against it.
const SHELL: &str = "if a shell has expanded braces, write a list that no shell expands, as in \
    --on page:op=7%:14%/nand and --seed 1..10, or put the argument in quotes";

/// A description, and the traces from standard input, whose copies it keeps.
pub struct Described {
    /// The description.
    pub request: Request,
    /// The traces.
    pub _traces: Vec<TraceFile>,
}

/// Reads the description. What the command line gives takes the place of what a file does.
pub fn describe(arguments: &mut Sweep) -> Result<Described, Failure> {
    if let [only] = &arguments.workloads[..]
        && is_toml(only)
    {
        let file = only.clone();
        read_file(Path::new(&file), arguments)?;
    }
    let mut described =
        Described { request: Request { options: given(arguments), ..Request::default() }, _traces: Vec::new() };
    for (number, workload) in arguments.workloads.iter().enumerate() {
        let read = read_workload(workload, &mut described._traces);
        // Braces that a shell has expanded make several arguments of one.
        described.request.workloads.push(read.map_err(|failure| if number == 0 { failure } else { advised(failure) })?);
    }
    for path in &arguments.on {
        let NamedPath { name, path } =
            NamedPath::read(path).map_err(|error| Failure::input(format!("--on {path}: {error}"), None))?;
        described.request.on.push((name, path));
    }
    (described.request.format, described.request.stage) = (arguments.format, arguments.stage);
    described.request.cpu.clone_from(&arguments.cpu);
    Ok(described)
}

/// The command line, for messages.
pub fn command() -> String {
    let words = std::env::args_os().skip(1).map(|word| word.to_string_lossy().into_owned());
    std::iter::once("flashpath".to_string()).chain(words).collect::<Vec<_>>().join(" ")
}

fn is_toml(argument: &OsStr) -> bool {
    Path::new(argument).extension().is_some_and(|extension| extension == "toml")
}

/// The same failure, with the advice about shells.
fn advised(failure: Failure) -> Failure {
    match failure {
        Failure::Input(report) => {
            let help = report.help().map_or_else(|| SHELL.to_string(), |help| format!("{help}; {SHELL}"));
            Failure::input(report.to_string(), Some(help))
        }
        other => other,
    }
}

fn read_workload(argument: &OsStr, traces: &mut Vec<TraceFile>) -> Result<WorkloadRequest, Failure> {
    // A group in braces may have a '/', as a name of a file has.
    if let Some(text) = argument.to_str().filter(|text| text.contains('{') && !Path::new(argument).exists()) {
        return Ok(WorkloadRequest::Expression(text.to_string()));
    }
    Ok(match Source::read(argument)? {
        Source::Trace(trace) => {
            let request =
                WorkloadRequest::Trace { file: trace.path().to_path_buf(), name: trace.name().map(str::to_string) };
            traces.push(trace);
            request
        }
        Source::FioJob(file) => WorkloadRequest::FioJob { file, name: None },
        Source::Generator(_) | Source::Files(_) => {
            WorkloadRequest::Expression(argument.to_str().expect("an expression is text").to_string())
        }
        Source::Shell(_) => {
            let help = "use flashpath run for each, one after the other".to_string();
            return Err(Failure::input("a sweep simulates, and sh: runs on this machine's kernel", Some(help)));
        }
    })
}

/// The options that are given, by name.
fn given(arguments: &Sweep) -> Vec<(String, String)> {
    let mut given = Vec::new();
    for option in COMMAND.options {
        let value = slot_of(arguments, option.name).cloned();
        given.extend(value.map(|value| (option.name.to_string(), value)));
    }
    given
}

/// The argument of an option of the command.
fn slot_of<'a>(arguments: &'a Sweep, name: &str) -> Option<&'a String> {
    let slots = [
        ("seed", &arguments.seed),
        ("depth", &arguments.depth),
        ("timed", &arguments.timed),
        ("limit", &arguments.limit),
        ("fill", &arguments.fill),
        ("precondition", &arguments.precondition),
        ("verify", &arguments.verify),
        ("size", &arguments.size),
        ("utilization", &arguments.utilization),
        ("fsync-every", &arguments.fsync_every),
        ("repeat", &arguments.repeat),
        ("addresses", &arguments.addresses),
        ("device", &arguments.device),
    ];
    let slot = slots.into_iter().find(|(known, _)| *known == name);
    slot.expect("every option of the table is an argument").1.as_ref()
}

fn set(arguments: &mut Sweep, name: &str, value: String) {
    let slot = match name {
        "seed" => &mut arguments.seed,
        "depth" => &mut arguments.depth,
        "timed" => &mut arguments.timed,
        "limit" => &mut arguments.limit,
        "fill" => &mut arguments.fill,
        "precondition" => &mut arguments.precondition,
        "verify" => &mut arguments.verify,
        "size" => &mut arguments.size,
        "utilization" => &mut arguments.utilization,
        "fsync-every" => &mut arguments.fsync_every,
        "repeat" => &mut arguments.repeat,
        "addresses" => &mut arguments.addresses,
        "device" => &mut arguments.device,
        "x" => &mut arguments.outputs.x,
        "y" => &mut arguments.outputs.y,
        "by" => &mut arguments.outputs.by,
        other => unreachable!("{other} is not a key"),
    };
    slot.get_or_insert(value);
}

/// Reads the file of a description into the arguments that are not given.
fn read_file(file: &Path, arguments: &mut Sweep) -> Result<(), Failure> {
    let name = file.display();
    let text =
        std::fs::read_to_string(file).map_err(|error| Failure::input(format!("cannot read {name}: {error}"), None))?;
    let table: toml::Table =
        text.parse().map_err(|error| Failure::input(format!("{name} is not TOML: {error}"), None))?;
    arguments.workloads.clear();
    for (key, value) in &table {
        let is_option = COMMAND.options.iter().any(|option| option.name == key);
        if !is_option && !KEYS.contains(&key.as_str()) {
            let keys: Vec<&str> = KEYS.into_iter().chain(COMMAND.options.iter().map(|option| option.name)).collect();
            let near = flashpath::expression::nearest(key, keys.iter().copied());
            let near = near.map_or(String::new(), |near| format!("did you mean {near}? "));
            let help = format!("{near}there are: {}", keys.join(", "));
            return Err(Failure::input(format!("{name} has the unknown key {key}"), Some(help)));
        }
        let texts = texts(value).ok_or_else(|| {
            let help = "write a text, a number, true or false, or a list of these".to_string();
            Failure::input(format!("{name}: the value of {key} is none"), Some(help))
        })?;
        match key.as_str() {
            "workload" => arguments.workloads = texts.into_iter().map(OsString::from).collect(),
            "on" if arguments.on.is_empty() => arguments.on = texts,
            "on" => {}
            key => set(arguments, key, texts.join(":")),
        }
    }
    if arguments.workloads.is_empty() {
        let help = "add a line such as workload = \"uniform:writes=6x\"".to_string();
        return Err(Failure::input(format!("{name} has no workload"), Some(help)));
    }
    Ok(())
}

/// The texts of a value, or of a list of values; `None` if it is something else.
fn texts(value: &toml::Value) -> Option<Vec<String>> {
    let one = |value: &toml::Value| match value {
        toml::Value::String(text) => Some(text.clone()),
        toml::Value::Integer(number) => Some(number.to_string()),
        toml::Value::Float(number) => Some(number.to_string()),
        toml::Value::Boolean(flag) => Some(if *flag { "on" } else { "off" }.to_string()),
        _ => None,
    };
    match value {
        toml::Value::Array(values) if !values.is_empty() => values.iter().map(one).collect(),
        value => Some(vec![one(value)?]),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        sweep: Sweep,
    }

    fn described(arguments: &[&str]) -> Result<(Sweep, Request), String> {
        let line = [&["sweep"], arguments].concat();
        let mut sweep = Line::try_parse_from(line).map_err(|error| error.to_string())?.sweep;
        match describe(&mut sweep) {
            Ok(described) => Ok((sweep, described.request)),
            Err(Failure::Input(report)) => {
                Err(format!("{report} {}", report.help().map(|help| help.to_string()).unwrap_or_default()))
            }
            Err(_) => Err(String::new()),
        }
    }

    #[test]
    fn a_file_is_what_its_arguments_are_and_the_command_line_comes_first() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("study.toml");
        let text = "workload = ['uniform', 'zipf']\non = 'a=page:op=7%:14%/nand'\nseed = '1..3'\ndepth = [1, 8]\nfill = true\nx = 'page.op'\n";
        std::fs::write(&file, text).unwrap();
        let (sweep, request) = described(&[file.to_str().unwrap(), "--seed", "5"]).unwrap();
        assert_eq!(request.workloads.len(), 2);
        assert_eq!(request.on, [(Some("a".to_string()), "page:op=7%:14%/nand".to_string())]);
        let options: Vec<(&str, &str)> = request.options.iter().map(|(n, v)| (n.as_str(), v.as_str())).collect();
        assert_eq!(options, [("depth", "1:8"), ("fill", "on"), ("seed", "5")]);
        assert_eq!(sweep.outputs.x.as_deref(), Some("page.op"));
        for (text, said) in [
            ("workload = 1 2", "not TOML"),
            ("sed = 1\nworkload = 'uniform'", "did you mean seed?"),
            ("on = 'page/nand'", "no workload"),
            ("workload = { a = 1 }", "the value of workload"),
            ("workload = 'uniform'\nseed = []", "the value of seed"),
        ] {
            std::fs::write(&file, text).unwrap();
            let error = described(&[file.to_str().unwrap()]).err().unwrap();
            assert!(error.contains(said), "{text}: {error}");
        }
    }

    /// bash makes `--on page:op=7%/nand page:op=14%/nand` of `--on page:op={7%,14%}/nand`.
    #[test]
    fn what_a_shell_has_expanded_is_refused_with_what_it_does_not_expand() {
        for arguments in [
            vec!["uniform", "--on", "page:op=7%/nand", "page:op=14%/nand"],
            vec!["uniform", "--on", "page/nand", "--seed", "1", "2", "3"],
        ] {
            let error = described(&arguments).err().unwrap();
            assert!(error.contains("op=7%:14%") && error.contains("quotes"), "{error}");
        }
        assert!(described(&["uniform:writes={2x..6x/2x}", "--on", "page:op={7%,14%}/nand"]).is_ok());
    }
}
