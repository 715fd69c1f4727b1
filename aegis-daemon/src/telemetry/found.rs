//! Counting the GPUs.

use std::collections::BTreeMap;

use aegis_common::abi::GpuUuid;
use aegis_common::id::GpuIndex;
use nvml_wrapper::error::NvmlError;
use nvml_wrapper::{Device, Nvml};

use super::device::{self, Failure};
use super::event::GpuFound;
use super::topology;
use crate::lease::uuid;

/// Which index each GPU was given, by UUID.
#[derive(Clone, Debug, Default)]
pub(super) struct Indices(BTreeMap<GpuUuid, GpuIndex>);

impl Indices {
    /// The GPU's index: the one it had before, else NVML's if no other GPU had that, else the
    /// lowest that none had.
    fn of(&mut self, uuid: GpuUuid, nvml: u32) -> GpuIndex {
        if let Some(known) = self.0.get(&uuid) {
            return *known;
        }
        let taken = |index: &u32| self.0.values().any(|known| known.0 == *index);
        let index = std::iter::once(nvml)
            .chain(0..)
            .find(|index| !taken(index))
            .unwrap_or(nvml);
        self.0.insert(uuid, GpuIndex(index));
        GpuIndex(index)
    }
}

impl FromIterator<(GpuUuid, GpuIndex)> for Indices {
    fn from_iter<T: IntoIterator<Item = (GpuUuid, GpuIndex)>>(known: T) -> Self {
        Self(known.into_iter().collect())
    }
}

/// The GPUs that answer.
pub(super) struct Count<'nvml> {
    pub(super) gpus: Vec<(Device<'nvml>, GpuFound)>,
    /// GPUs the driver counts that do not answer.
    pub(super) missing: u32,
}

/// # Errors
///
/// NVML as a whole cannot be used.
pub(super) fn count<'nvml>(
    nvml: &'nvml Nvml,
    indices: &mut Indices,
) -> Result<Count<'nvml>, NvmlError> {
    let mut gpus = Vec::new();
    let mut missing = 0;
    for index in 0..nvml.device_count()? {
        match identify(nvml, index, indices) {
            Ok(found) => gpus.push(found),
            Err(error) => match Failure::from(error) {
                Failure::Library(error) => return Err(error),
                Failure::Gpu(error) => {
                    tracing::warn!(index, %error, "a GPU does not answer");
                    missing += 1;
                }
                Failure::Value => {
                    tracing::warn!(index, "a GPU without UUID or memory figures is left alone");
                    missing += 1;
                }
            },
        }
    }
    gpus.sort_by_key(|(_, found)| found.index);
    topology::connect(nvml, &mut gpus);
    Ok(Count { gpus, missing })
}

fn identify<'nvml>(
    nvml: &'nvml Nvml,
    index: u32,
    indices: &mut Indices,
) -> Result<(Device<'nvml>, GpuFound), NvmlError> {
    let device = nvml.device_by_index(index)?;
    let text = device.uuid()?;
    let uuid_bytes = uuid::parse(&text).ok_or(NvmlError::NotSupported)?;
    let memory = device.memory_info()?;
    let found = GpuFound {
        index: indices.of(uuid_bytes, index),
        uuid: text,
        uuid_bytes,
        name: device.name()?,
        memory: memory.total,
        reserved: memory.reserved,
        tier: device::tier(&device),
        peers: Vec::new(),
    };
    Ok((device, found))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_gpu_keeps_its_index_when_the_driver_counts_anew() {
        let mut indices = Indices::default();
        let of = |indices: &mut Indices, gpu: u8, nvml| indices.of([gpu; 16], nvml).0;
        assert_eq!(of(&mut indices, 1, 0), 0);
        assert_eq!(of(&mut indices, 2, 1), 1);
        // The first one is lost, the second one moves up, a new one takes its place.
        assert_eq!(of(&mut indices, 2, 0), 1);
        assert_eq!(of(&mut indices, 3, 1), 2);
        assert_eq!(of(&mut indices, 1, 2), 0);
    }

    #[test]
    fn a_gpu_in_use_keeps_the_index_it_had_under_the_last_daemon() {
        let mut indices = Indices::from_iter([([2; 16], GpuIndex(1))]);
        let of = |indices: &mut Indices, gpu: u8, nvml| indices.of([gpu; 16], nvml).0;
        // GPU 0 fell off the bus: the others moved up while there was no daemon.
        assert_eq!(of(&mut indices, 2, 0), 1);
        assert_eq!(of(&mut indices, 3, 1), 0);
        assert_eq!(of(&mut indices, 4, 2), 2);
    }
}
