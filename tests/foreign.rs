//! The lists of foreign tests that are expected to fail on a mounted volume (`tests/foreign`), and the output of
//! `scripts/expected-failures` for a run that differs from them. The suites themselves run in
//! `scripts/programs-on-mount`.

use std::fs;
use std::path::Path;
use std::process::Command;

const LISTS: [&str; 3] =
    ["tests/foreign/e2fsprogs-expected", "tests/foreign/ltp-expected", "tests/foreign/xfstests-expected"];

/// The exit code and the output of the comparison.
fn compare(expected: &Path, results: &str) -> (Option<i32>, String) {
    let scratch = tempfile::tempdir().unwrap();
    let path = scratch.path().join("results");
    fs::write(&path, results).unwrap();
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("scripts/expected-failures");
    let output = Command::new(script).arg(expected).arg(path).output().unwrap();
    assert!(output.stderr.is_empty(), "{}", String::from_utf8_lossy(&output.stderr));
    (output.status.code(), String::from_utf8(output.stdout).unwrap())
}

fn compare_with(expected: &str, results: &str) -> (Option<i32>, String) {
    let scratch = tempfile::tempdir().unwrap();
    let path = scratch.path().join("expected");
    fs::write(&path, expected).unwrap();
    compare(&path, results)
}

const EXPECTED: &str = "# A comment.\n\ngeneric/002  the kernel does not ask\ngeneric/004  takes hours\n";

#[test]
fn a_run_in_which_only_expected_tests_fail_is_good() {
    let results = "generic/001 passed\ngeneric/002 failed\ngeneric/003 skipped\ngeneric/004 ended\n";
    let counts = "1 passed, 1 failed, 1 ended at the limit, 2 of these expected; 1 skipped by the suite\n";
    assert_eq!(compare_with(EXPECTED, results), (Some(0), counts.into()));
}

#[test]
fn a_test_that_fails_hangs_or_has_no_result_is_an_error() {
    for (result, told) in
        [("failed", "fails      "), ("ended", "not ended  "), ("missing", "no result  "), ("", "no result  ")]
    {
        let (code, said) = compare_with(EXPECTED, &format!("generic/001 passed\ngeneric/005 {result}\n"));
        assert_eq!(code, Some(1), "{said}");
        assert!(said.contains(&format!("{told}generic/005\n")), "{said}");
    }
    // An expected failure must have a result: the suite may have stopped before it.
    let (code, said) = compare_with(EXPECTED, "generic/001 passed\ngeneric/002 missing\n");
    assert_eq!(code, Some(1));
    assert!(said.contains("no result  generic/002\n"), "{said}");
}

#[test]
fn an_expected_failure_that_passes_is_reported_with_its_reason() {
    let (code, said) = compare_with(EXPECTED, "generic/002 passed\n");
    assert_eq!(code, Some(0));
    assert!(said.ends_with("passes     generic/002, expected to fail: the kernel does not ask\n"), "{said}");
}

#[test]
fn a_run_in_which_nothing_passed_is_an_error() {
    for results in ["", "generic/001 skipped\n", "generic/002 failed\n"] {
        let (code, said) = compare_with(EXPECTED, results);
        assert_eq!(code, Some(1));
        assert!(said.contains("no test passed\n"), "{said}");
    }
}

#[test]
fn a_list_with_a_test_without_a_reason_or_twice_is_refused() {
    let (code, said) = compare_with("generic/002\n", "generic/001 passed\n");
    assert_eq!(code, Some(2));
    assert!(said.ends_with("line 1: the reason is missing\n"), "{said}");
    let (code, said) = compare_with("generic/002 a\ngeneric/002 b\n", "generic/001 passed\n");
    assert_eq!(code, Some(2));
    assert!(said.ends_with("line 2: the test is listed twice\n"), "{said}");
}

#[test]
fn each_list_of_this_project_is_in_order_and_has_a_reason_for_each_test() {
    for list in LISTS {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(list);
        let (code, said) = compare(&path, "any/test passed\n");
        assert_eq!(code, Some(0), "{list}: {said}");
        let text = fs::read_to_string(path).unwrap();
        let names: Vec<&str> = text
            .lines()
            .filter(|line| !line.is_empty() && !line.starts_with('#'))
            .map(|line| line.split_whitespace().next().unwrap())
            .collect();
        assert!(names.is_sorted(), "{list}");
        assert!(
            names
                .iter()
                .all(|name| name.split_once('/').is_some_and(|(suite, test)| !suite.is_empty() && !test.is_empty()))
        );
    }
}
