//! The logic of the preload library, without its hooks.
//!
//! Everything here is `no_std` and free of allocation, because it runs inside the application's
//! allocations; it is a library of its own so that tests can use std.
#![cfg_attr(not(test), no_std)]

pub mod account;
pub mod array;
pub mod blocks;
pub mod capture;
pub mod contexts;
pub mod episode;
pub mod lease;
pub mod names;
pub mod physical;
pub mod sys;
pub mod table;
pub mod uuid;
