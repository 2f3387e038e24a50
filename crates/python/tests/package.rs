//! The Python package passes its tests, which are in Python beside this file.
//!
//! They run in a virtual environment in the target directory, with the packages of `requirements.txt`, on the extension
//! module of this build. Without Python, or without those packages, they are skipped.

#[path = "../../../tests/skipped/mod.rs"]
mod skipped;

use skipped::skipped;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// The least version of Python.
const LEAST: &str = "import sys, venv, ensurepip; sys.exit(sys.version_info < (3, 10))";

/// The folder of this crate.
fn here() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// The virtual environment, made if its requirements have changed; the reason if there is none.
fn environment(place: &Path) -> Result<PathBuf, String> {
    let python = place.join("venv/bin/python");
    let (wanted, made) = (here().join("tests/requirements.txt"), place.join("installed.txt"));
    let requirements = fs::read_to_string(&wanted).expect("the requirements are there");
    if fs::read_to_string(&made).is_ok_and(|installed| installed == requirements) && python.exists() {
        return Ok(python);
    }
    let has_python = Command::new("python3").args(["-c", LEAST]).stderr(Stdio::null()).status();
    if !has_python.is_ok_and(|status| status.success()) {
        return Err("Python 3.10 or newer with the module venv is missing (on Debian: python3-venv)".to_string());
    }
    let succeeds = |command: &mut Command, what: &str| match command.output() {
        Ok(ended) if ended.status.success() => Ok(()),
        Ok(ended) => Err(format!("{what}: {}", String::from_utf8_lossy(&ended.stderr).trim())),
        Err(error) => Err(format!("{what}: {error}")),
    };
    let venv = place.join("venv");
    succeeds(Command::new("python3").args(["-m", "venv", "--clear"]).arg(&venv), "cannot make a virtual environment")?;
    let install = ["-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--requirement"];
    succeeds(Command::new(&python).args(install).arg(&wanted), "cannot install the packages of the tests")?;
    fs::write(made, requirements).expect("the target directory is writable");
    Ok(python)
}

/// Copies the package, with the extension module of this build in it.
fn assemble(site: &Path) {
    let package = site.join("flashpath");
    let _ = fs::remove_dir_all(&package);
    fs::create_dir_all(&package).expect("the target directory is writable");
    for file in fs::read_dir(here().join("python/flashpath")).expect("the package is there") {
        let file = file.expect("the package is readable").path();
        if file.is_file() {
            fs::copy(&file, package.join(file.file_name().expect("it has a name"))).expect("the package is readable");
        }
    }
    let beside = std::env::current_exe().expect("this test has a file");
    let beside = beside.parent().expect("it is in a folder");
    let module = beside.join("libflashpath_python.so");
    fs::copy(&module, package.join("_native.abi3.so")).unwrap_or_else(|error| panic!("{}: {error}", module.display()));
}

#[test]
fn the_python_package_passes_its_tests() {
    let target = Path::new(env!("CARGO_TARGET_TMPDIR")).join("python");
    fs::create_dir_all(&target).expect("the target directory is writable");
    let python = match environment(&target) {
        Ok(python) => python,
        Err(reason) => return skipped(&reason),
    };
    assemble(&target.join("site"));
    let program = std::env::current_exe().expect("this test has a file");
    let program = program.parent().and_then(Path::parent).expect("it is two folders deep").join("flashpath");
    // The reader sees pytest's own lines.
    let status = Command::new(python)
        .args(["-m", "pytest", "-p", "no:cacheprovider", "-rs", "--durations=5"])
        .current_dir(here().join("tests"))
        .env("PYTHONPATH", target.join("site"))
        .env("PYTHONDONTWRITEBYTECODE", "1")
        .env("MYPY_CACHE_DIR", target.join("mypy"))
        .env("FLASHPATH_PROGRAM", program)
        .status()
        .expect("the environment has Python");
    assert!(status.success(), "the tests in crates/python/tests fail");
}
