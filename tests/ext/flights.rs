//! Blocks of files that are overwritten without the files' gates, while threads write, cut off and sync the same files.

use crate::image::{Image, call, has_e2fsprogs};
use flashpath::fs::Durable;
use flashpath::fs::station::Access;
use flashpath::fs::volume::{Allocation, Change, FileKind, Hold, InodeNumber, Locked, NewFile, Volume};
use flashpath::random::Random;
use std::sync::atomic::{AtomicBool, Ordering};

const FILE: usize = 1 << 20;

/// A file that one thread changes, and the bytes that it must have.
struct Model {
    inode: InodeNumber,
    bytes: Vec<u8>,
}

impl Model {
    fn new(volume: &dyn Volume, name: &[u8]) -> Model {
        let kind = FileKind::Regular;
        let new = NewFile { kind, permissions: 0o644, user: 0, group: 0, device: 0, target: b"", attributes: &[] };
        let inode = call(|call| volume.make(call, (InodeNumber::ROOT, name), &new, Hold::Yes, None)).unwrap().inode;
        Model { inode, bytes: Vec::new() }
    }

    fn step(&mut self, volume: &dyn Volume, random: &mut Random) {
        let at = random.below(FILE as u64) as usize;
        match random.below(64) {
            0 => self.resize(volume, at),
            1 => call(|call| volume.sync_file(call, self.inode, Durable::All)).unwrap(),
            2 => self.punch(volume, at, random.below(FILE as u64 / 4) as usize),
            3..8 => self.check(volume),
            // Most writes are of whole blocks, and soon are overwrites.
            kind => {
                let align = if kind % 4 == 0 { 1 } else { 4096 };
                let length = (1 + random.below(1 << 16) as usize).next_multiple_of(align);
                self.write(volume, at / align * align, length, random.below(256) as u8);
            }
        }
    }

    fn write(&mut self, volume: &dyn Volume, at: usize, length: usize, value: u8) {
        let bytes: Vec<u8> = (0..length).map(|byte| value.wrapping_add((byte / 4096) as u8)).collect();
        call(|call| volume.write(call, self.inode, at as u64, &bytes, None)).unwrap();
        self.bytes.resize(self.bytes.len().max(at + length), 0);
        self.bytes[at..at + length].copy_from_slice(&bytes);
    }

    fn resize(&mut self, volume: &dyn Volume, size: usize) {
        let mut rule = |_: &mut dyn Locked| Ok(Some(Change { size: Some(size as u64), ..Change::default() }));
        call(|call| volume.change(call, self.inode, &mut rule)).unwrap();
        self.bytes.resize(size, 0);
    }

    fn punch(&mut self, volume: &dyn Volume, at: usize, length: usize) {
        let range = (at as u64, 1 + length as u64);
        call(|call| volume.allocate(call, self.inode, range, Allocation::Punch, None)).unwrap();
        let end = self.bytes.len().min(at + length + 1);
        self.bytes[at.min(end)..end].fill(0);
    }

    fn check(&self, volume: &dyn Volume) {
        let mut bytes = vec![0; self.bytes.len()];
        let read = call(|call| volume.read(call, self.inode, 0, &mut bytes)).unwrap();
        assert_eq!(read.length, self.bytes.len());
        let wrong = bytes.iter().zip(&self.bytes).position(|(is, must)| is != must);
        assert_eq!(wrong, None, "the first byte that is wrong");
    }
}

#[test]
fn what_threads_write_beside_flights_is_there_after_a_mount() {
    for options in [":dirty=1M", ":data=writeback,dirty=1M,page-cache=64K", ":data=journal,dirty=1M"] {
        let image = Image::of_bytes(64 << 20);
        let made = format!("ext/conv:image={},size=64M", image.text());
        flashpath::run::make_volume(&flashpath::run::Path::read(&made).unwrap(), true, 9, 1_700_000_000, None).unwrap();
        let volume = image.volume(options, Access::IfWhole);
        let mut models: Vec<Model> = (0..3).map(|n| Model::new(&*volume, format!("{n}").as_bytes())).collect();
        let is_done = AtomicBool::new(false);
        std::thread::scope(|scope| {
            let (volume, is_done) = (&*volume, &is_done);
            // One that does the background work, and one that syncs all.
            scope.spawn(move || {
                while !is_done.load(Ordering::Relaxed) {
                    call(|call| volume.work(call)).unwrap();
                }
            });
            scope.spawn(move || {
                while !is_done.load(Ordering::Relaxed) {
                    call(|call| volume.sync(call)).unwrap();
                }
            });
            let writers = models.iter_mut().enumerate().map(|(seed, model)| {
                scope.spawn(move || {
                    let mut random = Random::new(seed as u64, "flights");
                    (0..1500).for_each(|_| model.step(volume, &mut random));
                })
            });
            let writers: Vec<_> = writers.collect();
            let ended: Vec<_> = writers.into_iter().map(|writer| writer.join()).collect();
            is_done.store(true, Ordering::Relaxed);
            ended.into_iter().for_each(|ended| ended.unwrap());
        });
        models.iter().for_each(|model| model.check(&*volume));
        call(|call| volume.unmount(call)).unwrap();
        drop(volume);
        let volume = image.volume(options, Access::ReadOnly);
        models.iter().for_each(|model| model.check(&*volume));
        drop(volume);
        if has_e2fsprogs() {
            image.check();
        }
    }
}
