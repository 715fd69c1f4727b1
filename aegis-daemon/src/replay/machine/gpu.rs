//! GPUs as they really are.

/// A GPU.
#[derive(Clone, Debug)]
pub(super) struct Gpu {
    /// Bytes in use by contexts and allocations, without what the driver keeps.
    pub(super) used: u64,
    /// Jobs with an attempt that was given this GPU, in the order they came.
    pub(super) residents: Vec<usize>,
    /// True activity now.
    pub(super) activity: Activity,
    /// The sample timer that counts.
    pub(super) edition: u64,
    /// When it is sampled next; `None`: not until something changes.
    pub(super) next_sample: Option<u64>,
    /// When it was sampled last.
    pub(super) last_sample: u64,
    /// Quick samples still to come.
    pub(super) burst: u32,
}

/// How busy a GPU is, shares of 1.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Activity {
    pub(super) sm_active: f64,
    pub(super) sm_occupancy: f64,
    pub(super) dram_active: f64,
    pub(super) utilisation: f64,
}

impl Gpu {
    /// An empty one that was never sampled.
    pub(super) fn new() -> Self {
        Self {
            used: 0,
            residents: Vec::new(),
            activity: Activity::default(),
            edition: 0,
            next_sample: None,
            last_sample: 0,
            burst: 0,
        }
    }
}
