//! Initialisation, versions, error texts.

use std::ffi::c_char;

use crate::code::{Code, describe};
use crate::ffi::pointers::Ptr;
use crate::library::{initialise, machine, shut_down};

/// Driver version told; the word says what it is not.
const DRIVER_VERSION: &str = "575.00.sim";
/// Version of NVML told.
const NVML_VERSION: &str = "12.575.00.sim";

export! {
    fn nvmlInit, nvmlInit_v2() {
        initialise()
    }

    fn nvmlInitWithFlags(_flags: u32) {
        initialise()
    }

    fn nvmlShutdown() {
        shut_down()
    }

    fn nvmlSystemGetDriverVersion(text: Ptr<c_char>, length: u32) {
        machine()?;
        text.set_text(DRIVER_VERSION, length)
    }

    fn nvmlSystemGetNVMLVersion(text: Ptr<c_char>, length: u32) {
        text.set_text(NVML_VERSION, length)
    }

    fn nvmlSystemGetCudaDriverVersion, nvmlSystemGetCudaDriverVersion_v2(version: Ptr<i32>) {
        version.set(machine()?.config().cuda_version)
    }

    fn nvmlSystemGetProcessName(pid: u32, text: Ptr<c_char>, length: u32) {
        machine()?;
        let line = std::fs::read(format!("/proc/{pid}/cmdline")).map_err(|_| Code::NOT_FOUND)?;
        let name = line.split(|b| *b == 0).next().unwrap_or_default();
        let name = String::from_utf8_lossy(name);
        let room = (length as usize).checked_sub(1).ok_or(Code::INVALID_ARGUMENT)?;
        let cut: String = name.bytes().take(room).map(char::from).filter(char::is_ascii).collect();
        text.set_text(&cut, length)
    }

    fn nvmlUnitGetCount(count: Ptr<u32>) {
        machine()?;
        count.set(0)
    }
}

/// Text of a return code.
#[unsafe(no_mangle)]
extern "C" fn nvmlErrorString(code: u32) -> *const c_char {
    describe(code).as_ptr().cast()
}
