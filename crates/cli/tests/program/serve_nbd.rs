//! The NBD export with common clients.

use super::bench::Bench;
use super::serve::{Served, client, nbdsh, succeeds, wait_until};
use std::os::unix::fs::PermissionsExt;
use std::process::Stdio;

const PATH: &str = "conv:size=64M,timing=off";
const URI: &str = "nbd+unix:///?socket=s";

/// Bytes without repetition.
fn noise(bytes: usize) -> Vec<u8> {
    let mut state = 7u64;
    let mut next = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) as u8
    };
    (0..bytes).map(|_| next()).collect()
}

#[test]
fn nbdinfo_sees_size_limits_and_all_abilities_of_the_export() {
    let bench = Bench::new();
    let Some(mut nbdinfo) = client(&bench, "nbdinfo") else { return };
    let served = Served::nbd(&bench, PATH, &[]);
    assert!(served.ready.contains("64.0 MiB") && served.ready.contains(URI), "{}", served.ready);
    let mode = bench.path("s").metadata().unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600, "the socket is its owner's alone");
    let info = succeeds(nbdinfo.args(["--list", "--json", URI]));
    let info: serde_json::Value = serde_json::from_str(&info).unwrap();
    let export = &info["exports"][0];
    assert_eq!(export["export-size"], 64 << 20);
    for able in ["can_df", "can_fast_zero", "can_flush", "can_fua", "can_multi_conn", "can_trim", "can_zero"] {
        assert_eq!(export[able], true, "{able}");
    }
    assert_eq!((&export["is_read_only"], &export["can_cache"]), (&false.into(), &false.into()));
    let sizes = ["block_size_minimum", "block_size_preferred", "block_size_maximum"].map(|name| &export[name]);
    assert_eq!(sizes, [&serde_json::json!(1), &serde_json::json!(4096), &serde_json::json!(32 << 20)]);
    let map = succeeds(client(&bench, "nbdinfo").unwrap().args(["--map", "--totals", URI]));
    assert!(map.contains("100.0%") && map.contains("hole,zero"), "{map}");
    served.end();
    assert!(bench.files().is_empty(), "the socket is removed");
}

#[test]
fn nbdcopy_reads_back_its_copy_over_several_connections() {
    let bench = Bench::new();
    let Some(mut nbdcopy) = client(&bench, "nbdcopy") else { return };
    let mut disk = noise(24 << 20);
    // A hole in the middle, and an end within a block.
    disk[4 << 20..12 << 20].fill(0);
    disk.resize(64 << 20, 0);
    bench.write("in", &disk);
    let served = Served::nbd(&bench, PATH, &[]);
    succeeds(nbdcopy.args(["--connections=4", "--flush", "in", URI]));
    succeeds(client(&bench, "nbdcopy").unwrap().args(["--connections=4", URI, "out"]));
    assert!(std::fs::read(bench.path("out")).unwrap() == disk);
    served.end();
}

#[test]
fn nbdsh_finds_every_command_as_the_protocol_says() {
    let bench = Bench::new();
    let Some(mut nbdsh) = nbdsh(&bench) else { return };
    let script = r#"
import errno
h.add_meta_context("base:allocation")
h.connect_uri("nbd+unix:///?socket=s")
def refused(number, call):
    try:
        call()
    except nbd.Error as error:
        assert error.errnum == number, error
    else:
        raise Exception("it was not refused")
h.set_strict_mode(0)
h.pwrite(b"a" * 10000, 4000, nbd.CMD_FLAG_FUA)
assert h.pread(10002, 3999) == b"\0" + b"a" * 10000 + b"\0"
assert h.pread(100, 3950, nbd.CMD_FLAG_DF) == b"\0" * 50 + b"a" * 50
h.zero(100, 4050, nbd.CMD_FLAG_FUA)
assert h.pread(200, 4000) == b"a" * 50 + b"\0" * 100 + b"a" * 50
h.trim(12288, 0, nbd.CMD_FLAG_FUA)
assert h.pread(12288, 0) == bytes(12288)
assert h.pread(2, 12287) == b"\0a"
h.zero(1 << 20, 8 << 20, nbd.CMD_FLAG_NO_HOLE)
h.zero(1 << 20, 16 << 20, nbd.CMD_FLAG_FAST_ZERO)
refused(errno.ENOTSUP, lambda: h.zero(1 << 20, 0, nbd.CMD_FLAG_FAST_ZERO | nbd.CMD_FLAG_NO_HOLE))
seen = []
def extent(context, offset, entries, error):
    seen.append((context, offset, entries))
h.block_status(64 << 20, 0, extent)
states = []
for length, state in zip(seen[0][2][::2], seen[0][2][1::2]):
    states += [(length, state)]
assert sum(length for length, _ in states) == 64 << 20, states
assert {state for _, state in states} == {0, 3}, states
assert not any(before[1] == after[1] for before, after in zip(states, states[1:])), states
seen.clear()
h.block_status(64 << 20, 0, extent, nbd.CMD_FLAG_REQ_ONE)
assert len(seen[0][2]) == 2, seen
refused(errno.EINVAL, lambda: h.pread(2, (64 << 20) - 1))
refused(errno.ENOSPC, lambda: h.pwrite(b"xx", (64 << 20) - 1))
refused(errno.EINVAL, lambda: h.pread((32 << 20) + 1, 0))
refused(errno.EINVAL, lambda: h.cache(1, 0))
refused(errno.EOVERFLOW, lambda: h.pread(1 << 20, 0, nbd.CMD_FLAG_DF))
h.pwrite(b"last", (64 << 20) - 4)
other = nbd.NBD()
other.connect_uri("nbd+unix:///?socket=s")
assert other.can_multi_conn()
assert other.pread(4, (64 << 20) - 4) == b"last"
other.flush()
other.shutdown()
simple = nbd.NBD()
simple.set_request_structured_replies(False)
simple.connect_uri("nbd+unix:///?socket=s")
assert not simple.get_structured_replies_negotiated()
assert simple.pread(2 << 20, 62 << 20) == bytes((2 << 20) - 4) + b"last"
simple.shutdown()
named = nbd.NBD()
named.set_export_name("other")
try:
    named.connect_unix("s")
except nbd.Error:
    pass
else:
    raise Exception("there is no such export")
h.shutdown()
"#;
    let served = Served::nbd(&bench, PATH, &[]);
    succeeds(nbdsh.args(["-c", script]));
    served.end();
}

#[test]
fn qemu_writes_zeros_converts_and_compares() {
    let bench = Bench::new();
    let Some(mut qemu_io) = client(&bench, "qemu-io") else { return };
    let served = Served::nbd(&bench, PATH, &[]);
    let commands = [
        "write -P 0x5a 1k 70k",
        "write -z -u 8k 8k",
        "write -f -P 0x11 1M 2M",
        "discard 1M 1M",
        "read -P 0x5a 1k 7k",
        "read -P 0 8k 8k",
        "read -P 0x5a 16k 55k",
        "read -P 0 1M 1M",
        "read -P 0x11 2M 1M",
        "flush",
    ];
    qemu_io.args(["-f", "raw"]);
    qemu_io.args(commands.iter().flat_map(|command| ["-c", command]));
    let stderr = succeeds(qemu_io.arg(URI));
    assert!(!stderr.contains("Pattern verification failed") && !stderr.contains("error"), "{stderr}");
    if let Some(mut qemu_img) = client(&bench, "qemu-img") {
        bench.write("in.raw", noise(64 << 20));
        succeeds(qemu_img.args(["convert", "-n", "-f", "raw", "-O", "raw", "in.raw", URI]));
        let compare = ["compare", "-f", "raw", "-F", "raw", "in.raw", URI];
        assert!(succeeds(client(&bench, "qemu-img").unwrap().args(compare)).contains("identical"));
    }
    served.end();
}

#[test]
fn fio_finds_every_block_that_it_wrote() {
    let bench = Bench::new();
    let Some(mut fio) = client(&bench, "fio") else { return };
    let engines = succeeds(client(&bench, "fio").unwrap().arg("--enghelp"));
    if !engines.lines().any(|line| line.trim() == "nbd") {
        return super::skipped::skipped("this fio has no nbd engine");
    }
    for path in
        [PATH, "page/nand:size=96M,timing=off", "dm-zoned/conv:size=32M,timing=off+zns:size=96M,zone=4M,timing=off"]
    {
        let served = Served::nbd(&bench, path, &[]);
        let uri = format!("--uri={URI}");
        let job = ["--name=x", "--ioengine=nbd", &uri, "--rw=randwrite", "--bsrange=512-64k", "--size=24M"];
        let verify = ["--iodepth=16", "--verify=crc32c", "--verify_fatal=1", "--fsync=32", "--randseed=5"];
        succeeds(client(&bench, "fio").unwrap().args(job).args(verify));
        served.end();
    }
    let served = Served::nbd(&bench, "page/nand:size=96M", &["--pace"]);
    let uri = format!("--uri={URI}");
    let job = ["--name=x", "--ioengine=nbd", &uri, "--rw=randwrite", "--bs=4k", "--size=1M", "--iodepth=8"];
    succeeds(fio.args(job).args(["--verify=crc32c", "--verify_fatal=1"]));
    served.end();
}

#[test]
fn an_end_in_the_middle_of_a_load_is_clean() {
    let bench = Bench::new();
    let Some(mut fio) = client(&bench, "fio") else { return };
    let served = Served::nbd(&bench, PATH, &[]);
    let uri = format!("--uri={URI}");
    let job = ["--name=x", "--ioengine=nbd", &uri, "--rw=randwrite", "--bs=4k", "--size=32M", "--iodepth=16"];
    let mut load = fio.args(job).args(["--time_based", "--runtime=60"]);
    load = load.stdout(Stdio::null()).stderr(Stdio::null());
    let mut load = load.spawn().unwrap();
    std::thread::sleep(std::time::Duration::from_millis(700));
    let stderr = served.end();
    assert_eq!(stderr, "");
    assert!(!bench.path("s").exists(), "the socket is removed");
    wait_until("fio sees the end", || load.try_wait().unwrap().is_some());
}

#[test]
fn with_pace_a_client_waits_as_long_as_the_drive_would_take_and_depth_counts() {
    let bench = Bench::new();
    let Some(mut nbdsh) = nbdsh(&bench) else { return };
    let script = r#"
import time
h.connect_uri("nbd+unix:///?socket=s")
def timed(call):
    began = time.monotonic()
    call()
    return time.monotonic() - began
one = timed(lambda: h.pwrite(bytes(4096), 0))
assert 0.02 <= one, one
def many():
    cookies = [h.aio_pwrite(nbd.Buffer.from_bytearray(bytearray(4096)), 4096 * n) for n in range(8)]
    while cookies:
        h.poll(-1)
        cookies = [cookie for cookie in cookies if not h.aio_command_completed(cookie)]
eight = timed(many)
assert 0.02 <= eight < 6 * one, (one, eight)
h.shutdown()
"#;
    let served = Served::nbd(&bench, "conv:size=1M,write=20ms,units=8", &["--pace"]);
    succeeds(nbdsh.args(["-c", script]));
    served.end();
}

#[test]
fn a_read_only_export_refuses_writes() {
    let bench = Bench::new();
    let Some(mut nbdsh) = nbdsh(&bench) else { return };
    let script = r#"
h.connect_uri("nbd+unix:///?socket=s")
assert h.is_read_only()
h.set_strict_mode(0)
try:
    h.pwrite(b"x", 0)
except nbd.Error as error:
    assert error.errnum == 1, error
else:
    raise Exception("it was written")
assert h.pread(1, 0) == b"\0"
"#;
    let served = Served::nbd(&bench, PATH, &["--read-only"]);
    succeeds(nbdsh.args(["-c", script]));
    served.end();
}
