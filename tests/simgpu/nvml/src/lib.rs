//! Simulated libnvml of the test machine (test only).
//!
//! Answers from the shared state of the simulated machine. Process lists show each process with a
//! context; memory is context, modules and allocations in whole blocks. What a simulated GPU does
//! not have returns `NVML_ERROR_NOT_SUPPORTED`.

mod code;
mod ffi;
mod library;
mod process;
