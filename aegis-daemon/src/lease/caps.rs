//! How much of the shim socket one user may take.
//!
//! The socket is open to everybody, so that a job's processes reach it whatever user they run as.
//! A user who floods it must only hurt their own jobs.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// Bounds on shim connections.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ShimLimits {
    /// Connections open at once per uid. Each waiting allocation holds one.
    pub open_per_uid: u32,
    /// Connections open at once in all: one user can own many uids through a user namespace.
    pub open: u32,
    /// Connections a uid may open at once after a pause.
    pub burst: u32,
    /// Connections per second a uid may open for long.
    pub per_second: u32,
}

impl Default for ShimLimits {
    /// 64 processes that each take an 80 GB GPU in 256 MiB chunks within ten seconds stay below
    /// these.
    fn default() -> Self {
        Self {
            open_per_uid: 256,
            open: 512,
            burst: 2048,
            per_second: 2048,
        }
    }
}

/// Which bound a connection ran into.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Excess {
    /// Too many open.
    Open,
    /// Too many lately.
    Rate,
}

#[derive(Debug)]
struct User {
    open: u32,
    /// Thousandths of connections that may be opened now.
    allowance: u64,
    refilled: Duration,
}

/// The bookkeeping. Time is handed in.
#[derive(Debug)]
struct Book {
    limits: ShimLimits,
    open: u32,
    users: HashMap<u32, User>,
}

impl Book {
    fn full(&self) -> u64 {
        u64::from(self.limits.burst) * 1000
    }

    fn admit(&mut self, uid: u32, now: Duration) -> Result<(), Excess> {
        let full = self.full();
        let per_second = u64::from(self.limits.per_second);
        let user = self.users.entry(uid).or_insert(User {
            open: 0,
            allowance: full,
            refilled: now,
        });
        // One connection per second is one thousandth of a connection per millisecond.
        let millis = now.saturating_sub(user.refilled).as_millis();
        let earned = u64::try_from(millis)
            .unwrap_or(u64::MAX)
            .saturating_mul(per_second);
        user.allowance = user.allowance.saturating_add(earned).min(full);
        user.refilled += Duration::from_millis(u64::try_from(millis).unwrap_or(0));
        if user.open >= self.limits.open_per_uid || self.open >= self.limits.open {
            return Err(Excess::Open);
        }
        let Some(rest) = user.allowance.checked_sub(1000) else {
            return Err(Excess::Rate);
        };
        user.allowance = rest;
        user.open += 1;
        self.open += 1;
        Ok(())
    }

    fn release(&mut self, uid: u32) {
        self.open = self.open.saturating_sub(1);
        if let Some(user) = self.users.get_mut(&uid) {
            user.open = user.open.saturating_sub(1);
        }
    }

    /// Forgets users of whom nothing needs to be remembered.
    fn prune(&mut self, now: Duration) {
        let full = self.full();
        let per_second = u64::from(self.limits.per_second).max(1);
        self.users.retain(|_, user| {
            let missing = full.saturating_sub(user.allowance) / per_second;
            user.open > 0 || now.saturating_sub(user.refilled) <= Duration::from_millis(missing)
        });
    }
}

/// The bounds and who uses how much of them.
#[derive(Clone, Debug)]
pub(super) struct Caps(Arc<Mutex<Book>>);

impl Caps {
    pub(super) fn new(limits: ShimLimits) -> Self {
        Self(Arc::new(Mutex::new(Book {
            limits,
            open: 0,
            users: HashMap::new(),
        })))
    }

    /// Counts a connection of `uid` until the [`Slot`] is dropped. `now` counts from any fixed
    /// moment.
    pub(super) fn admit(&self, uid: u32, now: Duration) -> Result<Slot, Excess> {
        let mut book = self.book();
        if book.users.len() > 1024 {
            book.prune(now);
        }
        book.admit(uid, now)?;
        Ok(Slot {
            caps: self.clone(),
            uid,
        })
    }

    fn book(&self) -> MutexGuard<'_, Book> {
        // The book is consistent between any two statements that could panic: there are none.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// One counted connection.
#[derive(Debug)]
pub(super) struct Slot {
    caps: Caps,
    uid: u32,
}

impl Drop for Slot {
    fn drop(&mut self) {
        self.caps.book().release(self.uid);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMITS: ShimLimits = ShimLimits {
        open_per_uid: 2,
        open: 3,
        burst: 4,
        per_second: 2,
    };

    #[test]
    fn one_user_cannot_take_the_place_of_another() {
        let caps = Caps::new(LIMITS);
        let now = Duration::ZERO;
        let first = caps.admit(1, now).unwrap();
        let _second = caps.admit(1, now).unwrap();
        assert_eq!(caps.admit(1, now).unwrap_err(), Excess::Open);
        let _other = caps.admit(2, now).unwrap();
        assert_eq!(caps.admit(3, now).unwrap_err(), Excess::Open);
        drop(first);
        let _third = caps.admit(3, now).unwrap();
    }

    #[test]
    fn a_flood_is_slowed_to_the_rate_and_a_pause_refills() {
        let caps = Caps::new(LIMITS);
        for _ in 0..4 {
            drop(caps.admit(1, Duration::ZERO).unwrap());
        }
        let refused = |millis| caps.admit(1, Duration::from_millis(millis)).is_err();
        assert!(refused(0));
        assert!(refused(499));
        assert!(!refused(500));
        assert!(refused(501));
        assert!(!refused(60_000));
    }

    #[test]
    fn idle_users_are_forgotten_but_not_their_debts() {
        let mut book = Book {
            limits: LIMITS,
            open: 0,
            users: HashMap::new(),
        };
        book.admit(1, Duration::ZERO).unwrap();
        book.release(1);
        book.prune(Duration::from_millis(400));
        assert_eq!(book.users.len(), 1);
        book.prune(Duration::from_millis(600));
        assert_eq!(book.users.len(), 0);
    }
}
