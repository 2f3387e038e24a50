//! The owner of the root directory of a new volume.

use crate::failure::Failure;
use flashpath::run::Owner;
use nix::unistd::{Gid, Group, Uid, User, getegid, geteuid};

/// The user of this program.
pub fn myself() -> Owner {
    (geteuid().as_raw(), getegid().as_raw())
}

/// Reads `USER`, `USER:GROUP` or `:GROUP`, each a name or a number, as chown does. Without a group it is the user's first
/// one; without a user it is who runs this program.
pub fn read(text: &str) -> Result<Owner, Failure> {
    let (user, group) = text.split_once(':').map_or((text, ""), |(user, group)| (user, group));
    let (mine, my_group) = myself();
    let refused = |what: &str, name: &str| {
        let help = "write --owner USER:GROUP, names or numbers".to_string();
        Failure::input(format!("--owner {text}: there is no {what} '{name}'"), Some(help))
    };
    let number = |name: &str| name.parse::<u32>().ok().filter(|number| *number != u32::MAX);
    let known = User::from_name(user).ok().flatten();
    let user_number = match (user, &known) {
        ("", _) => mine,
        (_, Some(known)) => known.uid.as_raw(),
        (name, None) => number(name).ok_or_else(|| refused("user", name))?,
    };
    let first_group = || match user {
        "" => Ok(my_group),
        name => {
            known.as_ref().map(|user| user.gid).or_else(|| of_number(user_number)).map(Gid::as_raw).ok_or_else(|| {
                let help = format!("write --owner {name}:GROUP");
                Failure::input(format!("--owner {text}: the user {name} is not known, and so is no group"), Some(help))
            })
        }
    };
    let group_number = match group {
        "" => first_group()?,
        name => match Group::from_name(name).ok().flatten() {
            Some(group) => group.gid.as_raw(),
            None => number(name).ok_or_else(|| refused("group", name))?,
        },
    };
    Ok((user_number, group_number))
}

/// The first group of a user by number.
fn of_number(user: u32) -> Option<Gid> {
    User::from_uid(Uid::from_raw(user)).ok().flatten().map(|user| user.gid)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_owner_is_read_as_chown_reads_it() {
        let owner = |text: &str| read(text).ok();
        assert_eq!(owner("root"), Some((0, 0)));
        assert_eq!(owner("root:root"), Some((0, 0)));
        assert_eq!(owner("12345:678"), Some((12345, 678)));
        assert_eq!(owner(":678"), Some((myself().0, 678)));
        assert_eq!(owner("0"), Some((0, 0)));
        for wrong in ["no-such-user", "root:no-such-group", "-1", "4294967295:1", "1:2:3", "123456789"] {
            assert_eq!(owner(wrong), None, "{wrong}");
        }
    }
}
