//! Runs real processes with the shim preloaded against a fake driver.
