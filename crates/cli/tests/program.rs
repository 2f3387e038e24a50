//! The program as a user runs it: exit codes, standard output and error, files, and interrupts.

#![allow(clippy::disallowed_methods, reason = "a test waits for a program beside it")]

#[path = "../../../tests/skipped/mod.rs"]
mod skipped;

#[path = "program/bench.rs"]
mod bench;
#[path = "program/campaign.rs"]
mod campaign;
#[path = "program/capture.rs"]
mod capture;
#[path = "program/capture_setup.rs"]
mod capture_setup;
#[path = "program/convert.rs"]
mod convert;
#[path = "program/directory.rs"]
mod directory;
#[path = "program/documents.rs"]
mod documents;
#[path = "program/ending.rs"]
mod ending;
#[path = "program/ext_volume.rs"]
mod ext_volume;
#[path = "program/full_streams.rs"]
mod full_streams;
#[path = "program/hostile_nvme.rs"]
mod hostile_nvme;
#[path = "program/hostile_sessions.rs"]
mod hostile_sessions;
#[path = "program/in_process.rs"]
mod in_process;
#[path = "program/in_volume.rs"]
mod in_volume;
#[path = "program/killed_fast_commits.rs"]
mod killed_fast_commits;
#[path = "program/killed_files.rs"]
mod killed_files;
#[path = "program/killed_mounts.rs"]
mod killed_mounts;
#[path = "program/killed_nvme.rs"]
mod killed_nvme;
#[path = "program/killed_servers.rs"]
mod killed_servers;
#[path = "program/monitored.rs"]
mod monitored;
#[path = "program/mount.rs"]
mod mount;
#[path = "program/mount_ends.rs"]
mod mount_ends;
#[path = "program/mount_posix.rs"]
mod mount_posix;
#[path = "program/nbd_client.rs"]
mod nbd_client;
#[allow(dead_code, reason = "the tests of the crate use the rest")]
#[path = "../../nvme/tests/initiator/mod.rs"]
mod nvme_initiator;
#[path = "program/on_kernel.rs"]
mod on_kernel;
#[path = "program/package.rs"]
mod package;
#[path = "program/page_widths.rs"]
mod page_widths;
#[path = "program/pages.rs"]
mod pages;
#[path = "program/parts.rs"]
mod parts;
#[path = "program/qemu_journal.rs"]
mod qemu_journal;
#[path = "program/readme.rs"]
mod readme;
#[path = "program/record.rs"]
mod record;
#[path = "program/recordings.rs"]
mod recordings;
#[path = "program/refused.rs"]
mod refused;
#[path = "program/reproduce.rs"]
mod reproduce;
#[path = "program/request_log.rs"]
mod request_log;
#[path = "program/results.rs"]
mod results;
#[path = "program/serve.rs"]
mod serve;
#[path = "program/serve_file.rs"]
mod serve_file;
#[path = "program/serve_hostile.rs"]
mod serve_hostile;
#[path = "program/serve_nbd.rs"]
mod serve_nbd;
#[path = "program/serve_nvme.rs"]
mod serve_nvme;
#[path = "program/serve_vhost.rs"]
mod serve_vhost;
#[path = "program/serve_watch.rs"]
mod serve_watch;
#[path = "program/sfs_volume.rs"]
mod sfs_volume;
#[path = "program/simulated_threads.rs"]
mod simulated_threads;
#[path = "program/stopped.rs"]
mod stopped;
#[path = "program/sweep.rs"]
mod sweep;
#[path = "program/traces.rs"]
mod traces;
#[allow(dead_code, reason = "the tests of the disk use the rest")]
#[path = "../../vhost/tests/frontend/mod.rs"]
mod vhost_frontend;
#[path = "program/volume.rs"]
mod volume;
#[path = "program/warnings.rs"]
mod warnings;
