//! Manual pages and completions.

use super::bench::{Answer, Bench};
use super::skipped::skipped;
use std::process::Command;

#[test]
fn every_command_has_a_manual_page_with_its_options() {
    let bench = Bench::new();
    let answer = bench.flashpath(&["man", "share/man1"]);
    assert_eq!((answer.code, answer.stdout.as_str()), (Some(0), ""), "{answer:?}");
    let page = |name: &str| std::fs::read_to_string(bench.path(&format!("share/man1/{name}.1"))).unwrap();
    let help = bench.flashpath(&["--help"]).stdout;
    let commands: Vec<&str> = help
        .lines()
        .skip_while(|line| *line != "Commands:")
        .skip(1)
        .map_while(|line| line.strip_prefix("  "))
        .filter(|line| !line.starts_with(' '))
        .filter_map(|line| line.split_whitespace().next())
        .filter(|command| *command != "help")
        .collect();
    assert!(commands.contains(&"sweep") && commands.contains(&"run"), "{commands:?}");
    for command in commands {
        assert!(page(&format!("flashpath-{command}")).contains(".SH SYNOPSIS"), "{command}");
        assert!(page("flashpath").contains(&format!("flashpath\\-{command}(1)")), "{command}");
    }
    assert!(page("flashpath-sweep").contains("\\-\\-journal"));
    bench.write("file", "");
    bench.refuses(&["man", "file"], &["cannot write file"]);
}

#[test]
fn bash_completes_commands_and_options() {
    if Command::new("bash").arg("--version").output().is_err() {
        return skipped("there is no bash");
    }
    let bench = Bench::new();
    bench.write("c.sh", bench.flashpath(&["completions", "bash"]).stdout);
    let completed = |words: &str, count: u32| {
        let script = format!(
            "source ./c.sh; COMP_WORDS=({words}); COMP_CWORD={count}; _flashpath flashpath \"${{COMP_WORDS[{count}]}}\" x; echo \"${{COMPREPLY[*]}}\""
        );
        let mut shell = Command::new("bash");
        let answer = Answer::of(shell.args(["-c", &script]).current_dir(bench.directory.path()).output().unwrap());
        assert_eq!(answer.code, Some(0), "{answer:?}");
        answer.stdout.trim().to_string()
    };
    assert_eq!(completed("flashpath swe", 1), "sweep");
    assert_eq!(completed("flashpath sweep --jour", 2), "--journal");
    for shell in ["zsh", "fish", "elvish", "powershell"] {
        assert!(bench.flashpath(&["completions", shell]).stdout.contains("sweep"), "{shell}");
    }
    bench.refuses(&["completions", "tcsh"], &["invalid value 'tcsh'"]);
}
