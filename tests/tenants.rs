//! Tenants of a drive: jobs with a queue each, their rates, and the part of their space that is filled before.

use flashpath::report::{RunResult, TenantResult};
use flashpath::run::{BlockWork, Fill, Job, NoMachine, Path, Place, Replay, RunOptions, Work, run};
use flashpath::workload::fio_job::fio_job_text;

/// One plane that reads in 50 us and transfers in 10 us.
const ONE_PLANE: &str = "page/nand:size=64M,read=50us,program=500us,transfer=10us";
const READ_NS: u64 = 60_000;

fn result(path: &str, text: &str, options: RunOptions) -> RunResult {
    let path = Path::read_drive(path).unwrap();
    let text = text.to_string();
    let open = move |bytes| Ok(fio_job_text("x.fio", &text, bytes, 1)?);
    let work = Work::Blocks(BlockWork { name: "x.fio".to_string(), has_times: false, open: Box::new(open) });
    let outcome = run(Job { work, place: Place::Path(&path), seed: 1, options }, &NoMachine, &mut |_| true).unwrap();
    assert!(outcome.failure.is_none(), "{:?}", outcome.failure);
    outcome.result
}

fn filled(options: RunOptions) -> RunOptions {
    RunOptions { fill: Fill::ALL, ..options }
}

fn tenant<'a>(result: &'a RunResult, name: &str) -> &'a TenantResult {
    result.tenants.iter().find(|tenant| tenant.name == name).unwrap_or_else(|| panic!("there is no tenant {name}"))
}

/// Two jobs took turns, so that both issued equally many requests whatever their iodepth.
#[test]
fn a_plane_serves_tenants_in_proportion_to_their_queues() {
    let job = "[global]\nrw=randread\ntime_based\nruntime=1\nnorandommap\n";
    let text = format!("{job}[deep]\niodepth=8\n[shallow]\niodepth=2\n");
    let result = result(ONE_PLANE, &text, filled(RunOptions::default()));
    let (deep, shallow) = (tenant(&result, "deep"), tenant(&result, "shallow"));
    let ratio = deep.requests as f64 / shallow.requests as f64;
    assert!((3.99..4.01).contains(&ratio), "{ratio}");
    assert_eq!(deep.requests + shallow.requests, result.workload.requests);
    assert_eq!(deep.read_blocks + shallow.read_blocks, result.workload.read_blocks);
    assert_eq!((deep.queue_depth, shallow.queue_depth), (8, 2));
    let (speed, both) = (result.throughput_mib_s.unwrap(), [deep, shallow].map(|it| it.throughput_mib_s.unwrap()));
    assert!((both.iter().sum::<f64>() / speed - 1.0).abs() < 1e-9, "{both:?} of {speed} MiB/s");
    // Each read waits for the nine others.
    for latency in [deep, shallow].map(|it| it.latency_ns.as_ref().unwrap().read.as_ref().unwrap().mean) {
        assert!((latency / (10 * READ_NS) as f64 - 1.0).abs() < 0.01, "{latency}");
    }
    assert!(result.options.iter().all(|option| !option.starts_with("--depth")), "{:?}", result.options);
}

#[test]
fn one_queue_for_all_is_there_if_it_is_asked_for() {
    let text = "[global]\nrw=randread\nnumber_ios=2000\nio_size=1g\n[deep]\niodepth=8\n[shallow]\niodepth=2\n";
    let options = RunOptions { replay: Some(Replay::Closed { depth: 4 }), ..RunOptions::default() };
    let result = result(ONE_PLANE, text, filled(options));
    for name in ["deep", "shallow"] {
        let latency = tenant(&result, name).latency_ns.as_ref().unwrap().read.as_ref().unwrap();
        assert_eq!((latency.count, latency.p50.abs_diff(4 * READ_NS) < READ_NS / 50), (2000, true), "{name}");
    }
}

/// The mean latency of requests that come as a Poisson process, and take equally long: service + rho x service / 2 (1 - rho).
#[test]
fn requests_that_come_at_a_rate_wait_as_queueing_theory_says() {
    let text = "[a]\nrw=randread\nrate_iops=10000\nrate_process=poisson\niodepth=1000\nnumber_ios=200000\nio_size=100g\nnorandommap\n";
    let result = result(ONE_PLANE, text, filled(RunOptions::default()));
    let latency = tenant(&result, "a").latency_ns.as_ref().unwrap().read.as_ref().unwrap();
    let (service, busy) = (READ_NS as f64, 0.6);
    let expected = service + busy * service / (2.0 * (1.0 - busy));
    assert!((latency.mean / expected - 1.0).abs() < 0.02, "{} ns, not {expected}", latency.mean);
    let seconds = result.seconds_simulated.unwrap();
    assert!((seconds / 20.0 - 1.0).abs() < 0.01, "{seconds} s for 200,000 at 10,000 a second");
}

/// A tenant with a rate and an idle drive beside a writer with a queue: each goes at its own speed.
#[test]
fn a_rate_holds_beside_a_closed_loop() {
    let text =
        "[global]\ntime_based\nruntime=1\nnorandommap\n[slow]\nrw=randread\nrate_iops=100\n[fast]\nrw=randwrite\n";
    let result = result("page/nand:size=256M,channels=4", text, filled(RunOptions::default()));
    let (slow, fast) = (tenant(&result, "slow"), tenant(&result, "fast"));
    assert!((99..=101).contains(&slow.requests), "{} requests in a second", slow.requests);
    assert!(fast.requests > 1000 && slow.written_blocks == 0 && fast.read_blocks == 0, "{fast:?}");
}

/// Reads and writes of a job have rates of their own. Its requests stay in order, and none comes after its runtime.
#[test]
fn a_job_with_a_rate_ends_at_its_runtime() {
    let job = "[a]\nrw=randrw\nrate_iops=900,300\nrwmixread=75\nnorandommap\ntime_based\nruntime=2\niodepth=4\n";
    let result = result("page/nand:size=256M,channels=4", job, filled(RunOptions::default()));
    let tenant = tenant(&result, "a");
    assert!((1700..=1850).contains(&tenant.read_blocks), "{} reads in two seconds", tenant.read_blocks);
    assert!((550..=601).contains(&tenant.written_blocks), "{} writes in two seconds", tenant.written_blocks);
    let seconds = result.seconds_simulated.unwrap();
    assert!((1.9..2.01).contains(&seconds), "{seconds}");
}

#[test]
fn a_stonewall_waits_until_requests_above_it_are_done() {
    let text = "[w]\nrw=randwrite\niodepth=64\nio_size=4m\n[r]\nstonewall\nrw=randread\niodepth=1\nnumber_ios=500\nio_size=1g\n";
    let result = result(ONE_PLANE, text, filled(RunOptions::default()));
    let latency = tenant(&result, "r").latency_ns.as_ref().unwrap().read.as_ref().unwrap();
    assert_eq!((latency.count, latency.max), (500, READ_NS), "no read waits for a write");
    assert_eq!(tenant(&result, "w").written_blocks, 1024);
}

#[test]
fn without_times_tenants_take_turns_and_have_no_latencies() {
    let text = "[global]\nrw=randwrite\nnumber_ios=1000\nio_size=1g\n[a]\niodepth=8\n[b]\niodepth=1\nrate_iops=5\n";
    let drive = "page/nand:size=64M,timing=off";
    let result = result(drive, text, RunOptions { verify: true, ..RunOptions::default() });
    for name in ["a", "b"] {
        let tenant = tenant(&result, name);
        assert_eq!((tenant.requests, tenant.written_blocks, tenant.throughput_mib_s), (1000, 1000, None));
        assert!(tenant.latency_ns.is_none());
    }
    assert!(result.warnings.iter().any(|warning| warning.contains("rate_iops is ignored")), "{:?}", result.warnings);
}

#[test]
fn reads_of_tenants_are_those_of_the_newest_writes() {
    let text = "[global]\nrw=randrw\nio_size=64m\nnorandommap\nsize=50%\n[a]\niodepth=16\nfsync=20\n[b]\noffset=25%\niodepth=3\n";
    let options = RunOptions { verify: true, limit: Some(20_000), ..RunOptions::default() };
    let result =
        result("page:op=28%,buffer=1M/nand:size=128M,pages-per-block=64,channels=2,dies=2", text, filled(options));
    assert_eq!(result.workload.requests, 20_000);
    assert!(result.sums.iter().all(|sum| sum.holds));
}

/// Reads of what was never written cost no flash: they tell how much was.
#[test]
fn a_part_of_the_space_or_of_each_tenants_is_filled() {
    let part = |share: f64| RunOptions { fill: Fill::of(share).unwrap(), ..RunOptions::default() };
    let once = |regions: &str| format!("[global]\nrw=read\niodepth=4\n{regions}");
    let drive = "page:export=50%/nand:size=64M";
    let blocks = (32 << 20) / 4096;
    for share in [0.0, 0.25, 0.7, 1.0] {
        let whole = result(drive, &once("[a]\n"), part(share));
        let expected = (blocks as f64 * share).round() as u64;
        assert_eq!(whole.flash.read_pages, expected, "{share} of the space");
        assert_eq!(whole.options.contains(&"--fill=70%".to_string()), share == 0.7, "{:?}", whole.options);
    }
    let halves = "[a]\nsize=50%\n[b]\noffset=50%\n";
    let beside = result(drive, &once(halves), part(0.25));
    assert_eq!(beside.flash.read_pages, blocks / 4, "a quarter of each half");
    // The second quarter begins within the first, and what both share is written once.
    let overlapping = result(drive, &once("[a]\n[b]\noffset=12.5%\n"), RunOptions { verify: true, ..part(0.25) });
    let (first, second) = (blocks / 4, blocks / 8 + blocks * 7 / 32 - blocks / 4);
    assert_eq!(overlapping.flash.read_pages, first + second + (first - blocks / 8) + second);
}
