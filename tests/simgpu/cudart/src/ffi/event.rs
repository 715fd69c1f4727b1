//! Events.

use super::{Handle, Place};
use crate::error::ok;

api! {
    fn cudaEventCreate(event: Place) |driver| { ok((driver.event_create)(event, 0)) }

    fn cudaEventCreateWithFlags(event: Place, flags: u32) |driver| {
        ok((driver.event_create)(event, flags))
    }

    fn cudaEventDestroy(event: Handle) |driver| { ok((driver.event_destroy)(event)) }

    fn cudaEventQuery(event: Handle) |driver| { ok((driver.event_query)(event)) }

    fn cudaEventRecord, cudaEventRecord_ptsz(event: Handle, stream: Handle) |driver| {
        ok((driver.event_record)(event, stream))
    }

    fn cudaEventRecordWithFlags, cudaEventRecordWithFlags_ptsz(event: Handle, stream: Handle, flags: u32) |driver| {
        ok((driver.event_record_with_flags)(event, stream, flags))
    }

    fn cudaEventSynchronize(event: Handle) |driver| { ok((driver.event_synchronize)(event)) }

    fn cudaEventElapsedTime(milliseconds: Place, start: Handle, end: Handle) |driver| {
        ok((driver.event_elapsed_time)(milliseconds, start, end))
    }
}
