//! Making and opening machines, and the journal.

use std::os::unix::fs::PermissionsExt;

use simgpu_core::journal::Journal;
use simgpu_core::{Error, GpuConfig, JournalMode, Machine, MachineConfig};

#[test]
fn a_machine_is_the_same_when_opened() {
    let directory = tempfile::tempdir().unwrap();
    let made = Machine::create(directory.path(), &MachineConfig::uniform(3, 1 << 33)).unwrap();
    let opened = Machine::open(directory.path()).unwrap();
    assert_eq!(made.config(), opened.config());
    let uuids: std::collections::BTreeSet<_> = made.config().gpus.iter().map(|g| &g.uuid).collect();
    assert_eq!(uuids.len(), 3);
    let mode = |name: &str| {
        let path = directory.path().join(name);
        std::fs::metadata(path).unwrap().permissions().mode() & 0o7777
    };
    assert_eq!((mode("simgpu.state"), mode("journal")), (0o666, 0o1777));
    // A second machine in the same directory would take the first one's processes away.
    let again = Machine::create(directory.path(), &MachineConfig::default());
    assert!(matches!(again, Err(Error::Io { .. })));
    assert_eq!(
        Machine::open(directory.path()).unwrap().config(),
        made.config()
    );
    assert_eq!(
        Machine::open(directory.path()).unwrap().config(),
        made.config()
    );
}

#[test]
fn wrong_configurations_name_the_field() {
    let directory = tempfile::tempdir().unwrap();
    let refused = |config: MachineConfig, field: &str| {
        let error = Machine::create(directory.path(), &config)
            .err()
            .unwrap()
            .to_string();
        assert!(error.contains(field), "{error}");
    };
    refused(
        MachineConfig {
            gpus: Vec::new(),
            ..MachineConfig::default()
        },
        "gpus",
    );
    refused(
        MachineConfig {
            time_scale: 0.0,
            ..MachineConfig::default()
        },
        "time_scale",
    );
    let gpu = GpuConfig {
        reserved_bytes: u64::MAX,
        ..GpuConfig::default()
    };
    refused(
        MachineConfig {
            gpus: vec![gpu],
            ..MachineConfig::default()
        },
        "reserved_bytes",
    );
    let gpu = GpuConfig {
        uuid: "GPU-1".to_owned(),
        ..GpuConfig::default()
    };
    refused(
        MachineConfig {
            gpus: vec![gpu],
            ..MachineConfig::default()
        },
        "uuid",
    );
}

#[test]
fn a_state_file_of_another_layout_is_refused() {
    let directory = tempfile::tempdir().unwrap();
    Machine::create(directory.path(), &MachineConfig::default()).unwrap();
    let path = directory.path().join("simgpu.state");
    let length = std::fs::metadata(&path).unwrap().len();
    std::fs::File::options()
        .write(true)
        .open(&path)
        .unwrap()
        .set_len(length + 1)
        .unwrap();
    assert!(matches!(
        Machine::open(directory.path()),
        Err(Error::Version(_))
    ));
}

#[test]
fn journals_are_read_back_and_compare_without_times() {
    let directory = tempfile::tempdir().unwrap();
    let machine = Machine::create(directory.path(), &MachineConfig::default()).unwrap();
    for pid in [20, 3] {
        let journal = Journal::open(&machine, pid, 1);
        journal.record("cuInit", "flags=0 ", 0, None);
        journal.record("cuMemAlloc_v2", "bytes=5 ", 2, Some(u64::from(pid)));
    }
    let all = machine.journal().unwrap();
    assert_eq!(
        all.iter().map(|r| (r.pid, r.sequence)).collect::<Vec<_>>(),
        [(3, 0), (3, 1), (20, 0), (20, 1)]
    );
    assert_eq!(all[1].free, Some(3));
    assert!(all[0].time_ns <= all[1].time_ns);
    let normalised = |pid| {
        let records = machine.journal_of(pid).unwrap();
        records.iter().map(|r| r.normalised()).collect::<Vec<_>>()
    };
    assert_eq!(normalised(3), normalised(20));
    assert_eq!(normalised(3)[1].args, "bytes=5");
}

#[test]
fn a_journal_that_is_off_writes_nothing() {
    let directory = tempfile::tempdir().unwrap();
    let config = MachineConfig {
        journal: JournalMode::Off,
        ..MachineConfig::default()
    };
    let machine = Machine::create(directory.path(), &config).unwrap();
    let journal = Journal::open(&machine, 1, 1);
    journal.record("cuInit", "", 0, None);
    assert!(!journal.enabled() && machine.journal().unwrap().is_empty());
}
