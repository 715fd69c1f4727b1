//! Events: sets can be made and waited for, but nothing ever happens.

use std::time::Duration;

use crate::code::Code;
use crate::ffi::pointers::Ptr;
use crate::library::{device, machine};

/// The one handle of all sets: they hold nothing.
const SET: u64 = 0x4556_0000;

export! {
    fn nvmlEventSetCreate(set: Ptr<u64>) {
        machine()?;
        set.set(SET)
    }

    fn nvmlEventSetFree(_set: u64) {
        machine().map(drop)
    }

    fn nvmlDeviceGetSupportedEventTypes(of: u64, types: Ptr<u64>) {
        device(of)?;
        // Single- and double-bit ECC, critical Xid.
        types.set(0xb)
    }

    fn nvmlDeviceRegisterEvents(of: u64, _types: u64, set: u64) {
        device(of)?;
        if set == SET { Ok(()) } else { Err(Code::INVALID_ARGUMENT) }
    }

    fn nvmlEventSetWait, nvmlEventSetWait_v2(set: u64, _data: Ptr<u64>, timeout_ms: u32) {
        machine()?;
        if set != SET {
            return Err(Code::INVALID_ARGUMENT);
        }
        std::thread::sleep(Duration::from_millis(u64::from(timeout_ms)));
        Err(Code::TIMEOUT)
    }
}
