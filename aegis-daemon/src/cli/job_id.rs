//! A job's number as an argument.

use aegis_common::id::JobId;

/// The number; `#7` is accepted too.
pub(super) fn job_id(text: &str) -> Result<JobId, String> {
    match text.strip_prefix('#').unwrap_or(text).parse() {
        Ok(0) | Err(_) => Err("job ids are whole numbers from 1; see `aegis queue`".to_owned()),
        Ok(id) => Ok(JobId(id)),
    }
}
