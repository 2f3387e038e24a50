//! The table of CPU time that `--cpu` names, and the file in which `flashpath calibrate` keeps one.

use flashpath::task::{Costs, CpuTable, Step};
use serde_json::Value;
use std::borrow::Cow;
use std::path::Path;

/// Reads the value of `--cpu`: `off`, a file that `flashpath calibrate --json` wrote, or steps that differ from the table
/// in the program, such as `call=800,block-copied=250`.
///
/// Fails if it is none of them; the error names valid ones.
pub fn cpu_table(text: &str) -> Result<CpuTable, String> {
    if text == "off" {
        return Ok(CpuTable::OFF);
    }
    if Path::new(text).is_file() {
        let written = std::fs::read_to_string(text).map_err(|error| format!("cannot read {text}: {error}"))?;
        return of_file(text, &written);
    }
    let costs = Costs::MEASURED
        .with_written(text)
        .map_err(|error| format!("{error}; or write off, or a file of 'flashpath calibrate --json'"))?;
    Ok(CpuTable { name: Cow::Owned(format!("{}, but for {text}", CpuTable::DEFAULT.name)), costs })
}

fn of_file(name: &str, text: &str) -> Result<CpuTable, String> {
    let wrong = |what: String| format!("{name} is no table of 'flashpath calibrate --json': {what}");
    let json: Value = serde_json::from_str(text).map_err(|error| wrong(error.to_string()))?;
    let steps = json["steps"].as_object().ok_or_else(|| wrong("it has no steps".to_string()))?;
    if let Some(unknown) = steps.keys().find(|step| Step::named(step).is_none()) {
        return Err(wrong(format!("there is no step {unknown}; there are: {}", Step::names())));
    }
    let costs = Step::NAMES.into_iter().try_fold(Costs::none(), |costs, (step, kind)| {
        let ns = steps.get(step).and_then(|step| step["ns"].as_u64()).filter(|ns| *ns <= Costs::MOST_NS);
        let ns = ns.ok_or_else(|| wrong(format!("{step} has no ns from 0 to {}", Costs::MOST_NS)))?;
        Ok::<_, String>(costs.with(kind, ns))
    })?;
    let machine = json["machine"].as_str().unwrap_or("a machine that it does not name");
    Ok(CpuTable { name: Cow::Owned(format!("{name}: {machine}")), costs })
}

/// The option that repeats a run with this table, unless it is the one in the program.
pub fn cpu_argument(table: &CpuTable) -> Option<String> {
    if *table == CpuTable::DEFAULT {
        return None;
    }
    Some(format!("--cpu {}", cpu_steps(table)))
}

/// A text that [`cpu_table`] reads, without a file: `off`, or the time of each step.
pub fn cpu_steps(table: &CpuTable) -> String {
    if *table == CpuTable::OFF {
        return "off".to_string();
    }
    let steps: Vec<String> = table.costs.named().map(|(step, ns)| format!("{step}={ns}")).collect();
    steps.join(",")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_is_off_a_file_or_steps_that_differ() {
        assert_eq!(cpu_table("off").unwrap(), CpuTable::OFF);
        assert_eq!(cpu_table("call=800").unwrap().costs, Costs::MEASURED.with(Step::Call, 800));
        let error = cpu_table("cal=800").unwrap_err();
        assert!(error.contains("there is no step cal") && error.contains("flashpath calibrate"), "{error}");
        let steps: Vec<String> =
            Costs::MEASURED.named().map(|(step, ns)| format!("\"{step}\":{{\"ns\":{}}}", ns + 1)).collect();
        let text = |steps: &[String]| format!("{{\"machine\":\"mine\",\"steps\":{{{}}}}}", steps.join(","));
        let read = of_file("t.json", &text(&steps)).unwrap();
        assert_eq!(
            (read.name.as_ref(), read.costs.of(Step::Call)),
            ("t.json: mine", Costs::MEASURED.of(Step::Call) + 1)
        );
        assert_eq!(cpu_table(cpu_argument(&read).unwrap().strip_prefix("--cpu ").unwrap()).unwrap().costs, read.costs);
        for (text, said) in [
            (text(&steps[1..]), "call has no ns"),
            (text(&["\"cull\":{\"ns\":1}".to_string()]), "no step cull"),
            ("[]".to_string(), "it has no steps"),
            ("x".to_string(), "expected value"),
        ] {
            let error = of_file("t.json", &text).unwrap_err();
            assert!(error.contains(said), "{error}");
        }
    }
}
