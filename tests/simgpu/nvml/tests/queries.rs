//! The simulated NVML as nvml-wrapper sees it.

use std::path::PathBuf;
use std::time::Duration;

use nvml_wrapper::Nvml;
use nvml_wrapper::enum_wrappers::device::TopologyLevel;
use nvml_wrapper::enums::device::UsedGpuMemory;
use nvml_wrapper::enums::gpm::GpmMetricId;
use nvml_wrapper::error::NvmlError;
use nvml_wrapper::gpm::gpm_metrics_get;
use simgpu_core::config::MIB;
use simgpu_core::fault::{Fault, FaultKind};
use simgpu_core::kernel::Cost;
use simgpu_core::{Machine, MachineConfig, Process, self_identity};

const CONTEXT: u64 = 300 * MIB;

struct Fixture {
    machine: Machine,
    directory: tempfile::TempDir,
}

impl Fixture {
    fn new(change: impl FnOnce(&mut MachineConfig)) -> Self {
        let mut config = MachineConfig::uniform(2, 8192 * MIB);
        change(&mut config);
        let directory = tempfile::tempdir().unwrap();
        let machine = Machine::create(directory.path(), &config).unwrap();
        // The driver library is another package's; nothing here opens it.
        machine
            .install_libraries(&built_library(), &built_library())
            .unwrap();
        Self { machine, directory }
    }

    fn nvml(&self) -> Result<Nvml, NvmlError> {
        let path = self.directory.path().join("libnvidia-ml.so.1");
        Nvml::builder().lib_path(path.as_os_str()).init()
    }

    /// This process, with a context and 1 GiB on GPU 0.
    fn process(&self) -> Process<'_> {
        let (pid, started) = self_identity();
        let process = self.machine.register(pid, started).unwrap();
        process.create_context(0).unwrap();
        process.reserve(0, 1024 * MIB).unwrap();
        process
    }
}

fn built_library() -> PathBuf {
    let program = std::env::current_exe().unwrap();
    program.parent().unwrap().join("libsimgpu_nvml.so")
}

#[test]
fn a_library_without_a_machine_has_no_driver() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("libnvidia-ml.so.1");
    std::fs::copy(built_library(), &path).unwrap();
    let result = Nvml::builder().lib_path(path.as_os_str()).init();
    assert!(matches!(result, Err(NvmlError::DriverNotLoaded)));
}

#[test]
fn devices_are_found_by_index_uuid_and_bus() {
    let fixture = Fixture::new(|c| c.gpus[1].name = "Simulated B".to_owned());
    let nvml = fixture.nvml().unwrap();
    assert_eq!(nvml.device_count().unwrap(), 2);
    let uuid = &fixture.machine.config().gpus[1].uuid;
    let device = nvml.device_by_uuid(uuid.as_str()).unwrap();
    assert_eq!(
        (device.index().unwrap(), device.name().unwrap()),
        (1, "Simulated B".to_owned())
    );
    let bus = device.pci_info().unwrap().bus_id;
    assert_eq!(
        nvml.device_by_pci_bus_id(bus.as_str())
            .unwrap()
            .uuid()
            .unwrap(),
        *uuid
    );
    assert!(matches!(
        nvml.device_by_index(2),
        Err(NvmlError::InvalidArg)
    ));
    assert!(matches!(
        nvml.device_by_uuid("GPU-none"),
        Err(NvmlError::NotFound)
    ));
    let first = nvml.device_by_index(0).unwrap();
    assert!(matches!(
        device.topology_common_ancestor(first).unwrap(),
        TopologyLevel::HostBridge
    ));
    assert_eq!(nvml.sys_cuda_driver_version().unwrap(), 12080);
    assert!(nvml.sys_driver_version().unwrap().ends_with("sim"));
}

#[test]
fn memory_and_processes_are_shown() {
    let fixture = Fixture::new(|_| ());
    let nvml = fixture.nvml().unwrap();
    let device = nvml.device_by_index(0).unwrap();
    assert!(device.running_compute_processes().unwrap().is_empty());
    let process = fixture.process();
    fixture
        .machine
        .faults()
        .set_foreign(77, 0, 64 * MIB)
        .unwrap();
    let memory = device.memory_info().unwrap();
    assert_eq!((memory.total, memory.reserved), (8192 * MIB, 512 * MIB));
    assert_eq!(memory.used, CONTEXT + (1024 + 64) * MIB);
    assert_eq!(memory.free, memory.total - memory.reserved - memory.used);
    let listed = device.running_compute_processes().unwrap();
    let listed: Vec<_> = listed
        .iter()
        .map(|p| (p.pid, p.used_gpu_memory.clone()))
        .collect();
    let expected = [(process.pid(), CONTEXT + 1024 * MIB), (77, 64 * MIB)];
    assert_eq!(
        listed,
        expected.map(|(pid, bytes)| (pid, UsedGpuMemory::Used(bytes)))
    );
    assert!(device.running_graphics_processes().unwrap().is_empty());
    let other = nvml.device_by_index(1).unwrap();
    assert!(other.running_compute_processes().unwrap().is_empty());
}

#[test]
fn gpm_tells_what_the_kernels_did() {
    let fixture = Fixture::new(|c| c.gpus[1].supports_gpm = false);
    let nvml = fixture.nvml().unwrap();
    let device = nvml.device_by_index(0).unwrap();
    assert!(device.gpm_support().unwrap());
    let process = fixture.process();
    let before = device.gpm_sample().unwrap();
    let work = process.push(0, &Cost::new(30_000_000, 800, 400, 200));
    process.wait(0, work);
    let after = device.gpm_sample().unwrap();
    let ids = [
        GpmMetricId::SmUtil,
        GpmMetricId::SmOccupancy,
        GpmMetricId::DramBwUtil,
    ];
    let values = || {
        let results = gpm_metrics_get(&nvml, &before, &after, &ids).unwrap();
        results
            .into_iter()
            .map(|r| r.map(|m| m.value))
            .collect::<Result<Vec<_>, _>>()
    };
    let seen = values().unwrap();
    // The window is somewhat longer than the work; the proportions are those of the kernel.
    assert!(seen[0] > 0.0 && seen[0] <= 80.0, "{seen:?}");
    assert!(
        (seen[0] / seen[1] - 2.0).abs() < 1e-3 && (seen[0] / seen[2] - 4.0).abs() < 1e-3,
        "{seen:?}"
    );

    let faults = fixture.machine.faults();
    faults.arm(Fault::new(FaultKind::GpmNan, 0)).unwrap();
    assert!(values().unwrap().iter().all(|v| v.is_nan()));
    faults.clear();
    faults.arm(Fault::new(FaultKind::GpmMetric, 999)).unwrap();
    assert!(matches!(values(), Err(NvmlError::Unknown)));
    faults.clear();
    let other = nvml.device_by_index(1).unwrap();
    assert!(!other.gpm_support().unwrap());
    assert!(matches!(other.gpm_sample(), Err(NvmlError::NotSupported)));
}

#[test]
fn process_utilisation_is_told_once() {
    let fixture = Fixture::new(|_| ());
    let nvml = fixture.nvml().unwrap();
    let device = nvml.device_by_index(0).unwrap();
    let process = fixture.process();
    // Longer than the sampling period, so that a sample is due when it is done.
    let work = process.push(0, &Cost::new(150_000_000, 500, 300, 100));
    process.wait(0, work);
    let samples = device.process_utilization_stats(0).unwrap();
    assert_eq!(samples.len(), 1);
    assert_eq!(samples[0].pid, process.pid());
    assert!(
        samples[0].sm_util > 0 && samples[0].sm_util <= 50,
        "{}",
        samples[0].sm_util
    );
    let again = device.process_utilization_stats(samples[0].timestamp);
    assert!(matches!(again, Err(NvmlError::NotFound)));
    assert!(device.utilization_rates().unwrap().gpu <= 100);
}

#[test]
fn armed_faults_are_returned() {
    let fixture = Fixture::new(|_| ());
    let faults = fixture.machine.faults();
    faults
        .arm(Fault {
            times: 1,
            ..Fault::new(FaultKind::NvmlInit, 9)
        })
        .unwrap();
    assert!(matches!(fixture.nvml(), Err(NvmlError::DriverNotLoaded)));
    let nvml = fixture.nvml().unwrap();
    let (first, second) = (
        nvml.device_by_index(0).unwrap(),
        nvml.device_by_index(1).unwrap(),
    );
    faults
        .arm(Fault {
            gpu: Some(1),
            ..Fault::new(FaultKind::NvmlDevice, 15)
        })
        .unwrap();
    assert!(matches!(second.name(), Err(NvmlError::GpuLost)));
    first.name().unwrap();
    faults
        .arm(Fault::new(FaultKind::NvmlProcessList, 999))
        .unwrap();
    assert!(matches!(
        first.running_compute_processes(),
        Err(NvmlError::Unknown)
    ));
    faults.arm(Fault::new(FaultKind::NvmlMemory, 15)).unwrap();
    assert!(matches!(first.memory_info(), Err(NvmlError::GpuLost)));
    faults.clear();
    first.memory_info().unwrap();
}

#[test]
fn events_never_come() {
    let fixture = Fixture::new(|_| ());
    let nvml = fixture.nvml().unwrap();
    let set = nvml.create_event_set().unwrap();
    assert!(matches!(
        set.wait(Duration::from_millis(1).as_millis() as u32),
        Err(NvmlError::Timeout)
    ));
}
