//! Volumes that other programs made or changed, against e2fsck: none that is sound is made wrong, and what is damaged is sound
//! after a repair, with its names.
//!
//! No test had these, since all volumes of the suite were those of one `mke2fs -t ext4` or `-t ext3` on images of whole 4 KiB,
//! with damage at random: e2fsprogs' own tests cross other makers, features and lengths with the check
//! (`scripts/e2fsprogs-images`).

use crate::checking::repair;
use crate::image::{Image, call, has_e2fsprogs, program, run};
use flashpath::fs::station::Access;
use flashpath::fs::volume::{FileKind, Hold, InodeNumber, NewFile, Volume};
use flashpath::run::{OpenError, Path, check_file_system};
use std::fs::{self, OpenOptions};
use std::os::unix::fs::FileExt;
use std::sync::Arc;

const MIB: u64 = 1 << 20;

/// The number of findings of this program, or why it cannot check the volume.
fn checked(image: &Image) -> Result<usize, String> {
    let path = Path::read(&format!("ext/conv:image={}", image.text())).unwrap();
    match check_file_system(&path) {
        Ok(findings) => Ok(findings.len()),
        Err(error @ OpenError::FileSystem { .. }) => Err(error.to_string()),
        Err(error) => panic!("{error}"),
    }
}

fn names_in(volume: &Arc<dyn Volume>, directory: InodeNumber) -> Vec<String> {
    let mut names = Vec::new();
    call(|call| {
        volume.list(call, directory, 0, &mut |entry| {
            if !entry.is_dot() {
                names.push(String::from_utf8(entry.name.to_vec()).unwrap());
            }
            true
        })
    })
    .unwrap();
    names.sort();
    names
}

/// The names of a directory of the root.
fn names_of(image: &Image, directory: &str) -> Vec<String> {
    let volume = image.volume("", Access::ReadOnly);
    let inode = call(|call| volume.lookup(call, (InodeNumber::ROOT, directory.as_bytes()), Hold::No)).unwrap().inode;
    names_in(&volume, inode)
}

/// A sound volume with a directory and a file, to which debugfs does these things.
fn made(mke2fs: &[&str], requests: &[&str]) -> Image {
    let image = Image::of_bytes(8 * MIB);
    image.mke2fs(mke2fs);
    let bytes = image.directory.path().join("bytes");
    fs::write(&bytes, [7; 5000]).unwrap();
    image.debugfs("mkdir d");
    image.debugfs(&format!("write {} d/f", bytes.display()));
    for request in requests {
        image.debugfs(request);
    }
    image
}

/// Features that are not written here were called damage: a sound volume is clean, or is not checked, and never changed.
#[test]
fn a_sound_volume_with_any_feature_is_clean_or_not_checked_and_stays_as_it_is() {
    if !has_e2fsprogs() {
        return;
    }
    let tables: [(&[&str], bool); 14] = [
        (&["-t", "ext4", "-O", "mmp"], true),
        (&["-t", "ext4", "-O", "quota", "-E", "quotatype=usrquota:grpquota"], true),
        (&["-t", "ext4", "-O", "quota,project", "-E", "quotatype=usrquota:grpquota:prjquota"], true),
        (&["-t", "ext4", "-O", "verity"], true),
        (&["-t", "ext4", "-O", "fast_commit"], true),
        (&["-t", "ext4", "-O", "large_dir"], true),
        (&["-t", "ext4", "-O", "sparse_super2"], true),
        (&["-t", "ext4", "-O", "^has_journal,shared_blocks"], true),
        (&["-t", "ext2", "-r", "0"], true),
        (&["-t", "ext4", "-O", "bigalloc", "-C", "16384"], false),
        (&["-t", "ext4", "-O", "inline_data"], false),
        (&["-t", "ext4", "-O", "encrypt"], false),
        (&["-t", "ext4", "-O", "casefold"], false),
        (&["-t", "ext4", "-O", "ea_inode"], false),
    ];
    for (mke2fs, can_check) in tables {
        let image = Image::of_bytes(8 * MIB);
        let made = program("mke2fs").args(mke2fs).args(["-b", "1024", "-q", "-F"]).arg(image.path()).output();
        if !made.unwrap().status.success() {
            continue; // A feature that this mke2fs does not know.
        }
        image.check();
        let before = fs::read(image.path()).unwrap();
        match checked(&image) {
            Ok(findings) => assert!(can_check && findings == 0, "{mke2fs:?}: {findings} findings"),
            Err(why) => assert!(!can_check && why.contains("cannot check the volume, because"), "{mke2fs:?}: {why}"),
        }
        assert_eq!(repair(&image).is_some_and(|outcome| outcome.repaired.is_empty()), can_check, "{mke2fs:?}");
        assert!(fs::read(image.path()).unwrap() == before, "{mke2fs:?}: it is changed");
        image.check();
    }
}

/// The inode of bad blocks was unknown: its blocks became free.
#[test]
fn bad_blocks_stay_in_use() {
    if !has_e2fsprogs() {
        return;
    }
    for kind in ["ext2", "ext4"] {
        let image = Image::of_bytes(8 * MIB);
        let list = image.directory.path().join("list");
        fs::write(&list, (5600..5900).step_by(2).map(|block| format!("{block}\n")).collect::<String>()).unwrap();
        image.mke2fs(&["-t", kind, "-b", "1024", "-l", list.to_str().unwrap()]);
        assert_eq!(checked(&image), Ok(0), "{kind}");
        // A repair of something else.
        image.debugfs("set_super_value free_blocks_count 7");
        assert!(!repair(&image).unwrap().repaired.is_empty());
        image.check();
        assert!(image.debugfs("testb 5602").contains("marked in use"), "{kind}");
    }
}

/// `tune2fs -O metadata_csum` leaves full blocks of directories as they are; their last names were lost.
#[test]
fn a_full_block_of_a_directory_that_gets_a_checksum_keeps_its_names() {
    if !has_e2fsprogs() {
        return;
    }
    for mke2fs in [&["-t", "ext4", "-b", "1024", "-O", "^metadata_csum"][..], &["-t", "ext3", "-b", "1024"]] {
        let image = Image::of_bytes(16 * MIB);
        image.mke2fs(mke2fs);
        let volume = image.volume("", Access::IfWhole);
        let mut names = Vec::new();
        for directory in ["full", "indexed"] {
            let new =
                |kind| NewFile { kind, permissions: 0o755, user: 0, group: 0, device: 0, target: b"", attributes: &[] };
            let kind = FileKind::Directory;
            let made =
                call(|call| volume.make(call, (InodeNumber::ROOT, directory.as_bytes()), &new(kind), Hold::No, None))
                    .unwrap();
            // Entries of 20 bytes: 50 of them, '.' and '..' fill a block to its last byte.
            let count = if directory == "full" { 50 } else { 900 };
            for number in 0..count {
                let name = format!("name-{number:07}");
                let kind = FileKind::Regular;
                call(|call| volume.make(call, (made.inode, name.as_bytes()), &new(kind), Hold::No, None)).unwrap();
                names.push(name);
            }
        }
        call(|call| volume.unmount(call)).unwrap();
        drop(volume);
        run("tune2fs", &["-O", "metadata_csum", &image.text()]);
        assert!(checked(&image).unwrap() > 0, "{mke2fs:?}");
        repair(&image).unwrap();
        image.check();
        assert_eq!([names_of(&image, "full"), names_of(&image, "indexed")].concat(), names, "{mke2fs:?}");
        assert!(names_of(&image, "lost+found").is_empty());
    }
}

/// Images whose length is no multiple of 4 KiB were refused.
#[test]
fn an_image_may_end_within_a_block() {
    if !has_e2fsprogs() {
        return;
    }
    for (mke2fs, length) in [
        (&["-t", "ext4"][..], 8 * MIB + 512),
        (&["-t", "ext4", "-b", "1024"], 8 * MIB - 1024),
        (&["-t", "ext4", "-b", "2048", "-O", "^metadata_csum"], 8 * MIB + 2048 + 700),
        (&["-t", "ext2", "-b", "1024"], 8 * MIB + 3 * 1024 + 1),
    ] {
        let image = Image::of_bytes(length);
        image.mke2fs(mke2fs);
        let rest = length / 1024 * 1024;
        let file = OpenOptions::new().read(true).write(true).open(image.path()).unwrap();
        file.write_all_at(&vec![0xA5; (length - rest) as usize], rest).unwrap();
        assert_eq!(checked(&image), Ok(0), "{mke2fs:?} of {length}");
        if mke2fs[1] == "ext4" {
            // A file takes all blocks, the last one among them.
            let volume = image.volume("", Access::IfWhole);
            let kind = FileKind::Regular;
            let new = NewFile { kind, permissions: 0o644, user: 0, group: 0, device: 0, target: b"", attributes: &[] };
            let made = call(|call| volume.make(call, (InodeNumber::ROOT, b"f"), &new, Hold::No, None)).unwrap();
            let mut at = 0;
            while call(|call| volume.write(call, made.inode, at, &[9; 4096], None)).is_ok() {
                at += 4096;
            }
            call(|call| volume.unmount(call)).unwrap();
            assert!(at > 4 * MIB, "it takes {at} bytes");
        }
        image.debugfs("set_super_value free_inodes_count 3");
        assert!(repair(&image).unwrap().left.is_empty(), "{mke2fs:?} of {length}");
        image.check();
        assert_eq!(fs::metadata(image.path()).unwrap().len(), length);
        let mut bytes = vec![0; (length - rest) as usize];
        file.read_exact_at(&mut bytes, rest).unwrap();
        assert!(bytes.iter().all(|byte| *byte == 0xA5), "the rest behind the last block is as it was");
    }
}

/// The largest legal file was cut, and could not be listed; one of 2 GiB on a volume of the first revision, too.
#[test]
fn large_files_keep_their_sizes() {
    if !has_e2fsprogs() {
        return;
    }
    for (mke2fs, size, is_sound) in [
        (&["-t", "ext4", "-b", "4096"][..], u64::from(u32::MAX) * 4096, true),
        (&["-t", "ext4", "-b", "1024"], u64::from(u32::MAX) * 1024, true),
        (&["-t", "ext2", "-r", "0", "-b", "1024"], 3 << 30, false),
        (&["-t", "ext2", "-O", "^large_file", "-b", "1024"], 3 << 30, false),
    ] {
        let image = made(mke2fs, &[&format!("set_inode_field d/f size {size}")]);
        assert_eq!(image.findings().is_none(), is_sound);
        assert_eq!(checked(&image).unwrap() == 0, is_sound, "{mke2fs:?}");
        repair(&image).unwrap();
        image.check();
        let volume = image.volume("", Access::ReadOnly);
        let d = call(|call| volume.lookup(call, (InodeNumber::ROOT, b"d"), Hold::No)).unwrap().inode;
        let f = call(|call| volume.lookup(call, (d, b"f"), Hold::No)).unwrap();
        assert_eq!((f.size, names_in(&volume, d)), (size, vec!["f".to_string()]), "{mke2fs:?}");
    }
}

/// A volume with fast_commit was mounted read-only.
#[test]
fn a_volume_with_fast_commit_is_writable() {
    if !has_e2fsprogs() {
        return;
    }
    let image = Image::of_bytes(16 * MIB);
    image.mke2fs(&["-t", "ext4", "-b", "1024", "-O", "fast_commit"]);
    let volume = image.volume("", Access::IfWhole);
    assert_eq!(call(|call| volume.state(call)).unwrap().read_only, None);
    call(|call| volume.unmount(call)).unwrap();
    image.check();
}

/// Flags that a program had set on devices and links were cleared.
#[test]
fn an_immutable_link_or_device_is_sound() {
    if !has_e2fsprogs() {
        return;
    }
    let requests = [
        "symlink link d/f",
        "mknod device c 1 3",
        "set_inode_field link flags 0x10",
        "set_inode_field device flags 0x30",
        // A device of an old kernel has blocks.
        "mknod old c 1 3",
        "set_inode_field old block[5] 255",
    ];
    let image = made(&["-t", "ext2", "-b", "1024"], &requests);
    image.check();
    assert_eq!(checked(&image), Ok(0));
}

/// Kinds of damage that e2fsprogs' tests have: what is said of each volume is what e2fsck says, and a repair leaves one that
/// it calls clean, with the file.
#[test]
fn what_debugfs_damages_is_repaired_with_the_names() {
    if !has_e2fsprogs() {
        return;
    }
    let plain: &[&str] = &["-t", "ext2", "-b", "1024"];
    let alone: &[&str] = &["-t", "ext2", "-b", "1024", "-O", "^resize_inode,sparse_super"];
    let (ext3, ext4): (&[&str], &[&str]) = (&["-t", "ext3", "-b", "1024"], &["-t", "ext4", "-b", "1024"]);
    for (mke2fs, requests) in [
        // A directory with the mode of a socket.
        (plain, &["set_inode_field d mode 0140755"][..]),
        (ext4, &["set_inode_field d mode 0140755"]),
        (
            plain,
            &["set_inode_field d links_count 9", "kill_file lost+found", "unlink lost+found", "link d/f lost+found"],
        ),
        // Places of a group without a copy.
        (alone, &["set_block_group 0 block_bitmap 0"]),
        (alone, &["set_block_group 0 inode_bitmap 100000"]),
        (alone, &["set_block_group 0 block_bitmap 5", "set_block_group 0 inode_bitmap 5"]),
        (plain, &["feature -ext_attr", "set_inode_field d/f file_acl 4000"]),
        (ext3, &["feature -has_journal", "set_super_value journal_inum 0"]),
        (ext4, &["set_inode_field <1> mode 0100644", "set_inode_field <1> links_count 1"]),
        (plain, &["mknod device c 1 3", "set_inode_field device flags 0x10", "set_inode_field device block[5] 255"]),
        (ext4, &["mknod pipe p", "set_inode_field pipe flags 0x20", "set_inode_field pipe block[IND] 1"]),
        (plain, &["set_inode_field <9> flags 0x40000000"]),
    ] {
        let image = made(mke2fs, requests);
        assert!(image.findings().is_some(), "{requests:?}: e2fsck finds nothing");
        assert!(checked(&image).unwrap() > 0, "{requests:?}");
        let outcome = repair(&image).unwrap();
        assert!(outcome.left.is_empty(), "{requests:?}: {outcome:?}");
        image.check();
        assert!(names_of(&image, "d").contains(&"f".to_string()), "{requests:?}");
    }
}

/// The kernel mounts no volume whose journal is encrypted. (e2fsck of today says nothing if the volume has no such feature.)
#[test]
fn a_journal_that_is_flagged_as_encrypted_is_mended_and_stays() {
    if !has_e2fsprogs() {
        return;
    }
    for (kind, flags) in [("ext3", 0x800), ("ext4", 0x8_0800)] {
        let image = made(&["-t", kind, "-b", "1024"], &[&format!("set_inode_field <8> flags {flags:#x}")]);
        assert!(checked(&image).unwrap() > 0, "{kind}");
        let outcome = repair(&image).unwrap();
        assert!(outcome.left.is_empty(), "{kind}: {outcome:?}");
        image.check();
        assert_eq!(checked(&image), Ok(0), "{kind}");
        assert!(image.debugfs("blocks <8>").split_whitespace().count() > 1000, "{kind}");
        assert!(names_of(&image, "d").contains(&"f".to_string()), "{kind}");
    }
}
