//! The hashes of names: in which order a hashed directory keeps them.
//!
//! Three functions, each for names as signed and as unsigned bytes, which differ from 0x80 on. The lowest bit of a hash is
//! free: an index marks with it a hash that goes on from the block before.

/// A function.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Function {
    Legacy,
    /// The first rounds of MD4, on half its steps.
    HalfMd4,
    /// The tiny encryption algorithm.
    Tea,
}

/// A function, and how it sees bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HashKind {
    function: Function,
    is_unsigned: bool,
}

impl HashKind {
    /// That with this number; `is_unsigned`: the volume says so for the first three. `None` if it is not known.
    pub fn of(number: u8, is_unsigned: bool) -> Option<HashKind> {
        let function = match number % 3 {
            _ if number > 5 => return None,
            0 => Function::Legacy,
            1 => Function::HalfMd4,
            _ => Function::Tea,
        };
        Some(HashKind { function, is_unsigned: is_unsigned || number >= 3 })
    }

    /// The number that an index has for it.
    pub fn number(self) -> u8 {
        self.function as u8
    }
}

/// The hash of a name: the order of blocks, and within them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Hash {
    pub major: u32,
    pub minor: u32,
}

/// The hash that a volume uses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hasher {
    /// `None` if the superblock names one that nobody knows here.
    pub kind: Option<HashKind>,
    pub seed: [u32; 4],
}

const MD4_BEGIN: [u32; 4] = [0x6745_2301, 0xEFCD_AB89, 0x98BA_DCFE, 0x1032_5476];
/// The hash that stands for the end.
const END: u32 = 0x7FFF_FFFF << 1;

impl HashKind {
    /// The hash of a name.
    pub fn hash(self, name: &[u8], seed: [u32; 4]) -> Hash {
        let state = if seed == [0; 4] { MD4_BEGIN } else { seed };
        let (major, minor) = match self.function {
            Function::Legacy => (self.legacy(name), 0),
            Function::HalfMd4 => {
                let state = self.chunks::<8>(name, 32).fold(state, half_md4);
                (state[1], state[2])
            }
            Function::Tea => {
                let state = self.chunks::<4>(name, 16).fold(state, tea);
                (state[0], state[1])
            }
        };
        let major = major & !1;
        Hash { major: if major == END { END - 2 } else { major }, minor }
    }

    fn number_of(self, byte: u8) -> u32 {
        if self.is_unsigned { u32::from(byte) } else { byte as i8 as u32 }
    }

    fn legacy(self, name: &[u8]) -> u32 {
        let (mut last, mut before) = (0x12A3_FE2Du32, 0x37AB_E8F9u32);
        for byte in name {
            let mut next = before.wrapping_add(last ^ self.number_of(*byte).wrapping_mul(7_152_373));
            if next & 0x8000_0000 != 0 {
                next = next.wrapping_sub(0x7FFF_FFFF);
            }
            (before, last) = (last, next);
        }
        last << 1
    }

    /// A name in chunks of `bytes`, each as N words. What is missing in the last one is filled with the length of what is
    /// left.
    fn chunks<const N: usize>(self, name: &[u8], bytes: usize) -> impl Iterator<Item = [u32; N]> {
        (0..name.len().div_ceil(bytes)).map(move |number| {
            let rest = &name[number * bytes..];
            let length = rest.len() as u32;
            let filler = length | length << 8;
            let filler = filler | filler << 16;
            let mut words = [filler; N];
            for (word, part) in words.iter_mut().zip(rest[..rest.len().min(bytes)].chunks(4)) {
                *word = part.iter().fold(filler, |word, byte| (word << 8).wrapping_add(self.number_of(*byte)));
            }
            words
        })
    }
}

fn half_md4(state: [u32; 4], words: [u32; 8]) -> [u32; 4] {
    type Mix = fn(u32, u32, u32) -> u32;
    let rounds: [(Mix, u32, [usize; 8], [u32; 4]); 3] = [
        (|x, y, z| z ^ (x & (y ^ z)), 0, [0, 1, 2, 3, 4, 5, 6, 7], [3, 7, 11, 19]),
        (|x, y, z| (x & y).wrapping_add((x ^ y) & z), 0x5A82_7999, [1, 3, 5, 7, 0, 2, 4, 6], [3, 5, 9, 13]),
        (|x, y, z| x ^ y ^ z, 0x6ED9_EBA1, [3, 7, 2, 6, 1, 5, 0, 4], [3, 9, 11, 15]),
    ];
    let [mut a, mut b, mut c, mut d] = state;
    for (mix, constant, order, shifts) in rounds {
        for (step, word) in order.into_iter().enumerate() {
            let sum = a.wrapping_add(mix(b, c, d)).wrapping_add(words[word]).wrapping_add(constant);
            (a, b, c, d) = (d, sum.rotate_left(shifts[step % 4]), b, c);
        }
    }
    [0, 1, 2, 3].map(|at| state[at].wrapping_add([a, b, c, d][at]))
}

fn tea(state: [u32; 4], words: [u32; 4]) -> [u32; 4] {
    let (mut left, mut right, mut sum) = (state[0], state[1], 0u32);
    let mix = |half: u32, sum: u32, first: u32, second: u32| {
        (half << 4).wrapping_add(first) ^ half.wrapping_add(sum) ^ (half >> 5).wrapping_add(second)
    };
    for _ in 0..16 {
        sum = sum.wrapping_add(0x9E37_79B9);
        left = left.wrapping_add(mix(right, sum, words[0], words[1]));
        right = right.wrapping_add(mix(left, sum, words[2], words[3]));
    }
    [state[0].wrapping_add(left), state[1].wrapping_add(right), state[2], state[3]]
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As `debugfs -R 'dx_hash -h KIND NAME'` says, without a seed.
    #[test]
    fn names_hash_as_debugfs_says() {
        let long: &[u8] = b"a name of more than thirty-two bytes, for a second chunk";
        let hashed: [(u8, &[u8], u32, u32); 6] = [
            (0, b"lost+found", 0x5e2a_ba24, 0),
            (0, long, 0x2b11_8686, 0),
            (1, b"lost+found", 0x591d_e422, 0x6ffc_56e0),
            (1, long, 0x5973_d36c, 0x79d0_ab36),
            (2, b"lost+found", 0x2dbf_9e80, 0xbfeb_ee4f),
            (2, long, 0xa9ec_c582, 0xe6ee_bd01),
        ];
        for (number, name, major, minor) in hashed {
            let hash = HashKind::of(number, false).unwrap().hash(name, [0; 4]);
            assert_eq!((hash.major, hash.minor), (major, minor), "{number} {}", String::from_utf8_lossy(name));
        }
        assert_eq!(HashKind::of(6, false), None);
    }
}
