//! The tables of runs, and what is claimed of them.

use super::runs::{DEPTH, Drive, Run};
use super::{
    ENDURANCE, HALF_A_WRITE, HALF_A_WRITE_SPEED, MIXED, MORE_SPARE, ONE_WRITE, ONE_WRITE_SPEED, PLACED, Published,
    SPARE, THREE_WRITES, THREE_WRITES_SPEED,
};
use crate::ReproduceError;
use crate::at_once::at_once;
use crate::lab::Lab;
use flashpath::report::RunResult;
use flashpath::report::figure::{Claim, Figure, Panel};

/// The place of the largest spare space in [`SPARE`].
const LAST: usize = SPARE.len() - 1;

fn claim(published: &Published, ours: Option<f64>, because: &str) -> Claim {
    Claim {
        says: published.says.to_string(),
        place: published.source.to_string(),
        low: Some(published.low),
        high: Some(published.high),
        ours,
        because: because.to_string(),
        shown_by: None,
    }
}

fn figure(name: &str, title: &str, unit: &str, about: String, panels: Vec<Panel>, claims: Vec<Claim>) -> Figure {
    let (name, title, unit) = (name.to_string(), title.to_string(), unit.to_string());
    Figure { name, title, unit, about, panels, claims, made_by: None }
}

fn amplification(result: &RunResult) -> Option<f64> {
    result.write_amplification.total
}

/// MiB written a simulated second.
fn written(result: &RunResult) -> Option<f64> {
    let seconds = result.seconds_simulated.filter(|seconds| *seconds > 0.0)?;
    Some(result.workload.written_blocks as f64 / 256.0 / seconds)
}

fn over(one: Option<f64>, other: Option<f64>) -> Option<f64> {
    Some(one? / other.filter(|other| *other > 0.0)?)
}

/// A cause that is taken away: its name, and the options of the layer and of the flash.
type Without = (&'static str, &'static str, &'static str);

/// Endurance: blocks programmed for each that is written.
pub fn endurance(lab: &Lab, drive: &Drive) -> Result<Figure, ReproduceError> {
    const CAUSES: [Without; 3] = [
        ("as it is", "", ""),
        ("any block as the victim", ",victim=random", ""),
        ("a map of whole pages of 16 KiB", "", ",unit=16K"),
    ];
    let untimed = ",timing=off";
    let of_spare = SPARE.map(|spare| Run::random(drive.with(spare, "", untimed)));
    let of_causes =
        CAUSES.map(|(_, layer, flash)| Run::random(drive.with(THREE_WRITES, layer, &format!("{flash}{untimed}"))));
    let in_order = SPARE.map(|spare| Run::sequential(drive.with(spare, "", untimed)));
    let wanted: Vec<Run> = of_spare.into_iter().chain(in_order).chain(of_causes).collect();
    let made = at_once(&wanted, |run| run.make(lab))?;
    let values: Vec<Option<f64>> = made.iter().map(amplification).collect();
    let (random, rest) = values.split_at(SPARE.len());
    let (in_order, causes) = rest.split_at(SPARE.len());
    let rows = SPARE.iter().zip(random.iter().zip(in_order));
    let rows = rows.map(|(spare, (random, in_order))| (spare.to_string(), vec![*random, *in_order])).collect();
    let by_spare = Panel::new("by spare space", vec!["random writes of 4 KiB".into(), "in order".into()], rows);
    let rows = CAUSES.iter().zip(causes).map(|((name, ..), value)| (name.to_string(), vec![*value])).collect();
    let by_cause = Panel::new("with 37.4 % spare", vec!["random writes of 4 KiB".into()], rows);
    let ratio = over(random[LAST], in_order[LAST]);
    let because = "spare space that is in open blocks and reserves collects nothing";
    Ok(figure(
        "drives-endurance",
        "Endurance by random and by sequential writes",
        "blocks programmed per block written",
        "Where each program wears the flash alike, the bytes that can be written in order over those at random are the write amplification \
         of random writes over that of writes in order. Without times."
            .to_string(),
        vec![by_spare, by_cause],
        vec![claim(&ENDURANCE, ratio, because)],
    ))
}

/// Throughput of random writes over that of writes in order.
pub fn random(lab: &Lab, drive: &Drive) -> Result<Figure, ReproduceError> {
    const CAUSES: [Without; 4] = [
        ("as it is", "", ""),
        ("reads of the array take no time", "", ",read=0us"),
        ("erases take no time", "", ",erase=0us"),
        ("victims of the whole drive", ",scope=drive", ""),
    ];
    let both = |layer: &str, flash: &str, spare: &str| {
        let path = drive.with(spare, layer, flash);
        [Run::random(path.clone()), Run::sequential(path)]
    };
    let mut wanted: Vec<Run> = SPARE.iter().flat_map(|spare| both("", "", spare)).collect();
    let of_causes =
        CAUSES.iter().flat_map(|(_, layer, flash)| [ONE_WRITE, THREE_WRITES].map(|spare| both(layer, flash, spare)));
    wanted.extend(of_causes.flatten());
    // Half of the capacity of a new drive: nothing is collected.
    let new = |run: Run| Run { is_filled: false, load: run.load.replace("writes=3x", "writes=0.5x"), ..run };
    wanted.extend(both("", "", THREE_WRITES).map(new));
    let made = at_once(&wanted, |run| run.make(lab))?;
    let pairs: Vec<[Option<f64>; 2]> = made.chunks(2).map(|pair| [written(&pair[0]), written(&pair[1])]).collect();
    let ratio = |at: usize| over(pairs[at][0], pairs[at][1]);
    let row = |at: usize| vec![pairs[at][0], pairs[at][1]];
    let speeds = SPARE.iter().enumerate().map(|(at, spare)| (spare.to_string(), row(at))).collect();
    let speeds = Panel {
        unit: Some("MiB/s".to_string()),
        ..Panel::new("by spare space", vec!["random writes of 4 KiB".into(), "in order".into()], speeds)
    };
    let first = SPARE.len();
    let mut rows: Vec<(String, Vec<Option<f64>>)> = Vec::new();
    for (number, (name, ..)) in CAUSES.iter().enumerate() {
        let at = first + 2 * number;
        let factor = over(pairs[at + 1][0], pairs[at][0]);
        rows.push((name.to_string(), vec![ratio(at), ratio(at + 1), factor]));
    }
    rows.push(("a new drive, half written".to_string(), vec![None, ratio(first + 2 * CAUSES.len()), None]));
    let series = ["14.5 % spare", "37.4 % spare", "random writes, 37.4 over 14.5 %"].map(String::from).to_vec();
    let causes = Panel::new("random over in order", series, rows);
    let slow = "each copy reads, and planes that collect wait for each other's copies; the flash and the interface of the drive are not told";
    let claims = vec![
        claim(
            &HALF_A_WRITE_SPEED,
            ratio(0),
            "its flash is not told: with more spare space than its capacity suggests, the table has its ratio",
        ),
        claim(&ONE_WRITE_SPEED, ratio(1), slow),
        claim(&THREE_WRITES_SPEED, ratio(LAST), slow),
        claim(&MORE_SPARE, over(pairs[LAST][0], pairs[1][0]), slow),
    ];
    Ok(figure(
        "drives-random",
        "Random and sequential writes after a fill",
        "random over in order",
        format!(
            "Random writes of 4 KiB, {DEPTH} in flight; writes in order of 128 KiB, 32 in flight. {HALF_A_WRITE} of spare space and more."
        ),
        vec![speeds, causes],
        claims,
    ))
}

/// Writes among reads.
pub fn mixed(lab: &Lab, drive: &Drive) -> Result<Figure, ReproduceError> {
    const DEPTHS: [u32; 5] = [32, 64, 128, 256, 1024];
    const CAUSES: [(&str, &str); 3] = [
        ("as it is", ""),
        ("reads go first, and suspend", ",suspend=both"),
        ("reads of the array take no time", ",read=0us"),
    ];
    let run = |flash: &str, depth: u32, is_mixed: bool| {
        let load = if is_mixed { "uniform:writes=3x,reads=70%" } else { "uniform:writes=3x" };
        Run { load: load.to_string(), depth, ..Run::random(drive.with(THREE_WRITES, "", flash)) }
    };
    let pairs = |flash: &'static str, depth: u32| [run(flash, depth, true), run(flash, DEPTH, false)];
    let of_depths = DEPTHS.iter().flat_map(|depth| pairs("", *depth));
    let of_causes = CAUSES.iter().flat_map(|(_, flash)| pairs(flash, DEPTH));
    let wanted: Vec<Run> = of_depths.chain(of_causes).collect();
    let made = at_once(&wanted, |run| run.make(lab))?;
    let shares: Vec<Option<f64>> = made.chunks(2).map(|pair| over(written(&pair[0]), written(&pair[1]))).collect();
    let (of_depths, of_causes) = shares.split_at(DEPTHS.len());
    let rows = DEPTHS.iter().zip(of_depths).map(|(depth, share)| (depth.to_string(), vec![*share])).collect();
    let series = || vec!["writes among reads over writes alone".to_string()];
    let by_depth = Panel { axis: Some("requests in flight".to_string()), ..Panel::new("by depth", series(), rows) };
    let rows = CAUSES.iter().zip(of_causes).map(|((name, _), share)| (name.to_string(), vec![*share])).collect();
    let by_cause = Panel::new(&format!("{DEPTH} in flight"), series(), rows);
    let because = "the requests in flight for each plane of the published runs are not told: with fewer of them, reads hold writes back more";
    Ok(figure(
        "drives-mixed",
        "Writes among reads",
        "of the writes alone",
        format!(
            "70 % random reads and 30 % random writes of 4 KiB, against writes alone with {DEPTH} in flight; 37.4 % spare."
        ),
        vec![by_depth, by_cause],
        vec![claim(&MIXED, of_causes[0], because)],
    ))
}

/// A cache of two engines, with a handle for each and without.
pub fn placement(lab: &Lab) -> Result<Figure, ReproduceError> {
    const FLASH: &str = "nand:size=256M,channels=4,pages-per-block=16,timing=off";
    const USED: [&str; 3] = ["80%", "90%", "100%"];
    const LAYERS: [(&str, &str); 3] =
        [("a handle for each", "page:fdp=2"), ("one handle", "page:fdp=1"), ("no placement", "page:")];
    let run = |used: &str, layer: &str| Run {
        path: format!("{}/{FLASH}", layer.trim_end_matches(':')),
        load: format!("cache:small=4%,f=50%,region=256K,span={used},writes=6x"),
        depth: 1,
        is_filled: true,
    };
    let wanted: Vec<Run> = USED.iter().flat_map(|used| LAYERS.map(|(_, layer)| run(used, layer))).collect();
    let made = at_once(&wanted, |run| run.make(lab))?;
    let values: Vec<Option<f64>> = made.iter().map(amplification).collect();
    let rows = USED
        .iter()
        .zip(values.chunks(LAYERS.len()))
        .map(|(used, values)| (used.to_string(), values.to_vec()))
        .collect();
    let panel = Panel::new("", LAYERS.map(|(name, _)| name.to_string()).to_vec(), rows);
    let full = values[(USED.len() - 1) * LAYERS.len()];
    let because = "copies of the small engine's buckets";
    Ok(figure(
        "drives-placement",
        "A cache of two engines, with placement",
        "blocks programmed per block written",
        format!(
            "Buckets of 4 KiB in 4 % of the used space, as CacheLib's configuration for its traces has it, get half of the writes; the rest is \
             written in regions of 256 KiB. On `{FLASH}`, which exports 90 %, of which a part is used. Without times."
        ),
        vec![Panel { axis: Some("used".to_string()), ..panel }],
        vec![claim(&PLACED, full, because)],
    ))
}
