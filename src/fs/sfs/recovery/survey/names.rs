//! Surveying names: blocks of directories, names in them, parents, and how many names each inode has.

use super::super::finding::{Finding, Structure};
use super::faults::{Mend, Stage};
use super::paths::NameSeen;
use super::{Seen, Survey, Surveyor};
use crate::fs::sfs::error::SfsError;
use crate::fs::sfs::files::attributes::{FileKind, InodeNumber};
use crate::fs::sfs::files::directory;
use crate::fs::sfs::media::format::{BLOCK, DatEntry};
use std::collections::{BTreeMap, BTreeSet};

impl Surveyor<'_> {
    /// Surveys the blocks of a directory, and collects the names in them.
    pub(super) fn survey_directory(
        &mut self,
        survey: &mut Survey,
        directory: u64,
        seen: &Seen,
        mut blocks: Vec<(u64, u64, DatEntry)>,
    ) {
        blocks.sort_unstable_by_key(|(place, ..)| *place);
        let is_line = (0..).zip(&blocks).all(|(number, (place, ..))| number == *place);
        let size = blocks.len() as u64 * BLOCK as u64;
        if !is_line || seen.size != size {
            let found =
                format!("{} blocks, not one behind the other, or not as its {} bytes say", blocks.len(), seen.size);
            let repair = "its blocks are put one behind the other";
            let place = format!("directory {directory}");
            let finding =
                Finding::new(Structure::Directory, place, found, format!("{size} bytes without a hole"), repair);
            let blocks = blocks.iter().map(|(_, number, _)| *number).collect();
            survey.fault(Stage::Directories, finding.of(directory), Mend::Line { directory, blocks });
        }
        for (place, number, entry) in blocks {
            let mend = Mend::Rewrite { directory, number, place };
            let where_ = format!("block {place} of directory {directory}, virtual block {number}");
            match self.files.peek(self.task, number, directory, &entry) {
                Err(why) => {
                    let repair = "it is emptied; what had its names only there goes to lost+found";
                    let finding = Finding::new(Structure::Directory, where_, why, "what was written", repair);
                    survey.fault(Stage::Directories, finding.of(directory), mend);
                }
                Ok(bytes) => {
                    let mut is_whole = true;
                    for record in directory::records(&bytes) {
                        let Some(record) = record else {
                            is_whole = false;
                            break;
                        };
                        if record.inode != 0 {
                            survey.names.push(NameSeen {
                                directory,
                                place: place * BLOCK as u64 + record.at as u64,
                                inode: record.inode,
                                kind: record.kind,
                                name: record.name.to_vec(),
                            });
                        }
                    }
                    if !is_whole {
                        let repair = "it is rewritten with its whole records";
                        let found = "its records do not fill it";
                        let finding =
                            Finding::new(Structure::Directory, where_, found, "records up to its end", repair);
                        survey.fault(Stage::Directories, finding.of(directory), mend);
                    }
                }
            }
        }
    }

    /// Checks names against inodes.
    pub(super) fn survey_names(&mut self, survey: &mut Survey) -> Result<(), SfsError> {
        let root = InodeNumber::ROOT.0;
        if survey.inodes.get(&root).is_none_or(|seen| seen.kind != FileKind::Directory) {
            let repair = "it is made anew; what it held goes to lost+found";
            let finding = Finding::new(Structure::Inode, "the root", "it is no directory", "a directory", repair);
            survey.fault(Stage::Inodes, finding, Mend::MakeRoot);
        }
        let mut links: BTreeMap<u64, u32> = BTreeMap::new();
        let mut parents: BTreeMap<u64, u64> = BTreeMap::new();
        let mut taken: BTreeSet<(u64, Vec<u8>)> = BTreeSet::new();
        let mut faults = Vec::new();
        // Of two names of a directory, that one is right which its '..' agrees with.
        let agrees =
            |name: &&NameSeen| survey.inodes.get(&name.inode).is_some_and(|seen| seen.parent == name.directory);
        let agreed: BTreeSet<u64> = survey.names.iter().filter(agrees).map(|name| name.inode).collect();
        for name in &survey.names {
            let drop = |why: String, expected: &str| {
                let text = String::from_utf8_lossy(&name.name).into_owned();
                let place = format!("the name '{text}' in directory {}, at byte {}", name.directory, name.place);
                let finding = Finding::new(Structure::Directory, place, why, expected, "it is taken away");
                let mend = Mend::DropName { directory: name.directory, place: name.place };
                (Stage::Names, finding.of(name.directory), mend)
            };
            if matches!(&name.name[..], b"" | b"." | b"..") || name.name.contains(&b'/') || name.name.contains(&0) {
                faults.push(drop("no name can be so".to_string(), "a name without '/' and zero bytes"));
                continue;
            }
            let Some(seen) = survey.inodes.get(&name.inode) else {
                faults.push(drop(format!("it is that of inode {}, which is none", name.inode), "an inode"));
                continue;
            };
            if !taken.insert((name.directory, name.name.clone())) {
                faults.push(drop("it is there twice".to_string(), "one of each name"));
                continue;
            }
            if seen.kind == FileKind::Directory {
                let is_elsewhere = agreed.contains(&name.inode) && seen.parent != name.directory;
                if name.inode == root || parents.contains_key(&name.inode) || is_elsewhere {
                    faults.push(drop(format!("directory {} has another name", name.inode), "one name of a directory"));
                    continue;
                }
                parents.insert(name.inode, name.directory);
                *links.entry(name.directory).or_default() += 1;
            } else {
                *links.entry(name.inode).or_default() += 1;
            }
            if name.kind != seen.kind as u8 {
                let text = String::from_utf8_lossy(&name.name).into_owned();
                let place = format!("the name '{text}' in directory {}", name.directory);
                let found = format!("it says that inode {} is of kind {}", name.inode, name.kind);
                let expected = format!("{}, as the inode says", seen.kind as u8);
                let finding = Finding::new(Structure::Directory, place, found, expected, "it is put right");
                let (directory, place, inode, kind) = (name.directory, name.place, name.inode, seen.kind);
                faults.push((Stage::Names, finding.of(inode), Mend::SetKind { directory, place, inode, kind }));
            }
        }
        faults.into_iter().for_each(|(stage, finding, mend)| survey.fault(stage, finding, mend));
        self.survey_tree(survey, &parents, &links);
        Ok(())
    }

    /// Checks the parents of directories, and how many names each inode has.
    fn survey_tree(&mut self, survey: &mut Survey, parents: &BTreeMap<u64, u64>, links: &BTreeMap<u64, u32>) {
        let root = InodeNumber::ROOT.0;
        let mut faults = Vec::new();
        let mut hangs = BTreeSet::from([root]);
        for (number, seen) in &survey.inodes {
            let place = format!("inode {number}");
            let names = links.get(number).copied().unwrap_or(0);
            let is_held = self.files.orphans.contains(number) && seen.links == 0;
            if seen.kind != FileKind::Directory {
                let lost = Finding::new(
                    Structure::Inode,
                    place.as_str(),
                    "it has no name",
                    "a name",
                    "it gets one in lost+found",
                );
                match (names, is_held) {
                    (0, true) => {}
                    (0, false) if seen.links == 0 => {
                        let found = "it has no name, and nobody holds it";
                        let finding = Finding::new(Structure::Inode, place, found, "free", "it is freed");
                        faults.push((Stage::Tree, finding.of(*number), Mend::ClearInode(*number)));
                    }
                    (0, false) => faults.push((Stage::Tree, lost.of(*number), Mend::Reconnect(*number))),
                    (names, _) if names != seen.links => {
                        let found = format!("it is said to have {} names", seen.links);
                        let finding =
                            Finding::new(Structure::Inode, place, found, format!("{names}"), "the number is put right");
                        let mend = Mend::SetLinks { inode: *number, links: names };
                        faults.push((Stage::Inode, finding.of(*number), mend));
                    }
                    _ => {}
                }
                continue;
            }
            if is_held {
                continue;
            }
            let up = if *number == root { Some(&root) } else { parents.get(number) };
            match up {
                None => {
                    let repair = "it gets one in lost+found";
                    let finding = Finding::new(Structure::Directory, place, "it has no name", "a name", repair);
                    faults.push((Stage::Tree, finding.of(*number), Mend::Reconnect(*number)));
                    hangs.insert(*number);
                    continue;
                }
                Some(up) if *up != seen.parent => {
                    let found = format!("its '..' is directory {}", seen.parent);
                    let repair = "it is put right";
                    let finding = Finding::new(Structure::Directory, place.as_str(), found, format!("{up}"), repair);
                    let mend = Mend::SetParent { directory: *number, parent: *up };
                    faults.push((Stage::Inode, finding.of(*number), mend));
                }
                Some(_) => {}
            }
            if seen.links != names + 2 {
                let found = format!("it is said to have {} links", seen.links);
                let expected = format!("{}", names + 2);
                let finding = Finding::new(Structure::Directory, place, found, expected, "the number is put right");
                faults.push((Stage::Inode, finding.of(*number), Mend::SetLinks { inode: *number, links: names + 2 }));
            }
        }
        // Directories that lie in each other, and nowhere else.
        let directories = survey.inodes.iter().filter(|(_, seen)| seen.kind == FileKind::Directory);
        for (number, _) in directories {
            let (mut at, mut way) = (*number, Vec::new());
            while hangs.insert(at) {
                way.push(at);
                match parents.get(&at) {
                    Some(up) => at = *up,
                    None => break,
                }
            }
            if way.contains(&at) && parents.contains_key(&at) {
                let name = survey.names.iter().find(|name| name.inode == at);
                let Some(name) = name else { continue };
                let found = "it lies in itself";
                let repair = "it goes to lost+found";
                let place = format!("directory {at}");
                let finding = Finding::new(Structure::Directory, place, found, "the root above it", repair);
                let mend = Mend::DropName { directory: name.directory, place: name.place };
                faults.push((Stage::Names, finding.of(at), mend));
            }
        }
        faults.into_iter().for_each(|(stage, finding, mend)| survey.fault(stage, finding, mend));
    }
}
