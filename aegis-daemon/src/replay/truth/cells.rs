//! Measured pair slowdowns.

use std::collections::BTreeMap;

use crate::replay::trace::Trace;

/// Slowdowns measured for pairs of workloads, by their places in [`Trace::workloads`].
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Cells {
    cells: BTreeMap<(usize, usize), f64>,
}

impl Cells {
    /// Cells from triples of names: the slowdown of the first beside the second (1: none). Names
    /// that no workload of the trace has are left out.
    pub fn named<'a>(
        trace: &Trace,
        measured: impl IntoIterator<Item = (&'a str, &'a str, f64)>,
    ) -> Self {
        let mut places: BTreeMap<&str, Vec<usize>> = BTreeMap::new();
        for (place, workload) in trace.workloads.iter().enumerate() {
            places.entry(&workload.name).or_default().push(place);
        }
        let mut cells = Self::default();
        for (mine, other, slowdown) in measured {
            let (Some(mine), Some(other)) = (places.get(mine), places.get(other)) else {
                continue;
            };
            for &mine in mine {
                for &other in other {
                    cells.insert(mine, other, slowdown);
                }
            }
        }
        cells
    }

    /// Notes that workload `mine` beside `other` takes `slowdown` times as long as alone. A speed
    /// above that alone is measurement noise and counts as 1; what is no number is left out.
    pub fn insert(&mut self, mine: usize, other: usize, slowdown: f64) {
        if slowdown.is_finite() && slowdown > 0.0 {
            self.cells.insert((mine, other), slowdown.max(1.0));
        }
    }

    /// How many there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.cells.len()
    }

    /// Nothing was measured.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.cells.is_empty()
    }

    /// The cell of a pair.
    pub(super) fn get(&self, mine: usize, other: usize) -> Option<f64> {
        self.cells.get(&(mine, other)).copied()
    }
}
