//! The station `nvm` in a path: its file, and what of the path outlasts a run.

use flashpath::device::station::{MakeOptions, StationError};
use flashpath::device::{ImageError, Medium, Survival};
use flashpath::run::{Path, Payload};

const MAKING: MakeOptions = MakeOptions { force: false, seed: 1 };

fn path(text: &str) -> Path {
    Path::read(text).unwrap_or_else(|error| panic!("{error}"))
}

#[test]
fn the_file_of_a_memory_is_made_and_opened_as_the_second_device() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("journal");
    let path =
        path(&format!("ext/conv:image={}+nvm:image={},size=1M", folder.path().join("v").display(), file.display()));
    let [volume, memory] = &path.devices[..] else { panic!("two devices") };
    assert!(!memory.is_in_memory() && memory.check_outlasts_a_run().is_ok() && !volume.is_in_memory());
    assert_eq!(memory.files(), [&file]);
    let missing = memory.open(Payload::Bytes, 1).map(drop);
    assert!(matches!(missing, Err(StationError::Image(ImageError::Io { doing: "open", .. }))), "{missing:?}");
    let made = memory.make(&MAKING).unwrap();
    assert_eq!((made.blocks(), made.block_width(), made.is_timed()), (256, 4096, true));
    let Medium::Memory(made) = made else { panic!("it is memory") };
    made.store(0, &[5; 64]);
    made.fence();
    drop(made);
    let again = memory.make(&MAKING).map(drop);
    assert!(matches!(again, Err(StationError::Image(ImageError::Exists { bytes: 1_048_576, .. }))), "{again:?}");
    let Medium::Memory(opened) = memory.open(Payload::Stamps, 1).unwrap() else { panic!("it is memory") };
    let mut found = [0; 64];
    opened.read(0, &mut found);
    assert_eq!((found, opened.survival()), ([5; 64], Survival::Process));
}

#[test]
fn memory_without_a_file_is_new_in_each_run_and_beside_an_image_refused() {
    let simulated = path("ext/conv:size=64M+nvm:size=1M");
    assert!(simulated.devices.iter().all(|device| device.is_in_memory()));
    let Medium::Memory(memory) = simulated.devices[1].open(Payload::Stamps, 1).unwrap() else { panic!("it is memory") };
    memory.store(64, &[1; 64]);
    let Medium::Memory(new) = simulated.devices[1].open(Payload::Stamps, 1).unwrap() else { panic!("it is memory") };
    let mut found = [1; 128];
    new.read(0, &mut found);
    assert_eq!((found, new.survival()), ([0; 128], Survival::Nothing));
    let mixed = flashpath::run::is_in_memory(&path("ext/conv:image=v+nvm:size=1M"));
    assert!(!mixed, "a part of it is in a file");
    let refused = simulated.devices[1].make(&MAKING).map(drop);
    assert!(matches!(refused, Err(StationError::Mixed)), "{refused:?}");
}
