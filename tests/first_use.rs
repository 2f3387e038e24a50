//! The README's first commands on a machine that has nothing but a minimal Debian and Rust. `scripts/demo-in-clean-root`
//! runs them there. Every machine that we tried them on had make and a C compiler: a clean one could not begin.

use std::process::Command;

fn source(name: &str) -> String {
    let path = format!("{}/{name}", env!("CARGO_MANIFEST_DIR"));
    std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{path}: {error}"))
}

/// The packages in the README's line for apt.
fn packages_in_readme() -> Vec<String> {
    let readme = source("README.md");
    let line = readme.lines().find_map(|line| line.strip_prefix("sudo apt-get install")).expect("a line for apt");
    let command = line.split('#').next().unwrap_or_default();
    command.split_whitespace().filter(|word| !word.starts_with('-')).map(str::to_string).collect()
}

/// `scripts/needs build` on a machine with nothing but sh.
fn needs_of_a_build() -> std::process::Output {
    let script = format!("{}/scripts/needs", env!("CARGO_MANIFEST_DIR"));
    Command::new("/bin/sh").args([&script, "build"]).env_clear().env("PATH", "/nowhere").output().unwrap()
}

#[test]
fn the_readme_names_what_a_build_needs() {
    let output = needs_of_a_build();
    let message = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(1), "{message}");
    let needed = message.lines().find_map(|line| line.strip_prefix("not installed: ")).expect("a list");
    let needed: Vec<&str> = needed.split(';').next().unwrap_or_default().split(' ').collect();
    assert!(["make", "gcc", "libc6-dev"].iter().all(|package| needed.contains(package)), "{needed:?}");
    let named = packages_in_readme();
    for package in needed {
        assert!(named.iter().any(|name| name == package), "the README's line for apt lacks {package}");
    }
}

#[test]
fn the_demo_checks_for_a_compiler_and_builds_the_program_alone() {
    let makefile = source("Makefile");
    let rule = makefile.split("\ndemo:").nth(1).and_then(|rest| rest.split("\n\n").next()).expect("a rule for demo");
    assert!(rule.contains("scripts/needs build"), "{rule}");
    assert!(rule.starts_with('\n'), "it builds nothing first: {rule}");
    let builds: Vec<&str> = rule.lines().filter(|line| line.contains("cargo build")).collect();
    assert_eq!(builds, ["\tcargo build --release --locked -p flashpath-cli"]);
}
