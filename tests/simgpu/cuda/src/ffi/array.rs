//! Arrays and mipmapped arrays: memory of a size that follows from a descriptor. Their contents are
//! not simulated.

use simgpu_core::AllocationKind;

use crate::call::Call;
use crate::code::{Code, Result};
use crate::context;
use crate::driver;
use crate::ffi::pointers::{In, Out};
use crate::heap;

/// `CUDA_ARRAY_DESCRIPTOR`.
#[repr(C)]
#[derive(Clone, Copy)]
pub(super) struct Flat {
    width: usize,
    height: usize,
    format: u32,
    channels: u32,
}

/// `CUDA_ARRAY3D_DESCRIPTOR`.
#[repr(C)]
#[derive(Clone, Copy)]
pub(super) struct Solid {
    width: usize,
    height: usize,
    depth: usize,
    format: u32,
    channels: u32,
    flags: u32,
}

/// `CUDA_ARRAY3D_LAYERED`, `CUDA_ARRAY3D_CUBEMAP`: the depth is a number of layers or faces.
const LAYERS: u32 = 0x01 | 0x04;
/// `CUDA_ARRAY3D_SPARSE`, `CUDA_ARRAY3D_DEFERRED_MAPPING`: memory comes later.
const WITHOUT_MEMORY: u32 = 0x40 | 0x80;

impl From<Flat> for Solid {
    fn from(flat: Flat) -> Self {
        Self {
            width: flat.width,
            height: flat.height,
            depth: 0,
            format: flat.format,
            channels: flat.channels,
            flags: 0,
        }
    }
}

impl Solid {
    /// Bytes of one channel, by `CUarray_format`.
    fn channel_bytes(&self) -> Result<u64> {
        match self.format {
            0x01 | 0x08 => Ok(1),
            0x02 | 0x09 | 0x10 => Ok(2),
            0x03 | 0x0a | 0x20 => Ok(4),
            _ => Err(Code::NOT_SUPPORTED),
        }
    }

    /// Bytes of all `levels`, each half as large as the one before in every spatial dimension.
    fn bytes(&self, levels: u32) -> Result<u64> {
        if self.flags & WITHOUT_MEMORY != 0 {
            return Err(Code::NOT_SUPPORTED);
        }
        if self.width == 0 || !matches!(self.channels, 1 | 2 | 4) || levels == 0 {
            return Err(Code::INVALID_VALUE);
        }
        let element = self.channel_bytes()? * u64::from(self.channels);
        let (mut width, mut height, mut depth) =
            (self.width, self.height.max(1), self.depth.max(1));
        let mut sum = 0u64;
        for _ in 0..levels {
            let level = [width, height, depth]
                .iter()
                .try_fold(element, |bytes, extent| bytes.checked_mul(*extent as u64));
            sum = level
                .and_then(|level| sum.checked_add(level))
                .ok_or(Code::OUT_OF_MEMORY)?;
            let layers = self.flags & LAYERS != 0;
            if width == 1 && height == 1 && (layers || depth == 1) {
                break;
            }
            width = (width / 2).max(1);
            height = (height / 2).max(1);
            depth = if layers { depth } else { (depth / 2).max(1) };
        }
        Ok(sum)
    }
}

fn create(call: &mut Call, array: Out<u64>, shape: &Solid, levels: u32) -> Result<()> {
    array.check()?;
    let bytes = shape.bytes(levels)?;
    call.arg("bytes", bytes);
    let (driver, context) = context::current()?;
    let made = heap::allocate(driver, &context, bytes, AllocationKind::Array, call)?;
    call.hex("array", made);
    array.set(made)
}

fn destroy(call: &mut Call, array: u64) -> Result<()> {
    call.hex("array", array);
    heap::free_array(driver::get()?, array)
}

export! {
    journalled fn cuArrayCreate_v2(array: Out<u64>, descriptor: In<Flat>) |call| {
        create(call, array, &descriptor.get()?.into(), 1)
    }

    journalled fn cuArray3DCreate_v2(array: Out<u64>, descriptor: In<Solid>) |call| {
        create(call, array, &descriptor.get()?, 1)
    }

    journalled fn cuArrayDestroy(array: u64) |call| {
        destroy(call, array)
    }

    journalled fn cuMipmappedArrayCreate(array: Out<u64>, descriptor: In<Solid>, levels: u32) |call| {
        call.arg("levels", levels);
        create(call, array, &descriptor.get()?, levels)
    }

    journalled fn cuMipmappedArrayDestroy(array: u64) |call| {
        destroy(call, array)
    }
}

unsupported! { cuArrayGetDescriptor_v2 }

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn levels_are_halved_and_layers_are_not() {
        let square = Solid {
            width: 8,
            height: 8,
            depth: 0,
            format: 0x20,
            channels: 4,
            flags: 0,
        };
        assert_eq!(square.bytes(1).ok(), Some(64 * 16));
        assert_eq!(square.bytes(99).ok(), Some((64 + 16 + 4 + 1) * 16));
        let layered = Solid {
            depth: 5,
            flags: 1,
            ..square
        };
        assert_eq!(layered.bytes(2).ok(), Some((64 + 16) * 5 * 16));
        let sparse = Solid {
            flags: 0x40,
            ..square
        };
        assert_eq!(sparse.bytes(1).err(), Some(Code::NOT_SUPPORTED));
        let huge = Solid {
            width: usize::MAX,
            ..square
        };
        assert_eq!(huge.bytes(1).err(), Some(Code::OUT_OF_MEMORY));
    }
}
