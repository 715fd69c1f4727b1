//! A job as accepted.

use aegis_common::id::{JobId, Moment};
use aegis_common::job::Resources;
use aegis_common::learned::Learned;
use aegis_common::wire::Launch;
use serde::{Deserialize, Serialize};

/// Everything needed to start an attempt of a job, whenever that may be. Holds the user's
/// environment and the job's secret: it stays in the database (mode 0600).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct JobRecord {
    /// Its number.
    pub id: JobId,
    /// The submitter, from `SO_PEERCRED`.
    pub uid: u32,
    /// Its name in lists.
    pub name: String,
    /// What to run.
    pub launch: Launch,
    /// What it asks for.
    pub resources: Resources,
    /// Its secret: 32 lower-case hexadecimal digits.
    #[serde(with = "digits")]
    pub token: [u8; 32],
    /// When it was accepted.
    pub submitted: Moment,
    /// The submitter's group, from `SO_PEERCRED`.
    pub gid: u32,
    /// The submitter's supplementary groups, from `SO_PEERGROUPS`.
    pub groups: Vec<u32>,
    /// What earlier runs of its command had taught.
    #[serde(default)]
    pub learned: Learned,
}

/// A token as a JSON string.
pub(crate) mod digits {
    use serde::de::Error;
    use serde::{Deserialize, Deserializer, Serializer};

    pub(crate) fn serialize<S: Serializer>(
        token: &[u8; 32],
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&String::from_utf8_lossy(token))
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<[u8; 32], D::Error> {
        let text = String::deserialize(deserializer)?;
        if !text.bytes().all(|byte| byte.is_ascii_hexdigit()) {
            return Err(D::Error::custom("a token has hexadecimal digits only"));
        }
        text.into_bytes()
            .try_into()
            .map_err(|_| D::Error::custom("a token has 32 digits"))
    }
}
