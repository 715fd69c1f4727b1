//! Initialisation, devices, error texts.

use std::ffi::c_char;

use crate::code::{Code, describe};
use crate::driver;
use crate::ffi::attribute::value_of;
use crate::ffi::pointers::{Out, Text};

export! {
    journalled fn cuInit(flags: u32) |call| {
        call.arg("flags", flags);
        if flags != 0 {
            return Err(Code::INVALID_VALUE);
        }
        driver::initialise().map(drop)
    }

    counted fn cuDriverGetVersion(version: Out<i32>) {
        version.set(driver::machine().map_or(12080, |m| m.config().cuda_version))
    }

    counted fn cuGetErrorName(code: i32, text: Out<*const c_char>) {
        let found = describe(code).map(|(name, _)| name.as_ptr().cast());
        text.set(found.unwrap_or(std::ptr::null()))?;
        found.map(drop).ok_or(Code::INVALID_VALUE)
    }

    counted fn cuGetErrorString(code: i32, text: Out<*const c_char>) {
        let found = describe(code).map(|(_, words)| words.as_ptr().cast());
        text.set(found.unwrap_or(std::ptr::null()))?;
        found.map(drop).ok_or(Code::INVALID_VALUE)
    }

    journalled fn cuDeviceGetCount(count: Out<i32>) |call| {
        let devices = driver::get()?.devices.len() as i32;
        call.arg("count", devices);
        count.set(devices)
    }

    journalled fn cuDeviceGet(device: Out<i32>, ordinal: i32) |call| {
        call.arg("ordinal", ordinal);
        driver::get()?.gpu(ordinal)?;
        device.set(ordinal)
    }

    journalled fn cuDeviceGetName(name: Out<c_char>, length: i32, device: i32) |call| {
        call.arg("device", device);
        name.set_text(&driver::get()?.config(device)?.name, length)
    }

    journalled fn cuDeviceGetUuid(uuid: Out<[u8; 16]>, device: i32) |call| {
        call.arg("device", device);
        uuid.set(driver::get()?.config(device)?.uuid_bytes())
    }

    journalled fn cuDeviceGetUuid_v2(uuid: Out<[u8; 16]>, device: i32) |call| {
        call.arg("device", device);
        uuid.set(driver::get()?.config(device)?.uuid_bytes())
    }

    journalled fn cuDeviceTotalMem_v2(bytes: Out<usize>, device: i32) |call| {
        call.arg("device", device);
        // Like the driver's, this figure is without what it keeps for itself.
        bytes.set(driver::get()?.config(device)?.usable_bytes() as usize)
    }

    journalled fn cuDeviceGetAttribute(value: Out<i32>, attribute: i32, device: i32) |call| {
        call.arg("attribute", attribute);
        call.arg("device", device);
        let driver = driver::get()?;
        let found = value_of(attribute, driver.config(device)?, driver.gpu(device)?);
        value.set(found.ok_or(Code::INVALID_VALUE)?)
    }

    journalled fn cuDeviceComputeCapability(major: Out<i32>, minor: Out<i32>, device: i32) |call| {
        call.arg("device", device);
        let capability = driver::get()?.config(device)?.compute_capability;
        major.set(capability.0 as i32)?;
        minor.set(capability.1 as i32)
    }

    journalled fn cuDeviceGetPCIBusId(text: Out<c_char>, length: i32, device: i32) |call| {
        call.arg("device", device);
        let gpu = driver::get()?.gpu(device)?;
        text.set_text(&format!("0000:{:02x}:00.0", gpu + 1), length)
    }

    journalled fn cuDeviceGetByPCIBusId(device: Out<i32>, text: Text) |call| {
        let driver = driver::get()?;
        let text = text.text()?;
        call.arg("id", &text);
        let bus = text.rsplit(':').nth(1).and_then(|bus| usize::from_str_radix(bus, 16).ok());
        let gpu = bus.and_then(|b| b.checked_sub(1)).ok_or(Code::INVALID_VALUE)?;
        let ordinal = driver.devices.iter().position(|g| *g == gpu).ok_or(Code::INVALID_DEVICE)?;
        device.set(ordinal as i32)
    }

    journalled fn cuDeviceCanAccessPeer(can: Out<i32>, device: i32, peer: i32) |call| {
        call.arg("device", device);
        call.arg("peer", peer);
        let driver = driver::get()?;
        driver.gpu(device)?;
        driver.gpu(peer)?;
        can.set(i32::from(device != peer))
    }

    journalled fn cuDeviceGetP2PAttribute(value: Out<i32>, attribute: i32, device: i32, peer: i32) |call| {
        call.arg("attribute", attribute);
        let driver = driver::get()?;
        driver.gpu(device)?;
        driver.gpu(peer)?;
        if device == peer {
            return Err(Code::INVALID_DEVICE);
        }
        // 1 rank, 2 access, 3 native atomics, 4 array access.
        match attribute {
            1 | 3 => value.set(0),
            2 | 4 => value.set(1),
            _ => Err(Code::INVALID_VALUE),
        }
    }

    journalled fn cuDeviceGetExecAffinitySupport(support: Out<i32>, kind: i32, device: i32) |call| {
        call.arg("kind", kind);
        driver::get()?.gpu(device)?;
        support.set(0)
    }
}

unsupported! { cuDeviceGetLuid }
