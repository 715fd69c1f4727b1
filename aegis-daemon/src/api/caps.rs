//! How many connections to the client socket one user may have.
//!
//! In root mode the socket is open to everybody, and each connection takes a descriptor and a buffer
//! of the daemon's. A user who opens too many must only hurt their own.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Connections open at once per uid: waiting clients hold one each.
pub(super) const OPEN_PER_UID: u32 = 256;

/// The open connections by uid.
#[derive(Clone, Debug, Default)]
pub(super) struct Clients(Arc<Mutex<BTreeMap<u32, u32>>>);

impl Clients {
    /// Counts a connection of `uid` until the [`Seat`] is dropped. `None`: there are too many.
    pub(super) fn admit(&self, uid: u32) -> Option<Seat> {
        let mut open = self.open();
        let count = open.entry(uid).or_default();
        if *count >= OPEN_PER_UID {
            return None;
        }
        *count += 1;
        Some(Seat {
            clients: self.clone(),
            uid,
        })
    }

    fn open(&self) -> MutexGuard<'_, BTreeMap<u32, u32>> {
        // Consistent between any two statements that could panic: there are none.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// One counted connection.
#[derive(Debug)]
pub(super) struct Seat {
    clients: Clients,
    uid: u32,
}

impl Drop for Seat {
    fn drop(&mut self) {
        let mut open = self.clients.open();
        if let Some(count) = open.get_mut(&self.uid) {
            *count = count.saturating_sub(1);
            if *count == 0 {
                open.remove(&self.uid);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Clients, OPEN_PER_UID};

    #[test]
    fn one_user_cannot_take_the_place_of_another() {
        let clients = Clients::default();
        let mut seats: Vec<_> = (0..OPEN_PER_UID)
            .map(|_| clients.admit(1).unwrap())
            .collect();
        assert!(clients.admit(1).is_none());
        assert!(clients.admit(2).is_some());
        seats.pop();
        assert!(clients.admit(1).is_some());
        drop(seats);
        assert!(clients.open().is_empty());
    }
}
