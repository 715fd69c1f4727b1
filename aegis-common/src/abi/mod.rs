//! The ABI between the shim in a training process and the daemon.
//!
//! ```text
//!                 hello (SOCK_SEQPACKET)                   one connection, closed after the answer
//!   shim  ------------------------------------>  daemon
//!         <-----------------------------------            + ledger memfd, + read-only lease page
//!
//!   ledger  (4096 + 16 x 256 + 64 x 128 bytes)   written by the process alone, read by the daemon
//!   traces  (16 x 65600 bytes after the ledger)  likewise; only those of launching threads exist
//!   lease   (4096 bytes)                         written by the daemon alone, read by the process
//!
//!                 grow (SOCK_SEQPACKET)                    one fresh connection per request
//!   shim  ------------------------------------>  daemon
//! ```
//!
//! Invariant: **every byte has one writer**. No lock is shared between processes. The daemon treats
//! a ledger as hostile input and reads it with `pread`, never through references.
//!
//! The shim keeps no descriptor open in the application: both pages are mapped and their
//! descriptors closed, and each `grow` opens a connection of its own. An application that closes
//! or reuses descriptors cannot hurt it, and a waiting thread holds no lock.
//!
//! Numbers are in host byte order: both sides run on one machine.

pub mod env;
// The BPF programs need none of the shared pages, and their target has no 32-bit atomics.
#[cfg(target_has_atomic = "32")]
mod layout;
#[cfg(target_has_atomic = "32")]
pub mod lease;
#[cfg(target_has_atomic = "32")]
pub mod ledger;
pub mod lifecycle;
pub mod message;
#[cfg(target_has_atomic = "32")]
pub mod trace;

/// First eight bytes of a ledger and of a lease page (`AEGISABI` read as a little-endian number).
pub const MAGIC: u64 = u64::from_le_bytes(*b"AEGISABI");
/// Incompatible changes. A shim and a daemon that differ here ignore each other.
pub const ABI_MAJOR: u32 = 1;
/// Compatible additions: a reader ignores what it does not know.
pub const ABI_MINOR: u32 = 1;
/// GPUs a process can use at once. HGX boards hold 8, MIG splits one GPU into at most 7.
pub const MAX_GPUS: usize = 16;
/// A GPU slot index that means "not known".
pub const NO_GPU: u32 = u32::MAX;

/// A device's identity as `cuDeviceGetUuid_v2` gives it (a MIG instance has its own).
pub type GpuUuid = [u8; 16];
