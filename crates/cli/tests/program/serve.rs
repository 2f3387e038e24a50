//! A server for the duration of a test.

use super::bench::Bench;
use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Output, Stdio};
use std::time::{Duration, Instant};

/// The time limit for servers and clients.
pub const PATIENCE: Duration = Duration::from_secs(60);
const PAUSE: Duration = Duration::from_millis(20);
/// The name of served NVMe subsystems.
pub const NVME_NAME: &str = "nqn.2026-01.org.example:drive";

/// `flashpath serve`, `mount` or `monitor`, in the foreground.
pub struct Served {
    child: Option<Child>,
    /// The message that it is ready.
    pub ready: String,
    /// The mount point of its file.
    mount: Option<PathBuf>,
}

impl Served {
    /// Serves over NBD, on the socket `s` in the bench's directory.
    pub fn nbd(bench: &Bench, path: &str, more: &[&str]) -> Served {
        Self::start(bench, &[&["serve", path, "--nbd", "s"], more].concat(), None)
    }

    /// Serves over NVMe/TCP, on the socket `s` in the bench's directory, as the subsystem [`NVME_NAME`].
    pub fn nvme(bench: &Bench, paths: &[&str], more: &[&str]) -> Served {
        Self::start(bench, &[&["serve"], paths, &["--nvme", "./s", "--nqn", NVME_NAME], more].concat(), None)
    }

    /// Serves as the file `m/disk` in the bench's directory.
    pub fn file(bench: &Bench, path: &str, more: &[&str]) -> Served {
        Self::mounted(bench, &[&["serve", path, "--file", "m/disk"], more].concat())
    }

    /// Runs a command that mounts something at `m` in the bench's directory.
    pub fn mounted(bench: &Bench, arguments: &[&str]) -> Served {
        Self::start(bench, arguments, Some(bench.path("m")))
    }

    /// Keeps the memory of mounts, at the socket `s` in the bench's directory; its messages go to `monitor.log`.
    pub fn monitor(bench: &Bench) -> Served {
        Self::monitor_with(bench, &[])
    }

    /// The same, with more options.
    pub fn monitor_with(bench: &Bench, more: &[&str]) -> Served {
        Self::start(bench, &[&["monitor", "s", "--log", "monitor.log"], more].concat(), None)
    }

    pub fn start(bench: &Bench, arguments: &[&str], mount: Option<PathBuf>) -> Served {
        Self::begun(bench.command(arguments), arguments, mount)
    }

    /// The same, with a command that has these arguments.
    pub fn begun(mut command: Command, arguments: &[&str], mount: Option<PathBuf>) -> Served {
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let mut ready = String::new();
        let mut stdout = BufReader::new(child.stdout.take().unwrap());
        stdout.read_line(&mut ready).unwrap();
        if arguments.contains(&"--metrics") {
            stdout.read_line(&mut ready).unwrap();
        }
        if !["serving ", "mounted ", "keeping "].iter().any(|word| ready.starts_with(word)) {
            let mut error = String::new();
            child.stderr.take().unwrap().read_to_string(&mut error).unwrap();
            panic!("{arguments:?} does not serve: {ready}{error}");
        }
        Served { child: Some(child), ready, mount }
    }

    pub fn process(&self) -> u32 {
        self.child.as_ref().unwrap().id()
    }

    pub fn signal(&self, signal: &str) {
        let process = self.process().to_string();
        assert!(Command::new("kill").args([signal, &process]).status().unwrap().success());
    }

    /// Ends it with SIGTERM; returns its standard error.
    pub fn end(mut self) -> String {
        self.signal("-TERM");
        let (status, error) = self.wait();
        assert!(status.success(), "{status}: {error}");
        if let Some(mount) = &self.mount {
            assert!(!is_mounted(mount), "nothing is left mounted");
        }
        error
    }

    /// Waits for its end.
    pub fn wait(&mut self) -> (ExitStatus, String) {
        let mut child = self.child.take().unwrap();
        let until = Instant::now() + PATIENCE;
        while child.try_wait().unwrap().is_none() {
            if Instant::now() > until {
                child.kill().unwrap();
            }
            std::thread::sleep(PAUSE);
        }
        let mut error = String::new();
        child.stderr.take().unwrap().read_to_string(&mut error).unwrap();
        (child.wait().unwrap(), error)
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        if let Some(mut child) = self.child.take() {
            let _ = child.kill();
            let _ = child.wait();
        }
        if let Some(mount) = self.mount.take().filter(|mount| is_mounted(mount)) {
            let _ = Command::new("umount").arg("-l").arg(mount).status();
        }
    }
}

/// True if something is mounted there, also if its server is gone.
pub fn is_mounted(place: &Path) -> bool {
    let mounts = std::fs::read_to_string("/proc/self/mounts").unwrap();
    let place = place.to_str().unwrap();
    mounts.lines().any(|line| line.split(' ').nth(1) == Some(place))
}

/// Waits for a condition.
pub fn wait_until(what: &str, mut is_so: impl FnMut() -> bool) {
    let until = Instant::now() + PATIENCE;
    while !is_so() {
        assert!(Instant::now() < until, "{what}");
        std::thread::sleep(PAUSE);
    }
}

/// True if this process may mount through FUSE.
pub fn can_mount() -> bool {
    let is_root = nix::unistd::geteuid().is_root();
    is_root && std::fs::OpenOptions::new().read(true).write(true).open("/dev/fuse").is_ok()
}

/// A bench for FUSE mounts and loop devices; `None` and a message if this machine has none.
pub fn bench_to_mount_in() -> Option<Bench> {
    if !can_mount() {
        super::skipped::skipped("it needs root and /dev/fuse");
        return None;
    }
    Some(Bench::new())
}

/// A client program in the bench's directory; `None` and a message if it is not installed.
pub fn client(bench: &Bench, program: &str) -> Option<Command> {
    let paths = std::env::var_os("PATH").unwrap_or_default();
    let more = ["/usr/sbin", "/sbin"].map(PathBuf::from);
    let found = std::env::split_paths(&paths).chain(more).any(|folder| folder.join(program).is_file());
    if !found {
        super::skipped::skipped(&format!("{program} is not installed"));
        return None;
    }
    let mut command = Command::new(program);
    command.current_dir(bench.directory.path()).stdin(Stdio::null()).env("LC_ALL", "C");
    command.env("PATH", format!("{}:/usr/sbin:/sbin", paths.display()));
    Some(command)
}

/// libnbd's shell; `None` and a message without it. It is a module of the distribution's Python, which need not be the
/// first in the path.
pub fn nbdsh(bench: &Bench) -> Option<Command> {
    let has_module = |python: &&str| {
        let mut command = Command::new(python);
        command.args(["-c", "import nbd"]).stdin(Stdio::null()).output().is_ok_and(|output| output.status.success())
    };
    let Some(python) = ["/usr/bin/python3", "python3"].into_iter().find(has_module) else {
        super::skipped::skipped("nbdsh is not installed (python3-libnbd)");
        return None;
    };
    let mut command = Command::new(python);
    command.args(["-m", "nbd"]).current_dir(bench.directory.path()).stdin(Stdio::null());
    Some(command)
}

/// Has e2fsck replay the journal of an image, and count what is free: it finds nothing else.
pub fn replay(bench: &Bench, image: &str) {
    let output = client(bench, "e2fsck").expect("it was found before").args(["-fp", image]).output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.code().is_some_and(|code| code <= 1), "{image}: {}, {said}", output.status);
}

/// Runs a command that must succeed; returns its standard output.
pub fn succeeds(command: &mut Command) -> String {
    let output = command.output().unwrap();
    let Output { status, stdout, stderr } = &output;
    let (stdout, stderr) = (String::from_utf8_lossy(stdout), String::from_utf8_lossy(stderr));
    assert!(status.success(), "{command:?}: {status}\n{stdout}{stderr}");
    format!("{stdout}{stderr}")
}
