//! The `aegis` program.
fn main() {}
