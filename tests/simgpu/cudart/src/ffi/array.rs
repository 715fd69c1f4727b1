//! Arrays.

use super::driver::ArrayShape;
use super::{Handle, In, Place};
use crate::error::{Error, Result, ok};

/// `cudaChannelFormatDesc`.
#[repr(C)]
#[derive(Clone, Copy)]
pub(super) struct Channels {
    bits: [i32; 4],
    kind: i32,
}

impl Channels {
    /// `CUarray_format` and the number of channels.
    fn format(self) -> Result<(u32, u32)> {
        let count = self.bits.iter().filter(|bits| **bits > 0).count();
        let [bits, ..] = self.bits;
        // cudaChannelFormatKind: signed, unsigned, float.
        let format = match (self.kind, bits) {
            (0, 8) => 0x08,
            (0, 16) => 0x09,
            (0, 32) => 0x0a,
            (1, 8) => 0x01,
            (1, 16) => 0x02,
            (1, 32) => 0x03,
            (2, 16) => 0x10,
            (2, 32) => 0x20,
            _ => return Err(Error::NOT_SUPPORTED),
        };
        Ok((format, u32::try_from(count).unwrap_or(0)))
    }
}

api! {
    fn cudaMallocArray(array: Place, channels: In<Channels>, width: usize, height: usize, flags: u32) |driver| {
        if flags != 0 {
            return Err(Error::NOT_SUPPORTED);
        }
        let (format, channels) = channels.get()?.format()?;
        ok((driver.array_create)(array, &ArrayShape { width, height, format, channels }))
    }

    fn cudaFreeArray(array: Handle) |driver| {
        if array == 0 {
            return Ok(());
        }
        ok((driver.array_destroy)(array))
    }
}
