//! The table of formats.

use super::biosnoop::Biosnoop;
use super::blkparse::Blkparse;
use super::blktrace::{self, BlktraceReader};
use super::captured::{Captured, Operations};
use super::columns::{DiskSim, Fiu, Midas, Mqsim};
use super::comma_separated::{Alibaba, Msr, Spc, Systor, Tencent, VscsiCsv};
use super::format::Format;
use super::ftrace::Ftrace;
use super::iolog::Iolog;
use super::lcs::{self, LcsReader};
use super::log_writes::{self, LogWritesReader};
use super::nvme::Nvme;
use super::recognise;
use super::strace::Strace;
use super::tectonic::Tectonic;
use super::thesios::Thesios;
use super::vscsi::{self, VscsiReader};

/// The format of texts with columns that the user describes.
pub(super) const COLUMNS: Format = Format::described("columns");

/// All formats in the order of recognition: of two equally good matches, the first wins. A captured line ends in any text, so
/// that stricter formats come before it.
pub static FORMATS: &[Format] = &[
    // `time_ns,device,action,offset_bytes,length_bytes,content,stream`: the output of `convert`.
    Format::lines::<Operations>("operations").with_times_from_zero(),
    // The same columns in a Parquet file.
    Format::parquet("parquet").with_times_from_zero(),
    // blktrace's binary records, version 7 or 8, in either byte order.
    Format::binary_with_stages("blktrace", blktrace::recognises, blktrace::earliest_stage, |input, intake, stage| {
        Box::new(BlktraceReader::new(input, intake, stage))
    }),
    // VMware's vscsiStats, binary, version 1 (CloudPhysics).
    Format::binary("vscsi", vscsi::recognises, |input, intake, _| Box::new(VscsiReader::new(input, intake))),
    // libCacheSim's own format, version 2 and later; objects are numbers of sectors.
    Format::binary("lcs", lcs::recognises, |input, intake, _| Box::new(LcsReader::<512>::new(input, intake))),
    // The same; objects are addresses in bytes.
    Format::binary("lcs-bytes", lcs::recognises, |input, intake, _| Box::new(LcsReader::<1>::new(input, intake)))
        .by_name_alone(),
    // The log of device mapper's log-writes and of QEMU's blklogwrites.
    Format::binary("dm-log-writes", log_writes::recognises, |input, intake, _| {
        Box::new(LogWritesReader::new(input, intake))
    }),
    // MSR Cambridge (SNIA 388).
    Format::lines::<Msr>("msr"),
    // The Storage Performance Council's format: UMass Financial and WebSearch.
    Format::lines::<Spc>("spc"),
    // Alibaba's block traces of 2020.
    Format::lines::<Alibaba>("alibaba"),
    // Tencent's cloud block storage traces.
    Format::lines::<Tencent>("tencent"),
    // SYSTOR'17: a virtual desktop infrastructure's LUNs (SNIA 4928).
    Format::lines::<Systor>("systor17"),
    // VMware's vscsiStats as CSV.
    Format::lines::<VscsiCsv>("vscsi-csv"),
    // `time_us,rwbs,sector,nsect,comm`: block events of a kernel.
    Format::lines::<Captured>("captured"),
    // blkparse's output.
    Format::lines::<Blkparse>("blkparse").with_stages(),
    // Block events of ftrace, as the kernel, trace-cmd, perf and systrace print them.
    Format::lines::<Ftrace>("ftrace").with_stages(),
    // Commands of NVMe drives in events of ftrace; the size of blocks is not in them.
    Format::lines::<Nvme<512>>("nvme-512"),
    Format::lines::<Nvme<4096>>("nvme-4096").by_name_alone(),
    // The output of bcc's biosnoop.
    Format::lines::<Biosnoop>("biosnoop"),
    // fio's I/O logs.
    Format::lines::<Iolog<2>>("fio-v2"),
    Format::lines::<Iolog<3>>("fio-v3"),
    // FIU's traces with a hash per block (SNIA 391).
    Format::lines::<Fiu>("fiu"),
    // MQSim's format: times are nanoseconds.
    Format::lines::<Mqsim>("mqsim").with_note(
        "MQSim, SSDsim and DiskSim have the same fields in different units of time: it was read as mqsim, in \
         nanoseconds (the format disksim reads milliseconds)",
    ),
    // SSDsim's format: the layout of MQSim's.
    Format::lines::<Mqsim>("ssdsim").by_name_alone(),
    // DiskSim's ASCII format: times are milliseconds.
    Format::lines::<DiskSim>("disksim"),
    // The format of MiDAS (FAST'24).
    Format::lines::<Midas>("midas"),
    // File calls of `strace -f -ttt -yy`: every file is a device.
    Format::lines::<Strace>("strace"),
    // Google's Thesios (ASPLOS'24): every file is a device.
    Format::lines::<Thesios>("thesios"),
    // Meta's Tectonic (FAST'24): every block of the cluster is a device.
    Format::lines::<Tectonic>("tectonic"),
    // Any lines of text, by the columns that the user describes.
    COLUMNS,
    Format::refused(
        "oracle-general",
        recognise::is_oracle_general,
        "an oracleGeneral trace (libCacheSim) has no field that tells reads from writes: \
         it cannot drive a simulator of writes. Use the trace it was made from",
    ),
    Format::refused(
        "biosnoop-bt",
        recognise::is_of_bpftrace,
        "the output of bpftrace's biosnoop has no addresses. Record with bcc's program of this name (biosnoop-bpfcc)",
    ),
    Format::refused(
        "cachelib",
        recognise::is_of_keys,
        "a trace of a cache's keys (CacheLib, Twitter) has no addresses on a drive: where an object is written depends on \
         the cache. Run the requests of a flash cache, with the workload kvcache:trace=FILE",
    ),
    Format::refused(
        "filebench",
        recognise::is_filebench,
        "a filebench workload model is a program, not a trace. \
         Run it and capture the file system's writes",
    ),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_format_is_found_by_its_name() {
        for format in FORMATS {
            assert_eq!(Format::named(FORMATS, format.name()), Some(format));
        }
        assert_eq!(Format::named(FORMATS, "vhd"), None);
    }
}
