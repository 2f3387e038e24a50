//! Hands the commit of the sources to the program, for its results.

use std::process::Command;

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    for place in ["../../src", "../../crates", "../../Cargo.lock"] {
        println!("cargo::rerun-if-changed={place}");
    }
    // A commit changes the log of HEAD, also in a work tree of its own.
    if let Some(log) = git(&["rev-parse", "--git-path", "logs/HEAD"]) {
        println!("cargo::rerun-if-changed={log}");
    }
    let Some(commit) = git(&["rev-parse", "HEAD"]).filter(|_| is_in_this_repository()) else { return };
    let changed = git(&["status", "--porcelain", "--untracked-files=no"]).is_none_or(|changes| !changes.is_empty());
    println!("cargo::rustc-env=FLASHPATH_COMMIT={commit}{}", if changed { "-dirty" } else { "" });
}

/// True if the repository is that of this package, and not one that holds its sources by chance.
fn is_in_this_repository() -> bool {
    git(&["ls-files", "--error-unmatch", "build.rs"]).is_some()
}

/// The output of git; `None` without git or a repository.
fn git(arguments: &[&str]) -> Option<String> {
    let answer = Command::new("git").args(arguments).output().ok().filter(|answer| answer.status.success())?;
    String::from_utf8(answer.stdout).ok().map(|text| text.trim().to_string())
}
