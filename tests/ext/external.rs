//! Journals on a device of their own: pairs made here and by mke2fs, with dirty journals in either direction, and what does
//! not belong together.

use crate::image::{Image, call, can_mount, has_e2fsprogs, program, run};
use crate::pair::{LoopDevice, Pair};
use crate::reading::fill;
use crate::replay::needs_recovery;
use crate::walk::{assert_same, of_directory, of_volume};
use crate::work::Work;
use flashpath::fs::station::Access;
use flashpath::run::{Path, check_file_system, inspect_file_system, make_volume};
use std::fs::{self, OpenOptions};
use std::os::unix::fs::FileExt;

/// The fields that dumpe2fs prints of a volume.
fn said_of(image: &Image) -> String {
    String::from_utf8(run("dumpe2fs", &["-h", &image.text()]).stdout).unwrap()
}

#[test]
fn a_pair_made_here_is_clean_for_e2fsck_and_shows_what_dumpe2fs_shows() {
    if !has_e2fsprogs() {
        return;
    }
    for (options, volume, journal) in [("", "64M", "16M"), (":block=1K", "32M", "4M"), (":journal-size=4M", "1G", "8M")]
    {
        let pair = Pair::of_ours(volume, journal, options);
        pair.check();
        let path = pair.path("");
        assert_eq!(check_file_system(&path).unwrap(), [], "{options}");
        let shown = inspect_file_system(&path).unwrap();
        let said = said_of(&pair.volume);
        let uuid = said.lines().find_map(|line| line.strip_prefix("Journal UUID:")).expect("it has one").trim();
        assert!(shown.json.contains(&format!("\"device\": \"{uuid}\"")), "{options}: {uuid}: {}", shown.json);
        let said = String::from_utf8(run("dumpe2fs", &[&pair.journal.text()]).stdout).unwrap();
        assert!(said.contains(&format!("Filesystem UUID:          {uuid}")), "{options}: {said}");
        let of_volume = said_of(&pair.volume);
        let own = of_volume.lines().find_map(|line| line.strip_prefix("Filesystem UUID:")).expect("it has one").trim();
        assert!(said.contains(&format!("Journal users:            {own}")), "{options}: {said}");
    }
}

#[test]
fn an_external_journal_that_the_kernel_left_dirty_is_replayed() {
    if !can_mount() {
        return;
    }
    for (block, mke2fs, options) in [
        ("4096", &["-t", "ext4"][..], ""),
        ("1024", &["-t", "ext4"], ",data=journal"),
        ("4096", &["-t", "ext4", "-O", "^64bit,^metadata_csum"], ",data=writeback"),
    ] {
        let pair = Pair::of_mke2fs(128 << 20, 32 << 20, block, mke2fs);
        let mounted = pair.mount(options);
        let directory = &mounted.volume.directory;
        fill(directory, 300, true);
        fs::remove_dir_all(directory.join("many")).unwrap();
        rustix::fs::sync();
        fs::write(directory.join("after"), vec![5; 3_000_000]).unwrap();
        fs::File::open(directory.join("after")).unwrap().sync_all().unwrap();
        let crashed = pair.copied();
        let theirs = of_directory(directory);
        drop(mounted);
        let what = format!("{block} {mke2fs:?}{options}");
        assert!(needs_recovery(&crashed.volume), "{what}: the copy is dirty");
        let journal = fs::read(crashed.journal.path()).unwrap();
        let volume = crashed.opened("", Access::ReadOnly);
        assert_same(&of_volume(&*volume), &theirs, &format!("{what}, replayed in memory"));
        call(|call| volume.unmount(call)).unwrap();
        drop(volume);
        assert!(journal == fs::read(crashed.journal.path()).unwrap(), "{what}: who only reads changes nothing");
        let volume = crashed.opened("", Access::IfWhole);
        assert_same(&of_volume(&*volume), &theirs, &format!("{what}, replayed"));
        call(|call| volume.unmount(call)).unwrap();
        drop(volume);
        assert!(!needs_recovery(&crashed.volume), "{what}");
        crashed.check();
    }
}

#[test]
fn an_external_journal_that_this_program_left_dirty_is_replayed_by_the_kernel_and_by_e2fsck() {
    if !can_mount() {
        return;
    }
    for (made, options) in [
        (Pair::of_ours("64M", "16M", ""), ""),
        (Pair::of_ours("64M", "8M", ":block=1K"), ":data=journal"),
        (Pair::of_mke2fs(64 << 20, 16 << 20, "4096", &["-t", "ext4"]), ":data=journal"),
        (
            Pair::of_mke2fs(64 << 20, 16 << 20, "1024", &["-t", "ext4", "-O", "^64bit,^metadata_csum"]),
            ":data=writeback",
        ),
        (Pair::of_mke2fs(64 << 20, 16 << 20, "4096", &["-t", "ext3"]), ""),
    ] {
        let volume = made.opened(options, Access::IfWhole);
        let mut work = Work::new(22);
        (0..3000).for_each(|_| work.step(&*volume));
        call(|call| volume.sync(call)).unwrap();
        let ours = of_volume(&*volume);
        drop(volume);
        assert!(needs_recovery(&made.volume), "{options}");
        let (for_e2fsck, for_us) = (made.copied(), made.copied());
        let mounted = made.mount("");
        assert_same(&ours, &of_directory(&mounted.volume.directory), &format!("{options}, by the kernel"));
        drop(mounted);
        made.check();
        for_e2fsck.preen();
        for_e2fsck.check();
        let volume = for_us.opened("", Access::IfWhole);
        assert_same(&of_volume(&*volume), &ours, &format!("{options}, by this program"));
        call(|call| volume.unmount(call)).unwrap();
        drop(volume);
        for_us.check();
        assert_eq!(check_file_system(&for_us.path("")).unwrap(), [], "{options}");
    }
}

/// The reason for which a volume on these images cannot be opened: the same for a mount, a check and an inspection.
fn refused(volume: &Image, journal: Option<&Image>) -> String {
    let journal = journal.map_or(String::new(), |journal| format!("+conv:image={}", journal.text()));
    let path = Path::read(&format!("ext/conv:image={}{journal}", volume.text())).unwrap();
    let said = check_file_system(&path).unwrap_err().to_string();
    assert_eq!(inspect_file_system(&path).unwrap_err().to_string(), said);
    let mounting = flashpath::fs::station::Mounting::at(7, 0);
    for access in [Access::ReadOnly, Access::IfWhole, Access::DespiteDamage] {
        let error = flashpath::run::open_file_system(&path, &mounting, access).err().expect("it is refused");
        assert_eq!(error.to_string(), said);
    }
    said
}

#[test]
fn a_journal_that_is_missing_or_not_that_of_the_volume_is_refused_with_the_reason() {
    let pair = Pair::of_ours("64M", "8M", "");
    let other = Pair::of_bytes(0, 0);
    let (to, of) = (other.volume.text(), other.journal.text());
    let path = Path::read(&format!("ext/conv:image={to},size=64M+conv:image={of},size=8M")).unwrap();
    make_volume(&path, true, 10, 0, None).unwrap();
    let inline = Image::of_bytes(0);
    let path = Path::read(&format!("ext/conv:image={},size=64M", inline.text())).unwrap();
    make_volume(&path, true, 11, 0, None).unwrap();
    let small = Pair::of_ours("32M", "8M", ":block=1K");
    for (volume, journal, said) in [
        (&pair.volume, None, "give its device or memory as the second one"),
        (&pair.volume, Some(&other.journal), ", and the volume uses "),
        (&pair.volume, Some(&other.volume), "is no journal: it holds volume "),
        (&pair.volume, Some(&small.journal), "its blocks have 2^10 bytes, and those of the volume 4096"),
        (&pair.volume, Some(&Image::of_bytes(8 << 20)), "has no superblock at byte 1024: it is no journal"),
        (&pair.volume, Some(&Image::of_bytes(4096)), "too small for a journal"),
        (&inline, Some(&pair.journal), "leave the second device out"),
        (&pair.journal, None, "the first device is journal "),
        (&pair.journal, Some(&pair.volume), "the first device is journal "),
    ] {
        let error = refused(volume, journal);
        assert!(error.contains(said), "{error}");
    }
    // Nothing was changed by those who were refused.
    assert_eq!(check_file_system(&pair.path("")).unwrap(), []);
    assert_eq!(check_file_system(&other.path("")).unwrap(), []);
}

#[test]
fn a_journal_of_another_volume_or_of_several_is_refused() {
    if !can_mount() {
        return;
    }
    let pair = Pair::of_mke2fs(64 << 20, 16 << 20, "4096", &["-t", "ext4"]);
    assert_eq!(check_file_system(&pair.path("")).unwrap(), []);
    let file = OpenOptions::new().read(true).write(true).open(pair.journal.path()).unwrap();
    let mut own = [0; 16];
    file.read_exact_at(&mut own, 4096 + 256).unwrap();
    file.write_all_at(&[7; 16], 4096 + 256).unwrap();
    let error = refused(&pair.volume, Some(&pair.journal));
    assert!(error.contains("is in use by volume 07070707-0707-0707-0707-070707070707"), "{error}");
    file.write_all_at(&own, 4096 + 256).unwrap();
    let second = Image::of_bytes(64 << 20);
    let device = LoopDevice::on(&pair.journal.path());
    second.mke2fs(&["-t", "ext4", "-b", "4096", "-J", &format!("device={}", device.name)]);
    drop(device);
    for volume in [&pair.volume, &second] {
        let error = refused(volume, Some(&pair.journal));
        assert!(error.contains("is that of 2 volumes, and should be of one"), "{error}");
    }
}

#[test]
fn devices_for_which_a_volume_and_its_journal_are_too_small_or_of_two_kinds_are_refused() {
    let place = tempfile::tempdir().unwrap();
    let place = place.path().display();
    let made = |text: &str| {
        let error = make_volume(&Path::read(text).unwrap(), false, 3, 0, None).unwrap_err().to_string();
        assert!(fs::read_dir(place.to_string()).unwrap().next().is_none(), "{text}: nothing is left");
        error
    };
    let error = made(&format!("ext/conv:image={place}/a,size=64M+conv:image={place}/b,size=2M"));
    assert!(error.contains("4198400 are the least"), "{error}");
    let error = made(&format!("ext:journal-size=16M/conv:image={place}/a,size=64M+conv:image={place}/b,size=8M"));
    assert!(error.contains("would take 16777216"), "{error}");
    for text in
        [format!("ext/conv:image={place}/a,size=64M+conv:size=8M"), format!("ext/conv+conv:image={place}/b,size=8M")]
    {
        let error = made(&text);
        assert!(error.contains("give every device an image=, or none"), "{error}");
    }
    let kept = format!("{place}/b");
    fs::write(&kept, b"kept").unwrap();
    let text = format!("ext/conv:image={place}/a,size=64M+conv:image={kept},size=8M");
    make_volume(&Path::read(&text).unwrap(), false, 3, 0, None).unwrap_err();
    assert!(fs::read(&kept).unwrap() == b"kept" && !std::path::Path::new(&format!("{place}/a")).exists());
}

#[test]
fn what_the_kernel_wrote_with_the_journal_is_read_and_written_here_and_read_there_again() {
    if !can_mount() {
        return;
    }
    let pair = Pair::of_ours("128M", "16M", "");
    let mounted = pair.mount("");
    fill(&mounted.volume.directory, 200, true);
    rustix::fs::sync();
    let theirs = of_directory(&mounted.volume.directory);
    drop(mounted);
    pair.check();
    let volume = pair.opened(":data=journal", Access::IfWhole);
    assert_same(&of_volume(&*volume), &theirs, "by this program");
    call(|call| volume.unmount(call)).unwrap();
    drop(volume);
    pair.check();
    let stat = program("debugfs").args(["-R", "stat <8>", &pair.volume.text()]).output().unwrap();
    assert!(String::from_utf8_lossy(&stat.stdout).contains("Blockcount: 0"), "no inode has the journal: {stat:?}");
    let mounted = pair.mount(",ro");
    assert_same(&of_directory(&mounted.volume.directory), &theirs, "by the kernel again");
}

/// The journal of an earlier mount was replayed over newer blocks, as the kernel does. No test had it: none changed one of the
/// two images alone. (Crossing: copies of different times x two devices that belong together.)
#[test]
fn a_dirty_journal_and_a_volume_of_different_mounts_are_refused_with_the_older_one() {
    let pair = Pair::of_ours("64M", "16M", "");
    let images = [&pair.volume, &pair.journal];
    let crashed = |seed| {
        let (volume, mut work) = (pair.open("", Access::IfWhole).unwrap(), Work::new(seed));
        if seed == 1 {
            (0..50).for_each(|_| work.step(&*volume));
        }
        let new = flashpath::fs::volume::NewFile {
            kind: flashpath::fs::volume::FileKind::Regular,
            permissions: 0o644,
            user: 0,
            group: 0,
            device: 0,
            target: b"",
            attributes: &[],
        };
        let name = format!("of mount {seed}");
        let (root, hold) = (flashpath::fs::volume::InodeNumber::ROOT, flashpath::fs::volume::Hold::No);
        call(|call| volume.make(call, (root, name.as_bytes()), &new, hold, None)).unwrap();
        call(|call| volume.sync(call)).unwrap();
        drop(volume);
        images.map(|image| fs::read(image.path()).unwrap())
    };
    let (first, second) = (crashed(1), crashed(2));
    for (volume, journal, words) in [
        (&second[0], &first[1], "the journal is the older one"),
        (&first[0], &second[1], "the volume is the older one"),
    ] {
        fs::write(pair.volume.path(), volume).unwrap();
        fs::write(pair.journal.path(), journal).unwrap();
        let refused = [
            pair.open("", Access::IfWhole).map(drop).unwrap_err().to_string(),
            pair.open("", Access::ReadOnly).map(drop).unwrap_err().to_string(),
            check_file_system(&pair.path("")).unwrap_err().to_string(),
        ];
        refused.iter().for_each(|refused| assert!(refused.contains(words), "{refused}"));
        assert!(fs::read(pair.volume.path()).unwrap() == *volume && fs::read(pair.journal.path()).unwrap() == *journal);
    }
    fs::write(pair.volume.path(), &second[0]).unwrap();
    fs::write(pair.journal.path(), &second[1]).unwrap();
    let volume = pair.open("", Access::IfWhole).unwrap();
    assert!(of_volume(&*volume).iter().any(|(name, _)| name.ends_with(b"of mount 2")));
    call(|call| volume.unmount(call)).unwrap();
    drop(volume);
    pair.check();
}
