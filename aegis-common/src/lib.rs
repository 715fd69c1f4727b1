//! What the AEGIS daemon, shim and clients share.
//!
//! [`abi`] is the shared-memory and shim-socket ABI: `no_std`, free of dependencies, its layout
//! frozen by constant assertions. Everything else needs feature `std`: the scheduler core's
//! [`event`] and [`action`] types, the closed set of [`reason`] codes, and the [`wire`] protocol
//! between `aegis` and `aegisd`.
#![cfg_attr(not(feature = "std"), no_std)]
#![forbid(unsafe_code)]

pub mod abi;

#[cfg(feature = "std")]
pub mod action;
#[cfg(feature = "std")]
pub mod bytes;
#[cfg(feature = "std")]
pub mod event;
#[cfg(feature = "std")]
pub mod id;
#[cfg(feature = "std")]
pub mod job;
#[cfg(feature = "std")]
pub mod learned;
#[cfg(feature = "std")]
pub mod policy;
#[cfg(feature = "std")]
pub mod reason;
#[cfg(feature = "std")]
pub mod wire;
