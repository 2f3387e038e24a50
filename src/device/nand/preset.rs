//! Known drives, with the sources of their numbers.

use crate::expression::Choice;

/// A named set of values for the options of `nand`.
#[derive(Debug)]
pub struct Preset {
    /// Options and values that the source gives or that follow from it.
    pub values: &'static [(&'static str, &'static str)],
    /// The blocks that each plane has at least: a smaller drive has shorter blocks, down to eight pages, and the same
    /// planes, times and ratios. `None`: the block is the chip's at every size.
    pub least_blocks_per_plane: Option<u64>,
}

/// Pages of flash of the shortest block of a small drive.
const FEWEST_PAGES: u64 = 8;

impl Preset {
    /// The pages of flash of a block on a drive of `planes` planes with `bytes_per_plane` of flash each, in pages of
    /// `page_bytes`, for a chip whose blocks have `pages`.
    pub fn pages_per_block(&self, pages: u64, bytes_per_plane: u64, page_bytes: u64) -> u64 {
        let most = self.least_blocks_per_plane.map_or(pages, |blocks| bytes_per_plane / page_bytes / blocks);
        pages.min(most.max(FEWEST_PAGES))
    }
}

/// All presets.
///
/// `vma`: the paper gives a page read of 88 us and a page write of 263 us. The data sheet of its chip splits them: 25
/// us and 200 us in the array, and 2,112 bytes at 30 ns each on the bus, 63 us.
///
/// `ssd-h`, `-m`, `-l`: the paper measures whole drives and gives no flash times. Let R, S and W be a drive's random 4
/// KB reads, sequential reads and sequential writes in bytes a second. One page at a time takes 4,096 / R, so S / R
/// planes work in parallel; each writes a page in 4,096 x planes / W, of which erase / pages-per-block is the page's
/// share of an erase. A block on every plane together is as large as the requests at which the paper's Figure 1 finds
/// random writes as fast as sequential ones (16, 32 and 16 MB): the clustered block. So the flash times include the
/// overhead of host interface and controller. `Random 4 KB writes` depends on the drives' translation layers, not on
/// the flash, and is not fitted.
///
/// `tlc`: NVMeVirt's model of the ZN540, fitted to the real drive by its authors: 8 channels of 4 dies, 58 us a read,
/// 561 us to program three 32 KiB pages at once, 450 MB/s a channel. Here a 32 KiB page is one of 16 KiB on each of two
/// planes, and a page's program takes a third of the 561 us. A block has 1,077 pages: the drive's zones of 1,077 MiB
/// over 64 planes. That model has no erase time; 3.5 ms and the endurance are typical of TLC data sheets, not of this
/// drive.
///
/// `enterprise-tlc`: a kind of drive, not one of a maker. Its die is Kioxia's and Western Digital's of 128 layers as shown
/// at ISSCC 2019 (report by AnandTech, ISSCC 2021): four planes, 56 us a read, 132 MB/s of programs, 1,066 MB/s of
/// transfers. A word line of three pages of 16 KiB on each of four planes takes 196,608 B / 132 MB/s = 1,489 us, a page's
/// program a third of that, and its transfer 15.4 us. Four dies on each of eight channels, as in drives of 2 to 4 TB.
///
/// `qlc`: the same with the 144-layer QLC die that Intel showed at ISSCC 2021 (the same report): four planes, 85 us a read,
/// 40 MB/s, 1,200 MB/s of transfers. A word line of four pages on each plane takes 6,554 us, a page's program a quarter.
/// Its map has units of 16 KiB, as large QLC drives have units above 4 KiB to save RAM: smaller writes cost a whole one.
///
/// `consumer-tlc`: a kind of drive without DRAM, of the same TLC die as `enterprise-tlc`: two dies on each of four channels. A
/// word line is programmed at once, 1,489 us on each plane as there, so that a layer on it needs a protected buffer. Its blocks
/// can be in SLC mode: a read of 25 us and a program of 200 us are those of SLC in HP's white paper on SLC, MLC and TLC; 3,000
/// and 30,000 erases are those of TLC and of the same flash as pSLC by Swissbit (2023). The cache and the map on flash are
/// options of the layer: `dftl:slc-cache=dynamic,buffer=8M/nand:preset=consumer-tlc`.
///
/// Of these three the erase times, and the endurances of the first two, are typical of data sheets of their cells, not of these
/// dies.
///
/// The powers are those of no drive, but typical of dies (`energy.rs`); `vma` has those of SLC of its time.
impl Choice for &'static Preset {
    const WORDS: &'static [(&'static str, Self, &'static str)] = &[
        (
            "vma",
            &Preset {
                values: &[
                    ("size", "32G"),
                    ("page", "2K"),
                    ("pages-per-block", "64"),
                    ("read", "25us"),
                    ("program", "200us"),
                    ("transfer", "63us"),
                    ("erase", "2ms"),
                    ("endurance", "100000"),
                    ("read-power", "30"),
                    ("program-power", "30"),
                    ("erase-power", "30"),
                    ("idle-power", "0.03"),
                ],
                least_blocks_per_plane: None,
            },
            "Table II of the VMA journaling paper: 32 GB of Samsung K9K4G08U0M (SLC)",
        ),
        (
            "ssd-h",
            &Preset {
                values: &[
                    ("size", "32G"),
                    ("page", "4K"),
                    ("pages-per-block", "256"),
                    ("channels", "8"),
                    ("dies", "2"),
                    ("read", "287us"),
                    ("program", "369us"),
                    ("transfer", "10us"),
                    ("erase", "1500us"),
                    ("endurance", "100000"),
                ],
                least_blocks_per_plane: None,
            },
            "SSD-H of Table 1 of the SFS paper: Intel X25-E (SLC)",
        ),
        (
            "ssd-m",
            &Preset {
                values: &[
                    ("size", "64G"),
                    ("page", "4K"),
                    ("pages-per-block", "400"),
                    ("channels", "10"),
                    ("dies", "2"),
                    ("read", "376us"),
                    ("program", "924us"),
                    ("transfer", "10us"),
                    ("erase", "3ms"),
                    ("endurance", "5000"),
                ],
                least_blocks_per_plane: None,
            },
            "SSD-M of Table 1 of the SFS paper: Samsung S470 (MLC)",
        ),
        (
            "ssd-l",
            &Preset {
                values: &[
                    ("size", "32G"),
                    ("page", "4K"),
                    ("pages-per-block", "320"),
                    ("channels", "1"),
                    ("dies", "13"),
                    ("read", "763us"),
                    ("program", "1382us"),
                    ("transfer", "10us"),
                    ("erase", "3ms"),
                    ("endurance", "3000"),
                ],
                least_blocks_per_plane: None,
            },
            "SSD-L of Table 1 of the SFS paper: Transcend JetFlash 700 (MLC)",
        ),
        (
            "tlc",
            &Preset {
                values: &[
                    ("size", "256G"),
                    ("page", "16K"),
                    ("pages-per-block", "1077"),
                    ("channels", "8"),
                    ("dies", "4"),
                    ("planes", "2"),
                    ("read", "58us"),
                    ("program", "187us"),
                    ("transfer", "36us"),
                    ("erase", "3500us"),
                    ("endurance", "3000"),
                ],
                least_blocks_per_plane: Some(32),
            },
            "a current TLC drive: Western Digital ZN540, as fitted by NVMeVirt (FAST '23)",
        ),
        (
            "enterprise-tlc",
            &Preset {
                values: &[
                    ("size", "16G"),
                    ("page", "16K"),
                    ("unit", "4K"),
                    ("pages-per-block", "1536"),
                    ("channels", "8"),
                    ("dies", "4"),
                    ("planes", "4"),
                    ("read", "56us"),
                    ("program", "496us"),
                    ("transfer", "15400ns"),
                    ("erase", "3500us"),
                    ("endurance", "7000"),
                ],
                least_blocks_per_plane: Some(64),
            },
            "a drive of a data centre, at any size: TLC of 128 layers, 128 planes, a map in units of 4 KiB",
        ),
        (
            "consumer-tlc",
            &Preset {
                values: &[
                    ("size", "16G"),
                    ("page", "16K"),
                    ("unit", "4K"),
                    ("pages-per-block", "1536"),
                    ("channels", "4"),
                    ("dies", "2"),
                    ("planes", "4"),
                    ("cells", "tlc"),
                    ("program-passes", "1"),
                    ("read", "56us"),
                    ("program", "1489us"),
                    ("transfer", "15400ns"),
                    ("erase", "3500us"),
                    ("endurance", "3000"),
                    ("slc-read", "25us"),
                    ("slc-program", "200us"),
                    ("slc-endurance", "30000"),
                ],
                least_blocks_per_plane: Some(64),
            },
            "a drive of a notebook, at any size: TLC of 128 layers, 32 planes, one-shot programs, blocks in SLC mode",
        ),
        (
            "qlc",
            &Preset {
                values: &[
                    ("size", "16G"),
                    ("page", "16K"),
                    ("unit", "16K"),
                    ("pages-per-block", "3072"),
                    ("channels", "8"),
                    ("dies", "4"),
                    ("planes", "4"),
                    ("read", "85us"),
                    ("program", "1638us"),
                    ("transfer", "13700ns"),
                    ("erase", "5ms"),
                    ("endurance", "1500"),
                ],
                least_blocks_per_plane: Some(64),
            },
            "a drive for data that is read, at any size: QLC of 144 layers, 128 planes, a map in units of 16 KiB",
        ),
    ];
}
