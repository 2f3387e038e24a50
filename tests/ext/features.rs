//! Features that are not known here are refused by name.

use crate::image::{Image, has_e2fsprogs};
use flashpath::fs::station::Access;
use flashpath::fs::volume::{Hold, InodeNumber, VolumeError};

use crate::image::call;

#[test]
fn a_volume_with_an_unknown_incompatible_feature_is_refused_by_its_name() {
    if !has_e2fsprogs() {
        return;
    }
    for (feature, named) in [
        ("inline_data", "inline_data"),
        ("casefold", "casefold"),
        ("ea_inode", "ea_inode"),
        ("FEATURE_I27", "FEATURE_I27"),
    ] {
        let image = Image::of_bytes(16 << 20);
        image.mke2fs(&["-t", "ext4"]);
        image.debugfs(&format!("feature {feature}"));
        let error = image.open("", Access::ReadOnly).err().expect(feature).to_string();
        assert!(error.contains(named), "{error}");
    }
}

#[test]
fn a_volume_with_an_unknown_feature_that_forbids_writing_can_be_read() {
    if !has_e2fsprogs() {
        return;
    }
    for (feature, named) in [("quota", "quota"), ("bigalloc", "bigalloc"), ("FEATURE_R27", "FEATURE_R27")] {
        let image = Image::of_bytes(16 << 20);
        image.mke2fs(&["-t", "ext4", "-O", "^metadata_csum"]);
        image.debugfs(&format!("feature {feature}"));
        let volume = image.volume("", Access::IfWhole);
        let error = call(|call| volume.unlink(call, (InodeNumber::ROOT, b"lost+found"), None)).unwrap_err();
        assert!(matches!(&error, VolumeError::ReadOnly(why) if why.contains(named)), "{error}");
        call(|call| volume.lookup(call, (InodeNumber::ROOT, b"lost+found"), Hold::No)).unwrap();
    }
}

#[test]
fn what_is_no_ext_is_refused() {
    let image = Image::of_bytes(4 << 20);
    let error = image.open("", Access::ReadOnly).err().unwrap().to_string();
    assert!(error.contains("magic number is 0x0000"), "{error}");
}
