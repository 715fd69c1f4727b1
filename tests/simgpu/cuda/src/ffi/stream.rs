//! Streams.

use std::sync::atomic::Ordering::Relaxed;

use crate::code::{Code, Result};
use crate::context;
use crate::driver::{self, lock};
use crate::event;
use crate::ffi::pointers::Out;
use crate::graph::{self, RawHostFunction, Work};
use crate::pool;
use crate::stream;

fn create(result: Out<u64>, flags: u32, priority: i32, call: &mut crate::call::Call) -> Result<()> {
    call.arg("flags", flags);
    result.check()?;
    let (_, context) = context::current()?;
    let handle = stream::create(&context, flags, priority)?;
    call.hex("stream", handle);
    result.set(handle)
}

/// `CUstreamCaptureStatus`.
const NOT_CAPTURING: i32 = 0;
const CAPTURING: i32 = 1;

export! {
    journalled fn cuStreamCreate(result: Out<u64>, flags: u32) |call| {
        create(result, flags, 0, call)
    }

    journalled fn cuStreamCreateWithPriority(result: Out<u64>, flags: u32, priority: i32) |call| {
        call.arg("priority", priority);
        create(result, flags, priority, call)
    }

    journalled fn cuStreamDestroy(stream: u64) |call| {
        call.hex("stream", stream);
        stream::destroy(stream)
    }

    journalled fn cuStreamDestroy_v2(stream: u64) |call| {
        call.hex("stream", stream);
        stream::destroy(stream)
    }

    counted [stream] fn cuStreamQuery, cuStreamQuery_ptsz(stream: u64) {
        let (driver, of_stream) = stream::get(stream)?;
        if of_stream.capture.load(Relaxed) != 0 {
            return Err(Code::STREAM_CAPTURE_UNSUPPORTED);
        }
        if of_stream.is_idle(driver) { Ok(()) } else { Err(Code::NOT_READY) }
    }

    journalled [stream] fn cuStreamSynchronize, cuStreamSynchronize_ptsz(stream: u64) |call| {
        call.hex("stream", stream);
        let (driver, of_stream) = stream::get(stream)?;
        if of_stream.capture.load(Relaxed) != 0 {
            return Err(Code::STREAM_CAPTURE_UNSUPPORTED);
        }
        of_stream.wait(driver);
        pool::synchronised(driver, of_stream.gpu());
        Ok(())
    }

    journalled [stream] fn cuStreamWaitEvent, cuStreamWaitEvent_ptsz(stream: u64, event: u64, flags: u32) |call| {
        call.hex("stream", stream);
        call.hex("event", event);
        call.arg("flags", flags);
        let (driver, of_stream) = stream::get(stream)?;
        event::wait_in_stream(driver, of_stream, event)
    }

    journalled [stream] fn cuStreamGetPriority, cuStreamGetPriority_ptsz(stream: u64, priority: Out<i32>) |_call| {
        priority.set(stream::get(stream)?.1.priority())
    }

    journalled [stream] fn cuStreamGetFlags, cuStreamGetFlags_ptsz(stream: u64, flags: Out<u32>) |_call| {
        flags.set(stream::get(stream)?.1.flags())
    }

    journalled [stream] fn cuStreamGetCtx, cuStreamGetCtx_ptsz(stream: u64, context: Out<u64>) |_call| {
        let of_stream = stream::get(stream)?.1;
        let handle = of_stream.context();
        context.set(if handle == 0 { context::current_handle() } else { handle })
    }

    journalled [stream] fn cuStreamGetId, cuStreamGetId_ptsz(stream: u64, id: Out<u64>) |_call| {
        stream::get(stream)?;
        id.set(stream)
    }

    journalled [stream] fn cuStreamGetDevice, cuStreamGetDevice_ptsz(stream: u64, device: Out<i32>) |_call| {
        let (driver, of_stream) = stream::get(stream)?;
        let ordinal = driver.devices.iter().position(|g| *g == of_stream.gpu());
        device.set(ordinal.ok_or(Code::INVALID_HANDLE)? as i32)
    }

    journalled [stream] fn cuStreamAttachMemAsync, cuStreamAttachMemAsync_ptsz(stream: u64, pointer: u64, _bytes: usize, _flags: u32) |_call| {
        stream::get(stream)?;
        lock(&driver::get()?.heap).find(pointer, 0).map(drop).ok_or(Code::INVALID_VALUE)
    }

    journalled [stream] fn cuStreamCopyAttributes, cuStreamCopyAttributes_ptsz(stream: u64, from: u64) |_call| {
        stream::get(from)?;
        stream::get(stream).map(drop)
    }

    journalled [stream] fn cuStreamAddCallback, cuStreamAddCallback_ptsz(stream: u64, _callback: u64, _data: u64, _flags: u32) |_call| {
        stream::get(stream)?;
        Err(Code::NOT_SUPPORTED)
    }

    journalled [stream] fn cuStreamBeginCapture_v2, cuStreamBeginCapture_v2_ptsz(stream: u64, mode: i32) |call| {
        call.hex("stream", stream);
        call.arg("mode", mode);
        let (driver, of_stream) = stream::get(stream)?;
        if matches!(stream, 0 | stream::LEGACY) {
            return Err(Code::STREAM_CAPTURE_UNSUPPORTED);
        }
        graph::begin_capture(driver, of_stream)
    }

    journalled [stream] fn cuStreamEndCapture, cuStreamEndCapture_ptsz(stream: u64, graph: Out<u64>) |call| {
        call.hex("stream", stream);
        let (_, of_stream) = stream::get(stream)?;
        graph.check()?;
        let made = graph::end_capture(of_stream)?;
        call.hex("graph", made);
        graph.set(made)
    }

    counted [stream] fn cuStreamIsCapturing, cuStreamIsCapturing_ptsz(stream: u64, status: Out<i32>) {
        let capture = stream::get(stream)?.1.capture.load(Relaxed);
        status.set(if capture == 0 { NOT_CAPTURING } else { CAPTURING })
    }

    counted [stream] fn cuStreamGetCaptureInfo_v2, cuStreamGetCaptureInfo_v2_ptsz(stream: u64, status: Out<i32>, id: Out<u64>, graph: Out<u64>, dependencies: Out<u64>, count: Out<usize>) {
        let capture = stream::get(stream)?.1.capture.load(Relaxed);
        status.set(if capture == 0 { NOT_CAPTURING } else { CAPTURING })?;
        if capture != 0 {
            id.set_if_wanted(capture);
            graph.set_if_wanted(capture);
        }
        dependencies.set_if_wanted(0);
        count.set_if_wanted(0);
        Ok(())
    }

    counted fn cuThreadExchangeStreamCaptureMode(mode: Out<i32>) {
        driver::get()?;
        // Calls that a mode would forbid are refused, or allowed, in all modes alike.
        mode.check()
    }

    counted [stream] fn cuLaunchHostFunc, cuLaunchHostFunc_ptsz(stream: u64, function: RawHostFunction, data: usize) {
        let (driver, of_stream) = stream::get(stream)?;
        let function = function.ok_or(Code::INVALID_VALUE)?;
        driver.process.counters().host_functions.fetch_add(1, Relaxed);
        graph::submit(driver, of_stream, Work::Host { function, data })
    }
}

unsupported! {
    cuStreamWaitValue32_v2 cuStreamWaitValue64_v2 cuStreamWriteValue32_v2 cuStreamWriteValue64_v2
    cuStreamBatchMemOp_v2 cuStreamGetAttribute cuStreamSetAttribute cuStreamUpdateCaptureDependencies
    cuStreamBeginCaptureToGraph
}
