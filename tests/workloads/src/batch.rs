//! A batch of training data with known contents, so that a wrong byte on the GPU is noticed.

use crate::device::{Device, DevicePtr};
use crate::error::WorkloadError;

/// The host's copy of a batch.
#[derive(Debug)]
pub struct Batch {
    bytes: Vec<u8>,
    readback: Vec<u8>,
}

impl Batch {
    /// A batch of `bytes` bytes (capped at what an allocation can hold; the option's parser has
    /// refused more than 1 TiB).
    #[must_use]
    pub fn new(bytes: u64) -> Self {
        let len = usize::try_from(bytes).unwrap_or(usize::MAX);
        Self {
            bytes: vec![0; len],
            readback: Vec::new(),
        }
    }

    /// The data.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Fills the batch with data that depends on `step` at each offset (xorshift64).
    pub fn fill(&mut self, step: u64) {
        let mut state = step.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
        for chunk in self.bytes.chunks_mut(8) {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            for (to, from) in chunk.iter_mut().zip(state.to_le_bytes()) {
                *to = from;
            }
        }
    }

    /// Compares the copy at `ptr` with the host's.
    ///
    /// # Errors
    /// [`WorkloadError::Corrupt`] with the first wrong byte, or the driver's error.
    pub fn verify(
        &mut self,
        device: &mut impl Device,
        ptr: DevicePtr,
        step: u64,
    ) -> Result<(), WorkloadError> {
        // Anything but the data, so that a copy that does nothing is noticed.
        self.readback.clear();
        self.readback.extend(self.bytes.iter().map(|byte| !byte));
        device.download(ptr, &mut self.readback)?;
        let wrong = (self.bytes.iter().zip(&self.readback).enumerate())
            .find(|(_, (expected, found))| expected != found);
        match wrong {
            None => Ok(()),
            Some((offset, (&expected, &found))) => Err(WorkloadError::Corrupt {
                gpu: device.ordinal(),
                step,
                offset,
                expected,
                found,
            }),
        }
    }
}
