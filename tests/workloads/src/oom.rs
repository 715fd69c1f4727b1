//! The out-of-memory report, worded as PyTorch's users know it.
//!
//! AEGIS falls back to the log's text where it has no better evidence of an OOM, so the phrases it
//! looks for (`OutOfMemoryError`, `CUDA out of memory`) must be here as a framework prints them.

use std::fmt;

use crate::units::human;

/// What the allocator knew when it gave up. All figures are bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OomReport {
    /// The GPU's ordinal in this process.
    pub gpu: u32,
    /// The request, after rounding: what the driver was asked for.
    pub requested: u64,
    /// `cuMemGetInfo`'s total.
    pub total: u64,
    /// `cuMemGetInfo`'s free bytes after the cache was freed.
    pub free: u64,
    /// Bytes in use by tensors.
    pub allocated: u64,
    /// Bytes held from the driver, in use or cached.
    pub reserved: u64,
}

impl fmt::Display for OomReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate {}. GPU {} has a total \
             capacity of {} of which {} is free. Of the allocated memory {} is allocated by the \
             workload, and {} is reserved by the workload but unallocated.",
            human(self.requested),
            self.gpu,
            human(self.total),
            human(self.free),
            human(self.allocated),
            human(self.reserved.saturating_sub(self.allocated)),
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::units::GIB;

    #[test]
    fn reads_like_the_frameworks_own() {
        let report = OomReport {
            gpu: 1,
            requested: 2 * GIB,
            total: 16 * GIB,
            free: GIB / 2,
            allocated: 15 * GIB,
            reserved: 15 * GIB,
        };
        assert!(report.to_string().starts_with(
            "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 1 has a \
             total capacity of 16.00 GiB of which 512.00 MiB is free."
        ));
    }
}
