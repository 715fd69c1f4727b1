//! Streams and their capture.

use super::status::version;
use super::{Handle, Out, Place};
use crate::error::{Error, ok};

/// From this version on, `cudaStreamGetCaptureInfo` and `cudaStreamUpdateCaptureDependencies` tell
/// and take the edges' data as well.
const WITH_EDGES: i32 = 13000;

api! {
    fn cudaStreamCreate(stream: Place) |driver| { ok((driver.stream_create)(stream, 0)) }

    fn cudaStreamCreateWithFlags(stream: Place, flags: u32) |driver| {
        ok((driver.stream_create)(stream, flags))
    }

    fn cudaStreamCreateWithPriority(stream: Place, flags: u32, priority: i32) |driver| {
        ok((driver.stream_create_with_priority)(stream, flags, priority))
    }

    fn cudaStreamDestroy(stream: Handle) |driver| { ok((driver.stream_destroy)(stream)) }

    fn cudaStreamQuery, cudaStreamQuery_ptsz(stream: Handle) |driver| {
        ok((driver.stream_query)(stream))
    }

    fn cudaStreamSynchronize, cudaStreamSynchronize_ptsz(stream: Handle) |driver| {
        ok((driver.stream_synchronize)(stream))
    }

    fn cudaStreamWaitEvent, cudaStreamWaitEvent_ptsz(stream: Handle, event: Handle, flags: u32) |driver| {
        ok((driver.stream_wait_event)(stream, event, flags))
    }

    fn cudaStreamGetPriority, cudaStreamGetPriority_ptsz(stream: Handle, priority: Place) |driver| {
        ok((driver.stream_get_priority)(stream, priority))
    }

    fn cudaStreamGetFlags, cudaStreamGetFlags_ptsz(stream: Handle, flags: Place) |driver| {
        ok((driver.stream_get_flags)(stream, flags))
    }

    fn cudaStreamGetId, cudaStreamGetId_ptsz(stream: Handle, id: Place) |driver| {
        ok((driver.stream_get_id)(stream, id))
    }

    fn cudaStreamAddCallback, cudaStreamAddCallback_ptsz(stream: Handle, callback: Place, data: Place, flags: u32) |driver| {
        // The callback's result code has the same values in both APIs.
        ok((driver.stream_add_callback)(stream, callback, data, flags))
    }

    fn cudaStreamBeginCapture, cudaStreamBeginCapture_ptsz(stream: Handle, mode: i32) |driver| {
        ok((driver.stream_begin_capture)(stream, mode))
    }

    fn cudaStreamEndCapture, cudaStreamEndCapture_ptsz(stream: Handle, graph: Place) |driver| {
        ok((driver.stream_end_capture)(stream, graph))
    }

    fn cudaStreamIsCapturing, cudaStreamIsCapturing_ptsz(stream: Handle, status: Place) |driver| {
        ok((driver.stream_is_capturing)(stream, status))
    }

    fn cudaStreamGetCaptureInfo_v2, cudaStreamGetCaptureInfo_v2_ptsz(stream: Handle, status: Place, id: Place, graph: Place, dependencies: Place, count: Place) |driver| {
        ok((driver.stream_get_capture_info)(stream, status, id, graph, dependencies, count))
    }

    fn cudaStreamGetCaptureInfo, cudaStreamGetCaptureInfo_ptsz(stream: Handle, status: Place, id: Place, graph: Place, dependencies: Place, edges: Out<usize>, count: Place) |driver| {
        let nothing = std::ptr::null_mut();
        if version() < WITH_EDGES {
            // Three arguments: what the others hold is no argument.
            return ok((driver.stream_get_capture_info)(stream, status, id, nothing, nothing, nothing));
        }
        // Edges have no data here.
        edges.set_if_wanted(0);
        ok((driver.stream_get_capture_info)(stream, status, id, graph, dependencies, count))
    }

    fn cudaStreamUpdateCaptureDependencies, cudaStreamUpdateCaptureDependencies_ptsz(stream: Handle, dependencies: Place, count: usize, flags: u32) |driver| {
        if version() >= WITH_EDGES {
            return Err(Error::NOT_SUPPORTED);
        }
        ok((driver.stream_update_capture_dependencies)(stream, dependencies, count, flags))
    }

    fn cudaThreadExchangeStreamCaptureMode(mode: Place) |driver| {
        ok((driver.thread_exchange_stream_capture_mode)(mode))
    }
}
