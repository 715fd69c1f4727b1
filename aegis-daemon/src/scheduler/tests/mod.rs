//! Tests of the core through its events and actions.

mod blockers;
mod checks;
mod life;
mod liveness;
mod memory;
mod oom;
mod placing;
mod properties;
mod random;
mod replay;
mod reserving;
mod world;
mod yielding;
