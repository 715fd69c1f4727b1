//! Users and groups by name.

use uzers::{get_group_by_name, get_user_by_name};

/// Who may act on everybody's jobs. Root always may.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Admins {
    /// User names as in the file.
    pub users: Vec<String>,
    /// Group names as in the file.
    pub groups: Vec<String>,
    uids: Vec<u32>,
    gids: Vec<u32>,
}

impl Admins {
    /// Whether a peer with this uid and these groups (its primary one included) is an administrator.
    #[must_use]
    pub fn allows(&self, uid: u32, groups: &[u32]) -> bool {
        uid == 0 || self.uids.contains(&uid) || groups.iter().any(|gid| self.gids.contains(gid))
    }

    pub(super) fn set_users(&mut self, names: Vec<String>) -> Result<(), String> {
        self.uids = resolve(&names, "user", |name| {
            get_user_by_name(name).map(|user| user.uid())
        })?;
        self.users = names;
        Ok(())
    }

    pub(super) fn set_groups(&mut self, names: Vec<String>) -> Result<(), String> {
        self.gids = resolve(&names, "group", |name| {
            get_group_by_name(name).map(|group| group.gid())
        })?;
        self.groups = names;
        Ok(())
    }
}

/// Ids of `names`, which may be numbers too: an id needs no entry in the user database.
fn resolve(
    names: &[String],
    what: &str,
    lookup: impl Fn(&str) -> Option<u32>,
) -> Result<Vec<u32>, String> {
    names
        .iter()
        .map(|name| {
            // The C library takes names up to a NUL only: one inside would name somebody else.
            let known = if name.contains('\0') {
                None
            } else {
                lookup(name)
            };
            known
                .or_else(|| name.parse().ok())
                .ok_or_else(|| format!("this machine has no {what} {name:?}"))
        })
        .collect()
}
