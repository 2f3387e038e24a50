//! The options of `nvm`.

use super::{FlashTimes, LINE_BYTES, Mapped, MemoryKind, MemoryModel, MemoryTimes, NAME, Nvm};
use crate::device::station::{DeviceSettings, MakeOptions, OpenOptions, Payload, StationError, Storage};
use crate::device::{ImageError, Medium};
use crate::expression::{Choice, ExpressionError, Kind, OptionKind, Term, Values, words};
use crate::units::{BLOCK_BYTES, format_size};
use flashpath_nvm::{Method, Persist};
use std::path::PathBuf;

/// The station `nvm`.
pub static KIND: Kind = Kind {
    name: NAME,
    about: "non-volatile memory: bytes that are stored to in lines of 64, and are durable after a fence",
    options: &[
        OptionKind {
            name: "image",
            values: Values::File,
            default: "",
            about: "a file, which is mapped, or a device of memory such as /dev/dax0.0 (not set: memory of the process)",
        },
        OptionKind {
            name: "size",
            values: Values::Size(BLOCK_BYTES, 1 << 44),
            default: "1G",
            about: "bytes, in whole blocks of 4K; an existing image has its own",
        },
        OptionKind {
            name: "model",
            values: Values::Choice(words::<Model>),
            default: "dram",
            about: "the times of stores and reads in a simulation",
        },
        OptionKind {
            name: "cache",
            values: Values::Size(BLOCK_BYTES, 1 << 44),
            default: "",
            about: "model=cxl-flash: bytes of its DRAM, in whole pages of 4K (not set: a sixteenth of the size)",
        },
        OptionKind {
            name: "persist",
            values: Values::Choice(words::<Method>),
            default: "nt",
            about: "the instructions that bring stores to memory",
        },
    ],
};

/// The size of memory over that of its cache, if it is not given.
const PARTS: u64 = 16;

/// A timing model of memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Model(Option<MemoryKind>);

const fn plain(times: MemoryTimes) -> Model {
    Model(Some(MemoryKind { times, flash: None }))
}

impl Choice for Model {
    const WORDS: &'static [(&'static str, Self, &'static str)] = &[
        ("dram", plain(MemoryTimes::DRAM), "DRAM, as of a module with a battery"),
        ("optane", plain(MemoryTimes::OPTANE), "six modules of Optane DC persistent memory"),
        ("cxl", plain(MemoryTimes::CXL), "a CXL module with one channel of DDR5, and a battery"),
        ("cxl-switched", plain(MemoryTimes::CXL_SWITCHED), "the same behind a CXL switch"),
        (
            "cxl-flash",
            Model(Some(MemoryKind { times: MemoryTimes::CXL, flash: Some(FlashTimes::MODULE) })),
            "a CXL module with flash behind a cache of DRAM, which a battery keeps: misses wait for the flash",
        ),
        ("off", Model(None), "it takes no time"),
    ];
}

impl Choice for Method {
    const WORDS: &'static [(&'static str, Self, &'static str)] = &[
        ("nt", Method::NonTemporal, "non-temporal stores: AVX-512, AVX2 or SSE2, as the processor has them"),
        ("clwb", Method::WriteBack, "plain stores; clwb writes each line back"),
        ("clflushopt", Method::FlushOptimised, "plain stores; clflushopt removes each line from the caches"),
        ("clflush", Method::Flush, "the same with clflush, one line after the other"),
    ];
}

/// The parsed options of `nvm`.
#[derive(Debug, Clone)]
pub struct NvmSettings {
    /// The file; `None` for memory of the process.
    pub image: Option<PathBuf>,
    /// The size of new memory, in bytes.
    pub size_bytes: u64,
    /// The timing model; `None` for `model=off`.
    pub kind: Option<MemoryKind>,
    /// Bytes of the cache, if it has one; `None` for a sixteenth of the size.
    pub cache_bytes: Option<u64>,
    /// The method of persistence.
    pub persist: Persist,
    /// The term with all option values that have an effect.
    pub written_out: String,
    is_size_given: bool,
}

impl NvmSettings {
    /// Parses a term without opening a file. Errors point at the wrong option; one of them is an instruction that this
    /// processor lacks.
    pub fn read(term: &Term) -> Result<NvmSettings, ExpressionError> {
        let settings = term.settle(&KIND)?;
        let size_bytes = settings.size("size");
        if !size_bytes.is_multiple_of(BLOCK_BYTES) {
            let message = format!("memory of {} is not made of blocks of 4K", settings.text("size"));
            let near = (size_bytes / BLOCK_BYTES * BLOCK_BYTES).max(BLOCK_BYTES);
            return Err(settings.error("size", message, format!("take {}", format_size(near))));
        }
        let persist = Persist::by(settings.choice::<Method>("persist"))
            .map_err(|error| settings.error("persist", error.to_string(), "take persist=nt".to_string()))?;
        let kind = settings.choice::<Model>("model").0;
        let has_cache = kind.is_some_and(|kind| kind.flash.is_some());
        let cache_bytes = settings.is_set("cache").then(|| settings.size("cache"));
        if let Some(bytes) = cache_bytes {
            let refuse = |message: &str, help: String| Err(settings.error("cache", message.to_string(), help));
            if !has_cache {
                return refuse("this memory has no cache", "leave it out, or take model=cxl-flash".to_string());
            }
            if !bytes.is_multiple_of(BLOCK_BYTES) {
                let near = format_size(bytes / BLOCK_BYTES * BLOCK_BYTES);
                return refuse("a cache has whole pages of 4K", format!("take {near}"));
            }
        }
        let image = settings.is_set("image").then(|| PathBuf::from(settings.text("image")));
        Ok(NvmSettings {
            size_bytes,
            persist,
            kind,
            cache_bytes,
            is_size_given: settings.is_given("size"),
            // What has no effect is left out.
            written_out: settings.written_out(match (image.is_some(), has_cache) {
                (true, true) => &["size"],
                (true, false) => &["size", "cache"],
                (false, true) => &[],
                (false, false) => &["cache"],
            }),
            image,
        })
    }

    /// The timing model of memory of so many bytes.
    fn model(&self, bytes: u64) -> Option<MemoryModel> {
        let cache = self.cache_bytes.unwrap_or(bytes / PARTS / BLOCK_BYTES * BLOCK_BYTES).max(BLOCK_BYTES);
        Some(MemoryModel::new(self.kind?, cache))
    }

    /// Opens the image in its last state; without one, new memory of zeros.
    ///
    /// # Errors
    ///
    /// If the image is in use, is no memory, has no whole blocks, or another size than was asked for.
    pub fn open(&self) -> Result<Mapped, ImageError> {
        let Some(image) = &self.image else {
            return Mapped::in_memory(self.size_bytes, self.persist, self.model(self.size_bytes));
        };
        let memory = Mapped::open(image, self.persist, |bytes| self.model(bytes))?;
        let (image, bytes) = (image.display().to_string(), memory.bytes());
        if !bytes.is_multiple_of(BLOCK_BYTES) {
            let (found, expected) = (format!("{bytes} bytes"), "whole blocks of 4 KiB".to_string());
            return Err(ImageError::Field { image, field: "its length".to_string(), found, expected });
        }
        if self.is_size_given && self.size_bytes != bytes {
            let (asked, made) = (format_size(self.size_bytes), format_size(bytes));
            return Err(ImageError::Contradicts { image, option: "size", asked, made });
        }
        Ok(memory)
    }
}

const _: () = assert!(BLOCK_BYTES.is_multiple_of(LINE_BYTES as u64), "a region has whole lines");

impl DeviceSettings for NvmSettings {
    fn written_out(&self) -> String {
        self.written_out.clone()
    }

    fn storage(&self) -> Storage<'_> {
        self.image.as_deref().map_or(Storage::Memory, Storage::File)
    }

    /// Bytes, whatever the blocks of other devices hold: a journal in memory is read back.
    fn memory_bytes(&self, _: Payload) -> u64 {
        if self.image.is_some() { 0 } else { self.size_bytes }
    }

    fn open(&self, _: Vec<Medium>, _: &OpenOptions) -> Result<Medium, StationError> {
        Ok(Medium::Memory(Box::new(NvmSettings::open(self)?)))
    }

    fn make(&self, _: Vec<Medium>, making: &MakeOptions) -> Result<Medium, StationError> {
        Ok(Medium::Memory(Box::new(match &self.image {
            Some(image) => {
                Mapped::create(image, self.size_bytes, making.force, self.persist, self.model(self.size_bytes))?
            }
            None => NvmSettings::open(self)?,
        })))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::device::Survival;
    use crate::expression::parse_term;
    use crate::time::Time;

    fn settings(text: &str) -> NvmSettings {
        NvmSettings::read(&parse_term(text).unwrap()).unwrap()
    }

    const MAKING: MakeOptions = MakeOptions { force: false, seed: 1 };

    #[test]
    fn memory_of_the_process_takes_the_time_of_its_model() {
        for (model, is_timed, takes_ns) in [
            ("dram", true, 84 + 86),
            ("optane", true, 314 + 90),
            ("cxl", true, 217 + 200),
            ("cxl-switched", true, 217 + 280),
            // The store covers its first page whole. The other is missing: 1,280 ns of the flash's transfer.
            ("cxl-flash", true, 1280 + 50_000 + 217 + 200),
            ("off", false, 0),
        ] {
            let memory = settings(&format!("nvm:size=1M,model={model}")).open().unwrap();
            assert_eq!((memory.bytes(), memory.survival()), (1 << 20, Survival::Nothing));
            assert_eq!(
                (memory.is_timed(), memory.stored_by(Time(10), &mut std::iter::once(0..4160))),
                (is_timed, Time(10 + takes_ns)),
                "{model}"
            );
        }
    }

    #[test]
    fn an_image_is_made_once_and_keeps_its_bytes_and_its_size() {
        let folder = tempfile::tempdir().unwrap();
        let image = folder.path().join("journal");
        let term = |options: &str| settings(&format!("nvm:image={}{options}", image.display()));
        let made = |options: &str| DeviceSettings::make(&term(options), Vec::new(), &MAKING).map(drop);
        made(",size=64K").unwrap();
        assert!(matches!(made(",size=64K"), Err(StationError::Image(ImageError::Exists { bytes: 65536, .. }))));
        let memory = term("").open().unwrap();
        assert_eq!((memory.bytes(), memory.survival()), (65536, Survival::Process), "it is in the page cache");
        memory.store(4096, &[7; 64]);
        memory.fence();
        assert!(matches!(term("").open(), Err(ImageError::InUse { .. })));
        drop(memory);
        let mut found = [0; 64];
        term(",size=64K").open().unwrap().read(4096, &mut found);
        assert_eq!(found, [7; 64]);
        assert!(matches!(term(",size=128K").open(), Err(ImageError::Contradicts { option: "size", .. })));
        std::fs::write(&image, [0; 5000]).unwrap();
        assert!(matches!(term("").open(), Err(ImageError::Field { .. })), "no whole blocks");
    }

    #[test]
    fn stores_and_fences_are_events_of_the_station() {
        let memory = settings("nvm:size=64K").open().unwrap();
        memory.store(0, &[1; 4096]);
        memory.store(4096, &[1; 64]);
        memory.fence();
        memory.read(0, &mut [0; 100]);
        let account = memory.account();
        assert_eq!(account.station, "nvm");
        assert_eq!(account.events, [("nvm_stored_bytes", 4160), ("nvm_read_bytes", 100), ("nvm_fences", 1)]);
        assert_eq!(account.received.total() + account.sent.total(), 0, "it has no blocks");
    }

    #[test]
    fn a_cache_tells_its_hits_and_is_a_sixteenth_of_the_memory() {
        for (options, misses) in [("", 17 + 17), (",cache=128K", 17)] {
            let memory = settings(&format!("nvm:size=1M,model=cxl-flash{options}")).open().unwrap();
            // A ring of 17 pages, twice: the cache has 16 of them, or all.
            for page in (0..2).flat_map(|_| 0..17) {
                memory.stored_by(Time(0), &mut std::iter::once(page * 4096..page * 4096 + 64));
            }
            let events = memory.account().events;
            let found = |name| events.iter().find(|(event, _)| *event == name).map(|(_, count)| *count);
            assert_eq!((found("nvm_cache_misses"), found("nvm_cache_hits")), (Some(misses), Some(34 - misses)));
            assert_eq!(found("nvm_flash_read_bytes"), Some(misses * 4096));
        }
        let names = settings("nvm:size=64K").open().unwrap().account().events;
        assert!(names.iter().all(|(name, _)| !name.starts_with("nvm_cache")), "other memory has none");
    }

    #[test]
    fn a_wrong_option_is_pointed_at() {
        for (text, pointed) in [
            ("nvm:size=6K", "6K"),
            ("nvm:model=tape", "tape"),
            ("nvm:persist=msync", "msync"),
            ("nvm:size=1K", "1K"),
            ("nvm:cache=4M", "4M"),
            ("nvm:model=cxl-flash,cache=6K", "6K"),
        ] {
            let error = NvmSettings::read(&parse_term(text).unwrap()).unwrap_err();
            assert_eq!(&text[error.span.clone()], pointed, "{error}");
        }
    }
}
