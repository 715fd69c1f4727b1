//! The hooks: what the library exports, and how calls reach it.

mod alloc;
mod arrays;
mod capture;
mod context;
pub(crate) mod dlsym;
pub(crate) mod driver;
mod info;
mod launch;
mod macros;
mod nvml;
mod pools;
mod proc_address;
pub(crate) mod real;
pub(crate) mod table;
mod vmm;
