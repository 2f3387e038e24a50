//! The memory that a monitor keeps, in a file: written when the monitor ends, and read when the next one begins.
//!
//! | bytes | content |
//! |---|---|
//! | 8 | magic `FLPHKEPT` |
//! | 4 | version |
//! | 4 | length of the header |
//! | | header: the volumes, each with the numbers of its blocks |
//! | | the bytes of the blocks, in the header's order |
//! | 8 | CRC-64/NVME of all before |
//!
//! Numbers are little-endian. The file is replaced as a whole.

use crate::arena::FRAME_BYTES;
use crate::error::{VmmError, cannot};
use crate::keeper::Volume;
use crate::ring::Tuple;
use crate::shared::Shared;
use crate::table::Table;
use crc_fast::{CrcAlgorithm, Digest};
use serde::{Deserialize, Serialize};
use std::fs::{self, File};
use std::io::{self, BufReader, BufWriter, ErrorKind, Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

const MAGIC: &[u8; 8] = b"FLPHKEPT";
const VERSION: u32 = 1;
const CHECKSUM: CrcAlgorithm = CrcAlgorithm::Crc64Nvme;
/// Bytes before the header, and behind the blocks.
const AROUND: u64 = 16 + 8;

/// A volume in the header.
#[derive(Serialize, Deserialize)]
struct Spilled {
    uuid: [u8; 16],
    name: [u8; 16],
    width: u32,
    /// All blocks of the volume.
    blocks: u64,
    last: u32,
    path: String,
    directory: String,
    /// Those that are kept, in ascending order.
    kept: Vec<u64>,
}

/// Writes or reads bytes, and adds them to the checksum.
struct Summed<T> {
    inner: T,
    digest: Digest,
}

impl<T> Summed<T> {
    fn new(inner: T) -> Summed<T> {
        Summed { inner, digest: Digest::new(CHECKSUM) }
    }
}

impl<W: Write> Summed<W> {
    fn put(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.digest.update(bytes);
        self.inner.write_all(bytes)
    }
}

impl<R: Read> Summed<R> {
    fn get(&mut self, bytes: &mut [u8]) -> io::Result<()> {
        self.inner.read_exact(bytes)?;
        self.digest.update(bytes);
        Ok(())
    }
}

/// Writes the volumes into the file, which is there as a whole afterwards, or as it was before. Without a volume it is
/// removed.
pub(crate) fn write<'v>(path: &Path, volumes: impl Iterator<Item = ([u8; 16], &'v Volume)>) -> Result<(), VmmError> {
    let volumes: Vec<([u8; 16], &Volume)> = volumes.collect();
    if volumes.is_empty() {
        return remove(path);
    }
    let doing = format!("write what is kept to {}", path.display());
    let new = beside(path);
    let written = write_new(&new, &volumes).and_then(|()| fs::rename(&new, path)).and_then(|()| sync_parent(path));
    written.map_err(|error| {
        // A half-written file is of no use; the error is told whether it can be removed or not.
        let _ = fs::remove_file(&new);
        cannot(&doing)(error)
    })
}

/// Removes the file, if there is one.
pub(crate) fn remove(path: &Path) -> Result<(), VmmError> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != ErrorKind::NotFound => Err(cannot(&format!("remove {}", path.display()))(error)),
        _ => Ok(()),
    }
}

/// The name of the file until it is whole.
fn beside(path: &Path) -> PathBuf {
    let mut name = path.as_os_str().to_os_string();
    name.push(".new");
    name.into()
}

fn sync_parent(path: &Path) -> io::Result<()> {
    let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    File::open(parent)?.sync_all()
}

fn write_new(path: &Path, volumes: &[([u8; 16], &Volume)]) -> io::Result<()> {
    let file = File::options().write(true).create(true).truncate(true).mode(0o600).open(path)?;
    let tuples: Vec<Vec<Tuple>> = volumes.iter().map(|(_, volume)| volume.table.tuples()).collect();
    let header: Vec<Spilled> = volumes
        .iter()
        .zip(&tuples)
        .map(|((uuid, volume), tuples)| Spilled {
            uuid: *uuid,
            name: volume.name,
            width: volume.width,
            blocks: volume.table.blocks(),
            last: volume.table.last(),
            path: volume.path.clone(),
            directory: volume.directory.clone(),
            kept: tuples.iter().map(|(block, _)| *block).collect(),
        })
        .collect();
    let header = postcard::to_stdvec(&header).map_err(io::Error::other)?;
    let length = u32::try_from(header.len()).map_err(io::Error::other)?;
    let mut to = Summed::new(BufWriter::with_capacity(1 << 20, file));
    to.put(MAGIC)?;
    to.put(&VERSION.to_le_bytes())?;
    to.put(&length.to_le_bytes())?;
    to.put(&header)?;
    for ((_, volume), tuples) in volumes.iter().zip(&tuples) {
        let mut bytes = vec![0; volume.width as usize];
        for (_, frame) in tuples {
            volume.memory.read(u64::from(*frame) * FRAME_BYTES as u64, &mut bytes).map_err(io::Error::other)?;
            to.put(&bytes)?;
        }
    }
    to.inner.write_all(&to.digest.finalize().to_le_bytes())?;
    to.inner.into_inner().map_err(io::IntoInnerError::into_error)?.sync_all()
}

/// The volumes in the file, if there is one.
pub(crate) fn read(path: &Path) -> Result<Vec<([u8; 16], Volume)>, VmmError> {
    let doing = format!("read what is kept from {}", path.display());
    let file = match File::open(path) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
        opened => opened.map_err(cannot(&doing))?,
    };
    read_from(file).map_err(|error| match error {
        VmmError::System { source, .. } => cannot(&doing)(source),
        VmmError::Protocol(why) => {
            VmmError::Protocol(format!("{} is not what a monitor has written: {why}; move it away", path.display()))
        }
        other => other,
    })
}

fn wrong(what: impl ToString) -> VmmError {
    VmmError::Protocol(what.to_string())
}

fn read_from(file: File) -> Result<Vec<([u8; 16], Volume)>, VmmError> {
    let length = file.metadata().map_err(cannot(""))?.len();
    let mut from = Summed::new(BufReader::with_capacity(1 << 20, file));
    let mut start = [0; 16];
    from.get(&mut start).map_err(|_| wrong("it is shorter than a header"))?;
    let number = |at: usize| u32::from_le_bytes(start[at..at + 4].try_into().expect("four bytes"));
    if start[..8] != *MAGIC {
        return Err(wrong("it begins with other bytes"));
    }
    if number(8) != VERSION {
        return Err(wrong(format!("it has version {}, and this program writes {VERSION}", number(8))));
    }
    let header_bytes = u64::from(number(12));
    if AROUND + header_bytes > length {
        return Err(wrong("it is shorter than its header"));
    }
    let mut header = vec![0; header_bytes as usize];
    from.get(&mut header).map_err(cannot(""))?;
    let header: Vec<Spilled> = postcard::from_bytes(&header).map_err(wrong)?;
    let bytes_of = |volume: &Spilled| volume.kept.len() as u64 * u64::from(volume.width);
    if AROUND + header_bytes + header.iter().map(bytes_of).sum::<u64>() != length {
        return Err(wrong(format!("its {length} bytes are not those of its blocks")));
    }
    let volumes = header.into_iter().map(|volume| Ok((volume.uuid, restored(volume, &mut from)?)));
    let volumes: Vec<([u8; 16], Volume)> = volumes.collect::<Result<_, VmmError>>()?;
    let mut checksum = [0; 8];
    from.inner.read_exact(&mut checksum).map_err(cannot(""))?;
    if u64::from_le_bytes(checksum) != from.digest.finalize() {
        return Err(wrong("its checksum is wrong"));
    }
    Ok(volumes)
}

/// A volume with memory of this process, to which the blocks are read.
fn restored(volume: Spilled, from: &mut Summed<impl Read>) -> Result<Volume, VmmError> {
    let Spilled { width, blocks, last, kept, .. } = volume;
    let is_ascending = kept.is_sorted_by(|one, next| one < next);
    if width == 0 || width as usize > FRAME_BYTES || !is_ascending || kept.last().is_some_and(|last| *last >= blocks) {
        return Err(wrong(format!("volume {} has blocks that it cannot have", volume.path)));
    }
    let frames = u32::try_from(kept.len()).map_err(wrong)?;
    let memory = Shared::new("flashpath frames", u64::from(frames) * FRAME_BYTES as u64)?;
    let mut bytes = vec![0; width as usize];
    for frame in 0..frames {
        from.get(&mut bytes).map_err(cannot(""))?;
        memory.write(u64::from(frame) * FRAME_BYTES as u64, &bytes)?;
    }
    memory.seal()?;
    let mut table = Table::new(blocks, frames, frames, last);
    let tuples = kept.into_iter().zip(0..frames).collect();
    let checked = table.check(last, tuples, Vec::new()).map_err(wrong)?;
    table.apply(checked);
    let Spilled { name, path, directory, .. } = volume;
    Ok(Volume { name, width, table, memory: Arc::new(memory), path, directory, is_of_spill: true })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn volume(path: &str, width: u32, tuples: &[Tuple]) -> Volume {
        let memory = Shared::new("test", 64 * FRAME_BYTES as u64).unwrap();
        for (block, frame) in tuples {
            memory.write(u64::from(*frame) * FRAME_BYTES as u64, &vec![*block as u8; width as usize]).unwrap();
        }
        let mut table = Table::new(1000, 64, 64, 9);
        let checked = table.check(9, tuples.to_vec(), Vec::new()).unwrap();
        table.apply(checked);
        let (memory, path, directory) = (Arc::new(memory), path.to_string(), "/".to_string());
        Volume { name: [5; 16], width, table, memory, path, directory, is_of_spill: false }
    }

    fn written(path: &Path) {
        let (first, second) = (volume("a", 4096, &[(7, 3), (900, 1)]), volume("b", 1024, &[]));
        write(path, [([1; 16], &first), ([2; 16], &second)].into_iter()).unwrap();
    }

    #[test]
    fn what_was_kept_comes_back_from_the_file() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("spill");
        assert!(read(&path).unwrap().is_empty(), "there is none");
        written(&path);
        let found = read(&path).unwrap();
        let [(one, first), (two, second)] = &found[..] else { panic!("two volumes") };
        assert_eq!((one, two, &first.path[..], &second.path[..]), (&[1; 16], &[2; 16], "a", "b"));
        assert_eq!((first.name, first.table.last(), first.table.tuples()), ([5; 16], 9, vec![(7, 0), (900, 1)]));
        assert_eq!((second.width, second.table.last(), second.table.len()), (1024, 9, 0));
        let mut bytes = [0; 4096];
        first.memory.read(4096, &mut bytes).unwrap();
        assert_eq!(bytes, [900_u64 as u8; 4096]);
        write(&path, found.iter().map(|(uuid, volume)| (*uuid, volume))).unwrap();
        assert_eq!(read(&path).unwrap().len(), 2, "it is written from what was read");
        write(&path, std::iter::empty()).unwrap();
        assert!(!path.exists(), "nothing is kept");
    }

    #[test]
    fn any_damage_of_the_file_is_found() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("spill");
        written(&path);
        let whole = fs::read(&path).unwrap();
        let is_refused = |bytes: &[u8]| {
            fs::write(&path, bytes).unwrap();
            read(&path).is_err_and(|error| error.to_string().contains("is not what a monitor has written"))
        };
        for at in (0..300).chain((300..whole.len()).step_by(97)).chain(whole.len() - 8..whole.len()) {
            for bit in [0, 7] {
                let mut bytes = whole.clone();
                bytes[at] ^= 1 << bit;
                assert!(is_refused(&bytes), "bit {bit} of byte {at}");
            }
        }
        for length in [0, 1, 15, 16, 100, whole.len() - 1] {
            assert!(is_refused(&whole[..length]), "{length} bytes of it");
        }
        assert!(is_refused(&[&whole[..], &[0]].concat()), "a byte more");
    }
}
