//! The configuration of a drive for MQSim (`ssdconfig.xml`) as a path.
//!
//! What has no counterpart is told, and what MQSim itself does not read. docs/how-to/from-mqsim.md has the names of both.

use crate::failure::Failure;
use flashpath::run::Path;
use std::collections::BTreeMap;

/// The commands of a read, a program and an erase on the channel: MQSim's times of NV-DDR2, which no parameter changes.
const COMMANDS: &str = "290ns+361ns+220ns";

/// The free blocks that MQSim keeps in a plane at least: below them it collects, whatever the threshold says.
const LEAST_FREE: u64 = 15;

/// The blocks of a plane that are open for pages of the map, also where the whole map is in memory.
const MAP_BLOCKS: u64 = 1;

/// Parameters that have no counterpart, and why or what comes near.
const WITHOUT_COUNTERPART: &[(&str, &str)] = &[
    ("PCIe_Lane_Bandwidth", "the host's link takes no time"),
    ("PCIe_Lane_Count", "the host's link takes no time"),
    ("SATA_Processing_Delay", "the host's link takes no time"),
    ("IO_Queue_Depth", "the depth is that of the workload: --depth"),
    ("Queue_Fetch_Size", "the drive takes each request when it is issued"),
    ("Transaction_Scheduling_Policy", "planes work in order, unless suspend= lets reads go first"),
    ("Use_Copyback_for_GC", "copies go over the channel"),
    ("Preemptible_GC_Enabled", "pace= spreads copies over the writes of the host"),
    ("GC_Hard_Threshold", "pace= spreads copies over the writes of the host"),
    ("Data_Cache_Sharing_Mode", "there is one cache"),
    ("CMT_Sharing_Mode", "there is one table"),
    ("Enabled_Preconditioning", "run with --fill and --precondition"),
    ("Seed", "run with --seed"),
];

/// Parameters that MQSim does not read, or that change nothing there.
const WITHOUT_EFFECT: &[&str] = &[
    "Dynamic_Wearleveling_Enabled",
    "Static_Wearleveling_Enabled",
    "Static_Wearleveling_Threshold",
    "Page_Metadat_Capacity",
    "Preferred_suspend_erase_time_for_read",
    "Preferred_suspend_erase_time_for_write",
    "Preferred_suspend_write_time_for_read",
];

/// Parameters of MQSim's own output.
const OF_OUTPUT: &[&str] = &["Enable_ResponseTime_Logging", "ResponseTime_Logging_Period_Length"];

/// The only values of parameters that can be converted.
const REQUIRED: &[(&str, &[&str])] = &[
    ("Memory_Type", &["FLASH"]),
    ("HostInterface_Type", &["NVME", "SATA"]),
    ("Address_Mapping", &["PAGE_LEVEL"]),
    ("Flash_Comm_Protocol", &["NVDDR2"]),
];

/// A path, and what it leaves out.
#[derive(Debug)]
pub(super) struct Converted {
    pub path: String,
    pub notes: Vec<String>,
}

/// The parameters below an element, by name, each with its line. Those that were asked for are used up.
pub(super) struct Parameters {
    values: BTreeMap<String, (String, u32)>,
}

impl Parameters {
    fn read(text: &str) -> Result<Parameters, Failure> {
        let document = roxmltree::Document::parse(text)
            .map_err(|error| Failure::input(format!("the file is no XML: {error}"), None))?;
        let root = document.root_element();
        if root.tag_name().name() != "Execution_Parameter_Set" {
            let message = format!("<{}> begins no configuration of a drive", root.tag_name().name());
            let help = "take MQSim's ssdconfig.xml, which begins with <Execution_Parameter_Set>".to_string();
            return Err(Failure::input(message, Some(help)));
        }
        Ok(Parameters::under(&document, root))
    }

    /// Those below an element.
    pub fn under(document: &roxmltree::Document<'_>, root: roxmltree::Node<'_, '_>) -> Parameters {
        let leaves = root
            .descendants()
            .filter(|node| node.is_element() && *node != root && node.children().all(|child| !child.is_element()));
        let value = |node: roxmltree::Node<'_, '_>| {
            let line = document.text_pos_at(node.range().start).row;
            (node.tag_name().name().to_string(), (node.text().unwrap_or_default().trim().to_string(), line))
        };
        Parameters { values: leaves.map(value).collect() }
    }

    /// Uses a parameter up: its text and its line.
    pub fn take(&mut self, name: &str) -> Option<(String, u32)> {
        self.values.remove(name)
    }

    /// A number; MQSim's own default is not ours, so that each must be there.
    pub fn number(&mut self, name: &str) -> Result<f64, Failure> {
        let Some((text, line)) = self.take(name) else {
            let help = Some("take a whole ssdconfig.xml".to_string());
            return Err(Failure::input(format!("the configuration has no {name}"), help));
        };
        let number = text.parse::<f64>().ok().filter(|number| number.is_finite() && *number >= 0.0);
        number.ok_or_else(|| wrong(name, &text, line, "write a number that is not negative"))
    }

    /// A whole number of at least 1.
    pub fn count(&mut self, name: &str) -> Result<u64, Failure> {
        let line = self.values.get(name).map_or(0, |(_, line)| *line);
        let number = self.number(name)?;
        match number.fract() == 0.0 && (1.0..=1e15).contains(&number) {
            true => Ok(number as u64),
            false => Err(wrong(name, &number.to_string(), line, "write a whole number of at least 1")),
        }
    }

    /// A number up to 100.
    pub fn percentage(&mut self, name: &str) -> Result<f64, Failure> {
        let line = self.values.get(name).map_or(0, |(_, line)| *line);
        let number = self.number(name)?;
        match number <= 100.0 {
            true => Ok(number),
            false => Err(wrong(name, &number.to_string(), line, "write a percentage from 0 to 100")),
        }
    }

    /// One of several words.
    pub fn word<T: Copy>(&mut self, name: &str, words: &[(&str, T)]) -> Result<T, Failure> {
        let (text, line) = self.take(name).unwrap_or_default();
        let known = words.iter().find(|(word, _)| word.eq_ignore_ascii_case(&text));
        known.map(|(_, value)| *value).ok_or_else(|| {
            let known: Vec<&str> = words.iter().map(|(word, _)| *word).collect();
            wrong(name, &text, line, &format!("take {}", known.join(", ")))
        })
    }
}

/// The error of a value.
pub(super) fn wrong(name: &str, text: &str, line: u32, help: &str) -> Failure {
    Failure::input(format!("line {line}: {name} is '{text}'"), Some(help.to_string()))
}

/// Converts the text of a configuration.
///
/// Fails if it is none, or if a drive like that cannot be described.
pub(super) fn convert(text: &str) -> Result<Converted, Failure> {
    let mut parameters = Parameters::read(text)?;
    for (name, words) in REQUIRED {
        if let Some((text, line)) = parameters.take(name).filter(|(text, _)| !words.contains(&text.as_str())) {
            return Err(wrong(name, &text, line, &format!("only {} can be converted", words.join(", "))));
        }
    }
    let mut notes = Vec::new();
    let flash = Flash::read(&mut parameters, &mut notes)?;
    let layer = layer(&mut parameters, &flash, &mut notes)?;
    let cache = cache(&mut parameters)?;
    let path = format!("{cache}{layer}/{}", flash.term);
    Path::read(&path).map_err(|error| {
        Failure::input(format!("the drive cannot be described: {error} in {path}"), Some(error.help.clone()))
    })?;
    notes.push(
        "a flow with Device_Level_Data_Caching_Mode=TURNED_OFF bypasses the cache: leave out cache:.../ for it".into(),
    );
    notes.extend(parameters.leftovers(WITHOUT_COUNTERPART));
    Ok(Converted { path, notes })
}

impl Parameters {
    /// What the parameters that were not asked for mean; those of the list have no counterpart.
    pub fn leftovers(self, without_counterpart: &'static [(&str, &str)]) -> impl Iterator<Item = String> {
        let told = move |(name, (value, line)): (String, (String, u32))| {
            if OF_OUTPUT.contains(&name.as_str()) {
                return None;
            }
            if WITHOUT_EFFECT.contains(&name.as_str()) {
                return Some(format!("line {line}: {name} has no effect in MQSim"));
            }
            Some(match without_counterpart.iter().find(|(known, _)| *known == name) {
                Some((_, why)) => format!("line {line}: {name}={value} is left out: {why}"),
                None => format!("line {line}: {name}={value} is left out: it is not known"),
            })
        };
        self.values.into_iter().filter_map(told)
    }
}

struct Flash {
    term: String,
    planes: u64,
    chips_of_channel: u64,
    dies_of_chip: u64,
    blocks_of_plane: u64,
    pages: u64,
    page_bytes: u64,
}

impl Flash {
    fn read(parameters: &mut Parameters, notes: &mut Vec<String>) -> Result<Flash, Failure> {
        let channels = parameters.count("Flash_Channel_Count")?;
        let chips_of_channel = parameters.count("Chip_No_Per_Channel")?;
        let dies_of_chip = parameters.count("Die_No_Per_Chip")?;
        let dies = chips_of_channel * dies_of_chip;
        let planes_of_die = parameters.count("Plane_No_Per_Die")?;
        let (blocks, pages) = (parameters.count("Block_No_Per_Plane")?, parameters.count("Page_No_Per_Block")?);
        let page_bytes = parameters.count("Page_Capacity")?;
        let planes = channels * dies * planes_of_die;
        if planes_of_die > 1 {
            notes.push(format!(
                "Plane_No_Per_Die={planes_of_die}: planes work independently here, and in MQSim only in a command for one page number; \
                 without cache:.../ add plane-commands=multi behind nand:"
            ));
        }
        let bits = parameters.word("Flash_Technology", &[("SLC", 1), ("MLC", 2), ("TLC", 3)])?;
        let mut times = |what: &str| -> Result<Vec<u64>, Failure> {
            let of = |page: &str| format!("Page_{what}_Latency_{page}");
            let [lower, middle, upper] = ["LSB", "CSB", "MSB"].map(|page| parameters.count(&of(page)));
            let (lower, middle, upper) = (lower?, middle?, upper?);
            let all = match bits {
                1 => vec![lower],
                2 => vec![lower, upper],
                _ => vec![lower, middle, upper],
            };
            Ok(if all.iter().all(|time| *time == lower) { vec![lower] } else { all })
        };
        let (reads, programs) = (times("Read")?, times("Program")?);
        let has_kinds = reads.len() > 1 || programs.len() > 1;
        let cells = if has_kinds { ["", "cells=mlc,", "cells=tlc,"][bits - 1] } else { "" };
        let joined = |times: &[u64]| times.iter().map(|ns| format!("{ns}ns")).collect::<Vec<_>>().join("+");
        let width = parameters.count("Flash_Channel_Width")?;
        let rate = parameters.count("Channel_Transfer_Rate")?;
        // Two transfers of the width a cycle, whose time MQSim rounds down to nanoseconds.
        let transfer = page_bytes / width / 2 * 2 * (1000 / rate.max(1));
        let suspend = parameters.word(
            "CMD_Suspension_Support",
            &[
                ("NONE", None),
                ("ERASE", Some("erases")),
                ("PROGRAM", Some("programs")),
                ("PROGRAM_ERASE", Some("both")),
            ],
        )?;
        let times = [parameters.take("Suspend_Erase_Time"), parameters.take("Suspend_Program_Time")];
        if let Some(what) = suspend {
            let [of_erase, of_program] = times.map(|time| time.map_or("0".to_string(), |(text, _)| text));
            let time = if what == "programs" { &of_program } else { &of_erase };
            notes.push(format!(
                "CMD_Suspension_Support is left out: a cache needs the end of each request at once; without cache:.../ add \
                 suspend={what},suspend-time={time}ns behind nand:"
            ));
        }
        let erase = parameters.count("Block_Erase_Latency")?;
        let endurance = parameters.count("Block_PE_Cycles_Limit")?;
        let size = planes * blocks * pages * page_bytes;
        let term = format!(
            "nand:{cells}size={size},page={},pages-per-block={pages},channels={channels},dies={dies},planes={planes_of_die},\
             read={},program={},erase={erase}ns,transfer={transfer}ns,command={COMMANDS},endurance={endurance}",
            flashpath::units::format_size(page_bytes),
            joined(&reads),
            joined(&programs),
        );
        Ok(Flash { term, planes, chips_of_channel, dies_of_chip, blocks_of_plane: blocks, pages, page_bytes })
    }

    /// The option for the plane of a page: none on a drive of one plane.
    fn place(&self, parameters: &mut Parameters, notes: &mut Vec<String>) -> Result<String, Failure> {
        const NAME: &str = "Plane_Allocation_Scheme";
        let (scheme, line) = parameters.take(NAME).unwrap_or_default();
        let mut sorted: Vec<char> = scheme.to_ascii_uppercase().chars().collect();
        sorted.sort_unstable();
        if sorted != ['C', 'D', 'P', 'W'] {
            return Err(wrong(NAME, &scheme, line, "take an order of C, W, D and P, such as CWDP"));
        }
        if self.planes == 1 {
            return Ok(String::new());
        }
        // A chip (W) and a die of it (D) are one number here.
        let lower = scheme.to_ascii_lowercase();
        let one = match (self.chips_of_channel, self.dies_of_chip) {
            (_, 1) => lower.replace('d', "").replace('w', "d"),
            (1, _) => lower.replace('w', ""),
            _ => lower.replace("wd", "d").replace("dw", "d"),
        };
        if one.len() != 3 {
            notes
                .push(format!("{NAME}={scheme} is left out: chips and dies of a chip are neighbours here, as in CWDP"));
            return Ok(String::new());
        }
        Ok(format!(",place={one}"))
    }

    fn all_pages(&self) -> u64 {
        self.planes * self.blocks_of_plane * self.pages
    }
}

/// The translation layer.
fn layer(parameters: &mut Parameters, flash: &Flash, notes: &mut Vec<String>) -> Result<String, Failure> {
    let spare = parameters.number("Overprovisioning_Ratio")?;
    let threshold = parameters.number("GC_Exec_Threshold")?;
    let victim = parameters.word(
        "GC_Block_Selection_Policy",
        &[("GREEDY", "greedy"), ("RGA", "d-choices"), ("RANDOM", "random"), ("RANDOM_P", "random"), ("FIFO", "fifo")],
    )?;
    let choices = flash.blocks_of_plane.ilog2().max(1);
    let victim = if victim == "d-choices" { format!("{victim},d={choices}") } else { victim.to_string() };
    let of_plane = ((threshold * flash.blocks_of_plane as f64) as u64).max(LEAST_FREE) + MAP_BLOCKS;
    let options =
        format!("export={}%,victim={victim},reserve={},ahead=0", (1.0 - spare) * 100.0, of_plane * flash.planes);
    let capacity = parameters.count("CMT_Capacity")?;
    let place = flash.place(parameters, notes)?;
    if parameters.word("Ideal_Mapping_Table", &[("true", true), ("false", false)])? {
        return Ok(format!("page:{options}{place}"));
    }
    if !place.is_empty() {
        notes.push(
            "Plane_Allocation_Scheme is left out: with a map on flash a page goes to the next plane in turn".into(),
        );
    }
    // An entry has a logical and a physical page, and a bit for each sector.
    let sectors = (flash.page_bytes / 512) as f64;
    let entry = ((2.0 * (flash.all_pages() as f64).log2() + sectors) / 8.0).ceil();
    Ok(format!("dftl:{options},table={}", (capacity as f64 / entry).max(1.0) as u64))
}

/// The data cache, in front of the layer.
fn cache(parameters: &mut Parameters) -> Result<String, Failure> {
    parameters.word("Caching_Mechanism", &[("SIMPLE", ()), ("ADVANCED", ())])?;
    let (size, rate) = (parameters.count("Data_Cache_Capacity")?, parameters.count("Data_Cache_DRAM_Data_Rate")?);
    for name in ["Row_Size", "Data_Busrt_Size", "tRCD", "tCL", "tRP"] {
        parameters.take(&format!("Data_Cache_DRAM_{name}"));
    }
    // Two bytes a transfer: MQSim's memory is one channel, one request after the other.
    Ok(format!("cache:size={size},access={}ns/", 4096 * 1000 / (2 * rate)))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The parameters of a drive, as MQSim writes them.
    fn config(changes: &[(&str, &str)]) -> String {
        let mut values = vec![
            ("Memory_Type", "FLASH"),
            ("HostInterface_Type", "NVME"),
            ("Caching_Mechanism", "ADVANCED"),
            ("Data_Cache_Capacity", "268435456"),
            ("Data_Cache_DRAM_Data_Rate", "100"),
            ("Data_Cache_DRAM_tRCD", "13"),
            ("Address_Mapping", "PAGE_LEVEL"),
            ("Ideal_Mapping_Table", "true"),
            ("CMT_Capacity", "2097152"),
            ("Plane_Allocation_Scheme", "CWDP"),
            ("Overprovisioning_Ratio", "0.1270"),
            ("GC_Exec_Threshold", "0.01"),
            ("GC_Block_Selection_Policy", "GREEDY"),
            ("Static_Wearleveling_Enabled", "true"),
            ("Flash_Channel_Count", "4"),
            ("Flash_Channel_Width", "1"),
            ("Channel_Transfer_Rate", "333"),
            ("Chip_No_Per_Channel", "2"),
            ("Flash_Comm_Protocol", "NVDDR2"),
            ("Flash_Technology", "MLC"),
            ("CMD_Suspension_Support", "ERASE"),
            ("Page_Read_Latency_LSB", "75000"),
            ("Page_Read_Latency_CSB", "75000"),
            ("Page_Read_Latency_MSB", "75000"),
            ("Page_Program_Latency_LSB", "750000"),
            ("Page_Program_Latency_CSB", "750000"),
            ("Page_Program_Latency_MSB", "750000"),
            ("Block_Erase_Latency", "3800000"),
            ("Block_PE_Cycles_Limit", "10000"),
            ("Suspend_Erase_Time", "700000"),
            ("Suspend_Program_Time", "100000"),
            ("Die_No_Per_Chip", "1"),
            ("Plane_No_Per_Die", "1"),
            ("Block_No_Per_Plane", "256"),
            ("Page_No_Per_Block", "256"),
            ("Page_Capacity", "8192"),
        ];
        for (name, value) in changes {
            values.retain(|(known, _)| known != name);
            values.push((name, value));
        }
        let lines: Vec<String> = values.iter().map(|(name, value)| format!("<{name}>{value}</{name}>")).collect();
        format!(
            "<?xml version=\"1.0\"?>\n<Execution_Parameter_Set><Device_Parameter_Set>\n{}\n\
             </Device_Parameter_Set></Execution_Parameter_Set>",
            lines.join("\n")
        )
    }

    fn converted(changes: &[(&str, &str)]) -> Converted {
        convert(&config(changes)).unwrap_or_else(|failure| panic!("{changes:?}: {failure:?}"))
    }

    #[test]
    fn a_configuration_is_a_path_of_the_same_drive() {
        let Converted { path, notes } = converted(&[]);
        assert_eq!(
            path,
            "cache:size=268435456,access=20480ns/page:export=87.3%,victim=greedy,reserve=128,ahead=0,place=cdp/\
             nand:size=4294967296,page=8K,pages-per-block=256,channels=4,dies=2,planes=1,read=75000ns,program=750000ns,\
             erase=3800000ns,transfer=24576ns,command=290ns+361ns+220ns,endurance=10000"
        );
        let orders = [("CPWD", ",place=cpd/"), ("pwdc", ",place=pdc/"), ("DWPC", ",place=dpc/")];
        for (scheme, place) in orders {
            let path = converted(&[("Plane_Allocation_Scheme", scheme)]).path;
            assert!(path.contains(place), "{scheme}: {path}");
        }
        assert!(notes.iter().any(|note| note.contains("Static_Wearleveling_Enabled has no effect")), "{notes:?}");
        assert!(notes.iter().any(|note| note.contains("add suspend=erases,suspend-time=700000ns")), "{notes:?}");
        assert_eq!(notes.len(), 3, "{notes:?}");
        let cells = [("Page_Program_Latency_MSB", "1500000"), ("CMD_Suspension_Support", "NONE")];
        assert!(converted(&cells).path.contains("nand:cells=mlc,"), "{:?}", converted(&cells));
        assert!(converted(&cells).path.contains("program=750000ns+1500000ns"), "{:?}", converted(&cells));
        let dftl = [("Ideal_Mapping_Table", "false")];
        assert!(converted(&dftl).path.contains("/dftl:export=87.3%"), "{:?}", converted(&dftl));
        // 2 x 19 bits and 16 sectors: 7 bytes.
        assert!(converted(&dftl).path.contains(",table=299593/"), "{:?}", converted(&dftl));
        let rga = [("GC_Block_Selection_Policy", "RGA")];
        assert!(converted(&rga).path.contains("victim=d-choices,d=8,"), "{:?}", converted(&rga));
    }

    #[test]
    fn what_cannot_be_a_path_is_refused_with_its_line() {
        for (changes, message) in [
            (("GC_Block_Selection_Policy", "RANDOM_PP"), "GC_Block_Selection_Policy is 'RANDOM_PP'"),
            (("Plane_Allocation_Scheme", "CWD"), "Plane_Allocation_Scheme is 'CWD'"),
            (("Memory_Type", "SCM"), "Memory_Type is 'SCM'"),
            (("Block_No_Per_Plane", "-1"), "Block_No_Per_Plane is '-1'"),
            (("Block_No_Per_Plane", "0"), "Block_No_Per_Plane is '0'"),
            (("Page_Capacity", "12288"), "the drive cannot be described"),
            (("Overprovisioning_Ratio", "0.001"), "the drive cannot be described"),
        ] {
            let failure = format!("{:?}", convert(&config(&[changes])).expect_err(message));
            assert!(failure.contains(message), "{failure}");
        }
        for text in ["", "<a/>", "<Execution_Parameter_Set>", "<MQSim_IO_Scenarios></MQSim_IO_Scenarios>"] {
            assert!(convert(text).is_err(), "{text}");
        }
        assert!(convert("<Execution_Parameter_Set></Execution_Parameter_Set>").is_err());
    }
}
