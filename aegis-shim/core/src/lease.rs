//! Whether a request may go to the driver.
#![forbid(unsafe_code)]

use aegis_common::abi::lease::{FLAG_HELD, FLAG_OLDEST, LEASE_BINDS_NS, UNLIMITED};
use aegis_common::abi::ledger::Bypass;
use aegis_common::abi::message::Verdict;

/// One GPU's line of the lease page, as read at one moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Terms {
    /// Bytes the process may hold.
    pub limit: u64,
    /// `FLAG_HELD`, `FLAG_OLDEST`.
    pub flags: u32,
}

impl Terms {
    /// Whether `held` bytes (with the request) are within the lease. A GPU that the job does not
    /// hold has room for nothing.
    #[must_use]
    pub const fn cover(&self, held: u64) -> bool {
        self.holds() && (held <= self.limit || self.limit == UNLIMITED)
    }

    /// Whether the job holds the GPU.
    #[must_use]
    pub const fn holds(&self) -> bool {
        self.flags & FLAG_HELD != 0
    }
}

/// How the daemon answered a request for more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reply {
    /// It decided.
    Verdict(Verdict),
    /// It is there, but did not decide in time.
    Late,
    /// Nobody listens, or the connection broke off.
    Gone,
    /// It was not asked: the GPU is not the job's.
    NotAsked,
}

/// What to do with a request that the lease does not cover.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Decision {
    /// Reserve again and compare with the new limit.
    Recheck,
    /// Let the driver decide, and count why.
    Pass(Bypass),
    /// Answer out-of-memory.
    Deny,
}

/// Decides about a request that the lease does not cover (contract C3).
#[must_use]
pub const fn decide(reply: Reply, flags: u32, now_ns: u64, heartbeat_ns: u64) -> Decision {
    match reply {
        Reply::Verdict(Verdict::Granted) => Decision::Recheck,
        // A daemon that does not know the job, or speaks another version, has no say in it.
        Reply::Verdict(Verdict::Unknown | Verdict::Incompatible) => {
            Decision::Pass(Bypass::DaemonGone)
        }
        Reply::Verdict(Verdict::Denied) => Decision::Deny,
        // A daemon that has not lived for so long is gone, even if its socket still takes requests.
        _ if now_ns.saturating_sub(heartbeat_ns) > LEASE_BINDS_NS => {
            Decision::Pass(Bypass::DaemonGone)
        }
        // `Wait` is no final answer: the daemon let its own deadline pass.
        Reply::Late | Reply::Verdict(Verdict::Wait) => {
            if flags & FLAG_OLDEST != 0 {
                Decision::Pass(Bypass::OldestPassed)
            } else {
                Decision::Deny
            }
        }
        Reply::Gone | Reply::NotAsked => Decision::Deny,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: u64 = 100_000_000_000;
    const ALIVE: u64 = NOW - 1_000_000_000;
    const STALE: u64 = NOW - LEASE_BINDS_NS - 1;

    #[test]
    fn the_limit_is_inclusive() {
        let terms = Terms {
            limit: 100,
            flags: FLAG_HELD,
        };
        assert!(terms.cover(100));
        assert!(!terms.cover(101));
        assert!(
            Terms {
                limit: UNLIMITED,
                flags: FLAG_HELD
            }
            .cover(u64::MAX)
        );
        assert!(
            !Terms {
                limit: UNLIMITED,
                flags: 0
            }
            .cover(0),
            "a GPU that is not held"
        );
    }

    #[test]
    fn every_case_of_the_decision() {
        use Bypass::{DaemonGone, OldestPassed};
        let held = FLAG_HELD;
        let oldest = FLAG_HELD | FLAG_OLDEST;
        for (reply, flags, heartbeat, expected) in [
            (
                Reply::Verdict(Verdict::Granted),
                held,
                ALIVE,
                Decision::Recheck,
            ),
            (Reply::Verdict(Verdict::Denied), held, ALIVE, Decision::Deny),
            (
                Reply::Verdict(Verdict::Denied),
                oldest,
                ALIVE,
                Decision::Deny,
            ),
            (Reply::Verdict(Verdict::Denied), held, STALE, Decision::Deny),
            (
                Reply::Verdict(Verdict::Unknown),
                held,
                ALIVE,
                Decision::Pass(DaemonGone),
            ),
            (
                Reply::Verdict(Verdict::Incompatible),
                held,
                ALIVE,
                Decision::Pass(DaemonGone),
            ),
            (Reply::Verdict(Verdict::Wait), held, ALIVE, Decision::Deny),
            (
                Reply::Verdict(Verdict::Wait),
                oldest,
                ALIVE,
                Decision::Pass(OldestPassed),
            ),
            (Reply::Late, held, ALIVE, Decision::Deny),
            (Reply::Late, oldest, ALIVE, Decision::Pass(OldestPassed)),
            (Reply::Late, held, STALE, Decision::Pass(DaemonGone)),
            (Reply::Late, oldest, STALE, Decision::Pass(DaemonGone)),
            (Reply::Gone, held, ALIVE, Decision::Deny),
            (Reply::Gone, oldest, ALIVE, Decision::Deny),
            (Reply::Gone, held, STALE, Decision::Pass(DaemonGone)),
            (Reply::Gone, oldest, STALE, Decision::Pass(DaemonGone)),
            (Reply::NotAsked, 0, ALIVE, Decision::Deny),
            (Reply::NotAsked, 0, STALE, Decision::Pass(DaemonGone)),
            // A heartbeat from the future (another clock) is not stale.
            (Reply::Gone, held, NOW + 5, Decision::Deny),
        ] {
            assert_eq!(
                decide(reply, flags, NOW, heartbeat),
                expected,
                "{reply:?} {flags}"
            );
        }
    }
}
