//! The example of a plug-in, a crate outside of this workspace, builds, passes its own tests, and runs.
//!
//! It is built in the target directory of this workspace, with its profile and the versions of its lock file, so that the
//! dependencies are built once. The library itself is built again, as it is a part of another workspace there: without
//! optimization, which takes most of the time of a build.

use std::path::Path;
use std::process::{Command, Output};

fn cargo(arguments: &[&str]) -> Output {
    let project = Path::new(env!("CARGO_MANIFEST_DIR"));
    let target =
        Path::new(env!("CARGO_TARGET_TMPDIR")).parent().expect("the directory of tests is in that of the build");
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let (command, rest) = arguments.split_first().expect("there is a command");
    Command::new(cargo)
        .arg(command)
        .args(["--quiet", "--locked", "--manifest-path"])
        .arg(project.join("examples/plugin/Cargo.toml"))
        .arg("--target-dir")
        .arg(target)
        .args(["--config", "profile.dev.package.flashpath.opt-level=0"])
        .args(rest)
        .output()
        .expect("cargo starts")
}

#[test]
fn a_crate_outside_of_the_workspace_adds_policies_and_a_layer() {
    let tests = cargo(&["test"]);
    assert!(
        tests.status.success(),
        "{}\n{}",
        String::from_utf8_lossy(&tests.stdout),
        String::from_utf8_lossy(&tests.stderr)
    );
    let run = cargo(&["run", "--", "64M"]);
    let (printed, errors) = (String::from_utf8_lossy(&run.stdout), String::from_utf8_lossy(&run.stderr));
    assert!(run.status.success(), "{errors}");
    // The names of paths are wrapped in the table.
    for added in ["block-map/nand", "victim=cost-age-", "grouping=inter"] {
        assert!(printed.contains(added), "{added} is not in\n{printed}");
    }
}
