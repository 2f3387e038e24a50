//! The flows of MQSim (`workload.xml`) as jobs of fio: one for each flow, with a queue of its own.
//!
//! Each plane's share of the logical space belongs to the flows that use the plane, in equal parts; a flow has its parts of all its
//! planes, behind those of the flows before it. Its requests go to all planes here.

use super::mqsim::{Parameters, wrong};
use crate::failure::Failure;
use std::collections::BTreeMap;
use std::fmt::Write as _;

const ROOT: &str = "MQSim_IO_Scenarios";
const SYNTHETIC: &str = "IO_Flow_Parameter_Set_Synthetic";
const SECTOR_BYTES: u64 = 512;

/// The requests in flight of a flow that comes at a rate, whatever is done: as many as a closed loop may have.
const OPEN_DEPTH: u64 = 65_536;

/// Parameters that have no counterpart.
const WITHOUT_COUNTERPART: &[(&str, &str)] = &[
    ("Priority_Class", "all queues are served alike"),
    ("Device_Level_Data_Caching_Mode", "the cache is a station of the path, for all flows or none"),
];

/// A file of fio's jobs, and what it leaves out.
#[derive(Debug)]
pub(super) struct Converted {
    pub jobs: String,
    pub notes: Vec<String>,
}

/// The flows of one scenario, counted from 1; `None` if the text has none, and is another configuration.
///
/// Fails if there are several scenarios and none is chosen, or if a flow cannot be described.
pub(super) fn convert(text: &str, scenario: Option<usize>) -> Option<Result<Converted, Failure>> {
    let document = roxmltree::Document::parse(text).ok()?;
    (document.root_element().tag_name().name() == ROOT).then(|| jobs(&document, scenario))
}

fn jobs(document: &roxmltree::Document<'_>, chosen: Option<usize>) -> Result<Converted, Failure> {
    let elements = |node: roxmltree::Node<'_, '_>| node.is_element();
    let scenarios: Vec<_> = document.root_element().children().filter(|node| elements(*node)).collect();
    let number = match (chosen, scenarios.len()) {
        (None, 0 | 1) => 1,
        (Some(number), most) if (1..=most).contains(&number) => number,
        (_, most) => {
            let message = format!("there are {most} scenarios, which MQSim runs one after the other on new drives");
            return Err(Failure::input(message, Some("choose one, such as --scenario 1".to_string())));
        }
    };
    let Some(scenario) = scenarios.get(number - 1) else {
        return Err(Failure::input("there is no scenario".to_string(), Some("write an <IO_Scenario>".to_string())));
    };
    let mut flows = Vec::new();
    let mut notes = Vec::new();
    for node in scenario.children().filter(|node| elements(*node)) {
        let (kind, line) = (node.tag_name().name(), document.text_pos_at(node.range().start).row);
        if kind != SYNTHETIC {
            let message = format!("line {line}: a flow of <{kind}> is no synthetic one");
            let help = "run a trace by itself: flashpath run FILE --on PATH".to_string();
            return Err(Failure::input(message, Some(help)));
        }
        flows.push(Flow::read(Parameters::under(document, node), flows.len(), &mut notes)?);
    }
    if flows.is_empty() {
        return Err(Failure::input(format!("scenario {number} has no flow"), None));
    }
    let mut text = format!("; scenario {number} of MQSim\n");
    let mut begin = 0.0;
    for (number, (flow, share)) in flows.iter().zip(shares(&flows)).enumerate() {
        flow.write(&mut text, number, begin, share);
        begin += share;
    }
    let occupancies: Vec<f64> = flows.iter().map(|flow| flow.occupancy).collect();
    let most = occupancies.iter().fold(0.0, |most: f64, one| most.max(*one));
    if most > 0.0 {
        let differs = if occupancies.iter().any(|one| *one != most) { ", which differs between flows:" } else { ":" };
        notes.push(format!("Initial_Occupancy_Percentage is an option of the run{differs} --fill={most}%"));
    }
    Ok(Converted { jobs: text, notes })
}

/// The share of the logical space of each flow.
fn shares(flows: &[Flow]) -> Vec<f64> {
    let mut users: BTreeMap<[u64; 4], u32> = BTreeMap::new();
    for plane in flows.iter().flat_map(Flow::planes) {
        *users.entry(plane).or_default() += 1;
    }
    let all = users.len() as f64;
    flows.iter().map(|flow| flow.planes().map(|plane| 1.0 / f64::from(users[&plane])).sum::<f64>() / all).collect()
}

/// The addresses of a flow's requests.
#[derive(Clone, Copy)]
enum Addresses {
    Streaming,
    Uniform,
    HotCold,
}

/// A synthetic flow.
struct Flow {
    /// The numbers of its channels, chips, dies and planes.
    places: [Vec<u64>; 4],
    /// Percent of its space that is written before the run.
    occupancy: f64,
    /// The keys of its job, without those of its region.
    keys: String,
    /// The share of its space that it works on.
    working_set: f64,
}

impl Flow {
    fn read(mut parameters: Parameters, number: usize, notes: &mut Vec<String>) -> Result<Flow, Failure> {
        let places = ["Channel_IDs", "Chip_IDs", "Die_IDs", "Plane_IDs"];
        let [channels, chips, dies, planes] = places.map(|name| numbers(&mut parameters, name));
        let places = [channels?, chips?, dies?, planes?];
        let occupancy = parameters.percentage("Initial_Occupancy_Percentage")?;
        // MQSim takes all of it for what is not from 1 to 100.
        let working_set = parameters.number("Working_Set_Percentage")?;
        let working_set = if (1.0..=100.0).contains(&working_set) { working_set / 100.0 } else { 1.0 };
        let reads = parameters.percentage("Read_Percentage")?;
        let sectors = parameters.count("Average_Request_Size")?;
        let bytes = sectors * SECTOR_BYTES;
        let mut keys = String::new();
        let mut key = |name: &str, value: &dyn std::fmt::Display| {
            let _ = writeln!(keys, "{name}={value}");
        };
        let addresses = parameters.word(
            "Address_Distribution",
            &[
                ("STREAMING", Addresses::Streaming),
                ("RANDOM_UNIFORM", Addresses::Uniform),
                ("RANDOM_HOTCOLD", Addresses::HotCold),
            ],
        )?;
        let hot = parameters.percentage("Percentage_of_Hot_Region")?;
        let is_aligned = parameters.word("Generated_Aligned_Addresses", &[("true", true), ("false", false)])?;
        let unit = parameters.count("Address_Alignment_Unit")?;
        let align = if is_aligned { unit * SECTOR_BYTES } else { SECTOR_BYTES };
        match addresses {
            Addresses::Streaming => key("rw", &"rw"),
            Addresses::Uniform | Addresses::HotCold => {
                key("rw", &"randrw");
                key("norandommap", &1);
                key("blockalign", &align);
            }
        }
        if let Addresses::HotCold = addresses {
            let cold = 100.0 - hot;
            key("random_distribution", &format!("zoned:{cold}/{hot}:{hot}/{cold}"));
        }
        key("rwmixread", &reads);
        key("bs", &bytes);
        let sizes = parameters.word("Request_Size_Distribution", &[("FIXED", true), ("NORMAL", false)])?;
        let _ = parameters.number("Variance_Request_Size")?;
        if !sizes {
            notes.push(format!("flow {number}: requests of normally distributed sizes all have the mean size"));
        }
        let depth = parameters.number("Average_No_of_Reqs_in_Queue")?;
        match parameters.word("Synthetic_Generator_Type", &[("QUEUE_DEPTH", true), ("BANDWIDTH", false)])? {
            true => key("iodepth", &(depth as u64).clamp(1, OPEN_DEPTH)),
            false => {
                // In whole requests a second, as MQSim divides.
                let iops = parameters.count("Bandwidth")? / SECTOR_BYTES / sectors;
                let of = |percent: f64| ((iops as f64 * percent / 100.0).round() as u64).max(1);
                key("iodepth", &OPEN_DEPTH);
                key("rate_iops", &format!("{},{}", of(reads), of(100.0 - reads)));
                key("rate_process", &"poisson");
            }
        }
        let requests = parameters.number("Total_Requests_To_Generate")? as u64;
        match parameters.number("Stop_Time")? as u64 {
            0 if requests == 0 => {
                let message = format!("flow {number} has no end: Stop_Time and Total_Requests_To_Generate are 0");
                return Err(Failure::input(message, Some("set one of them".to_string())));
            }
            0 => {
                key("number_ios", &requests);
                key("io_size", &(requests.saturating_mul(bytes)));
            }
            ns => {
                key("runtime", &format!("{}us", ns.div_ceil(1000)));
                key("time_based", &1);
            }
        }
        key("randseed", &parameters.number("Seed")?);
        for name in ["Bandwidth", "Intensity"] {
            parameters.take(name);
        }
        notes.extend(parameters.leftovers(WITHOUT_COUNTERPART).map(|note| format!("flow {number}: {note}")));
        Ok(Flow { places, occupancy, keys, working_set })
    }

    /// Its planes.
    fn planes(&self) -> impl Iterator<Item = [u64; 4]> + '_ {
        let [channels, chips, dies, planes] = &self.places;
        let of_die = |channel, chip, die| planes.iter().map(move |plane| [channel, chip, die, *plane]);
        let of_chip = move |channel, chip| dies.iter().flat_map(move |die| of_die(channel, chip, *die));
        channels.iter().flat_map(move |channel| chips.iter().flat_map(move |chip| of_chip(*channel, *chip)))
    }

    /// Writes its job, in a share of the space that begins at `begin`.
    fn write(&self, text: &mut String, number: usize, begin: f64, share: f64) {
        let percent = |share: f64| {
            let text = format!("{:.6}", share * 100.0);
            text.trim_end_matches('0').trim_end_matches('.').to_string()
        };
        let _ = write!(
            text,
            "\n[flow{number}]\noffset={}%\nsize={}%\n{}",
            percent(begin),
            percent(share * self.working_set),
            self.keys
        );
    }
}

/// The numbers of a list such as `0,1,2`.
fn numbers(parameters: &mut Parameters, name: &str) -> Result<Vec<u64>, Failure> {
    let (text, line) = parameters.take(name).unwrap_or_default();
    let numbers: Result<Vec<u64>, _> = text.split(',').map(|number| number.trim().parse()).collect();
    numbers.map_err(|_| wrong(name, &text, line, "write numbers separated by commas, such as 0,1"))
}
