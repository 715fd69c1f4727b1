//! `cuGetProcAddress`, in both its ABIs.

use std::ffi::c_char;

use crate::code::{Code, Result};
use crate::ffi::pointers::{In, Out, Text};
use crate::ffi::table::TABLE;

/// `CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM`; 0 default and 1 legacy stream mean the same here.
const PER_THREAD: u64 = 2;

/// `CUdriverProcAddressQueryResult`.
const SUCCESS: i32 = 0;
const SYMBOL_NOT_FOUND: i32 = 1;
const VERSION_NOT_SUFFICIENT: i32 = 2;

/// The first CUDA version whose `cuGetProcAddress` has five arguments, and the first with any.
const FIVE_ARGUMENTS: i32 = 12000;
const FOUR_ARGUMENTS: i32 = 11030;

/// Looks a base name up: the newest function of at most `version`, in the variant that `flags` asks
/// for if there is one.
fn find(name: &str, version: i32, flags: u64) -> std::result::Result<*const (), i32> {
    if name == "cuGetProcAddress" {
        return match version {
            FIVE_ARGUMENTS.. => Ok(cuGetProcAddress_v2 as *const ()),
            FOUR_ARGUMENTS.. => Ok(cuGetProcAddress as *const ()),
            _ => Err(VERSION_NOT_SUFFICIENT),
        };
    }
    let start = TABLE.partition_point(|e| e.base < name);
    let same = || TABLE.iter().skip(start).take_while(|e| e.base == name);
    if same().next().is_none() {
        return Err(SYMBOL_NOT_FOUND);
    }
    let newest = |per_thread: bool| {
        same()
            .filter(|e| e.version <= version && e.per_thread == per_thread)
            .max_by_key(|e| e.version)
    };
    let wanted = if flags == PER_THREAD {
        newest(true)
    } else {
        None
    };
    wanted
        .or_else(|| newest(false))
        .map(|e| e.address.0)
        .ok_or(VERSION_NOT_SUFFICIENT)
}

fn look_up(
    name: Text,
    result: Out<*const ()>,
    version: i32,
    flags: u64,
    status: Out<i32>,
) -> Result<()> {
    result.check()?;
    let name: String = name.cast::<c_char>().text()?;
    if flags > PER_THREAD {
        return Err(Code::INVALID_VALUE);
    }
    match find(&name, version, flags) {
        Ok(address) => {
            status.set_if_wanted(SUCCESS);
            result.set(address)
        }
        Err(why) => {
            status.set_if_wanted(why);
            result.set(std::ptr::null())?;
            Err(Code::NOT_FOUND)
        }
    }
}

export! {
    counted fn cuGetProcAddress(name: Text, result: Out<*const ()>, version: i32, flags: u64) {
        look_up(name, result, version, flags, Out::null())
    }

    counted fn cuGetProcAddress_v2(name: In<c_char>, result: Out<*const ()>, version: i32, flags: u64, status: Out<i32>) {
        look_up(name, result, version, flags, status)
    }
}
