//! Images that the kernel uses, by a mount or a loop device, and images that this program uses.

use crate::image::{Image, call, can_mount, loop_device_of, program, run};
use flashpath::fs::station::{Access, Mounting};
use flashpath::run::{OpenError, Path as StationPath, open_file_system};

fn refusal(path: &str) -> String {
    let path = StationPath::read(&format!("ext/conv:image={path}")).unwrap();
    match open_file_system(&path, &Mounting::at(7, 0), Access::ReadOnly) {
        Err(error @ OpenError::Station(_)) => error.to_string(),
        Err(error) => panic!("{error}"),
        Ok(_) => panic!("it was opened"),
    }
}

#[test]
fn an_image_that_the_kernel_has_mounted_is_refused_until_it_is_unmounted() {
    if !can_mount() {
        return;
    }
    let image = Image::of_bytes(16 << 20);
    image.mke2fs(&["-t", "ext4"]);
    let mounted = image.mount("");
    let device = loop_device_of(&image.path()).expect("the kernel mounts images through loop devices");
    let error = refusal(&image.text());
    assert!(error.contains(&format!("is in use: the kernel has it as {device}")), "{error}");
    let error = refusal(&device);
    assert!(error.contains("is in use: the kernel has it mounted"), "{error}");
    drop(mounted);
    call(|call| image.volume("", Access::IfWhole).unmount(call)).unwrap();
}

#[test]
fn a_block_device_that_a_volume_is_on_is_not_mounted_by_the_kernel() {
    if !can_mount() {
        return;
    }
    let image = Image::of_bytes(16 << 20);
    image.mke2fs(&["-t", "ext4"]);
    let device = String::from_utf8(run("losetup", &["--find", "--show", &image.text()]).stdout).unwrap();
    let device = device.trim();
    let path = StationPath::read(&format!("ext/conv:image={device}")).unwrap();
    let volume = open_file_system(&path, &Mounting::at(7, 0), Access::IfWhole).unwrap();
    let directory = image.path().with_file_name("mnt");
    std::fs::create_dir_all(&directory).unwrap();
    let mount = || program("mount").args(["-t", "ext4", device]).arg(&directory).output().unwrap();
    let refused = mount();
    call(|call| volume.unmount(call)).unwrap();
    drop(volume);
    let accepted = mount();
    let _ = program("umount").arg(&directory).output();
    run("losetup", &["--detach", device]);
    assert!(!refused.status.success(), "the kernel mounted a device that is open");
    assert!(accepted.status.success(), "{}", String::from_utf8_lossy(&accepted.stderr));
    image.check();
}
