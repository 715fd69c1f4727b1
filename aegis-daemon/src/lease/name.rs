//! The name under which a process's ledger and lease page are found again.

use std::fmt;
use std::str::FromStr;

use aegis_common::id::{JobId, ProcessKey};

/// What every ledger's memfd name begins with.
const LEDGER_PREFIX: &str = "aegis-ledger:";
/// What every lease page's file name ends with.
const LEASE_SUFFIX: &str = ".lease";

/// Whose memory it is. Displayed as `JOB:PID:START`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LeaseName {
    /// The job.
    pub job: JobId,
    /// The process.
    pub process: ProcessKey,
}

impl LeaseName {
    /// Name of the ledger's memfd: `aegis-ledger:JOB:PID:START`.
    #[must_use]
    pub fn ledger(&self) -> String {
        format!("{LEDGER_PREFIX}{self}")
    }

    /// The name in a ledger's memfd name.
    #[must_use]
    pub fn from_ledger(name: &str) -> Option<Self> {
        name.strip_prefix(LEDGER_PREFIX)?.parse().ok()
    }

    /// Name of the lease page's file: `JOB:PID:START.lease`.
    #[must_use]
    pub fn file(&self) -> String {
        format!("{self}{LEASE_SUFFIX}")
    }

    /// The name in a lease page's file name.
    #[must_use]
    pub fn from_file(name: &str) -> Option<Self> {
        name.strip_suffix(LEASE_SUFFIX)?.parse().ok()
    }
}

impl fmt::Display for LeaseName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ProcessKey { pid, start_ticks } = self.process;
        write!(f, "{}:{pid}:{start_ticks}", self.job)
    }
}

/// The text is not `JOB:PID:START`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("not of the form JOB:PID:START")]
pub struct BadLeaseName;

impl FromStr for LeaseName {
    type Err = BadLeaseName;

    fn from_str(text: &str) -> Result<Self, BadLeaseName> {
        let mut parts = text.split(':');
        let mut number = || -> Option<u64> {
            let part = parts.next()?;
            // `u64::from_str` would take a leading plus sign.
            if !part.bytes().all(|byte| byte.is_ascii_digit()) {
                return None;
            }
            part.parse().ok()
        };
        let name = (|| {
            Some(Self {
                job: JobId(number()?),
                process: ProcessKey {
                    pid: u32::try_from(number()?).ok()?,
                    start_ticks: number()?,
                },
            })
        })();
        match (name, parts.next()) {
            (Some(name), None) => Ok(name),
            _ => Err(BadLeaseName),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn names_survive(job: u64, pid: u32, start_ticks: u64) {
            let name = LeaseName { job: JobId(job), process: ProcessKey { pid, start_ticks } };
            prop_assert_eq!(LeaseName::from_ledger(&name.ledger()), Some(name));
            prop_assert_eq!(LeaseName::from_file(&name.file()), Some(name));
        }

        #[test]
        fn any_text_is_read_without_panic(text: String) {
            let _ = LeaseName::from_ledger(&text);
            let _ = LeaseName::from_file(&text);
        }
    }

    #[test]
    fn near_misses_are_refused() {
        for text in [
            "",
            "1:2",
            "1:2:3:4",
            "+1:2:3",
            "1:-2:3",
            "1:2:",
            "a:b:c",
            "1:4294967296:3",
        ] {
            assert_eq!(text.parse::<LeaseName>(), Err(BadLeaseName), "{text}");
        }
    }
}
