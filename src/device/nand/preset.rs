//! Known drives, with the sources of their numbers.

use crate::expression::Choice;

/// A named set of values for the options of `nand`.
#[derive(Debug)]
pub struct Preset {
    /// Options and values that the source gives or that follow from it.
    pub values: &'static [(&'static str, &'static str)],
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
                ],
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
            },
            "a current TLC drive: Western Digital ZN540, as fitted by NVMeVirt (FAST '23)",
        ),
    ];
}
