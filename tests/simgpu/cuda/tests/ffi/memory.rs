//! Memory functions of the driver API.

use libloading::Symbol;

use super::{Driver, Result, check};

impl Driver {
    /// Free and total bytes.
    pub(crate) fn memory(&self) -> Result<(usize, usize)> {
        let (mut free, mut total) = (0, 0);
        call!(
            self,
            "cuMemGetInfo_v2",
            (*mut usize, *mut usize),
            &raw mut free,
            &raw mut total
        )?;
        // NULL is allowed for either.
        call!(
            self,
            "cuMemGetInfo_v2",
            (*mut usize, *mut usize),
            std::ptr::null_mut(),
            &raw mut total
        )?;
        Ok((free, total))
    }

    /// Allocates; on failure the output must be untouched.
    pub(crate) fn allocate(&self, bytes: usize) -> Result<u64> {
        let mut pointer = 0x5a5a;
        let result = call!(
            self,
            "cuMemAlloc_v2",
            (*mut u64, usize),
            &raw mut pointer,
            bytes
        );
        assert!(result.is_ok() || pointer == 0x5a5a);
        result.map(|()| pointer)
    }

    pub(crate) fn free(&self, pointer: u64) -> Result<()> {
        call!(self, "cuMemFree_v2", (u64), pointer)
    }

    pub(crate) fn allocate_async(&self, bytes: usize, stream: u64) -> Result<u64> {
        let mut pointer = 0;
        call!(
            self,
            "cuMemAllocAsync",
            (*mut u64, usize, u64),
            &raw mut pointer,
            bytes,
            stream
        )
        .map(|()| pointer)
    }

    pub(crate) fn free_async(&self, pointer: u64, stream: u64) -> Result<()> {
        call!(self, "cuMemFreeAsync", (u64, u64), pointer, stream)
    }

    pub(crate) fn pool_attribute(&self, attribute: u32) -> Result<u64> {
        let (mut pool, mut value) = (0, 0u64);
        call!(
            self,
            "cuDeviceGetDefaultMemPool",
            (*mut u64, i32),
            &raw mut pool,
            0
        )?;
        call!(
            self,
            "cuMemPoolGetAttribute",
            (u64, u32, *mut u64),
            pool,
            attribute,
            &raw mut value
        )?;
        Ok(value)
    }

    pub(crate) fn copy_in(&self, to: u64, data: &[u8]) -> Result<()> {
        call!(
            self,
            "cuMemcpyHtoD_v2",
            (u64, *const u8, usize),
            to,
            data.as_ptr(),
            data.len()
        )
    }

    pub(crate) fn copy_out(&self, from: u64, bytes: usize) -> Result<Vec<u8>> {
        let mut data = vec![0xee; bytes];
        call!(
            self,
            "cuMemcpyDtoH_v2",
            (*mut u8, u64, usize),
            data.as_mut_ptr(),
            from,
            bytes
        )?;
        Ok(data)
    }

    pub(crate) fn copy_within(&self, to: u64, from: u64, bytes: usize) -> Result<()> {
        call!(self, "cuMemcpyDtoD_v2", (u64, u64, usize), to, from, bytes)
    }

    pub(crate) fn fill(&self, to: u64, value: u8, count: usize) -> Result<()> {
        call!(self, "cuMemsetD8_v2", (u64, u8, usize), to, value, count)
    }

    pub(crate) fn reserve_addresses(&self, bytes: usize) -> Result<u64> {
        let mut pointer = 0;
        call!(
            self,
            "cuMemAddressReserve",
            (*mut u64, usize, usize, u64, u64),
            &raw mut pointer,
            bytes,
            0,
            0,
            0
        )
        .map(|()| pointer)
    }

    pub(crate) fn free_addresses(&self, pointer: u64, bytes: usize) -> Result<()> {
        call!(self, "cuMemAddressFree", (u64, usize), pointer, bytes)
    }

    pub(crate) fn create_physical(&self, bytes: usize) -> Result<u64> {
        // CUmemAllocationProp: pinned, no handle type, on device 0.
        let properties: [i32; 8] = [1, 0, 1, 0, 0, 0, 0, 0];
        let mut handle = 0;
        call!(
            self,
            "cuMemCreate",
            (*mut u64, usize, *const i32, u64),
            &raw mut handle,
            bytes,
            properties.as_ptr(),
            0
        )
        .map(|()| handle)
    }

    pub(crate) fn release_physical(&self, handle: u64) -> Result<()> {
        call!(self, "cuMemRelease", (u64), handle)
    }

    pub(crate) fn map(&self, pointer: u64, bytes: usize, handle: u64) -> Result<()> {
        call!(
            self,
            "cuMemMap",
            (u64, usize, usize, u64, u64),
            pointer,
            bytes,
            0,
            handle,
            0
        )?;
        let access: [i32; 3] = [1, 0, 3];
        call!(
            self,
            "cuMemSetAccess",
            (u64, usize, *const i32, usize),
            pointer,
            bytes,
            access.as_ptr(),
            1
        )
    }

    pub(crate) fn unmap(&self, pointer: u64, bytes: usize) -> Result<()> {
        call!(self, "cuMemUnmap", (u64, usize), pointer, bytes)
    }
}
