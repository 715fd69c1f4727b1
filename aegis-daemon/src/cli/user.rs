//! User names and uids.

use std::collections::HashMap;

use aegis_common::wire::{ErrorCode, Failure};

use super::error::failure;

/// The uid of a user given by name or number.
pub(super) fn uid_of(text: &str) -> Result<u32, Failure> {
    // The C library takes names up to a NUL only.
    let known = if text.contains('\0') {
        None
    } else {
        uzers::get_user_by_name(text)
    };
    known
        .map(|user| user.uid())
        .or_else(|| text.parse().ok())
        .ok_or_else(|| {
            failure(
                ErrorCode::BadRequest,
                format!("--user: no user {text:?} here"),
            )
        })
}

/// Looks each uid up once.
#[derive(Default)]
pub(super) struct Users(HashMap<u32, String>);

impl Users {
    /// The user's name, else its uid.
    pub(super) fn name(&mut self, uid: u32) -> &str {
        self.0.entry(uid).or_insert_with(|| {
            uzers::get_user_by_uid(uid).map_or_else(
                || uid.to_string(),
                |user| user.name().to_string_lossy().into_owned(),
            )
        })
    }
}
