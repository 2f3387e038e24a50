//! The command line, also as mount(8) and umount(8) call the program.
//!
//! | called as | by | means |
//! |---|---|---|
//! | `mount.flashpath PATH DIR [-sfnv] [-o OPTIONS]`, or any name that begins with `mount.` and ends with `flashpath` or `sfs` | mount(8), which looks for `/sbin/mount.TYPE` | `flashpath mount` |
//! | `flashpath PATH DIR [-o OPTIONS]` | mount.fuse(8), for the type `fuse.flashpath` | the same |
//! | `umount.fuse.sfs DIR [-lfnvr]` | umount(8), which looks for `/sbin/umount.TYPE` | `flashpath umount` |
//! | `mount.fuse.sfs PATH DIR -o remount,...` | mount(8) for `mount -o remount,... DIR` | `flashpath mount` |
//!
//! In these forms the program returns when the volume is ready, and its exit codes are those of mount(8).

use std::ffi::{OsStr, OsString};
use std::path::Path;

/// Appended to the options of a call from mount(8).
const BY_MOUNT: &str = "--by-mount";
/// mount(8)'s exit codes: a wrong invocation, and a mount that failed.
const WRONG: u8 = 1;
const FAILED: u8 = 32;

/// The command line in this program's own syntax, the program's name first.
pub fn arguments() -> Vec<OsString> {
    with_shares(translated(std::env::args_os().collect()))
}

/// True if mount(8) or umount(8) has called, also in the background process.
pub fn by_mount() -> bool {
    arguments().iter().any(|argument| argument == OsStr::new(BY_MOUNT))
}

/// mount(8)'s exit code for this program's.
pub fn exit_code(code: u8) -> u8 {
    match code {
        0 => 0,
        2 => WRONG,
        _ => FAILED,
    }
}

fn translated(arguments: Vec<OsString>) -> Vec<OsString> {
    let name = arguments.first().and_then(|name| Path::new(name).file_name()).unwrap_or_default();
    let name = name.to_string_lossy().into_owned();
    let is_ours = name.ends_with(".flashpath") || name.ends_with(".sfs");
    let rest = || arguments.iter().skip(1).cloned();
    match () {
        () if is_ours && name.starts_with("umount.") => command("umount", rest()),
        () if is_ours && name.starts_with("mount.") => command("mount", rest()),
        // No command's name has a slash, and every path with a file system has one.
        () if arguments.get(1).is_some_and(|first| first.to_string_lossy().contains('/')) => command("mount", rest()),
        () => arguments,
    }
}

/// `--fill 70%` is `--fill=70%`: the value may be left out, so that any other word after the option is none.
fn with_shares(arguments: Vec<OsString>) -> Vec<OsString> {
    let is_share = |word: &OsStr| {
        let share = word.to_str().filter(|text| text.ends_with('%'));
        share.is_some_and(|text| flashpath::units::parse_share(text).is_some())
    };
    let mut words: Vec<OsString> = Vec::with_capacity(arguments.len());
    for word in arguments {
        match words.last_mut() {
            Some(before) if before == OsStr::new("--fill") && is_share(&word) => {
                before.push("=");
                before.push(word);
            }
            _ => words.push(word),
        }
    }
    words
}

/// Translates the flags of mount(8) and umount(8); those that select this program's default behaviour are dropped.
fn command(name: &str, rest: impl Iterator<Item = OsString>) -> Vec<OsString> {
    let mut words: Vec<OsString> = vec!["flashpath".into(), name.into()];
    let mut rest = rest.peekable();
    while let Some(word) = rest.next() {
        let text = word.to_string_lossy().into_owned();
        if text == "-t" {
            // The type is known.
            rest.next();
        } else if text == "-o" || text == "-N" {
            words.push(word);
            words.extend(rest.next());
        } else if text.len() > 1 && text.starts_with('-') && text[1..].chars().all(|flag| "snvflr".contains(flag)) {
            words.extend(text[1..].chars().filter_map(|flag| match (name, flag) {
                ("mount", 's') => Some("--sloppy".into()),
                ("mount", 'f') => Some("--fake".into()),
                ("umount", 'l') => Some("--lazy".into()),
                ("umount", 'f') => Some("--force".into()),
                _ => None,
            }));
        } else {
            words.push(word);
        }
    }
    if name == "mount" {
        words.push("--background".into());
    }
    words.push(BY_MOUNT.into());
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(line: &str) -> String {
        let words = translated(line.split(' ').map(OsString::from).collect());
        words.join(OsStr::new(" ")).into_string().unwrap()
    }

    #[test]
    fn a_share_after_fill_is_its_value() {
        let read = |line: &str| {
            let words = with_shares(line.split(' ').map(OsString::from).collect());
            words.join(OsStr::new(" ")).into_string().unwrap()
        };
        assert_eq!(read("flashpath run --fill 70% uniform"), "flashpath run --fill=70% uniform");
        for kept in [
            "flashpath run --fill uniform",
            "flashpath run uniform --fill --on page",
            "run --fill=7% 8%",
            "run --fill a%",
        ] {
            assert_eq!(read(kept), kept);
        }
    }

    #[test]
    fn calls_from_mount_and_umount_are_translated() {
        let mounted = "flashpath mount sfs/conv:image=A m -o rw,dev --background --by-mount";
        assert_eq!(read("flashpath sfs/conv:image=A m -o rw,dev"), mounted);
        assert_eq!(read("/sbin/mount.fuse.flashpath sfs/conv:image=A m -nv -o rw,dev -t fuse.flashpath"), mounted);
        assert_eq!(
            read("mount.flashpath sfs/conv:image=A m -s -f"),
            "flashpath mount sfs/conv:image=A m --sloppy --fake --background --by-mount"
        );
        assert_eq!(read("/usr/sbin/umount.fuse.sfs /m -l -t fuse.sfs"), "flashpath umount /m --lazy --by-mount");
        for own in ["flashpath mount sfs/conv m -n", "/a/b.sfs/flashpath fsck -n x", "flashpath", "flashpath --help"] {
            assert_eq!(read(own), own, "this program's own syntax");
        }
    }
}
