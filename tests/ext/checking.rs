//! `fsck` against e2fsck: which volumes are clean, and which are not.
//!
//! `EXT_DAMAGED` sets the number of damaged images.

use crate::image::{Image, call, can_mount, has_e2fsprogs};
use crate::reading::fill;
use crate::work::Work;
use flashpath::fs::station::Access;
use flashpath::layout::{Layout, Region};
use flashpath::random::Random;
use flashpath::run::{OpenError, Path, check_file_system};
use std::fs::{self, OpenOptions};
use std::os::unix::fs::FileExt;

/// What this program finds; `None` if nothing. A volume that cannot be opened is damaged.
fn ours(image: &Image) -> Option<String> {
    let path = Path::read(&format!("ext/conv:image={}", image.text())).unwrap();
    match check_file_system(&path) {
        Ok(findings) if findings.is_empty() => None,
        Ok(findings) => Some(findings.iter().map(|finding| finding.what.as_str()).collect::<Vec<_>>().join("\n")),
        Err(error @ OpenError::FileSystem { .. }) => Some(error.to_string()),
        Err(error) => panic!("{error}"),
    }
}

fn worked(mke2fs: &[&str], calls: u32) -> Image {
    let image = Image::of_bytes(16 << 20);
    image.mke2fs(mke2fs);
    let volume = image.volume("", Access::IfWhole);
    let mut work = Work::new(31);
    (0..calls).for_each(|_| work.step(&*volume));
    call(|call| volume.unmount(call)).unwrap();
    image
}

const KINDS: [&[&str]; 3] = [
    &["-t", "ext4", "-b", "1024"],
    &["-t", "ext4", "-b", "1024", "-O", "^metadata_csum,^64bit"],
    &["-t", "ext3", "-b", "1024"],
];

#[test]
fn a_volume_that_e2fsck_calls_clean_is_clean() {
    if !can_mount() {
        return;
    }
    for mke2fs in KINDS {
        let image = worked(mke2fs, 1500);
        image.check();
        assert_eq!(ours(&image), None, "{mke2fs:?}");
    }
    for mke2fs in [
        &["-t", "ext4"][..],
        &["-t", "ext4", "-O", "metadata_csum_seed,orphan_file,meta_bg,^resize_inode"],
        &["-t", "ext3"],
    ] {
        let image = Image::of_bytes(128 << 20);
        image.mke2fs(mke2fs);
        let mounted = image.mount("");
        fill(&mounted.directory, 2000, true);
        drop(mounted);
        image.check();
        assert_eq!(ours(&image), None, "{mke2fs:?}, filled by the kernel");
    }
}

/// Flips some bits of a byte of metadata.
fn damage(image: &Image, places: &[std::ops::Range<u64>], random: &mut Random) -> String {
    let file = OpenOptions::new().read(true).write(true).open(image.path()).unwrap();
    loop {
        let range = &places[random.below(places.len() as u64) as usize];
        let at = range.start + random.below(range.end - range.start);
        let mut byte = [0];
        file.read_exact_at(&mut byte, at).unwrap();
        // Most of metadata is empty: what is there is damaged rather.
        if byte[0] == 0 && random.below(8) > 0 {
            continue;
        }
        let flip = 1 << random.below(8);
        file.write_all_at(&[byte[0] ^ flip], at).unwrap();
        return format!("byte {at}: {:#04x} for {:#04x}", byte[0] ^ flip, byte[0]);
    }
}

#[test]
fn a_damaged_volume_is_clean_for_this_program_if_it_is_for_e2fsck() {
    if !has_e2fsprogs() {
        return;
    }
    let count: u64 = std::env::var("EXT_DAMAGED").map_or(24, |count| count.parse().expect("a number"));
    for mke2fs in KINDS {
        let image = worked(mke2fs, 600);
        let whole = fs::read(image.path()).unwrap();
        let mut read = |offset: u64, buffer: &mut [u8]| {
            buffer.copy_from_slice(&whole[offset as usize..offset as usize + buffer.len()]);
            Ok(())
        };
        let layout = Layout::read_with_files(&mut read, whole.len() as u64).unwrap();
        let metadata = layout.regions.iter().filter(|(_, region)| *region == Region::Metadata);
        let places: Vec<_> = metadata.map(|(range, _)| range).collect();
        let mut random = Random::new(17, "damage");
        let (mut differ, mut damaged) = (Vec::new(), 0);
        for number in 0..count {
            fs::write(image.path(), &whole).unwrap();
            let what = damage(&image, &places, &mut random);
            let (ours, theirs) = (ours(&image), image.findings());
            damaged += u64::from(theirs.is_some());
            if ours.is_some() != theirs.is_some() {
                differ.push(format!("{number}, {what}:\n  ours {ours:?}\n  theirs {theirs:?}"));
            }
        }
        assert!(damaged > count / 4, "{damaged} of {count} were damaged");
        assert!(differ.is_empty(), "{mke2fs:?}: {} of {count} differ: {}", differ.len(), differ.join("\n"));
    }
}
