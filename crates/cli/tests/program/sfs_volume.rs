//! Volumes of sfs on images: fsck with e2fsck's exit bits, and inspect as text, JSON and picture.

use super::bench::Bench;
use std::fs::OpenOptions;
use std::os::unix::fs::FileExt;

const NEW: &str = "sfs/conv:image=A,size=64M";
const PATH: &str = "sfs/conv:image=A";

fn made() -> Bench {
    let bench = Bench::new();
    let made = bench.flashpath(&["mkfs", NEW, "--seed", "1"]);
    assert_eq!(made.code, Some(0), "{made:?}");
    bench
}

/// Changes bytes of the image.
fn put(bench: &Bench, offset: u64, bytes: &[u8]) {
    let file = OpenOptions::new().write(true).open(bench.path("A")).unwrap();
    file.write_all_at(bytes, offset).unwrap();
}

#[test]
fn a_new_volume_is_clean_and_a_damaged_superblock_is_found_and_repaired() {
    let bench = made();
    let image = || std::fs::read(bench.path("A")).unwrap();
    let clean = bench.flashpath(&["fsck", PATH]);
    assert!(clean.code == Some(0) && clean.stdout == "sfs/conv:image=A: clean\n", "{clean:?}");
    put(&bench, 100, &[0x55; 8]);
    let before = image();
    let checked = bench.flashpath(&["fsck", "-n", PATH]);
    assert_eq!(checked.code, Some(4), "{checked:?}");
    assert!(checked.stdout.starts_with("can be repaired: the superblock at block 0: its checksum is"), "{checked:?}");
    assert!(image() == before, "a check changes nothing");
    let repaired = bench.flashpath(&["fsck", PATH]);
    assert!(repaired.code == Some(1) && repaired.stdout.starts_with("repaired: the superblock"), "{repaired:?}");
    assert_eq!(bench.flashpath(&["fsck", PATH]).code, Some(0));
}

#[test]
fn a_volume_on_zones_is_checked_too() {
    let bench = Bench::new();
    let made = bench.flashpath(&["mkfs", "sfs/zns:image=A,size=128M,zone=1M", "--seed", "1"]);
    assert_eq!(made.code, Some(0), "{made:?}");
    let clean = bench.flashpath(&["fsck", "sfs/zns:image=A"]);
    assert_eq!(clean.code, Some(0), "{clean:?}");
    assert!(bench.flashpath(&["inspect", "sfs/zns:image=A"]).stdout.contains("segments of 1M"));
}

/// The refusal named as many segments as needed as there were.
#[test]
fn too_many_segments_are_refused_with_a_size_that_works() {
    let bench = Bench::new();
    for (size, advised) in [("512M", "256K"), ("4G", "512K")] {
        let made =
            |segment| bench.flashpath(&["mkfs", &format!("sfs:segment={segment}/conv:image={size},size={size}")]);
        let refused = made("96K");
        let words = refused.stderr.split_whitespace().collect::<Vec<_>>().join(" ");
        let says = format!("must fit into one of them: use larger segments, such as segment={advised}");
        assert!(refused.code != Some(0) && words.replace("│ ", "").contains(&says), "{refused:?}");
        assert_eq!(made(advised).code, Some(0));
    }
}

#[test]
fn images_without_a_volume_are_refused_with_the_right_exit_bit() {
    let bench = made();
    for (path, code, why) in [
        ("sfs/page/nand:size=1G", 16, "storage in memory is new in each run"),
        ("sfs/conv:image=missing", 8, "missing"),
        ("sfs:segment=1M/conv:image=A", 8, "segment"),
        ("sfs/", 16, "sfs"),
    ] {
        let refused = bench.flashpath(&["fsck", path]);
        assert!(refused.code == Some(code) && refused.stderr.contains(why), "{path}: {refused:?}");
    }
    // Cut off.
    OpenOptions::new().write(true).open(bench.path("A")).unwrap().set_len(1 << 20).unwrap();
    let refused = bench.flashpath(&["fsck", PATH]);
    assert!(refused.code == Some(8) && refused.stderr.contains("16384 blocks, and the device has 256"), "{refused:?}");
    // Both superblocks are erased, so that no version can be read.
    let bench = made();
    put(&bench, 64, &[1; 8]);
    let bytes = std::fs::read(bench.path("A")).unwrap();
    let second = (1..64).map(|block| block * 4096).find(|at| &bytes[*at..*at + 8] == b"FLASHSFS").unwrap();
    put(&bench, second as u64 + 64, &[1; 8]);
    let refused = bench.flashpath(&["fsck", PATH]);
    assert!(refused.code == Some(4) && refused.stderr.contains("no superblock can be used"), "{refused:?}");
    put(&bench, 0, &vec![0x5a; 1 << 20]);
    let refused = bench.flashpath(&["fsck", PATH]);
    assert!(refused.code == Some(8) && refused.stderr.contains("holds no volume of sfs"), "{refused:?}");
}

#[test]
fn an_image_that_is_in_use_is_refused() {
    let bench = made();
    let holds = std::fs::File::open(bench.path("A")).unwrap();
    holds.lock().unwrap();
    for arguments in [&["fsck", PATH, "--wait", "0"][..], &["fsck", "-n", PATH, "--wait", "0"], &["inspect", PATH]] {
        let refused = bench.flashpath(arguments);
        assert!(refused.code != Some(0) && refused.stderr.contains("in use"), "{refused:?}");
    }
}

#[test]
fn inspect_shows_segments_and_groups_as_text_json_and_picture() {
    let bench = made();
    let text = bench.flashpath(&["inspect", PATH, "--segments"]).stdout;
    assert!(text.starts_with("volume of 255 segments of 256K") && text.contains("unmounted"), "{text}");
    assert!(text.contains("metadata") && text.lines().count() > 255, "{text}");
    let json = bench.flashpath(&["inspect", PATH, "--json", "-"]).stdout;
    let json: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert_eq!((json["segments"].as_array().unwrap().len(), json["findings"].as_u64()), (255, Some(0)));
    let drawn = bench.flashpath(&["inspect", PATH, "--picture", "map.svg"]);
    assert!(drawn.code == Some(0) && drawn.stdout.is_empty(), "{drawn:?}");
    let svg = std::fs::read_to_string(bench.path("map.svg")).unwrap();
    assert!(svg.starts_with("<svg") && svg.matches("<rect").count() > 255 && svg.contains("metadata"));
}
