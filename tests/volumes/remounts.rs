//! Volumes that survive an unmount.

use crate::world::{ROOT, World};
use flashpath::fs::station::Access;
use flashpath::fs::volume::Caller;
use flashpath::run::{Path, check_file_system, make_volume};

/// A path of sfs on images in `place`.
pub fn on_images(place: &std::path::Path) -> [String; 2] {
    let place = place.display();
    [
        format!("sfs:segment=256K/conv:image={place}/blocks,size=64M,timing=off"),
        format!("sfs/zns:image={place}/zones,size=128M,zone=1M,timing=off"),
    ]
}

#[test]
fn an_unmounted_volume_keeps_all_files_and_attributes() {
    let place = tempfile::tempdir().unwrap();
    for text in on_images(place.path()) {
        let path = Path::read(&text).unwrap();
        make_volume(&path, false, 3, 0, Some((5, 6))).unwrap();
        let world = World::opened(&text, Access::IfWhole, 0);
        let directory = world.directory((ROOT, b"d"), 0o2751, (7, 8));
        let file = world.file((directory, b"f"), 0o640);
        world.write(file, 5000, &[3; 70_000]);
        world.root(|posix, call| posix.set_extended_attribute(call, file, b"user.a", &[4; 9000], None));
        let attributes = [ROOT, directory, file].map(|inode| world.attributes(inode));
        world.unmount();
        drop(world);
        assert_eq!(check_file_system(&path).unwrap(), [], "{text}");
        let world = World::opened(&text, Access::ReadOnly, 1 << 30);
        assert_eq!([ROOT, directory, file].map(|inode| world.attributes(inode)), attributes, "{text}");
        assert_eq!((attributes[0].user, attributes[0].group), (5, 6));
        assert_eq!(world.read(file)[5000..], [3; 70_000]);
        let value = world.root(|posix, call| posix.extended_attribute(call, file, b"user.a"));
        assert_eq!(value, [4; 9000]);
        let refused = world.by(Caller::ROOT, |posix, call| posix.write(call, file, 0, b"x", false));
        assert_eq!(refused.unwrap_err().errno(), rustix::io::Errno::ROFS);
        world.unmount();
    }
}
