//! What surrounds each exported function: the journal record and the result code.

use std::fmt::{Display, Write};

use crate::code::{Code, Result};
use crate::driver;

/// Collects what the journal says about one call.
pub(crate) struct Call {
    enabled: bool,
    args: String,
    free: Option<u64>,
}

impl Call {
    /// For inner calls that are no record of their own.
    pub(crate) fn silent() -> Self {
        Self {
            enabled: false,
            args: String::new(),
            free: None,
        }
    }

    /// Notes an argument or output.
    pub(crate) fn arg(&mut self, name: &str, value: impl Display) {
        if self.enabled {
            // Writing to a string cannot fail.
            let _ = write!(self.args, "{name}={value} ");
        }
    }

    /// Notes a pointer or handle.
    pub(crate) fn hex(&mut self, name: &str, value: u64) {
        if self.enabled {
            let _ = write!(self.args, "{name}={value:#x} ");
        }
    }

    /// Notes the free bytes at an allocation.
    pub(crate) fn free(&mut self, bytes: u64) {
        self.free = Some(bytes);
    }
}

/// Runs the body of an exported function and writes the journal.
pub(crate) fn run(name: &str, body: impl FnOnce(&mut Call) -> Result<()>) -> i32 {
    let enabled = driver::get().is_ok_and(|d| d.journal.enabled());
    let mut call = Call {
        enabled,
        args: String::new(),
        free: None,
    };
    let result = body(&mut call).err().unwrap_or(Code(0)).0;
    // Asked again: cuInit makes the driver in its body.
    if let Ok(driver) = driver::get() {
        driver.journal.record(name, &call.args, result, call.free);
    }
    result
}

/// Runs the body of a function that is not journalled.
pub(crate) fn quiet(body: impl FnOnce() -> Result<()>) -> i32 {
    body().err().unwrap_or(Code(0)).0
}
