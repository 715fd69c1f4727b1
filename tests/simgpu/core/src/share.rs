//! How several processes share one GPU's time.
//!
//! The slowdown of process i beside processes j is
//!
//! ```text
//! slowdown_i = 1 + Σ_j ( 1.802 · sm_j · mem_j^1.062  +  0.158 · sm_i · sm_j  +  0.196 · dram_i · dram_j )
//! ```
//!
//! with sm = SM active, dram = DRAM active, mem = the process's share of the GPU's memory, all 0..1:
//! the "asym" form fitted on public A100 pair measurements of the AEGIS artifact (project notes,
//! evaluation-data-and-baselines.md §5: held-out pairs 10.0 % mean error), summed over the
//! neighbours as recommended there for more than two. It is asymmetric: a partner that holds the
//! SMs with big kernels starves a small one. Memory share stands for kernel and batch size.
//!
//! The fit knows pairs only. For deeper sharing the sum of what the processes get is bounded:
//! Σ sm_i / slowdown_i ≤ 1.58, the median throughput of the measured pairs relative to one job
//! (same source); beyond it all are slowed by one factor.

/// What one process asks of the GPU, shares 0..1.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Demand {
    /// SM active.
    pub sm: f64,
    /// DRAM active.
    pub dram: f64,
    /// Share of the GPU's memory held.
    pub memory: f64,
}

const SM_MEMORY: f64 = 1.802;
const MEMORY_EXPONENT: f64 = 1.062;
const SM_SM: f64 = 0.158;
const DRAM_DRAM: f64 = 0.196;
const MOST_TOGETHER: f64 = 1.58;

/// Slowdown (≥ 1) of each of the processes that run at once.
pub fn slowdowns(demands: &[Demand]) -> Vec<f64> {
    let alone = |i: usize, me: &Demand| {
        let others = demands.iter().enumerate().filter(|(j, _)| *j != i);
        let added: f64 = others
            .map(|(_, other)| {
                SM_MEMORY * other.sm * other.memory.powf(MEMORY_EXPONENT)
                    + SM_SM * me.sm * other.sm
                    + DRAM_DRAM * me.dram * other.dram
            })
            .sum();
        1.0 + added
    };
    let mut slow: Vec<f64> = demands
        .iter()
        .enumerate()
        .map(|(i, me)| alone(i, me))
        .collect();
    let together: f64 = demands.iter().zip(&slow).map(|(d, s)| d.sm / s).sum();
    if together > MOST_TOGETHER {
        for s in &mut slow {
            *s *= together / MOST_TOGETHER;
        }
    }
    slow
}

#[cfg(test)]
mod tests {
    use super::*;

    fn demand(sm: f64, dram: f64, memory: f64) -> Demand {
        Demand { sm, dram, memory }
    }

    #[test]
    fn one_process_runs_at_full_speed() {
        assert_eq!(slowdowns(&[demand(1.0, 1.0, 0.9)]), [1.0]);
        assert!(slowdowns(&[]).is_empty());
    }

    #[test]
    fn light_neighbours_interfere_a_little() {
        for s in slowdowns(&[demand(0.3, 0.2, 0.1), demand(0.3, 0.2, 0.1)]) {
            assert!(s > 1.0 && s < 1.1, "{s}");
        }
    }

    #[test]
    fn the_heavier_process_gets_more() {
        let both = slowdowns(&[demand(0.95, 0.6, 0.5), demand(0.4, 0.2, 0.05)]);
        assert!(both[0] < 1.2 && both[1] > 1.7, "{both:?}");
    }

    #[test]
    fn many_processes_never_get_more_than_the_bound() {
        let demands = vec![demand(1.0, 0.1, 0.01); 6];
        let got: f64 = slowdowns(&demands).iter().map(|s| 1.0 / s).sum();
        assert!(got <= MOST_TOGETHER + 1e-9, "{got}");
    }
}
