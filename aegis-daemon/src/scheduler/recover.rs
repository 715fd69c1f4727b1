//! After an out-of-memory end: with what the next attempt starts (contract C5, invariant 7).

use aegis_common::job::OomFinal;

/// What is known when an attempt ran out of memory.
#[derive(Clone, Copy, Debug)]
pub(super) struct OutOfMemory {
    /// Highest bytes held on the GPU.
    pub(super) peak: u64,
    /// The refused request.
    pub(super) request: u64,
    /// Peak, request and margin.
    pub(super) wanted: u64,
    /// What the attempt was promised before it started.
    pub(super) previous: u64,
    /// The GPU's memory.
    pub(super) memory: u64,
    /// What one job can hold there when alone.
    pub(super) capacity: u64,
    /// The attempt had the GPU to itself and nothing but the GPU bounded it.
    pub(super) was_alone: bool,
    /// Attempts left.
    pub(super) retries_left: u32,
}

/// The next attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct NextAttempt {
    /// Bytes promised before it starts; never less than before.
    pub(super) floor: u64,
    /// It has its GPUs to itself.
    pub(super) exclusive: bool,
}

/// The ladder: what was seen to be needed; if that is no more than before, quarters of the GPU;
/// then the GPU alone; then the end. The last attempt is always the GPU alone: no job fails for
/// good before it had that.
pub(super) fn next_attempt(oom: OutOfMemory) -> Result<NextAttempt, OomFinal> {
    if oom.request > oom.capacity {
        return Err(OomFinal::ExceedsCapacity);
    }
    if oom.was_alone {
        return Err(OomFinal::WasExclusive);
    }
    if oom.retries_left == 0 {
        return Err(OomFinal::NoRetriesLeft);
    }
    let quarter = oom.memory / 4;
    let steps = [
        oom.wanted,
        quarter,
        quarter.saturating_mul(2),
        quarter.saturating_mul(3),
    ];
    // Only the first step may exceed the capacity: then only the GPU alone can do.
    let next = if oom.wanted > oom.capacity || oom.retries_left == 1 {
        None
    } else {
        let mut higher = steps.into_iter().filter(|&step| step > oom.previous);
        higher.find(|&step| step <= oom.capacity)
    };
    Ok(match next {
        Some(floor) => NextAttempt {
            floor,
            exclusive: false,
        },
        None => NextAttempt {
            floor: oom
                .peak
                .saturating_add(oom.request)
                .min(oom.capacity)
                .max(oom.previous.min(oom.capacity)),
            exclusive: true,
        },
    })
}

#[cfg(test)]
mod tests {
    use super::{NextAttempt, OutOfMemory, next_attempt};
    use aegis_common::job::OomFinal;
    use proptest::prelude::*;

    const GIB: u64 = 1 << 30;

    fn oom(peak: u64, request: u64, previous: u64) -> OutOfMemory {
        OutOfMemory {
            peak: peak * GIB,
            request: request * GIB,
            wanted: (peak + request + 1) * GIB,
            previous: previous * GIB,
            memory: 40 * GIB,
            capacity: 38 * GIB,
            was_alone: false,
            retries_left: 3,
        }
    }

    fn step(floor: u64, exclusive: bool) -> Result<NextAttempt, OomFinal> {
        let floor = floor * GIB;
        Ok(NextAttempt { floor, exclusive })
    }

    #[test]
    fn the_ladder_rises_to_exclusive_and_ends() {
        assert_eq!(next_attempt(oom(12, 2, 5)), step(15, false));
        assert_eq!(next_attempt(oom(3, 1, 5)), step(10, false));
        assert_eq!(next_attempt(oom(3, 1, 10)), step(20, false));
        assert_eq!(next_attempt(oom(3, 1, 25)), step(30, false));
        assert_eq!(next_attempt(oom(3, 1, 30)), step(30, true));
        assert_eq!(next_attempt(oom(30, 15, 5)), step(38, true));
        assert_eq!(next_attempt(oom(1, 39, 5)), Err(OomFinal::ExceedsCapacity));
        let alone = OutOfMemory {
            was_alone: true,
            ..oom(3, 1, 5)
        };
        assert_eq!(next_attempt(alone), Err(OomFinal::WasExclusive));
        let last = OutOfMemory {
            retries_left: 1,
            ..oom(3, 1, 10)
        };
        assert_eq!(next_attempt(last), step(10, true));
        let spent = OutOfMemory {
            retries_left: 0,
            ..oom(3, 1, 5)
        };
        assert_eq!(next_attempt(spent), Err(OomFinal::NoRetriesLeft));
    }

    proptest! {
        #[test]
        fn floors_only_grow_until_alone(peak in 0..40u64, request in 0..40u64, previous in 0..38u64) {
            if let Ok(next) = next_attempt(oom(peak, request, previous)) {
                prop_assert!(next.floor >= previous * GIB);
                prop_assert!(next.exclusive || next.floor > previous * GIB);
                prop_assert!(next.floor <= 38 * GIB);
            }
        }
    }
}
