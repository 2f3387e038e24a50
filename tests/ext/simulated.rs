//! Volumes of stamps: the same code in a simulation, with its labels and causes.

use crate::image::call;
use flashpath::device::Account;
use flashpath::fs::Durable;
use flashpath::fs::volume::{FileKind, Hold, InodeNumber, NewFile};
use flashpath::label::{Cause, Content, Label, Tally};
use flashpath::run::{Path, simulated_file_system};

/// Blocks of a volume on a drive by cause and content, when files were written and synced one by one.
fn counted(data: &str) -> impl Fn(Cause, Content) -> u64 {
    let account = worked(&format!("ext:data={data},journal-size=4M/page/nand:size=64M,timing=off"));
    assert_eq!(account.sent.total(), account.below[0].received.total(), "what is sent is received");
    move |cause, content| account.sent.get(cause, content)
}

/// The account of a volume in which files were written and synced one by one.
fn worked(path: &str) -> Account {
    let path = Path::read(path).unwrap();
    let volume = simulated_file_system(&path, 3).unwrap();
    for number in 0..600u32 {
        let name = format!("{number}").into_bytes();
        let kind = FileKind::Regular;
        let new = NewFile { kind, permissions: 0o644, user: 0, group: 0, device: 0, target: b"", attributes: &[] };
        let made = call(|call| volume.make(call, (InodeNumber::ROOT, &name), &new, Hold::No, None)).unwrap();
        call(|call| volume.write(call, made.inode, 0, &[number as u8; 16384], None)).unwrap();
        call(|call| volume.sync_file(call, made.inode, Durable::All)).unwrap();
        let mut read = [1; 16384];
        assert_eq!(call(|call| volume.read(call, made.inode, 0, &mut read)).unwrap().length, 16384);
        if number % 2 == 0 {
            call(|call| volume.unlink(call, (InodeNumber::ROOT, &name), None)).unwrap();
        }
        while call(|call| volume.work(call)).unwrap().is_some_and(|at| at.0 == 0) {}
    }
    call(|call| volume.sync(call)).unwrap();
    call(|call| volume.account(call)).unwrap()
}

#[test]
fn a_simulated_volume_with_a_journal_of_its_own_writes_the_journal_there_and_nothing_else() {
    let inline = counted("ordered");
    let path = "ext:data=ordered,journal-size=4M/page/nand:size=64M,timing=off+conv:size=8M,timing=off";
    let account = worked(path);
    let [volume, journal] = &account.below[..] else { panic!("two devices: {:?}", account.below) };
    assert_eq!((volume.station, journal.station), ("page", "conv"));
    let logged = |account: &Account| account.received.of(Label::first(Cause::JournalCommit, Content::Journal));
    assert_eq!((logged(volume), logged(journal)), (0, journal.received.total()), "all of it, and nothing else");
    // Its two superblocks are more.
    let (here, there) = (logged(journal), inline(Cause::JournalCommit, Content::Journal));
    assert!(here.abs_diff(there) <= 8, "{here} blocks on a device of its own, {there} in the volume");
    let both: Tally = volume.received.entries().chain(journal.received.entries()).collect();
    assert_eq!(account.sent, both, "each block that was sent was received by one of them");
}

#[test]
fn what_a_simulated_volume_writes_says_what_it_is_and_why() {
    let ordered = counted("ordered");
    assert_eq!(ordered(Cause::HostWrite, Content::Data), 600 * 4, "bytes of files go to their places once");
    assert!(ordered(Cause::JournalCommit, Content::Journal) > 600 * 4, "each commit has some blocks");
    assert!(ordered(Cause::Checkpoint, Content::Metadata) > 0);
    assert_eq!(ordered(Cause::Checkpoint, Content::Data), 0);
    let journal = counted("journal");
    assert_eq!(journal(Cause::HostWrite, Content::Data), 0, "bytes of files go through the journal");
    assert!(journal(Cause::JournalCommit, Content::Journal) > 600 * 8);
    let home = journal(Cause::Checkpoint, Content::Data);
    assert!(home > 300, "what is still there goes home when the log is half full: {home} blocks");
}
