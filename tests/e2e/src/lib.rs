//! End-to-end tests: the real daemon, shim and command line on the simulated driver.
