//! Real client software under the shim, on the simulated driver.
//!
//! Each client runs as a submitted job of 1 GiB and stops before its end. Then every figure of its
//! ledger is compared with what the simulator's journal says it holds, to the byte.

pub mod books;
pub mod check;
pub mod client;
pub mod table;
