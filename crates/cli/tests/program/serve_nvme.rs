//! The NVMe export of several paths, by an initiator of the tests' own.

use super::bench::Bench;
use super::nvme_initiator::{Command, Ended, Host, Stream, unix};
use super::serve::{NVME_NAME, Served};
use super::serve_watch::ask;
use std::net::TcpStream;

const BLOCKS: &str = "page:op=28%/nand:size=64M,timing=off";
const ZONES: &str = "zns:size=64M,zone=4M,timing=off";

fn host(bench: &Bench) -> Host {
    Host::connect(unix(&bench.path("s")), NVME_NAME, (false, false)).unwrap()
}

#[test]
fn each_path_is_a_namespace_with_figures_of_its_own() {
    let bench = Bench::new();
    let served = Served::nvme(&bench, &[BLOCKS, ZONES], &["--metrics", "metrics"]);
    assert!(served.ready.contains(NVME_NAME) && served.ready.contains("zns:size=64M"), "{}", served.ready);
    assert_eq!(Host::discover(&unix(&bench.path("s"))).unwrap(), NVME_NAME);
    let mut host = host(&bench);
    let mut queue = host.queue(1).unwrap();
    for first in 0..64 {
        assert_eq!(queue.write(1, first, &[7; 4096]), 0);
    }
    let appended = queue.run(Command::new(0x7d, 2).blocks(1024, 2), &[8; 8192], 0);
    assert_eq!((appended.status, appended.result), (0, 1024));
    assert_eq!(queue.run(Command::new(0, 1), &[], 0).status, 0);
    let page = ask(&bench.path("metrics"), "GET /metrics HTTP/1.1\r\n\r\n");
    for line in [
        "flashpath_size_bytes{namespace=\"2\"} 67108864\n",
        "flashpath_requests_total{kind=\"write\",namespace=\"1\"} 64\n",
        "flashpath_requests_total{kind=\"write\",namespace=\"2\"} 1\n",
        "flashpath_host_written_bytes{namespace=\"1\"} 262144\n",
        "flashpath_used_endurance_percent{namespace=\"1\"} 0\n",
        "flashpath_most_erases{namespace=\"2\"} 0\n",
        "flashpath_nvme_queues 2\n",
        "flashpath_nvme_queues_total{fate=\"accepted\"} 3\n",
    ] {
        assert!(page.contains(line), "{line}{page}");
    }
    let media = page.lines().find_map(|line| line.strip_prefix("flashpath_media_written_bytes{namespace=\"1\"} "));
    let log = host.admin.log(0xc0, 1, 512, 0, 0).data;
    let told = u64::from_le_bytes(log[..8].try_into().unwrap());
    assert_eq!(media, Some(told.to_string().as_str()), "the log and the metrics tell the same");
    assert!(told >= 64 * 4096);
    assert_eq!(served.end(), "");
}

#[test]
fn a_tcp_port_of_this_machine_is_served_and_no_other_unless_told() {
    let bench = Bench::new();
    let arguments = ["serve", ZONES, "--nvme", "127.0.0.1:0"];
    let served = Served::start(&bench, &arguments, None);
    let place = served.ready.split("nvme://").nth(1).unwrap().split(':').take(2).collect::<Vec<_>>().join(":");
    let name = served.ready.split(" -n ").nth(1).unwrap().trim().to_string();
    assert!(name.starts_with("nqn.2014-08.org.nvmexpress:uuid:"), "{name}");
    let dial = move || Ok(Box::new(TcpStream::connect(&place)?) as Box<dyn Stream>);
    let host = Host::connect(Box::new(dial), &name, (true, true)).unwrap();
    assert_eq!(host.queue(1).unwrap().write(1, 0, &[1; 4096]), 0);
    served.end();
    let arguments = ["serve", ZONES, "--nvme", "0.0.0.0:0", "--any-address"];
    Served::start(&bench, &arguments, None).end();
    let conventional = "zns:size=64M,zone=4M,conventional=2";
    for (arguments, said) in [
        (&["serve", ZONES, "--nvme", "0.0.0.0:0"][..], "open to the network"),
        (&["serve", ZONES, "--nvme", "127.0.0.1:99999"], "127.0.0.1:PORT"),
        (&["serve", ZONES, "--nvme", "./s", "--nqn", "drive"], "qualified name"),
        (&["serve", conventional, "--nvme", "./s"], "conventional=0"),
        (&["serve", "nvm:size=64M", "--nvme", "./s"], "no blocks"),
        (&["serve", "sfs/conv:size=64M", "--nvme", "./s"], "file system on top"),
        (&["serve", "conv:size=64M", "conv:size=32M", "--nbd", "s"], "only --nvme"),
        (&["serve", ZONES, "--nbd", "s"], "translation layer"),
        (&["serve", "conv:size=64M", "--nbd", "s", "--any-address"], "cannot be used with"),
        (&["serve", "conv:size=64M", "--file", "m/d", "--nqn", NVME_NAME], "cannot be used with"),
        (&["serve", "zns:image=none", "--nvme", "./s"], "none"),
    ] {
        let answer = bench.flashpath(arguments);
        assert!(answer.code.is_some_and(|code| code != 0), "{arguments:?}: {answer:?}");
        assert!(answer.stderr.contains(said), "{arguments:?}: {}", answer.stderr);
    }
}

#[test]
fn a_restarted_server_has_the_data_and_the_zones_that_were_written() {
    let bench = Bench::new();
    let made = bench.flashpath(&["mkfs", "zns:image=z,size=64M,zone=4M,timing=off"]);
    assert!(made.code == Some(0) && made.stdout.contains("an empty drive of zones"), "{made:?}");
    bench.write("b", vec![0; 1 << 20]);
    let paths = ["conv:image=b,timing=off", "zns:image=z,timing=off"];
    let served = Served::nvme(&bench, &paths, &[]);
    // A host that reconnects checks that the namespaces are the same.
    let identifiers = |host: &mut Host| [1, 2].map(|number| host.admin.identify(3, number, 0).data);
    let mut before = host(&bench);
    let identified = identifiers(&mut before);
    let mut queue = before.queue(1).unwrap();
    assert_eq!(queue.write(1, 3, &[1; 8192]), 0);
    for round in 1..4u8 {
        assert_eq!(queue.run(Command::new(0x7d, 2).blocks(2048, 1), &[round; 4096], 0).status, 0);
    }
    assert_eq!(served.end(), "");
    assert!(matches!(queue.complete(), Err(Ended::Io(_))));
    let served = Served::nvme(&bench, &paths, &["--read-only"]);
    let mut after = host(&bench);
    assert!(identifiers(&mut after) == identified);
    let mut queue = after.queue(1).unwrap();
    assert_eq!(queue.read(1, 3, 2), [1; 8192]);
    let zone = queue.read(2, 2048, 3);
    assert!((1..4u8).all(|round| zone[(usize::from(round) - 1) * 4096..][..4096] == [round; 4096]));
    assert_eq!(queue.run(Command::new(0x7d, 2).blocks(2048, 1), &[9; 4096], 0).status, 0x020);
    assert_eq!(served.end(), "");
}
