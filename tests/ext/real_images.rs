//! Images as they are found in the world: a system's tree, filled by the kernel, then written by this program, and read back
//! by the kernel. EXT_IMAGE_FILES is how many files of this machine's /usr are taken (300); from 10,000 on the image has
//! 2 GiB, and a directory of 50,000 files.

use crate::image::{Image, call, can_mount, run};
use crate::reading::fill;
use crate::replay::{copied, needs_recovery};
use crate::walk::{assert_same, of_directory, of_volume};
use flashpath::fs::station::Access;
use flashpath::fs::volume::{FileKind, Hold, InodeNumber, NewFile, Volume};
use std::path::Path;

const LARGE: usize = 10_000;

fn files() -> usize {
    let said = std::env::var("EXT_IMAGE_FILES").ok();
    said.map_or(300, |text| text.parse().unwrap_or_else(|_| panic!("EXT_IMAGE_FILES={text}")))
}

/// Copies the first files of /usr, with their owners, times, links and attributes.
fn copy_usr(to: &Path, files: usize) {
    let script = format!(
        "cd / && find usr -xdev \\( -type d -o -type l -o -type f -size -2048 \\) | LC_ALL=C sort | sed -n '1,{files}p' \
         | tar --no-recursion --xattrs --acls --ignore-failed-read -cf - -T - | tar --xattrs --acls -C '{}' -xpf -",
        to.display()
    );
    run("bash", &["-o", "pipefail", "-c", &script]);
}

/// Makes files in a directory of names, writes some, and removes every third of those that were there.
fn work(volume: &dyn Volume, files: usize) {
    let many = call(|call| volume.lookup(call, (InodeNumber::ROOT, b"many"), Hold::No)).unwrap().inode;
    let mut names = Vec::new();
    call(|call| {
        volume.list(call, many, 0, &mut |entry| {
            if !entry.is_dot() {
                names.push(entry.name.to_vec());
            }
            true
        })
    })
    .unwrap();
    for name in names.iter().step_by(3) {
        call(|call| volume.unlink(call, (many, name), None)).unwrap();
    }
    for number in 0..files {
        let name = format!("made here, number {number}").into_bytes();
        let kind = FileKind::Regular;
        let new = NewFile { kind, permissions: 0o644, user: 7, group: 8, device: 0, target: b"", attributes: &[] };
        let made = call(|call| volume.make(call, (many, &name), &new, Hold::No, None)).unwrap();
        call(|call| volume.write(call, made.inode, 0, &vec![number as u8; number % 9000], None)).unwrap();
    }
    // Files of the kernel's, which lie in pieces, have holes, or are linked.
    for name in [&b"one"[..], b"sparse", b"another name"] {
        let inode = call(|call| volume.lookup(call, (InodeNumber::ROOT, name), Hold::No)).unwrap().inode;
        for at in [100, 70_000, 2_000_000, 5_001_000] {
            call(|call| volume.write(call, inode, at, &[3; 9000], None)).unwrap();
        }
    }
}

/// Kernel, this program, kernel: with a clean journal, and with a dirty one on each way.
fn there_and_back(mke2fs: &[&str], options: &str, megabytes: u64, files: usize) {
    let what = format!("{mke2fs:?}{options}, {files} files");
    let image = Image::of_bytes(megabytes << 20);
    image.mke2fs(mke2fs);
    let mounted = image.mount("");
    copy_usr(&mounted.directory, files);
    fill(&mounted.directory, if files >= LARGE { 60_000 } else { files }, true);
    rustix::fs::syncfs(std::fs::File::open(&mounted.directory).unwrap()).unwrap();
    let theirs = of_directory(&mounted.directory);
    let unclean = copied(&image);
    drop(mounted);
    assert!(needs_recovery(&unclean), "{what}: the copy is that of a mounted volume");
    // The short run leaves out what the long one also does with a clean journal.
    let images = if files >= LARGE { vec![image, unclean] } else { vec![unclean] };
    for image in images {
        let volume = image.volume(options, Access::IfWhole);
        assert_same(&of_volume(&*volume), &theirs, &format!("{what}, of the kernel"));
        work(&*volume, files);
        call(|call| volume.sync(call)).unwrap();
        let ours = of_volume(&*volume);
        let ours_unclean = copied(&image);
        call(|call| volume.unmount(call)).unwrap();
        drop(volume);
        assert!(needs_recovery(&ours_unclean), "{what}");
        let images = if files >= LARGE { vec![image, ours_unclean] } else { vec![ours_unclean] };
        for image in images {
            let mounted = image.mount("");
            assert_same(&ours, &of_directory(&mounted.directory), &format!("{what}, by the kernel"));
            drop(mounted);
            image.check();
        }
    }
}

#[test]
fn a_tree_of_a_system_goes_from_the_kernel_to_this_program_and_back() {
    if !can_mount() {
        return;
    }
    let files = files();
    let megabytes = if files >= LARGE { 2048 } else { 192 };
    let cases: [(&[&str], &str); 6] = [
        (&["-t", "ext4"], ""),
        (&["-t", "ext3"], ":data=journal"),
        (&["-t", "ext4", "-O", "^64bit,^metadata_csum"], ":data=writeback"),
        (&["-t", "ext4", "-T", "small", "-b", "1024"], ":data=journal"),
        (&["-t", "ext4", "-T", "small", "-b", "2048"], ""),
        // So few inodes that many are asked for.
        (&["-t", "ext4", "-T", "largefile4", "-N", "300000"], ""),
    ];
    for (mke2fs, options) in cases {
        let mke2fs: Vec<&str> = match mke2fs {
            // A large tree needs more inodes than the usual ratio gives.
            _ if files >= LARGE && !mke2fs.contains(&"-N") => [mke2fs, &["-N", "300000"]].concat(),
            [.., "-N", _] if files < LARGE => [&mke2fs[..mke2fs.len() - 1], &["6000"]].concat(),
            mke2fs => mke2fs.to_vec(),
        };
        there_and_back(&mke2fs, options, megabytes, files);
    }
}
