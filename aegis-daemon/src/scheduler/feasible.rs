//! Requests no GPU of this machine can ever serve.

use std::fmt;

use aegis_common::job::Resources;
use aegis_common::reason::bytes;

use super::core::Core;

/// Why a submission is refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Infeasible {
    /// `--gpus 0`.
    NoGpus,
    /// More GPUs than there are.
    TooManyGpus {
        /// GPUs asked for.
        need: u32,
        /// GPUs of the machine.
        have: u32,
    },
    /// More memory than as many GPUs have.
    TooMuchMemory {
        /// Bytes asked for on each GPU.
        need: u64,
        /// Bytes one job can hold on each of that many GPUs, contexts and guard deducted.
        have: u64,
        /// Bytes that GPU has.
        total: u64,
        /// GPUs asked for.
        gpus: u32,
    },
}

impl fmt::Display for Infeasible {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoGpus => f.write_str("--gpus 0: a job needs at least one GPU"),
            Self::TooManyGpus { need, have } => {
                write!(f, "--gpus {need}: this machine has {have}")
            }
            Self::TooMuchMemory {
                need,
                have,
                total,
                gpus,
            } => {
                write!(f, "--gpu-mem {}: ", bytes(*need))?;
                match gpus {
                    1 => f.write_str("the largest GPU of this machine")?,
                    gpus => write!(f, "the smallest of its {gpus} largest GPUs")?,
                }
                write!(
                    f,
                    " has {}, of which one job can hold {}",
                    bytes(*total),
                    bytes(*have)
                )
            }
        }
    }
}

impl std::error::Error for Infeasible {}

impl Core {
    /// Whether the machine could run the job with all its GPUs idle. Lost GPUs count: they may
    /// come back.
    ///
    /// # Errors
    /// The request that cannot be served, with the numbers.
    pub fn check_feasible(&self, resources: &Resources) -> Result<(), Infeasible> {
        let gpus = resources.gpus;
        if gpus == 0 {
            return Err(Infeasible::NoGpus);
        }
        let overhead = self.policy.context_reserve;
        let mut room: Vec<(u64, u64)> = self
            .gpus
            .values()
            .map(|gpu| {
                let guard = gpu.guard(&self.policy);
                let total = gpu.info.memory;
                (total.saturating_sub(guard).saturating_sub(overhead), total)
            })
            .collect();
        room.sort_unstable_by(|a, b| b.cmp(a));
        let last = usize::try_from(gpus - 1).ok();
        let Some(&(have, total)) = last.and_then(|last| room.get(last)) else {
            return Err(Infeasible::TooManyGpus {
                need: gpus,
                have: u32::try_from(room.len()).unwrap_or(u32::MAX),
            });
        };
        match resources.gpu_mem {
            Some(need) if need > have => Err(Infeasible::TooMuchMemory {
                need,
                have,
                total,
                gpus,
            }),
            _ => Ok(()),
        }
    }
}
