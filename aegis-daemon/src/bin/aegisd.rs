//! The `aegisd` program.
fn main() {}
