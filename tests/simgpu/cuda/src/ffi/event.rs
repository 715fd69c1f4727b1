//! Events.

use crate::code::{Code, Result};
use crate::context;
use crate::driver;
use crate::event;
use crate::ffi::pointers::Out;
use crate::stream;

fn elapsed(result: Out<f32>, start: u64, end: u64) -> Result<()> {
    result.check()?;
    result.set(event::elapsed(driver::get()?, start, end)?)
}

fn record(event: u64, stream: u64) -> Result<()> {
    let (driver, of_stream) = stream::get(stream)?;
    event::record(driver, event, of_stream)
}

export! {
    journalled fn cuEventCreate(result: Out<u64>, flags: u32) |call| {
        call.arg("flags", flags);
        result.check()?;
        let (driver, _) = context::current()?;
        let handle = event::create(driver, flags);
        call.hex("event", handle);
        result.set(handle)
    }

    journalled fn cuEventDestroy(event: u64) |call| {
        call.hex("event", event);
        event::destroy(driver::get()?, event)
    }

    journalled fn cuEventDestroy_v2(event: u64) |call| {
        call.hex("event", event);
        event::destroy(driver::get()?, event)
    }

    journalled [stream] fn cuEventRecord, cuEventRecord_ptsz(event: u64, stream: u64) |call| {
        call.hex("event", event);
        call.hex("stream", stream);
        record(event, stream)
    }

    journalled [stream] fn cuEventRecordWithFlags, cuEventRecordWithFlags_ptsz(event: u64, stream: u64, flags: u32) |call| {
        call.hex("event", event);
        call.hex("stream", stream);
        call.arg("flags", flags);
        record(event, stream)
    }

    counted fn cuEventQuery(event: u64) {
        if event::is_done(driver::get()?, event)? { Ok(()) } else { Err(Code::NOT_READY) }
    }

    journalled fn cuEventSynchronize(event: u64) |call| {
        call.hex("event", event);
        event::wait(driver::get()?, event)
    }

    counted fn cuEventElapsedTime(result: Out<f32>, start: u64, end: u64) {
        elapsed(result, start, end)
    }

    counted fn cuEventElapsedTime_v2(result: Out<f32>, start: u64, end: u64) {
        elapsed(result, start, end)
    }
}
