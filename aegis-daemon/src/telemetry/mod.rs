//! What NVML tells about GPUs and their processes.
