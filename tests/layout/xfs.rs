//! XFS, made by mkfs.xfs and read by xfs_db.

use crate::image::{Image, has_programs};
use flashpath::layout::{FileSystem, Journal, Region};

fn number(image: &Image, structure: &str, field: &str) -> u64 {
    let arguments = ["-r", "-c", structure, "-c", &format!("print {field}")];
    let text = image.run("xfs_db", &arguments);
    text.trim().split(" = ").nth(1).unwrap_or_else(|| panic!("{text}")).parse().unwrap()
}

#[test]
fn log_and_headers_match_xfs_db() {
    if !has_programs(&["mkfs.xfs", "xfs_db"]) {
        return;
    }
    let kinds: [(&[&str], u64); 5] = [
        (&[], 512 << 20),
        (&["-d", "agcount=7"], 600 << 20),
        (&["-b", "size=1024", "-d", "agcount=5"], 500 << 20),
        (&["-s", "size=4096", "-l", "size=80m"], 2 << 30),
        (&["-l", "agnum=2"], 1 << 30),
    ];
    for (kind, size_bytes) in kinds {
        let image = Image::make(size_bytes, "mkfs.xfs", &[&["-q", "-f"], kind].concat());
        let layout = image.layout();
        assert_eq!((layout.file_system, layout.journal), (FileSystem::Xfs, Journal::Inside));
        let block_bytes = number(&image, "sb 0", "blocksize");
        assert_eq!(layout.block_bytes, block_bytes);
        let [start, blocks] = ["logstart", "logblocks"].map(|field| number(&image, "sb 0", field));
        // xfs_db converts the log's block number to an address on the device.
        let text = image.run("xfs_db", &["-r", "-c", &format!("convert fsblock {start} daddr")]);
        let sector: u64 = text.split(['(', ')']).nth(1).unwrap().parse().unwrap();
        let mut log = layout.regions.of(Region::Journal);
        assert_eq!(log.next(), Some(sector * 512..sector * 512 + blocks * block_bytes), "{kind:?}");
        assert_eq!(log.next(), None);
        let groups = number(&image, "sb 0", "agcount");
        assert_eq!(layout.regions.of(Region::Metadata).count() as u64, groups, "{kind:?}");
        for group in 0..groups {
            let text = image.run("xfs_db", &["-r", "-c", &format!("agf {group}"), "-c", "daddr"]);
            let sector: u64 = text.trim().rsplit(' ').next().unwrap().parse().unwrap();
            assert_eq!(layout.regions.at(sector * 512), Some(Region::Metadata), "{kind:?}, group {group}");
        }
    }
}

#[test]
fn an_external_log_is_recognised() {
    if !has_programs(&["mkfs.xfs"]) {
        return;
    }
    let log = Image::make(512 << 20, "true", &[]);
    let option = format!("logdev={},size=64m", log.path().display());
    let image = Image::make(512 << 20, "mkfs.xfs", &["-q", "-f", "-l", &option]);
    let layout = image.layout();
    assert_eq!((layout.journal, layout.regions.bytes_of(Region::Journal)), (Journal::External, 0));
}
