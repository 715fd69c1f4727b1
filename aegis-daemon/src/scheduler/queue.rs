//! The order in which pending jobs are looked at: priority, then users in turn, then submission.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::ops::Bound;

use aegis_common::id::JobId;
use serde::{Deserialize, Serialize};

/// Ranks and numbers of the jobs of a lane.
type Lane = Vec<(u64, JobId)>;

/// The pending jobs.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Queue {
    /// By priority and lane; each list ascending by rank and number.
    classes: BTreeMap<i32, BTreeMap<u32, Lane>>,
    /// When each user with pending jobs was last served or came: smaller is first.
    turns: BTreeMap<u32, u64>,
    /// The next turn to give out.
    next_turn: u64,
}

/// What a pending job's place depends on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Ticket {
    pub(super) id: JobId,
    pub(super) priority: i32,
    /// Lanes take turns: the user.
    pub(super) lane: u32,
    /// Smaller is first within the lane.
    pub(super) rank: u64,
}

/// A job's place: a smaller key is further ahead.
pub(super) type Key = (Reverse<i32>, usize, u64, u32);

impl Ticket {
    const fn entry(&self) -> (u64, JobId) {
        (self.rank, self.id)
    }
}

impl Queue {
    /// Adds a job. A user who had none pending comes last among the users, or back at `turn`.
    pub(super) fn insert(&mut self, ticket: Ticket, turn: Option<u64>) {
        let Ticket {
            priority,
            lane: uid,
            ..
        } = ticket;
        let place = self.turns.get(&uid).copied();
        let place = match (place, turn) {
            (Some(place), Some(turn)) => place.min(turn),
            (Some(place), None) => place,
            (None, Some(turn)) => turn,
            (None, None) => self.take_turn(),
        };
        self.turns.insert(uid, place);
        let list = self
            .classes
            .entry(priority)
            .or_default()
            .entry(uid)
            .or_default();
        if let Err(position) = list.binary_search(&ticket.entry()) {
            list.insert(position, ticket.entry());
        }
    }

    /// Takes a job out because it starts: its user goes behind the others. Returns the turn used.
    pub(super) fn serve(&mut self, ticket: Ticket) -> u64 {
        let uid = ticket.lane;
        let turn = self.turns.get(&uid).copied().unwrap_or(self.next_turn);
        self.remove(ticket);
        if self.turns.contains_key(&uid) {
            let next = self.take_turn();
            self.turns.insert(uid, next);
        }
        turn
    }

    /// Takes a job out.
    pub(super) fn remove(&mut self, ticket: Ticket) {
        let Ticket {
            priority,
            lane: uid,
            ..
        } = ticket;
        let Some(users) = self.classes.get_mut(&priority) else {
            return;
        };
        if let Some(list) = users.get_mut(&uid) {
            if let Ok(position) = list.binary_search(&ticket.entry()) {
                list.remove(position);
            }
            if list.is_empty() {
                users.remove(&uid);
            }
        }
        if users.is_empty() {
            self.classes.remove(&priority);
        }
        if !self.classes.values().any(|users| users.contains_key(&uid)) {
            self.turns.remove(&uid);
        }
    }

    /// A pending job's place.
    pub(super) fn key(&self, ticket: Ticket) -> Option<Key> {
        let Ticket {
            priority,
            lane: uid,
            ..
        } = ticket;
        let list = self.classes.get(&priority)?.get(&uid)?;
        let round = list.binary_search(&ticket.entry()).ok()?;
        Some((Reverse(priority), round, self.turn(uid), uid))
    }

    /// Jobs ahead of a pending job.
    pub(super) fn ahead(&self, ticket: Ticket) -> Option<usize> {
        let Ticket {
            priority,
            lane: uid,
            ..
        } = ticket;
        let (_, round, turn, _) = self.key(ticket)?;
        let above = self
            .classes
            .range((Bound::Excluded(priority), Bound::Unbounded));
        let above: usize = above
            .flat_map(|(_, users)| users.values().map(Vec::len))
            .sum();
        let users = self.classes.get(&priority)?;
        let beside: usize = users
            .iter()
            .map(|(&other, list)| {
                let earlier = (self.turn(other), other) < (turn, uid);
                list.len().min(round + usize::from(earlier))
            })
            .sum();
        Some(above + beside)
    }

    /// All pending jobs, the head first.
    pub(super) fn order(&self) -> Vec<JobId> {
        let mut order = Vec::new();
        for users in self.classes.values().rev() {
            let mut lists: Vec<(u64, u32, &Lane)> = users
                .iter()
                .map(|(&uid, list)| (self.turn(uid), uid, list))
                .collect();
            lists.sort_unstable_by_key(|&(turn, uid, _)| (turn, uid));
            let mut round = 0;
            while !lists.is_empty() {
                lists.retain(|(_, _, list)| list.len() > round);
                let entries = lists.iter().filter_map(|(_, _, list)| list.get(round));
                order.extend(entries.map(|&(_, id)| id));
                round += 1;
            }
        }
        order
    }

    /// Whether nothing is pending.
    pub(super) fn is_empty(&self) -> bool {
        self.classes.is_empty()
    }

    fn turn(&self, uid: u32) -> u64 {
        self.turns.get(&uid).copied().unwrap_or(u64::MAX)
    }

    fn take_turn(&mut self) -> u64 {
        let turn = self.next_turn;
        self.next_turn = turn.saturating_add(1);
        turn
    }
}

#[cfg(test)]
mod tests {
    use super::{Queue, Ticket};
    use aegis_common::id::JobId;
    use proptest::prelude::*;

    fn ticket(priority: i32, lane: u32, id: JobId) -> Ticket {
        Ticket {
            id,
            priority,
            lane,
            rank: 0,
        }
    }

    #[test]
    fn the_smaller_rank_is_first_within_a_lane() {
        let mut queue = Queue::default();
        for (id, rank) in [(1, 30), (2, 10), (3, 20)] {
            let ticket = Ticket {
                rank,
                ..ticket(0, 100, JobId(id))
            };
            queue.insert(ticket, None);
        }
        let ids: Vec<u64> = queue.order().iter().map(|id| id.0).collect();
        assert_eq!(ids, [2, 3, 1]);
    }

    #[test]
    fn users_take_turns_within_a_priority() {
        let mut queue = Queue::default();
        for id in 1..=4 {
            queue.insert(ticket(0, 100, JobId(id)), None);
        }
        queue.insert(ticket(0, 200, JobId(5)), None);
        queue.insert(ticket(-1, 300, JobId(6)), None);
        let ids: Vec<u64> = queue.order().iter().map(|id| id.0).collect();
        assert_eq!(ids, [1, 5, 2, 3, 4, 6]);
        let turn = queue.serve(ticket(0, 100, JobId(1)));
        let ids: Vec<u64> = queue.order().iter().map(|id| id.0).collect();
        assert_eq!(ids, [5, 2, 3, 4, 6]);
        // A retried job is back where it was.
        queue.insert(ticket(0, 100, JobId(1)), Some(turn));
        assert_eq!(queue.order().first(), Some(&JobId(1)));
    }

    proptest! {
        #[test]
        fn ahead_counts_what_the_order_shows(
            jobs in proptest::collection::vec((-2..2i32, 0..4u32), 1..40),
            served in proptest::collection::vec(any::<prop::sample::Index>(), 0..10),
        ) {
            let mut queue = Queue::default();
            let numbered = |index: usize| JobId(u64::try_from(index).unwrap());
            for (index, &(priority, uid)) in jobs.iter().enumerate() {
                queue.insert(ticket(priority, uid, numbered(index)), None);
            }
            for index in served {
                let index = index.index(jobs.len());
                let (priority, uid) = jobs[index];
                queue.serve(ticket(priority, uid, numbered(index)));
            }
            let order = queue.order();
            for (ahead, &id) in order.iter().enumerate() {
                let (priority, uid) = jobs[usize::try_from(id.0).unwrap()];
                prop_assert_eq!(queue.ahead(ticket(priority, uid, id)), Some(ahead));
            }
            for pair in order.windows(2) {
                let key = |id: JobId| {
                    let (priority, uid) = jobs[usize::try_from(id.0).unwrap()];
                    queue.key(ticket(priority, uid, id))
                };
                prop_assert!(key(pair[0]) < key(pair[1]));
            }
        }
    }
}
