//! Programs that behave like training jobs on the simulated driver (test only).
fn main() {}
