//! Simulated libnvml of the test machine (test only).
