//! Stream-ordered memory.

use super::{Handle, Place};
use crate::error::ok;

api! {
    fn cudaMallocAsync, cudaMallocAsync_ptsz(pointer: Place, bytes: usize, stream: Handle) |driver| {
        ok((driver.mem_alloc_async)(pointer, bytes, stream))
    }

    fn cudaMallocFromPoolAsync, cudaMallocFromPoolAsync_ptsz(pointer: Place, bytes: usize, pool: Handle, stream: Handle) |driver| {
        ok((driver.mem_alloc_from_pool_async)(pointer, bytes, pool, stream))
    }

    fn cudaFreeAsync, cudaFreeAsync_ptsz(pointer: Handle, stream: Handle) |driver| {
        ok((driver.mem_free_async)(pointer, stream))
    }

    fn cudaMemPoolCreate(pool: Place, properties: Place) |driver| {
        // The same structure in both APIs.
        ok((driver.mem_pool_create)(pool, properties))
    }

    fn cudaMemPoolDestroy(pool: Handle) |driver| { ok((driver.mem_pool_destroy)(pool)) }

    fn cudaMemPoolTrimTo(pool: Handle, keep: usize) |driver| {
        ok((driver.mem_pool_trim_to)(pool, keep))
    }

    fn cudaMemPoolGetAttribute(pool: Handle, attribute: i32, value: Place) |driver| {
        ok((driver.mem_pool_get_attribute)(pool, attribute, value))
    }

    fn cudaMemPoolSetAttribute(pool: Handle, attribute: i32, value: Place) |driver| {
        ok((driver.mem_pool_set_attribute)(pool, attribute, value))
    }

    fn cudaMemPoolSetAccess(pool: Handle, descriptors: Place, count: usize) |driver| {
        ok((driver.mem_pool_set_access)(pool, descriptors, count))
    }

    fn cudaMemPoolGetAccess(flags: Place, pool: Handle, location: Place) |driver| {
        ok((driver.mem_pool_get_access)(flags, pool, location))
    }
}
