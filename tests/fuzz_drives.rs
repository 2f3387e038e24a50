//! Drives of a few pages with odd options keep every guarantee under any workload. They are drawn at random, by a
//! generator with a fixed seed. The same check serves the coverage-guided fuzzer in `fuzz/`.

use flashpath::random::Random;
use properties::check_drive;

#[path = "properties/drives.rs"]
mod properties;

const DRIVES: u64 = 2000;

const OF_PAGE_AND_DFTL: [&str; 16] = [
    "victim=fifo",
    "victim=random",
    "victim=d-choices,d=1",
    "victim=cost-benefit",
    "frontiers=shared",
    "streams=content",
    "streams=hint,hints=1",
    "streams=hint,hints=5",
    "reserve=1",
    "reserve=9",
    "wear=none",
    "wear=static,wear-gap=1",
    "wear=static,wear-gap=7",
    "background=30%",
    "wear=static,wear-gap=2,victim=fifo,frontiers=shared",
    "streams=content,frontiers=shared,reserve=1",
];
const OF_PAGE: [&str; 5] = [
    "streams=hint,hints=2,spare-shares=10%+90%",
    "wear=dynamic",
    "place=cdp",
    "place=pdc,victim=fifo,frontiers=shared",
    "place=dpc,streams=content,victim=random,background=20%",
];
const OF_DFTL: [&str; 8] = [
    "table=1",
    "table=2,protected=0%",
    "table=3,protected=99%",
    "table=40,entry=8",
    "table=7,frontiers=shared",
    "table=5,streams=content",
    "table=9,wear=static,wear-gap=1",
    "entry=5",
];
const OF_FAST: [&str; 4] = ["random-logs=1", "random-logs=2", "random-logs=6", ""];
const OF_SUPERBLOCK: [&str; 8] = [
    "blocks=1,updates=1",
    "blocks=1",
    "blocks=3,updates=2,cache=1",
    "blocks=7,updates=4096,group=4096",
    "cache=2,group=3,levels=8",
    "blocks=40,updates=1,reserve=1",
    "reserve=5",
    "",
];
const WORK: [&str; 8] = [
    "uniform",
    "sequential:writes=3x",
    "zipf:theta=1.1,discards=20%,reads=10%",
    "hotcold:r=0.1,f=0.9,discards=1%",
    "uniform:request=512,reads=30%",
    "sequential:request=20K,discards=10%",
    "uniform:request=64K,discards=40%",
    "zipf:theta=2,scatter=off,span=20%",
];

fn pick<'t>(random: &mut Random, from: &[&'t str]) -> &'t str {
    from[random.below(from.len() as u64) as usize]
}

/// A drive of 64 KiB to 4 MiB, with low or unlimited endurance.
fn drive(layer: &str, random: &mut Random) -> String {
    let own: &[&str] = match layer {
        "page" => &OF_PAGE,
        "dftl" => &OF_DFTL,
        "fast" => &OF_FAST,
        _ => &OF_SUPERBLOCK,
    };
    let is_page_level = ["page", "dftl"].contains(&layer) && random.below(3) > 0;
    let mut options = pick(random, if is_page_level { &OF_PAGE_AND_DFTL } else { own }).to_string();
    options += if options.is_empty() { "" } else { "," };
    let share = if random.below(4) == 0 {
        format!("op={}%", [5, 12, 50, 300, 2000][random.below(5) as usize])
    } else {
        format!("export={}%", 2 + random.below(97))
    };
    let size = (64 << random.below(7)) + 4 * random.below(64);
    let shape = ["", ",channels=2", ",channels=3,planes=2", ",dies=4,planes=3"][random.below(4) as usize];
    let pages_per_block = [2, 3, 5, 8, 16, 33, 64, 100][random.below(8) as usize];
    let endurance = [2, 30, 1_000_000][random.below(3) as usize];
    let page = pick(random, &["2K", "4K", "16K"]);
    format!(
        "{layer}:{options}{share}/nand:size={size}K,page={page},pages-per-block={pages_per_block}{shape},endurance={endurance}"
    )
}

/// The same with a write buffer, with units smaller than a page, or with both: a drive large enough for them.
fn drive_of_units(layer: &str, random: &mut Random) -> String {
    let drive = drive(layer, random);
    let (layer_term, nand) = drive.split_once('/').unwrap();
    let buffer = match random.below(4) {
        0 => String::new(),
        1 => format!(",buffer={}K,buffer-policy=volatile", 8 << random.below(7)),
        _ => format!(",buffer={}K", 8 << random.below(7)),
    };
    let page = nand.split("page=").nth(1).and_then(|rest| rest.split(',').next()).unwrap();
    let pages =
        pick(random, &["page=4K,unit=2K", "page=8K,unit=2K", "page=16K,unit=4K", "page=16K,unit=2K", "page=16K"]);
    // Room for the open pages of flash of all planes, and for padding.
    let size = nand.split("size=").nth(1).and_then(|rest| rest.split('K').next()).unwrap();
    let larger = format!("size={}K", size.parse::<u64>().unwrap() * 4 + 2048);
    let nand = nand.replace(&format!("page={page}"), pages).replace(&format!("size={size}K"), &larger);
    format!("{layer_term}{buffer}/{nand}")
}

/// The same, on which reads go first, and which collects in steps if it can.
fn drive_beside_hosts(layer: &str, random: &mut Random) -> String {
    let drive = if random.below(2) == 0 { drive(layer, random) } else { drive_of_units(layer, random) };
    let (layer_term, nand) = drive.split_once('/').unwrap();
    let pace = match layer {
        "page" | "dftl" if random.below(4) > 0 => format!(",pace={}", [1, 2, 7, 40, 1000][random.below(5) as usize]),
        _ => String::new(),
    };
    let ahead =
        if pace.is_empty() || random.below(3) > 0 { String::new() } else { format!(",ahead={}", random.below(9)) };
    let suspend = pick(random, &["waiting", "erases", "programs,suspend-time=1us", "both,suspend-time=400us", "both"]);
    let reads = [1, 2, 16, 1000][random.below(4) as usize];
    let suspension = format!(",suspend={suspend},suspend-reads={reads}");
    // Dies with shared planes need some; a register is refused beside a suspension.
    let planes = ["", "single", "multi", "multi-same-block"][random.below(4) as usize];
    let commands = match planes {
        "" => String::new(),
        _ if !nand.contains("planes=") => String::new(),
        planes => format!(",plane-commands={planes}"),
    };
    let others = if random.below(3) == 0 { ",cache-program=on" } else { &suspension };
    format!("{layer_term}{pace}{ahead}/{nand}{commands}{others}")
}

/// The same with cells of several bits, mostly with a cache in SLC mode.
fn drive_of_cells(layer: &str, random: &mut Random) -> String {
    let drive = if random.below(2) == 0 { drive(layer, random) } else { drive_of_units(layer, random) };
    let (layer_term, nand) = drive.split_once('/').unwrap();
    let cells = [("mlc", 2), ("tlc", 3), ("qlc", 4)][random.below(3) as usize];
    let pages = nand.split("pages-per-block=").nth(1).and_then(|rest| rest.split(',').next()).unwrap();
    let whole = cells.1 * [1, 2, 3, 8, 24][random.below(5) as usize];
    let nand = nand.replace(&format!("pages-per-block={pages}"), &format!("pages-per-block={whole}"));
    let times = pick(random, &["", ",read=40us+60us,program=1ms", ",read=0us,program=400us+900us"]);
    let times = if times.is_empty() || cells.1 == 2 { times } else { ",read=40us" };
    let is_whole = layer_term.contains("buffer=") && !layer_term.contains("volatile") && random.below(2) == 0;
    let (times, passes) =
        if is_whole { ("", format!(",program-passes={}", 1 + random.below(2))) } else { (times, String::new()) };
    let can_cache = ["page", "dftl"].contains(&layer) && !layer_term.contains("frontiers=shared");
    let cache = match random.below(5) {
        0 => String::new(),
        _ if !can_cache => String::new(),
        kind => {
            let kind = if kind == 1 { "static" } else { "dynamic" };
            let share = [2, 10, 40, 90][random.below(4) as usize];
            let full = pick(random, &["bypass", "fold"]);
            format!(",slc-cache={kind},slc-share={share}%,slc-full={full}")
        }
    };
    let slc_endurance = [3, 40, 1_000_000][random.below(3) as usize];
    format!("{layer_term}{cache}/{nand},cells={}{times}{passes},slc-endurance={slc_endurance}", cells.0)
}

#[test]
fn drives_of_several_bits_a_cell_lose_no_data_and_fail_only_when_worn_out() {
    for layer in ["page", "dftl", "fast", "superblock"] {
        let mut random = Random::new(4, layer);
        let (mut run, mut cached) = (0, 0);
        for seed in 0..DRIVES {
            let path = drive_of_cells(layer, &mut random);
            let work = pick(&mut random, &WORK);
            let is_made = u64::from(check_drive(&path, work, seed));
            (run, cached) = (run + is_made, cached + is_made * u64::from(path.contains("slc-cache")));
        }
        println!("{layer}: {run} of {DRIVES} drives could be made, {cached} with a cache");
        assert!(run > DRIVES / 40, "of {DRIVES} drives of {layer}, {run} could be made");
        assert!(cached > DRIVES / 100 || ["fast", "superblock"].contains(&layer), "{cached} drives of {layer}");
    }
}

#[test]
fn tiny_drives_with_odd_options_lose_no_data_and_fail_only_when_worn_out() {
    for layer in ["page", "dftl", "fast", "superblock"] {
        let mut random = Random::new(1, layer);
        let mut run = 0;
        for seed in 0..DRIVES {
            let path = drive(layer, &mut random);
            let work = pick(&mut random, &WORK);
            run += u64::from(check_drive(&path, work, seed));
        }
        println!("{layer}: {run} of {DRIVES} drives could be made");
        assert!(run > DRIVES / 10, "of {DRIVES} drives of {layer}, {run} could be made");
    }
}

#[test]
fn drives_with_buffers_and_units_lose_no_data_and_fail_only_when_worn_out() {
    for layer in ["page", "dftl", "fast", "superblock"] {
        let mut random = Random::new(2, layer);
        let mut run = 0;
        for seed in 0..DRIVES / 2 {
            let path = drive_of_units(layer, &mut random);
            let work = pick(&mut random, &WORK);
            run += u64::from(check_drive(&path, work, seed));
        }
        println!("{layer}: {run} of {} drives could be made", DRIVES / 2);
        assert!(run > DRIVES / 40, "of {} drives of {layer}, {run} could be made", DRIVES / 2);
    }
}

#[test]
fn drives_that_collect_beside_hosts_lose_no_data_and_fail_only_when_worn_out() {
    for layer in ["page", "dftl", "fast", "superblock"] {
        let mut random = Random::new(3, layer);
        let mut run = 0;
        for seed in 0..DRIVES / 2 {
            let path = drive_beside_hosts(layer, &mut random);
            let work = pick(&mut random, &WORK);
            run += u64::from(check_drive(&path, work, seed));
        }
        println!("{layer}: {run} of {} drives could be made", DRIVES / 2);
        assert!(run > DRIVES / 40, "of {} drives of {layer}, {run} could be made", DRIVES / 2);
    }
}

/// The same on flash with errors.
fn drive_with_errors(random: &mut Random) -> String {
    let drive = match random.below(3) {
        0 => drive("page", random),
        1 => drive_of_units("page", random),
        _ => drive_beside_hosts("page", random),
    };
    let rber = pick(random, &["0", "1e-3", "5.5e-3", "7e-3", "9e-3", "0.3"]);
    let failures = pick(random, &["0", "1%", "30%", "99%"]);
    let erases = pick(random, &["0", "2%", "50%"]);
    let upkeep =
        pick(random, &["", ",refresh=30%", ",refresh=80%", ",refresh=70%,scrub=1ms", ",refresh=50%,scrub=100ms"]);
    let retry = random.below(4);
    let disturb = pick(random, &["0", "1", "10000"]);
    format!(
        "{drive},errors=on,rber={rber},retry={retry},read-disturb={disturb},program-failures={failures},erase-failures={erases}{upkeep}"
    )
}

#[test]
fn drives_with_errors_return_no_wrong_data_and_end_read_only() {
    let mut random = Random::new(4, "errors");
    let mut run = 0;
    for seed in 0..DRIVES / 4 {
        let path = drive_with_errors(&mut random);
        let work = pick(&mut random, &WORK);
        run += u64::from(check_drive(&path, work, seed));
    }
    println!("{run} of {} drives could be made", DRIVES / 4);
    assert!(run > DRIVES / 80, "of {} drives {run} could be made", DRIVES / 4);
}

#[test]
fn drives_that_once_stalled_continue() {
    for (path, work, seed) in [
        // A page of the map took the last erased block, although another plane had space: the next collection found
        // none.
        (
            "dftl:table=2,protected=0%,export=66%/nand:size=1260K,page=2K,pages-per-block=2,channels=3,planes=2,endurance=30",
            "uniform:request=512,reads=30%",
            657,
        ),
        // Levelling and updates of the map took the gain of each collection, and it never ended.
        (
            "dftl:table=9,wear=static,wear-gap=1,op=12%/nand:size=4228K,page=2K,pages-per-block=8,channels=2,endurance=1000000",
            "uniform:request=512,reads=30%",
            10841,
        ),
        // Copies that shared the host's frontier filled a block, which was then neither open nor a candidate.
        (
            "dftl:wear=static,wear-gap=2,victim=fifo,frontiers=shared,export=98%/nand:size=2296K,page=2K,pages-per-block=2,endurance=1000000",
            "zipf:theta=2,scatter=off,span=20%",
            11688,
        ),
    ] {
        assert!(check_drive(path, work, seed), "{path}");
    }
}

const OF_FDP: [&str; 10] = [
    "fdp=1",
    "fdp=2,reserve=1",
    "fdp=3,fdp-persistent=1,fdp-default=2",
    "fdp=2,fdp-isolation=persistent,victim=fifo",
    "fdp=4,streams=content,wear=none",
    "fdp=1,fdp-groups=2,reserve=1",
    "fdp=2,fdp-groups=2,victim=cost-benefit",
    "fdp=2,fdp-groups=3,fdp-persistent=0",
    "fdp=5,victim=d-choices,d=2,background=30%",
    "fdp=2,streams=none,victim=random",
];

/// The drives of the others, with reclaim units.
#[test]
fn drives_with_reclaim_units_lose_no_data_and_fail_only_when_worn_out() {
    let mut random = Random::new(4, "fdp");
    let mut run = 0;
    let work = [&WORK[..], &["cache:small=30%,region=32K", "cache:small=5%,region=1M,discards=5%,reads=10%"]].concat();
    for seed in 0..DRIVES {
        let drive = if random.below(2) == 0 { drive("fast", &mut random) } else { drive_of_units("fast", &mut random) };
        // Its own options are those of fast: the share, a buffer and the flash stay.
        let (term, nand) = drive.split_once('/').unwrap();
        let kept: Vec<&str> = term
            .split([':', ','])
            .filter(|option| ["op=", "export=", "buffer"].iter().any(|kept| option.starts_with(kept)))
            .collect();
        let path = format!("page:{},{}/{nand}", kept.join(","), pick(&mut random, &OF_FDP));
        run += u64::from(check_drive(&path, pick(&mut random, &work), seed));
    }
    println!("fdp: {run} of {DRIVES} drives could be made");
    assert!(run > DRIVES / 10, "of {DRIVES} drives with units, {run} could be made");
}
