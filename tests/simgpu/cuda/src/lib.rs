//! Simulated libcuda of the test machine (test only).
