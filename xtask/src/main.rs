//! Every developer command: cargo xtask demo, test, lint, setup.
fn main() {}
