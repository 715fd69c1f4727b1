//! One trace on one machine, under any policy.

use super::policy::{scheduler, told};
use super::profile::profiles;
use super::{MachineConfig, Outcome, Trace, run};

/// What a policy is tried on.
#[derive(Clone, Debug)]
pub struct Case {
    /// The jobs.
    pub trace: Trace,
    /// The machine and its truth.
    pub machine: MachineConfig,
    /// Decides everything that is random in the machine.
    pub seed: u64,
}

impl Case {
    /// What the policy of that name does with it, knowing no command from earlier.
    #[must_use]
    pub fn replay(&self, policy: &str) -> Outcome {
        let profiles = profiles(&self.trace, self.machine.context, self.seed);
        let machine = MachineConfig {
            policy: told(policy, &self.machine.policy),
            ..self.machine.clone()
        };
        run(
            &self.trace,
            &machine,
            scheduler(policy, &profiles),
            self.seed,
        )
    }
}
