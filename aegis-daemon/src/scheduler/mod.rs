//! The scheduler core: event in, actions out. No I/O, clock or randomness.
#![forbid(unsafe_code)]
