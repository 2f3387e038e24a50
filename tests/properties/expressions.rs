//! Properties of any text that is parsed as a path or as a generator.

use flashpath::expression::{ExpressionError, parse_term};
use flashpath::run::Path;
use flashpath::workload::generator::generator;

/// The number of operations of a generator that are checked.
const OPERATIONS: usize = 64;

/// Valid expressions that together use every station, generator and kind of value.
pub const PATHS: [&str; 15] = [
    "page/nand",
    "page:op=7%,victim=fifo/nand:size=4G,channels=4,dies=2",
    " page : op = 28% , streams = content / nand : preset = tlc ",
    "page:victim=d-choices,d=3,streams=hint,hints=3,spare-shares=20%+30%+50%/nand:size=1.5G,timing=off",
    "page:wear=static,wear-gap=9,reserve=5,background=2%/nand:preset=vma,read=2.5us,endurance=7",
    "page:victim=cost-benefit,frontiers=shared/nand:page=16K,pages-per-block=1077,planes=2",
    "page:export=0.75,wear=none,victim=random/nand:preset=ssd-h,timing=on,erase=1.5s",
    "page:victim=greedy,streams=none/nand:preset=ssd-m,size=64GiB,program=0ns",
    "page:wear=dynamic/nand:preset=ssd-l,timing,transfer=3ms",
    "dftl:table=1,protected=99%,entry=8/nand:page=2K,size=64M",
    "dftl:op=12.5%,streams=content,wear=static,victim=d-choices/nand:preset=vma,size=1G",
    "fast/nand:size=100M,pages-per-block=100",
    "fast:random-logs=3,op=28%/nand:channels=4,dies=2,planes=2",
    "superblock:blocks=3,updates=4096,group=1,levels=8/nand:size=1G",
    "superblock:export=99%,cache=1,reserve=7/nand:preset=tlc",
];
/// Texts that are not paths, each for another reason.
pub const NO_PATHS: [&str; 3] = ["page/nand:size=16M", "nand/page+nand:size=1G/page", "page:pgae=1/nnad"];
/// As [`PATHS`], for generators.
pub const GENERATORS: [&str; 9] = [
    "sequential",
    "uniform:writes=6x,request=16K",
    "uniform:reads=50%,discards=0.1,writes=1M",
    "zipf:theta=1.2,scatter=off,span=50%",
    "zipf:theta=0,content=journal",
    "pareto:h=0.3,scatter,content=metadata",
    "normal:deviation=10%,request=512",
    "hotcold:r=0.1,f=90%,scatter=on,reads=100%",
    " hotcold : r = 20% , writes = 1.5x ",
];

/// Parses `text` as a path: an error points into it, and a path that is written out in full is the same path. No drive
/// is made: a path of a petabyte is parsed like any other.
pub fn check_path(text: &str) -> bool {
    let path = match Path::read(text) {
        Err(error) => {
            check_error(text, &error);
            return false;
        }
        Ok(path) => path,
    };
    let again = Path::read(&path.in_full).unwrap_or_else(|error| panic!("written out in full, {text:?} is {error}"));
    // They differ only in their source text.
    let again = Path { text: path.text.clone(), ..again };
    assert_eq!(format!("{again:?}"), format!("{path:?}"));
    if let Some(drive) = path.drive() {
        assert!(drive.exported_bytes() > 0 && drive.exported_bytes() < drive.nand.geometry.raw_bytes());
    }
    true
}

/// Parses `text` as a generator for a device of `device_bytes`: an error points into it, and requests lie on the
/// device. Its name in reports is equivalent.
pub fn check_generator(text: &str, device_bytes: u64) -> bool {
    let mut workload = match parse_term(text).and_then(|term| generator(&term, device_bytes, 1)) {
        Err(error) => {
            check_error(text, &error);
            return false;
        }
        Ok(workload) => workload,
    };
    let mut operations = Vec::new();
    while operations.len() < OPERATIONS && workload.next_batch(&mut operations, OPERATIONS / 2).unwrap() > 0 {}
    assert!(!operations.is_empty(), "{text:?} asks for nothing");
    for operation in &operations {
        assert!(operation.length_bytes >= 512, "{operation:?}");
        let end = operation.offset_bytes.checked_add(operation.length_bytes);
        assert!(end.is_some_and(|end| end <= device_bytes), "{operation:?} leaves {device_bytes} bytes");
    }
    assert!(workload.progress().is_some_and(|progress| (0.0..=1.0).contains(&progress)));
    for offset in [0, device_bytes / 2, device_bytes] {
        workload.stream_at(offset);
    }
    let name = workload.name().to_string();
    let term = parse_term(&name).unwrap_or_else(|error| panic!("{text:?} is called {error}"));
    let mut again = generator(&term, device_bytes, 1).unwrap_or_else(|error| panic!("{text:?} is called {error}"));
    let mut same = Vec::new();
    while same.len() < OPERATIONS && again.next_batch(&mut same, OPERATIONS / 2).unwrap() > 0 {}
    assert_eq!(same, operations, "{text:?} and {name:?}");
    true
}

/// Checks that an error points at characters of `text`, can be printed, and has a message and a correction.
fn check_error(text: &str, error: &ExpressionError) {
    assert_eq!(error.source_text, text);
    assert!(text.get(error.span.clone()).is_some(), "{:?} are no characters of {text:?}", error.span);
    assert!(!error.message.is_empty() && !error.help.is_empty(), "{error:?}");
    let shown = error.to_string();
    assert!(shown.contains(&error.message) && shown.contains('^') && shown.ends_with(&error.help), "{shown}");
}
