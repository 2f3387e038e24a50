//! The effect of each technique (section 4.2): figures 5, 6 and 7.

use super::devices::M;
use super::loads::{Load, tpcc, zipf};
use super::volume::{Full, Point, Points, READINGS, SFS};
use super::{claim, exactly, panel};
use crate::ReproduceError;
use flashpath::report::figure::{Claim, Figure};

const UTILIZATION: f64 = 0.85;

fn loads() -> [Load; 2] {
    [zipf(1.0), tpcc()]
}

/// The write costs of a load with different options.
struct Costs {
    load: Load,
    full: Full,
    costs: Vec<f64>,
}

impl Costs {
    /// The beginning of a claim's text.
    fn name(&self) -> String {
        format!("{}, {}", self.load.name(), self.full.about())
    }
}

/// The costs in both readings and under both loads.
fn costs(points: &mut Points, options: &[&str]) -> Result<Vec<Costs>, ReproduceError> {
    let lab = points.lab;
    let mut all = Vec::new();
    for of in READINGS {
        let full = of.at(UTILIZATION);
        for load in loads() {
            let wanted: Vec<Point> =
                options.iter().map(|options| Point::new(lab, load.clone(), options, full)).collect();
            let costs = points.measure(&wanted)?.iter().map(|one| M.write_cost(one)).collect();
            all.push(Costs { load, full, costs });
        }
    }
    Ok(all)
}

fn figure(number: u32, title: &str, about: &str, names: &[String], costs: &[Costs], claims: Vec<Claim>) -> Figure {
    let panels = costs.chunks(loads().len()).map(|shown| {
        let groups = names.iter().enumerate().map(|(place, name)| {
            (name.clone(), shown.iter().map(|one| Some(one.costs[place])).collect::<Vec<Option<f64>>>())
        });
        let series = shown.iter().map(|one| one.load.name().to_string()).collect();
        panel(&shown[0].full.about(), series, groups.collect())
    });
    Figure {
        name: format!("sfs-fig{number}"),
        title: format!("SFS figure {number}: {title}"),
        unit: "write cost on SSD-M".to_string(),
        about: about.to_string(),
        panels: panels.collect(),
        claims,
        made_by: None,
    }
    .over(title)
}

/// The paper's numbers for the two loads, paired with each reading.
fn beside<T: Copy>(costs: &[Costs], paper: [T; 2]) -> impl Iterator<Item = (&Costs, T)> {
    costs.iter().zip(paper.into_iter().cycle())
}

const K: &str = "in these loads the last interval of a block predicts the next one badly, and cost-hotness \
                 is no better than cost-benefit with the same groups (figure 7)";
const SET: &str = "the paper gives neither the working set nor the exponent, on which the cost depends most: \
                   sfs-sensitivity shows the point that matches";

const FEW: &str = "two groups separate hot from cold blocks of these loads already";

/// Figure 5: the number of groups.
pub fn groups(points: &mut Points) -> Result<Figure, ReproduceError> {
    let options: Vec<String> = (1..=6).map(|groups| format!("{SFS},groups={groups}")).collect();
    // Four groups are SFS itself, as in other figures.
    let options: Vec<&str> = options.iter().enumerate().map(|(at, text)| if at == 3 { SFS } else { text }).collect();
    let costs = costs(points, &options)?;
    let mut claims = Vec::new();
    for (all, (one, four)) in beside(&costs, [(6.96, 4.21), (5.98, 2.64)]) {
        let (name, costs) = (all.name(), &all.costs);
        claims.push(exactly(format!("{name}: write cost with one group"), "4.2", one, costs[0], SET));
        claims.push(exactly(format!("{name}: write cost with four groups"), "4.2", four, costs[3], K));
        for (groups, cost) in [("two", costs[1]), ("three", costs[2])] {
            claims.push(claim(
                format!("{name}: {groups} groups over one"),
                "4.2: no significant reduction; 10 % counts as significant",
                Some(0.9),
                None,
                Some(cost / costs[0]),
                FEW,
            ));
        }
        claims.push(exactly(
            format!("{name}: four groups over one"),
            "4.2, derived",
            four / one,
            costs[3] / costs[0],
            K,
        ));
        let most = costs[3].max(costs[0]);
        claims.push(claim(
            format!("{name}: six groups over four"),
            "4.2: from five groups on the reduction is marginal; 10 % counts as marginal",
            Some(0.9),
            Some(1.1),
            Some(costs[5] / costs[3]).filter(|_| most > 0.0),
            "the refined centres depend on the initial ones: with four groups, cold blocks share a group more often",
        ));
    }
    let names: Vec<String> = (1..=6).map(|groups| groups.to_string()).collect();
    Ok(figure(5, "number of groups", "Cleaned by cost-hotness.", &names, &costs, claims))
}

/// Figure 6: the quantization of hotness.
pub fn quantizers(points: &mut Points) -> Result<Figure, ReproduceError> {
    let options = [SFS, "preset=paper,quantizer=equi-height", "preset=paper,quantizer=equi-width"];
    let costs = costs(points, &options)?;
    let mut claims = Vec::new();
    let because = "these loads lose less by groups that follow the ranks of hotness, or its range";
    for (all, (height, width)) in beside(&costs, [(1.15, 1.43), (1.35, 1.92)]) {
        let (name, costs) = (all.name(), &all.costs);
        let place = "4.2, read as a ratio: \"115 % over\" and so on";
        claims.push(exactly(
            format!("{name}: equi-height over iterative"),
            place,
            height,
            costs[1] / costs[0],
            because,
        ));
        claims.push(exactly(format!("{name}: equi-width over iterative"), place, width, costs[2] / costs[0], because));
    }
    let names = ["iterative", "equi-height", "equi-width"].map(String::from);
    let about = "Four groups, cleaned by cost-hotness. In the paper's terms, equi-height divides the range of \
                 hotness, equi-width the number of segments.";
    Ok(figure(6, "quantization", about, &names, &costs, claims))
}

/// Figure 7: the cleaner.
pub fn cleaners(points: &mut Points) -> Result<Figure, ReproduceError> {
    let costs = costs(points, &[SFS, "preset=paper,cleaner=cost-benefit"])?;
    let claims = costs
        .iter()
        .map(|all| {
            exactly(
                format!("{}: cost-hotness over cost-benefit", all.name()),
                "4.2: about 7 % lower",
                0.93,
                all.costs[0] / all.costs[1],
                K,
            )
        })
        .collect();
    let names = ["cost-hotness", "cost-benefit"].map(String::from);
    Ok(figure(7, "victim selection", "Four groups, iterative quantization.", &names, &costs, claims))
}
