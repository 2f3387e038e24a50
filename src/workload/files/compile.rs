//! `compile`: builds a source tree, as `make` with a C compiler does. The setup creates the tree.
//!
//! | step | operations |
//! |---|---|
//! | source | looked up, opened and read; then its headers, each once |
//! | assembly | written to a temporary file by the compiler, read by the assembler, unlinked at the end |
//! | object | written, followed by a file of dependencies |
//! | directory | its objects are read; an archive is written under a temporary name and renamed |
//! | image | all archives are read; the image is written |
//!
//! A source's headers are drawn from a Zipf distribution over all headers of the tree: some are read for nearly every
//! source. Each thread builds its share of the directories; the first links the image when all have ended. Output sizes
//! are multiples of the source's size.

use super::source_tree::{ArchiveOrder, FileType, SourceTree};
use super::{FileOperation, Lane, Name, Parts, Stage, part, push_reads, push_writes};
use crate::expression::Settings;
use crate::random::Random;
use crate::workload::WorkloadError;
use crate::workload::draw::distribution::{Distribution, Zipf};
use std::ops::Range;
use std::sync::Arc;

const STAGES: &[Stage] = &[
    Stage { name: "tree", counted: false },
    Stage { name: "compiling", counted: true },
    Stage { name: "linking", counted: true },
];

/// The write size of the setup, in bytes.
const SETUP_BLOCK: u64 = 1 << 20;

/// The bytes of one header in a make dependency file: a path, a backslash and a line feed.
const DEPENDENCY_BYTES: u64 = 40;

/// The purpose of [`SourceTree::unit`] for the choice of the sources to build.
const IS_BUILT: u64 = 2;

pub(super) fn lanes(settings: &Settings, seed: u64) -> Parts {
    let shares = (settings.share("sources"), settings.share("headers"));
    let tree = SourceTree::new("compile", settings, shares, seed);
    let threads = settings.count("threads");
    let plan = Arc::new(Plan::new(tree, settings, seed));
    let zipf = Zipf::new(plan.headers.len().max(1) as u64, settings.real("theta"));
    let lane = |lane| {
        Box::new(Compile {
            lane,
            threads,
            order: ArchiveOrder::new(),
            files: 0..0,
            made: 0,
            directory: lane,
            unseen: None,
            objects: Vec::new(),
            archived_bytes: 0,
            linked: 0,
            image_bytes: 0,
            image_is_written: false,
            zipf: zipf.clone(),
            read_for: vec![0; plan.headers.len()],
            unit: 0,
            random: Random::new(seed, &format!("compile {lane}")),
            plan: Arc::clone(&plan),
        }) as _
    };
    (STAGES, (0..threads).map(lane).collect())
}

const ROOT_DIRECTORY: u64 = 0;

/// The build that the lanes share.
struct Plan {
    tree: SourceTree,
    /// The headers, the most included first.
    headers: Vec<Name>,
    built: f64,
    headers_of_source: u64,
    assembly_ratio: f64,
    object_ratio: f64,
    has_temporaries: bool,
    write_block: u64,
}

/// An output of the build, made from a source or a directory. Its names follow those of the tree.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Output {
    Object,
    Dependencies,
    Assembly,
    Archive,
    UnfinishedArchive,
    Image,
}

impl Plan {
    fn new(tree: SourceTree, settings: &Settings, seed: u64) -> Plan {
        let files = tree.directories()..tree.names();
        let mut headers: Vec<Name> = files.filter(|file| tree.file_type(*file) == FileType::Header).collect();
        let mut random = Random::new(seed, "compile headers");
        // Fisher and Yates: a header's popularity is independent of its place in the tree.
        for place in (1..headers.len()).rev() {
            headers.swap(place, random.below(place as u64 + 1) as usize);
        }
        Plan {
            tree,
            headers,
            built: settings.share("built"),
            headers_of_source: settings.count("headers-read"),
            assembly_ratio: settings.real("assembly"),
            object_ratio: settings.real("object"),
            has_temporaries: settings.switch("temporaries"),
            write_block: settings.size("block"),
        }
    }

    fn is_built(&self, file: Name) -> bool {
        self.tree.file_type(file) == FileType::Source && self.tree.unit(file, IS_BUILT) < self.built
    }

    /// The sources to build in a directory.
    fn sources(&self, directory: u64) -> impl Iterator<Item = Name> {
        self.tree.files_in(directory).filter(|file| self.is_built(*file))
    }

    fn object_bytes(&self, source: Name) -> u64 {
        scaled(self.tree.size(source), self.object_ratio)
    }

    /// The size of a directory's archive; 0 for none.
    fn archive_bytes(&self, directory: u64) -> u64 {
        self.sources(directory).map(|source| self.object_bytes(source)).sum()
    }

    /// The name of an output of a source or a directory.
    fn name(&self, output: Output, from: Name) -> Name {
        let kinds = Output::Image as u64 + 1;
        self.tree.names() + from * kinds + output as u64
    }

    fn write_path(&self, name: Name, path: &mut String) {
        let Some(number) = name.checked_sub(self.tree.names()) else { return self.tree.write_path(name, path) };
        let kinds = Output::Image as u64 + 1;
        let start = path.len();
        self.tree.write_path(number / kinds, path);
        let is = |output: Output| number % kinds == output as u64;
        if is(Output::Object) || is(Output::Dependencies) || is(Output::Assembly) {
            // The extension of the source is replaced.
            let end = path[start..].rfind('.').map_or(path.len(), |dot| start + dot);
            path.truncate(end);
        }
        path.push_str(match number % kinds {
            _ if is(Output::Object) => ".o",
            _ if is(Output::Dependencies) => ".d",
            _ if is(Output::Assembly) => ".s",
            _ if is(Output::Archive) => "/built-in.a",
            _ if is(Output::UnfinishedArchive) => "/built-in.a.part",
            _ => "/image",
        });
    }
}

fn scaled(bytes: u64, ratio: f64) -> u64 {
    ((bytes as f64 * ratio) as u64).max(1)
}

/// One of make's jobs.
struct Compile {
    plan: Arc<Plan>,
    lane: u64,
    threads: u64,
    // The setup.
    order: ArchiveOrder,
    files: Range<Name>,
    made: u64,
    // Compiling.
    /// The directory being built.
    directory: u64,
    /// Its files still to be examined; `None` before the directory is begun.
    unseen: Option<Range<Name>>,
    /// Its compiled sources.
    objects: Vec<Name>,
    archived_bytes: u64,
    zipf: Zipf,
    /// For each header, the number of the last unit that read it.
    read_for: Vec<u32>,
    unit: u32,
    random: Random,
    // Linking.
    linked: u64,
    image_bytes: u64,
    image_is_written: bool,
}

fn read_whole(file: Name, size: u64, operations: &mut Vec<FileOperation>) {
    operations.push(FileOperation::Open(file));
    push_reads(operations, file, size, size.max(1));
    operations.push(FileOperation::Close(file));
}

impl Compile {
    fn write_whole(&self, file: Name, size: u64, operations: &mut Vec<FileOperation>) {
        operations.push(FileOperation::Create(file));
        push_writes(operations, file, 0..size, self.plan.write_block, 0);
        operations.push(FileOperation::Close(file));
    }

    fn set_up(&mut self, operations: &mut Vec<FileOperation>) -> bool {
        if self.lane > 0 {
            return false;
        }
        let tree = &self.plan.tree;
        if let Some(file) = self.files.next() {
            self.made += 1;
            operations.push(FileOperation::Create(file));
            push_writes(operations, file, 0..tree.size(file), SETUP_BLOCK, 0);
            operations.push(FileOperation::Close(file));
            return true;
        }
        let directory = self.order.next(tree);
        if let Some(directory) = directory {
            operations.push(FileOperation::MakeDirectory(directory));
            self.files = tree.files_in(directory);
        }
        directory.is_some()
    }

    /// Reads the headers of a source and returns their number.
    fn read_headers(&mut self, operations: &mut Vec<FileOperation>) -> u64 {
        let plan = Arc::clone(&self.plan);
        self.unit += 1;
        let mean = plan.headers_of_source;
        // From half the mean to one and a half times the mean; the tree may have fewer.
        let wanted = (mean / 2 + self.random.below(mean + 1)).min(plan.headers.len() as u64);
        let mut read = 0;
        // A header is read once, as by its include guard. Where few are left, the limit on draws ends the loop.
        for _ in 0..DRAWS_PER_HEADER * wanted {
            if read == wanted {
                break;
            }
            let rank = self.zipf.rank(&mut self.random) as usize;
            if std::mem::replace(&mut self.read_for[rank], self.unit) != self.unit {
                let header = plan.headers[rank];
                operations.push(FileOperation::Stat(header));
                read_whole(header, plan.tree.size(header), operations);
                read += 1;
            }
        }
        read
    }

    fn compile(&mut self, source: Name, operations: &mut Vec<FileOperation>) {
        let plan = Arc::clone(&self.plan);
        let size = plan.tree.size(source);
        operations.push(FileOperation::Stat(source));
        read_whole(source, size, operations);
        let headers = self.read_headers(operations);
        let assembly = plan.name(Output::Assembly, source);
        if plan.has_temporaries {
            let size = scaled(size, plan.assembly_ratio);
            self.write_whole(assembly, size, operations);
            read_whole(assembly, size, operations);
        }
        self.write_whole(plan.name(Output::Object, source), plan.object_bytes(source), operations);
        if plan.has_temporaries {
            operations.push(FileOperation::Unlink(assembly));
        }
        let dependencies = DEPENDENCY_BYTES * (1 + headers);
        self.write_whole(plan.name(Output::Dependencies, source), dependencies, operations);
        self.objects.push(source);
        self.archived_bytes += plan.object_bytes(source);
    }

    /// Reads the objects of the directory and writes its archive.
    fn archive(&mut self, operations: &mut Vec<FileOperation>) {
        let plan = Arc::clone(&self.plan);
        for source in std::mem::take(&mut self.objects) {
            let object = plan.name(Output::Object, source);
            operations.push(FileOperation::Stat(object));
            read_whole(object, plan.object_bytes(source), operations);
        }
        let bytes = std::mem::take(&mut self.archived_bytes);
        let from = plan.name(Output::UnfinishedArchive, self.directory);
        self.write_whole(from, bytes, operations);
        operations.push(FileOperation::Rename { from, to: plan.name(Output::Archive, self.directory) });
    }

    /// Compiles the next source or archives the directory. False at the end of the build.
    fn build(&mut self, operations: &mut Vec<FileOperation>) -> bool {
        while self.directory < self.plan.tree.directories() {
            let plan = Arc::clone(&self.plan);
            let unseen = self.unseen.get_or_insert_with(|| plan.tree.files_in(self.directory));
            if let Some(source) = unseen.find(|file| plan.is_built(*file)) {
                self.compile(source, operations);
                return true;
            }
            let has_objects = !self.objects.is_empty();
            if has_objects {
                self.archive(operations);
            }
            self.directory += self.threads;
            self.unseen = None;
            if has_objects {
                return true;
            }
        }
        false
    }

    fn link(&mut self, operations: &mut Vec<FileOperation>) -> bool {
        if self.lane > 0 || self.image_is_written {
            return false;
        }
        while self.linked < self.plan.tree.directories() {
            let directory = self.linked;
            self.linked += 1;
            let bytes = self.plan.archive_bytes(directory);
            if bytes > 0 {
                read_whole(self.plan.name(Output::Archive, directory), bytes, operations);
                self.image_bytes += bytes;
                return true;
            }
        }
        self.image_is_written = true;
        let image = self.plan.name(Output::Image, ROOT_DIRECTORY);
        self.write_whole(image, self.image_bytes, operations);
        true
    }
}

/// The limit on draws for each header to read.
const DRAWS_PER_HEADER: u64 = 16;

impl Lane for Compile {
    fn step(&mut self, stage: usize, operations: &mut Vec<FileOperation>) -> Result<bool, WorkloadError> {
        Ok(match stage {
            0 => self.set_up(operations),
            1 => self.build(operations),
            _ => self.link(operations),
        })
    }

    fn write_path(&self, name: Name, path: &mut String) {
        self.plan.write_path(name, path);
    }

    fn progress(&self, stage: usize) -> Option<f64> {
        let directories = self.plan.tree.directories();
        match stage {
            0 => part(self.made, self.plan.tree.files()),
            1 => part(self.directory.min(directories), directories),
            _ => part(self.linked, directories),
        }
    }
}
