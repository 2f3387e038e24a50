//! The cells: each is one function call under callgrind. `scripts/instructions` compares them with `counts.json`.

#![allow(missing_docs, reason = "the macros make public items")]

use flashpath_instructions::{clients, runs, traces};
use gungraun::{library_benchmark, library_benchmark_group, main};
use std::hint::black_box;

const UNIFORM: &str = "uniform:writes=100x";
const ZIPF: &str = "zipf:theta=1.2,writes=100x";
const HOT_COLD: &str = "hotcold:r=0.1,f=0.9,writes=100x";
const EXT: &str = "ext/conv:size=64M,timing=off";
const SFS: &str = "sfs/conv:size=64M,timing=off";

#[library_benchmark]
#[bench::page_1_plane_fill(runs::of_new_drive("page", 1, false))]
#[bench::page_1_plane_uniform(runs::on_drive("page", 1, false, UNIFORM))]
#[bench::page_1_plane_zipf(runs::on_drive("page", 1, false, ZIPF))]
#[bench::page_1_plane_hot_cold(runs::on_drive("page", 1, false, HOT_COLD))]
#[bench::page_1_plane_trace(runs::of_trace("page", 1, false))]
#[bench::page_1_plane_timed_fill(runs::of_new_drive("page", 1, true))]
#[bench::page_1_plane_timed_uniform(runs::on_drive("page", 1, true, UNIFORM))]
#[bench::page_4_planes_fill(runs::of_new_drive("page", 4, false))]
#[bench::page_4_planes_uniform(runs::on_drive("page", 4, false, UNIFORM))]
#[bench::page_4_planes_hot_cold(runs::on_drive("page", 4, false, HOT_COLD))]
#[bench::page_4_planes_timed_uniform(runs::on_drive("page", 4, true, UNIFORM))]
#[bench::page_4_planes_timed_trace(runs::of_trace("page", 4, true))]
#[bench::dftl_1_plane_hot_cold(runs::on_drive("dftl", 1, false, HOT_COLD))]
#[bench::dftl_4_planes_timed_uniform(runs::on_drive("dftl", 4, true, UNIFORM))]
#[bench::fast_1_plane_zipf(runs::on_drive("fast", 1, false, ZIPF))]
#[bench::fast_4_planes_timed_uniform(runs::on_drive("fast", 4, true, UNIFORM))]
#[bench::superblock_1_plane_hot_cold(runs::on_drive("superblock", 1, false, HOT_COLD))]
#[bench::superblock_4_planes_timed_uniform(runs::on_drive("superblock", 4, true, UNIFORM))]
fn host_writes(ready: runs::Ready) {
    runs::done(ready);
}

#[library_benchmark]
#[bench::sfs(runs::in_volume(SFS, None, "file_writes"))]
#[bench::ext(runs::in_volume(EXT, None, "file_writes"))]
fn file_writes(ready: runs::Ready) {
    runs::done(ready);
}

#[library_benchmark]
#[bench::sfs_log(runs::in_volume(SFS, Some(1), "commits"))]
#[bench::ext_jbd2(runs::in_volume(EXT, Some(1), "commits"))]
#[bench::ext_jbd2_data(runs::in_volume("ext:data=journal/conv:size=64M,timing=off", Some(1), "commits"))]
#[bench::ext_second_device(runs::in_volume(
    "ext/conv:size=64M,timing=off+conv:size=16M,timing=off",
    Some(1),
    "commits"
))]
#[bench::ext_nvm(runs::in_volume("ext/conv:size=64M,timing=off+nvm:size=32M", Some(1), "commits"))]
#[bench::ext_vmm(runs::in_volume("ext:journal=vmm/conv:size=64M,timing=off", Some(1), "commits"))]
fn commits(ready: runs::Ready) {
    runs::done(ready);
}

#[library_benchmark]
#[bench::nbd(clients::of_nbd())]
fn requests(ready: clients::Ready) -> Vec<u8> {
    black_box(clients::served(ready))
}

#[library_benchmark]
#[bench::operations(traces::of_format("operations"))]
#[bench::parquet(traces::of_format("parquet"))]
#[bench::blktrace(traces::of_format("blktrace"))]
#[bench::vscsi(traces::of_format("vscsi"))]
#[bench::msr(traces::of_format("msr"))]
#[bench::spc(traces::of_format("spc"))]
#[bench::alibaba(traces::of_format("alibaba"))]
#[bench::tencent(traces::of_format("tencent"))]
#[bench::systor17(traces::of_format("systor17"))]
#[bench::vscsi_csv(traces::of_format("vscsi-csv"))]
#[bench::captured(traces::of_format("captured"))]
#[bench::blkparse(traces::of_format("blkparse"))]
#[bench::ftrace(traces::of_format("ftrace"))]
#[bench::fio_v2(traces::of_format("fio-v2"))]
#[bench::fio_v3(traces::of_format("fio-v3"))]
#[bench::fiu(traces::of_format("fiu"))]
#[bench::mqsim(traces::of_format("mqsim"))]
#[bench::ssdsim(traces::of_format("ssdsim"))]
#[bench::disksim(traces::of_format("disksim"))]
#[bench::midas(traces::of_format("midas"))]
#[bench::strace(traces::of_format("strace"))]
#[bench::lcs(traces::of_format("lcs"))]
#[bench::lcs_bytes(traces::of_format("lcs-bytes"))]
#[bench::dm_log_writes(traces::of_format("dm-log-writes"))]
#[bench::nvme_512(traces::of_format("nvme-512"))]
#[bench::nvme_4096(traces::of_format("nvme-4096"))]
#[bench::biosnoop(traces::of_format("biosnoop"))]
#[bench::thesios(traces::of_format("thesios"))]
#[bench::tectonic(traces::of_format("tectonic"))]
#[bench::columns(traces::of_format("columns"))]
fn records(ready: traces::Ready) -> usize {
    black_box(traces::read(ready)).len()
}

library_benchmark_group!(name = cells, benchmarks = [host_writes, file_writes, commits, requests, records]);
main!(library_benchmark_groups = cells);
