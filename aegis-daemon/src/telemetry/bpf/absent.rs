//! Without the feature `ebpf`: never available.

use std::convert::Infallible;

use aegis_common::id::{JobId, ProcessKey};
use tokio::sync::mpsc::UnboundedSender;

use super::{LifecycleEvent, Unavailable};

/// As with the feature; there is never one.
#[derive(Clone, Debug)]
pub struct Lifecycle(Infallible);

impl Lifecycle {
    /// As with the feature.
    ///
    /// # Errors
    /// Always.
    pub const fn start(_: &UnboundedSender<LifecycleEvent>) -> Result<Self, Unavailable> {
        Err(Unavailable::NotBuilt)
    }

    /// As with the feature.
    pub const fn follow(&self, _: (JobId, u32), _: ProcessKey) -> bool {
        match self.0 {}
    }

    /// As with the feature.
    #[must_use]
    pub const fn attempt_of(&self, _: ProcessKey) -> Option<(JobId, u32)> {
        match self.0 {}
    }

    /// As with the feature.
    #[must_use]
    pub const fn processes(&self, _: (JobId, u32)) -> Vec<ProcessKey> {
        match self.0 {}
    }

    /// As with the feature.
    #[must_use]
    pub const fn lost(&self) -> u64 {
        match self.0 {}
    }
}
