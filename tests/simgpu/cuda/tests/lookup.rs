//! How clients find functions and devices.

mod ffi;

use ffi::{Driver, Fixture, built_library};
use simgpu_core::{Machine, MachineConfig};

#[test]
fn a_library_without_a_machine_has_no_device() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("libcuda.so.1");
    std::fs::copy(built_library(), &path).unwrap();
    let driver = Driver::open(&path);
    assert_eq!(driver.init(), Err(100));
    assert_eq!(driver.device_count(), Err(3));
}

#[test]
fn devices_have_the_uuids_of_the_configuration() {
    let fixture = Fixture::new(&MachineConfig::uniform(2, 1 << 33));
    let driver = fixture.driver();
    driver.init().unwrap();
    assert_eq!(driver.device_count(), Ok(2));
    let machine: &Machine = &fixture.machine;
    for (device, gpu) in machine.config().gpus.iter().enumerate() {
        assert_eq!(driver.device_uuid(device as i32), Ok(gpu.uuid_bytes()));
    }
    assert_eq!(driver.device_uuid(2), Err(101));
}

#[test]
fn lookups_choose_by_version_and_flags() {
    let fixture = Fixture::new(&MachineConfig::default());
    let driver = fixture.driver();
    let symbol = |name| Ok(driver.symbol(name));
    let address = |name, version, flags| driver.find(name, version, flags).0;
    assert_eq!(address(c"cuMemAlloc", 3020, 0), symbol("cuMemAlloc_v2"));
    assert_eq!(address(c"cuCtxCreate", 3020, 0), symbol("cuCtxCreate_v2"));
    assert_eq!(address(c"cuCtxCreate", 11040, 0), symbol("cuCtxCreate_v3"));
    assert_eq!(address(c"cuCtxCreate", 13000, 0), symbol("cuCtxCreate_v4"));
    assert_eq!(
        address(c"cuLaunchKernel", 7000, 2),
        symbol("cuLaunchKernel_ptsz")
    );
    assert_eq!(
        address(c"cuLaunchKernel", 7000, 1),
        symbol("cuLaunchKernel")
    );
    assert_eq!(
        address(c"cuLaunchKernel", 4000, 2),
        symbol("cuLaunchKernel")
    );
    assert_eq!(
        address(c"cuMemcpyHtoD", 7000, 2),
        symbol("cuMemcpyHtoD_v2_ptds")
    );
    assert_eq!(address(c"cuMemAlloc", 7000, 2), symbol("cuMemAlloc_v2"));
    assert_ne!(symbol("cuLaunchKernel"), symbol("cuLaunchKernel_ptsz"));
    assert_eq!(driver.find(c"cuNoSuchThing", 13000, 0), (Err(500), 1));
    assert_eq!(driver.find(c"cuMemAlloc_v2", 13000, 0), (Err(500), 1));
    assert_eq!(driver.find(c"", 0, 0), (Err(500), 1));
    assert_eq!(driver.find(c"cuMemAllocAsync", 11010, 0), (Err(500), 2));
    assert_eq!(driver.find(c"cuMemAlloc", 3020, 9), (Err(1), -1));
}

#[test]
fn the_lookup_function_finds_itself_in_the_abi_of_the_version() {
    let fixture = Fixture::new(&MachineConfig::default());
    let driver = fixture.driver();
    let old = driver.symbol("cuGetProcAddress");
    let new = driver.symbol("cuGetProcAddress_v2");
    assert_ne!(old, new);
    assert_eq!(driver.find(c"cuGetProcAddress", 11030, 0).0, Ok(old));
    assert_eq!(driver.find(c"cuGetProcAddress", 12000, 0).0, Ok(new));
    assert_eq!(driver.find_old(c"cuGetProcAddress", 12080, 0), Ok(new));
    assert_eq!(
        driver.find_old(c"cuMemFree", 3020, 0),
        Ok(driver.symbol("cuMemFree_v2"))
    );
}

#[test]
fn there_are_no_export_tables() {
    let fixture = Fixture::new(&MachineConfig::default());
    let driver = fixture.ready();
    assert_eq!(driver.export_table(), Err(500));
}
