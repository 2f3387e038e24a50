//! What `make install` copies, and what the Debian package contains. `make package` installs the package in a clean root.

use super::bench::Bench;
use super::skipped::skipped;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;

fn project() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}

/// Installs the files of the program of this build below `root`.
fn install(root: &Path) {
    let made = Command::new("make")
        .args(["--silent", "install-files", "PREFIX=/usr", "SBIN=/usr/sbin"])
        .args([format!("FLASHPATH={}", env!("CARGO_BIN_EXE_flashpath")), format!("DESTDIR={}", root.display())])
        .current_dir(project())
        .output()
        .unwrap();
    assert!(made.status.success(), "{made:?}");
}

/// The files and links below a directory, by their names in it.
fn files_below(root: &Path) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    let mut folders = vec![root.to_path_buf()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.symlink_metadata().unwrap().is_dir() {
                folders.push(path);
            } else {
                found.insert(path.strip_prefix(root).unwrap().to_str().unwrap().to_string());
            }
        }
    }
    found
}

/// The files that the package of `crates/cli/Cargo.toml` takes from an installation: their places there and in the package.
fn packaged() -> Vec<(String, String)> {
    let manifest: toml::Table = include_str!("../../Cargo.toml").parse().unwrap();
    let assets = manifest["package"]["metadata"]["deb"]["assets"].as_array().unwrap();
    let rows = assets.iter().map(|row| (row[0].as_str().unwrap(), row[1].as_str().unwrap().to_string()));
    rows.filter_map(|(from, to)| Some((from.strip_prefix("../../target/package/files/")?.to_string(), to))).collect()
}

#[test]
fn an_installation_has_the_program_its_pages_completions_and_helpers_and_the_package_takes_each() {
    let bench = Bench::new();
    let root = bench.path("root");
    install(&root);
    let ran = Command::new(root.join("usr/bin/flashpath")).arg("--version").output().unwrap();
    assert!(ran.status.success() && ran.stdout.starts_with(b"flashpath "), "{ran:?}");
    let mut installed = files_below(&root);
    assert!(installed.len() > 15, "{installed:?}");
    for (from, to) in packaged() {
        let (folder, name) = from.rsplit_once('/').unwrap();
        assert!(to.starts_with("usr/") && to.ends_with('/'), "{to}");
        // The package compresses the pages.
        let name = name.strip_suffix(".gz").unwrap_or(name);
        let (begin, end) = name.split_once('*').unwrap_or((name, ""));
        let before = installed.len();
        installed.retain(|file| {
            let (place, file) = file.rsplit_once('/').unwrap();
            !(place == folder && file.starts_with(begin) && file.ends_with(end))
        });
        assert!(installed.len() < before, "the package takes {from}, which is not installed");
    }
    assert!(installed.is_empty(), "the package lacks {installed:?}");
}

#[test]
fn a_package_that_was_made_is_unpacked_and_runs() {
    let made = std::fs::read_dir(project().join("target/package")).into_iter().flatten().flatten();
    let Some(package) = made.map(|file| file.path()).find(|file| file.extension().is_some_and(|end| end == "deb"))
    else {
        return skipped("there is no package in target/package: make package makes it, and checks it in a clean root");
    };
    let bench = Bench::new();
    let of = |arguments: &[&str]| {
        let done = Command::new("dpkg-deb").args(arguments).arg(&package).output().unwrap();
        assert!(done.status.success(), "{done:?}");
        String::from_utf8(done.stdout).unwrap()
    };
    let fields = of(&["--field"]);
    assert!(fields.contains("Package: flashpath") && fields.contains("fuse3"), "{fields}");
    let contents = of(&["--contents"]);
    for part in ["usr/share/man/man1/flashpath-run.1.gz", "usr/sbin/mount.fuse.sfs -> ", "completions/flashpath"] {
        assert!(contents.contains(part), "{part} is not in\n{contents}");
    }
    let root = bench.path("root");
    let unpacked = Command::new("dpkg-deb").arg("--extract").arg(&package).arg(&root).output().unwrap();
    assert!(unpacked.status.success(), "{unpacked:?}");
    let ran = Command::new(root.join("usr/bin/flashpath"))
        .args(["run", "uniform:writes=1x", "--on", "page/nand:size=64M", "--quiet"])
        .output()
        .unwrap();
    assert!(ran.status.success(), "{ran:?}");
}
