//! A held journal below a stock kernel in QEMU, over NBD: `scripts/qemu-journal`.

use std::process::Command;

#[test]
fn a_killed_guest_finds_its_journal_in_the_memory_of_the_server() {
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/../../scripts/qemu-journal");
    let output =
        Command::new(script).env("FLASHPATH", env!("CARGO_BIN_EXE_flashpath")).env("FSYNCS", "60").output().unwrap();
    let [printed, errors] = [&output.stdout, &output.stderr].map(|bytes| String::from_utf8_lossy(bytes));
    match output.status.code() {
        Some(77) => super::skipped::skipped(printed.trim().trim_start_matches("skipped: ")),
        code => assert_eq!(code, Some(0), "{printed}{errors}"),
    }
}
