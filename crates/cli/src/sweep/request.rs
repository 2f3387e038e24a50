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
use clap::{Arg, ArgAction, CommandFactory, Parser};
use flashpath_sweep::{COMMAND, Request, WorkloadRequest};
use std::ffi::OsStr;
use std::path::Path;

/// The key of the workloads, which are no option.
const WORKLOAD: &str = "workload";

/// The characters that a shell would expand, and the advice against it.
const SHELL: &str = "if a shell has expanded braces, write a list that no shell expands, as in \
    --on page:op=7%:14%/nand and --seed 1..10, or put the argument in quotes";

/// A description, and the traces from standard input, whose copies it keeps.
pub struct Described {
    /// The arguments, with those of a file.
    pub arguments: Sweep,
    /// The description.
    pub request: Request,
    /// The traces.
    pub _traces: Vec<TraceFile>,
}

/// Reads the description. What the command line gives takes the place of what a file does.
pub fn describe(mut arguments: Sweep) -> Result<Described, Failure> {
    if let [only] = &arguments.workloads[..]
        && is_toml(only)
    {
        let of_file = read_file(Path::new(only))?;
        arguments = arguments.completed(of_file);
    }
    let (mut request, mut traces) = (Request { options: given(&arguments), ..Request::default() }, Vec::new());
    for (number, workload) in arguments.workloads.iter().enumerate() {
        let read = read_workload(workload, &mut traces);
        // Braces that a shell has expanded make several arguments of one.
        request.workloads.push(read.map_err(|failure| if number == 0 { failure } else { advised(failure) })?);
    }
    for path in &arguments.on {
        let NamedPath { name, path } =
            NamedPath::read(path).map_err(|error| Failure::input(format!("--on {path}: {error}"), None))?;
        request.on.push((name, path));
    }
    (request.format, request.stage) = (arguments.format, arguments.stage);
    request.columns.clone_from(&arguments.columns);
    request.cpu.clone_from(&arguments.cpu);
    request.rate_per_day = arguments.rate;
    request.age.clone_from(&arguments.age);
    request.tells_waits = arguments.waits;
    Ok(Described { arguments, request, _traces: traces })
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
        Source::Recording(file) => WorkloadRequest::Recording { file, name: None },
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
        ("max-request", &arguments.max_request),
        ("repeat", &arguments.repeat),
        ("addresses", &arguments.addresses),
        ("device", &arguments.device),
    ];
    let slot = slots.into_iter().find(|(known, _)| *known == name);
    slot.expect("every option of the table is an argument").1.as_ref()
}

impl Sweep {
    /// These arguments, and those of a file where none is given. The file's workloads take the place of its name.
    fn completed(self, file: Sweep) -> Sweep {
        Sweep {
            workloads: file.workloads,
            on: if self.on.is_empty() { file.on } else { self.on },
            seed: self.seed.or(file.seed),
            depth: self.depth.or(file.depth),
            timed: self.timed.or(file.timed),
            limit: self.limit.or(file.limit),
            fill: self.fill.or(file.fill),
            precondition: self.precondition.or(file.precondition),
            verify: self.verify.or(file.verify),
            size: self.size.or(file.size),
            utilization: self.utilization.or(file.utilization),
            fsync_every: self.fsync_every.or(file.fsync_every),
            max_request: self.max_request.or(file.max_request),
            cpu: self.cpu.or(file.cpu),
            rate: self.rate.or(file.rate),
            age: self.age.or(file.age),
            waits: self.waits || file.waits,
            format: self.format.or(file.format),
            columns: self.columns.or(file.columns),
            stage: self.stage.or(file.stage),
            device: self.device.or(file.device),
            addresses: self.addresses.or(file.addresses),
            repeat: self.repeat.or(file.repeat),
            goal: self.goal.or(file.goal),
            jobs: self.jobs.or(file.jobs),
            memory: self.memory.or(file.memory),
            outputs: self.outputs.completed(file.outputs),
            plan: self.plan || file.plan,
            quiet: self.quiet || file.quiet,
        }
    }
}

/// The arguments alone, for a file.
#[derive(Parser)]
#[command(no_binary_name = true, disable_help_flag = true)]
struct OfFile {
    #[command(flatten)]
    sweep: Sweep,
}

/// The name of an argument in a file.
fn key_of(argument: &Arg) -> &str {
    argument.get_long().unwrap_or(WORKLOAD)
}

/// Reads the file of a description: its keys are the options of the command line, which clap reads.
fn read_file(file: &Path) -> Result<Sweep, Failure> {
    let name = file.display();
    let text =
        std::fs::read_to_string(file).map_err(|error| Failure::input(format!("cannot read {name}: {error}"), None))?;
    let table: toml::Table =
        text.parse().map_err(|error| Failure::input(format!("{name} is not TOML: {error}"), None))?;
    let command = OfFile::command();
    let (mut options, mut workloads) = (Vec::new(), Vec::new());
    for (key, value) in &table {
        let Some(argument) = command.get_arguments().find(|argument| key_of(argument) == key) else {
            let keys: Vec<&str> = command.get_arguments().map(key_of).collect();
            let near = flashpath::expression::nearest(key, keys.iter().copied());
            let near = near.map_or(String::new(), |near| format!("did you mean {near}? "));
            let help = format!("{near}there are: {}", keys.join(", "));
            return Err(Failure::input(format!("{name} has the unknown key {key}"), Some(help)));
        };
        let wrong = |help: &str| Failure::input(format!("{name}: the value of {key} is none"), Some(help.to_string()));
        let texts = texts(value).ok_or_else(|| wrong("write a text, a number, true or false, or a list of these"))?;
        let is_varied = COMMAND.options.iter().any(|option| option.name == key);
        match (argument.get_action(), value) {
            _ if argument.is_positional() => workloads = texts,
            (ArgAction::SetTrue, toml::Value::Boolean(false)) => {}
            (ArgAction::SetTrue, toml::Value::Boolean(true)) => options.push(format!("--{key}")),
            (ArgAction::SetTrue, _) => return Err(wrong("write true or false")),
            (ArgAction::Append, _) => options.extend(texts.iter().map(|text| format!("--{key}={text}"))),
            _ if is_varied || texts.len() == 1 => options.push(format!("--{key}={}", texts.join(":"))),
            _ => return Err(wrong("it takes one value, not a list")),
        }
    }
    if workloads.is_empty() {
        let help = "add a line such as workload = \"uniform:writes=6x\"".to_string();
        return Err(Failure::input(format!("{name} has no workload"), Some(help)));
    }
    let words = options.into_iter().chain(["--".to_string()]).chain(workloads);
    let read = OfFile::try_parse_from(words).map_err(|error| {
        let message = error.to_string();
        let message = message.split("\n\n").next().unwrap_or_default().trim().trim_start_matches("error: ");
        Failure::input(format!("{name}: {message}"), None)
    })?;
    Ok(read.sweep)
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
    use std::collections::BTreeSet;

    fn described(arguments: &[&str]) -> Result<(Sweep, Request), String> {
        let sweep = OfFile::try_parse_from(arguments).map_err(|error| error.to_string())?.sweep;
        match describe(sweep) {
            Ok(Described { arguments, request, .. }) => Ok((arguments, request)),
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
            ("workload = 'uniform'\ncsv = ['a', 'b']", "one value, not a list"),
            ("workload = 'uniform'\nquiet = 'on'", "write true or false"),
            (
                "workload = 'uniform'\nstage = 'X'",
                "study.toml: invalid value 'X' for '--stage <Q|I|D|C>': expected Q, I, D or C (queue, insert, issue, complete)",
            ),
            ("workload = 'uniform'\njobs = 0", "0 is not in 1..=65535"),
        ] {
            std::fs::write(&file, text).unwrap();
            let error = described(&[file.to_str().unwrap()]).err().unwrap();
            assert!(error.contains(said), "{text}: {error}");
        }
    }

    /// A value of each option, which a new option joins.
    const SAMPLES: [(&str, &str); 39] = [
        ("on", "page/nand"),
        ("seed", "1..3"),
        ("depth", "8"),
        ("timed", "0.5"),
        ("limit", "100"),
        ("fill", "on"),
        ("precondition", "2x"),
        ("verify", "on"),
        ("size", "1G"),
        ("utilization", "50%"),
        ("fsync-every", "16"),
        ("max-request", "44K"),
        ("cpu", "call=800"),
        ("rate", "200GB/day"),
        ("age", "years=1,cycles=50%"),
        ("waits", ""),
        ("goal", "write_amplification.steady<2"),
        ("format", "msr"),
        ("columns", "time=1,op=3,offset=4,size=5"),
        ("stage", "D"),
        ("device", "1"),
        ("addresses", "wrap"),
        ("repeat", "3"),
        ("jobs", "2"),
        ("memory", "4G"),
        ("csv", "s.csv"),
        ("parquet", "s.parquet"),
        ("means", "m.csv"),
        ("report", "r.html"),
        ("distribution", "d.csv"),
        ("x", "page.op"),
        ("y", "flash.erased_blocks"),
        ("by", "depth"),
        ("title", "Spare space"),
        ("x-title", "spare space, %"),
        ("y-title", "WA"),
        ("journal", "s.journal"),
        ("plan", ""),
        ("quiet", ""),
    ];

    #[test]
    fn every_option_of_the_command_is_a_key_of_a_file() {
        let command = OfFile::command();
        let options: BTreeSet<&str> = command.get_arguments().map(key_of).collect();
        assert_eq!(options, SAMPLES.iter().map(|(key, _)| *key).chain([WORKLOAD]).collect());
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("study.toml");
        let arguments = |line: &[&str]| format!("{:?}", described(line).unwrap().0);
        for (key, value) in SAMPLES {
            let (text, option) = match value {
                "" => (format!("{key} = true"), format!("--{key}")),
                value => (format!("{key} = '{value}'"), format!("--{key}={value}")),
            };
            std::fs::write(&file, format!("workload = 'uniform'\n{text}\n")).unwrap();
            assert_eq!(arguments(&[file.to_str().unwrap()]), arguments(&["uniform", &option]), "{key}");
            assert_ne!(arguments(&["uniform", &option]), arguments(&["uniform"]), "{key}");
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
