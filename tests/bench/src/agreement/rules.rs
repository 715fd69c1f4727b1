//! The three sets of rules that daemon and replay are compared under.

use aegis_common::policy::{Mode, Placement, Policy};
use e2e::Setup;

/// Replay's clock runs this much faster than the simulated driver's: what takes a second there takes
/// ten in the replay, so that its samples, one a second, are as dense as the daemon's.
pub(super) const SCALE: u64 = 10;

/// A set of rules.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Rules {
    /// A GPU for each job.
    Exclusive,
    /// This daemon's gate at the thresholds AEGIS was released with. AEGIS's own rules differ in the
    /// rest: replay has them as `aegis-released`.
    Released,
    /// The mode `balanced`.
    Balanced,
}

/// The released thresholds: SM activity, occupancy, DRAM activity; thousandths (AEGIS artifact,
/// `main.py`).
const RELEASED: [u16; 3] = [650, 350, 500];

impl Rules {
    /// All; the one the others are divided by comes first.
    pub(super) const ALL: [Self; 3] = [Self::Exclusive, Self::Released, Self::Balanced];

    /// Its name in the document.
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Exclusive => "exclusive",
            Self::Released => "gate at the released thresholds",
            Self::Balanced => "balanced",
        }
    }

    /// The daemon's configuration.
    pub(super) fn configure(self, setup: Setup) -> Setup {
        match self {
            Self::Exclusive => setup.key("scheduler.placement", "\"exclusive\""),
            Self::Released => {
                let [sm_active, occupancy, dram] =
                    RELEASED.map(|limit| format!("\"{}%\"", limit / 10));
                setup
                    .key("scheduler.mode", "\"gate\"")
                    .key("scheduler.gate_sm_active", &sm_active)
                    .key("scheduler.gate_sm_occupancy", &occupancy)
                    .key("scheduler.gate_dram_active", &dram)
            }
            Self::Balanced => setup.key("scheduler.mode", "\"balanced\""),
        }
    }

    /// The same for replay: [`Setup::gpus`]' windows, scaled.
    pub(super) fn policy(self) -> Policy {
        let scaled = Policy {
            observe_min_ms: 300 * SCALE,
            observe_max_ms: 3_000 * SCALE,
            plateau_ms: 300 * SCALE,
            gate_window: 4,
            stale_after_ms: 2_000 * SCALE,
            mode: Mode::Gate,
            ..Policy::default()
        };
        match self {
            Self::Exclusive => Policy {
                placement: Placement::Exclusive,
                ..scaled
            },
            Self::Released => {
                let [gate_sm_active, gate_sm_occupancy, gate_dram_active] = RELEASED;
                Policy {
                    gate_sm_active,
                    gate_sm_occupancy,
                    gate_dram_active,
                    ..scaled
                }
            }
            Self::Balanced => Policy {
                mode: Mode::Balanced,
                ..scaled
            },
        }
    }
}
