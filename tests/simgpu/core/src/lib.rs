//! State of the simulated GPUs, shared by all processes of a simulated machine (test only).

pub mod kernel;
