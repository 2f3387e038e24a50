//! Permissions: ordinary users, set-id bits, sticky directories, access control lists.

use crate::world::{ROOT, World, each, errno, user};
use flashpath::fs::posix::{NewTime, SetAttributes, Wanted};
use flashpath::fs::volume::{Caller, FileKind, Hold, IfExists, InodeNumber, NewFile, Renaming, Timestamp};
use rustix::io::Errno;

const ME: u32 = 1000;

fn change(world: &World, by: Caller, inode: InodeNumber, wish: SetAttributes) -> Option<Errno> {
    errno(world.by(by, |posix, call| posix.change(call, inode, &wish)))
}

fn chmod(mode: u32) -> SetAttributes {
    SetAttributes { mode: Some(mode), ..SetAttributes::default() }
}

#[test]
fn an_ordinary_user_is_limited_by_permissions() {
    each(|world| {
        let (me, other) = (user(ME, 50), user(2000, 60));
        let mine = world.directory((ROOT, b"mine"), 0o750, (ME, 50));
        assert_eq!(errno(world.make(me, (ROOT, b"x"), FileKind::Regular, 0o644)), Some(Errno::ACCESS));
        let file = world.make(me, (mine, b"f"), FileKind::Regular, 0o666).unwrap();
        assert_eq!((file.user, file.group, file.permissions), (ME, 50, 0o644), "{}: the umask applies", world.name);
        let file = file.inode;
        let look = |by: Caller, name| errno(world.by(by, |posix, call| posix.lookup(call, (mine, name), Hold::No)));
        assert_eq!((look(other, b"f"), look(user(2000, 50), b"f"), look(me, b"f")), (Some(Errno::ACCESS), None, None));
        let unlink = |by: Caller, name| errno(world.by(by, |posix, call| posix.unlink(call, (mine, name))));
        assert_eq!(
            unlink(other, b"no"),
            Some(Errno::ACCESS),
            "without search permission, missing names are not revealed"
        );
        assert_eq!(unlink(user(2000, 50), b"f"), Some(Errno::ACCESS));
        let open = |by: Caller, wanted| errno(world.by(by, |posix, call| posix.check_open(call, file, wanted)));
        assert_eq!((open(other, Wanted::READ), open(other, Wanted::WRITE)), (None, Some(Errno::ACCESS)));
        assert_eq!(open(Caller::ROOT, Wanted::EXECUTE), Some(Errno::ACCESS), "no execute bit is set");
        assert_eq!(change(world, other, file, chmod(0o777)), Some(Errno::PERM));
        let give = SetAttributes { user: Some(2000), ..SetAttributes::default() };
        assert_eq!(change(world, me, file, give), Some(Errno::PERM));
        let join = |group| SetAttributes { group: Some(group), ..SetAttributes::default() };
        assert_eq!(change(world, me, file, join(60)), Some(Errno::PERM));
        let also = |group| group == 60;
        assert_eq!(change(world, Caller { more_groups: &also, ..me }, file, join(60)), None);
        let cut = SetAttributes { size: Some(0), ..SetAttributes::default() };
        assert_eq!(change(world, other, file, cut), Some(Errno::ACCESS));
        assert_eq!(
            change(world, other, file, SetAttributes { is_open: true, ..cut }),
            None,
            "the file was opened while the mode permitted it"
        );
        let times = |time| SetAttributes { accessed: Some(time), modified: Some(time), ..SetAttributes::default() };
        assert_eq!(change(world, other, file, times(NewTime::Now)), Some(Errno::ACCESS));
        assert_eq!(change(world, me, file, chmod(0o664)), None);
        assert_eq!(
            change(world, other, file, times(NewTime::Now)),
            None,
            "a caller with write permission may set the current time"
        );
        assert_eq!(change(world, other, file, times(NewTime::At(Timestamp(5)))), Some(Errno::PERM));
        let mknod = world.make(me, (mine, b"d"), FileKind::BlockDevice, 0o600);
        assert_eq!(errno(mknod), Some(Errno::PERM));
    });
}

#[test]
fn in_a_sticky_directory_only_owners_remove_and_replace_names() {
    each(|world| {
        let shared = world.directory((ROOT, b"tmp"), 0o1777, (0, 0));
        let (me, other) = (user(ME, 50), user(2000, 60));
        for name in [b"a", b"b"] {
            world.make(me, (shared, name), FileKind::Regular, 0o666).unwrap();
        }
        world.make(other, (shared, b"c"), FileKind::Regular, 0o666).unwrap();
        let unlink = |by: Caller, name| errno(world.by(by, |posix, call| posix.unlink(call, (shared, name))));
        assert_eq!(unlink(other, b"a"), Some(Errno::PERM));
        let how = Renaming { if_exists: IfExists::Replace, whiteout: None };
        let rename = |by: Caller, from, to| {
            errno(world.by(by, |posix, call| posix.rename(call, (shared, from), (shared, to), how)))
        };
        assert_eq!(rename(other, b"a", b"x"), Some(Errno::PERM));
        assert_eq!(rename(other, b"c", b"a"), Some(Errno::PERM), "replacing a name is refused, too");
        assert_eq!((rename(me, b"a", b"x"), unlink(me, b"b"), unlink(Caller::ROOT, b"x")), (None, None, None));
        assert_eq!(world.names(shared), [b"c"]);
    });
}

#[test]
fn a_changed_program_loses_its_set_id_bits_and_capabilities() {
    each(|world| {
        let file = world.file((ROOT, b"program"), 0o777);
        let give = SetAttributes { user: Some(ME), group: Some(50), ..SetAttributes::default() };
        assert_eq!(change(world, Caller::ROOT, file, give), None);
        let bits = || world.attributes(file).permissions;
        let set = |mode| assert_eq!(change(world, Caller::ROOT, file, chmod(mode)), None);
        let capability = b"security.capability";
        let capable = || world.by(Caller::ROOT, |posix, call| posix.extended_attribute(call, file, capability)).is_ok();
        let empower = || {
            world.root(|posix, call| posix.set_extended_attribute(call, file, capability, b"all of them", None));
        };
        let write = |by: Caller| world.by(by, |posix, call| posix.write(call, file, 0, b"new", false)).unwrap();
        set(0o6775);
        empower();
        write(user(2000, 60));
        assert_eq!((bits(), capable()), (0o775, false), "{}", world.name);
        set(0o6775);
        write(Caller::ROOT);
        assert_eq!(bits(), 0o6775, "root's writes keep the bits");
        empower();
        write(Caller::ROOT);
        assert!(!capable(), "{}: every write removes the capability, known or not", world.name);
        assert_eq!(change(world, Caller::ROOT, file, give), None);
        assert_eq!(bits(), 0o775, "a chown clears them");
        set(0o2665);
        write(user(2000, 60));
        assert_eq!(bits(), 0o665, "a chmod by a caller outside the group clears the bit");
        assert_eq!(change(world, user(ME, 70), file, chmod(0o2775)), None);
        assert_eq!(bits(), 0o775, "and cannot set it");
        let directory = world.directory((ROOT, b"d"), 0o2777, (0, 50));
        let made = world.make(user(ME, 70), (directory, b"s"), FileKind::Directory, 0o755).unwrap();
        assert_eq!((made.group, made.permissions), (50, 0o2755));
        let made = world.make(user(ME, 70), (directory, b"f"), FileKind::Regular, 0o2775).unwrap();
        assert_eq!((made.group, made.permissions), (50, 0o755), "the creator is not in the group");
    });
}

/// `sfs` and `tree` each implemented the rule beside `fs::posix`: `sfs` for every new file, `tree` for whiteouts.
#[test]
fn posix_gives_new_files_the_group_of_a_set_group_id_directory_and_volumes_do_not() {
    each(|world| {
        let me = user(ME, 70);
        let set = world.directory((ROOT, b"set"), 0o2777, (0, 50));
        let plain = world.directory((ROOT, b"plain"), 0o777, (0, 50));
        for (directory, group, bit) in [(set, 50, 0o2000), (plain, 70, 0)] {
            for (name, kind) in [(b"f", FileKind::Regular), (b"l", FileKind::Symlink), (b"p", FileKind::Fifo)] {
                let made = world.make(me, (directory, name), kind, 0o644).unwrap();
                assert_eq!((made.user, made.group, made.permissions & 0o7000), (ME, group, 0), "{}", world.name);
            }
            let made = world.make(me, (directory, b"d"), FileKind::Directory, 0o755).unwrap();
            assert_eq!((made.group, made.permissions), (group, 0o755 | bit), "{}", world.name);
        }
        // A whiteout is a new file in the directory of the old name.
        let how = Renaming { if_exists: IfExists::Replace, whiteout: Some((ME, 70)) };
        for (from, to, group) in [(set, plain, 50), (plain, set, 70)] {
            for caller in [me, Caller::ROOT] {
                world.make(me, (from, b"old"), FileKind::Regular, 0o644).unwrap();
                world.by(caller, |posix, call| posix.rename(call, (from, b"old"), (to, b"new"), how)).unwrap();
                let left = world.attributes(world.find((from, b"old")).unwrap());
                assert_eq!(
                    (left.kind, left.user, left.group),
                    (FileKind::CharacterDevice, ME, group),
                    "{}",
                    world.name
                );
                world.root(|posix, call| posix.unlink(call, (from, b"old")));
            }
        }
        // Without a rule, a volume uses the request unchanged.
        let (kind, target, attributes) = (FileKind::Directory, &b""[..], &[][..]);
        let new = NewFile { kind, permissions: 0o755, user: ME, group: 70, device: 0, target, attributes };
        let made = world.root(|posix, call| posix.volume().make(call, (set, b"told"), &new, Hold::No, None));
        assert_eq!((made.group, made.permissions), (70, 0o755), "{}", world.name);
        world.make(me, (set, b"old"), FileKind::Regular, 0o644).unwrap();
        world.root(|posix, call| posix.volume().rename(call, (set, b"old"), (plain, b"new"), how, None));
        assert_eq!(world.attributes(world.find((set, b"old")).unwrap()).group, 70, "{}", world.name);
    });
}

/// A list in Linux's format, from tags, permissions and ids. An entry without an id holds the id -1, as programs write
/// it.
fn list(entries: &[(u16, u16, u32)]) -> Vec<u8> {
    let mut bytes = 2u32.to_le_bytes().to_vec();
    for (tag, permissions, id) in entries {
        bytes.extend([tag.to_le_bytes(), permissions.to_le_bytes()].concat());
        bytes.extend((if *id == 0 { u32::MAX } else { *id }).to_le_bytes());
    }
    bytes
}

const ACCESS: &[u8] = b"system.posix_acl_access";
const DEFAULT: &[u8] = b"system.posix_acl_default";

#[test]
fn access_control_lists_grant_access_follow_the_mode_and_are_inherited() {
    each(|world| {
        let directory = world.directory((ROOT, b"d"), 0o777, (0, 0));
        let handed = list(&[(1, 7, 0), (2, 6, ME), (4, 5, 0), (16, 7, 0), (32, 0, 0)]);
        let set = |by: Caller, inode, name: &[u8], value: &[u8]| {
            errno(world.by(by, |posix, call| posix.set_extended_attribute(call, inode, name, value, None)))
        };
        assert_eq!(set(user(ME, 50), directory, DEFAULT, &handed), Some(Errno::PERM));
        assert_eq!(set(Caller::ROOT, directory, DEFAULT, &handed[..27]), Some(Errno::INVAL));
        assert_eq!(set(Caller::ROOT, directory, DEFAULT, &handed), None);
        let file = world.file((directory, b"f"), 0o640);
        assert_eq!(
            set(Caller::ROOT, file, DEFAULT, &handed),
            Some(Errno::ACCESS),
            "only a directory has a default list"
        );
        assert_eq!(world.attributes(file).permissions, 0o640, "the default list replaces the umask");
        let open = |by: Caller, wanted| errno(world.by(by, |posix, call| posix.check_open(call, file, wanted)));
        assert_eq!(open(user(ME, 50), Wanted::READ), None, "{}: the list names the user", world.name);
        assert_eq!(open(user(ME, 50), Wanted::WRITE), Some(Errno::ACCESS), "the mask is the group bits of the mode");
        assert_eq!(open(user(2000, 60), Wanted::READ), Some(Errno::ACCESS));
        assert_eq!(change(world, Caller::ROOT, file, chmod(0o660)), None);
        assert_eq!(open(user(ME, 50), Wanted::READ | Wanted::WRITE), None, "the chmod changed the mask");
        let inner = world.make(Caller::ROOT, (directory, b"i"), FileKind::Directory, 0o755).unwrap().inode;
        let kept = world.root(|posix, call| posix.extended_attribute(call, inner, DEFAULT));
        assert_eq!(kept, handed);
        let plain = list(&[(1, 6, 0), (4, 4, 0), (32, 4, 0)]);
        assert_eq!(set(Caller::ROOT, file, ACCESS, &plain), None);
        let gone = world.by(Caller::ROOT, |posix, call| posix.extended_attribute(call, file, ACCESS));
        assert_eq!((errno(gone), world.attributes(file).permissions), (Some(Errno::NODATA), 0o644));
    });
}

#[test]
fn each_attribute_namespace_has_its_own_permissions() {
    each(|world| {
        let file = world.file((ROOT, b"f"), 0o644);
        let set = |by: Caller, inode, name: &[u8], exists| {
            errno(world.by(by, |posix, call| posix.set_extended_attribute(call, inode, name, b"value", exists)))
        };
        let me = user(ME, 50);
        assert_eq!(set(me, file, b"user.a", None), Some(Errno::ACCESS));
        assert_eq!(set(me, file, b"trusted.a", None), Some(Errno::PERM));
        assert_eq!(set(Caller::ROOT, file, b"other.a", None), Some(Errno::OPNOTSUPP));
        assert_eq!(set(Caller::ROOT, file, b"user.", None), Some(Errno::INVAL));
        assert_eq!(set(Caller::ROOT, file, b"user.a", Some(true)), Some(Errno::NODATA));
        assert_eq!(set(Caller::ROOT, file, b"user.a", Some(false)), None);
        assert_eq!(set(Caller::ROOT, file, b"user.a", Some(false)), Some(Errno::EXIST));
        assert_eq!(set(Caller::ROOT, file, b"trusted.b", None), None);
        let names = |by: Caller| world.by(by, |posix, call| posix.extended_attributes(call, file)).unwrap();
        assert_eq!((names(Caller::ROOT), names(me)), (b"trusted.b\0user.a\0".to_vec(), b"user.a\0".to_vec()));
        let get = |by: Caller, name: &[u8]| world.by(by, |posix, call| posix.extended_attribute(call, file, name));
        assert_eq!(
            (get(me, b"user.a").unwrap(), errno(get(me, b"trusted.b"))),
            (b"value".to_vec(), Some(Errno::NODATA))
        );
        let remove = |name: &[u8]| {
            errno(world.by(Caller::ROOT, |posix, call| posix.remove_extended_attribute(call, file, name)))
        };
        assert_eq!((remove(b"user.a"), remove(b"user.a")), (None, Some(Errno::NODATA)));
        let long = vec![1; (64 << 10) + 1];
        let too_long =
            world.by(Caller::ROOT, |posix, call| posix.set_extended_attribute(call, file, b"user.l", &long, None));
        assert_eq!(errno(too_long), Some(Errno::TOOBIG));
    });
}
