//! Inspecting while no daemon answers: the keepers still hold the ledgers.

use std::collections::BTreeMap;
use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::Path;

use aegis_common::abi::lease::LEASE_BYTES;
use aegis_common::wire::Inspection;

use super::super::ledger::LedgerFile;
use super::super::name::LeaseName;
use super::super::page::{LeaseLineView, LeasePage};
use super::super::process::effective_uid;
use super::super::sanitise::sanitise;
use super::super::snapshot::LedgerSnapshot;
use super::{Context, view};

/// Directory of the lease pages inside the daemon's runtime directory.
const LEASES: &str = "leases";
const NOT_READABLE: &str =
    "the ledger is held by a keeper of another user: run as that user or root";

/// Every process with a ledger or a lease page, by job and pid. GPU indices and NVML figures are
/// unknown here, and what this user may not read is left out or named in a warning.
///
/// Only descriptors held by processes of the runtime directory's owner count: a job can make a memfd
/// of any name, but in root mode not in a process of root's.
///
/// # Errors
///
/// The runtime directory does not exist or cannot be read.
pub fn offline(runtime_dir: &Path) -> io::Result<Inspection> {
    let owner = fs::metadata(runtime_dir)?.uid();
    let leases = lease_pages(&runtime_dir.join(LEASES))?;
    let mut ledgers = ledgers(owner)?;
    for name in leases.keys() {
        ledgers.entry(*name).or_insert_with(|| LedgerSnapshot {
            warnings: vec![NOT_READABLE.to_owned()],
            ..LedgerSnapshot::default()
        });
    }
    let processes = ledgers
        .iter()
        .map(|(name, ledger)| {
            let context = Context {
                name: *name,
                lease: leases.get(name).map_or(&[], Vec::as_slice),
                nvml: &[],
                idle_ms: None,
                pace: None,
            };
            view(ledger, &context, |_| None)
        })
        .collect();
    Ok(Inspection {
        daemon: false,
        processes,
    })
}

fn lease_pages(dir: &Path) -> io::Result<BTreeMap<LeaseName, Vec<LeaseLineView>>> {
    let mut pages = BTreeMap::new();
    let entries = match fs::read_dir(dir) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(pages),
        other => other?,
    };
    for entry in entries.filter_map(Result::ok) {
        let name = entry.file_name().to_str().and_then(LeaseName::from_file);
        let lines = read_page(&entry.path()).and_then(|bytes| LeasePage::decode(&bytes));
        if let (Some(name), Some(lines)) = (name, lines) {
            pages.insert(name, lines);
        }
    }
    Ok(pages)
}

fn read_page(path: &Path) -> Option<Vec<u8>> {
    let file = open(path).ok()?;
    let metadata = file.metadata().ok()?;
    if !metadata.is_file() || metadata.len() != LEASE_BYTES as u64 {
        return None;
    }
    let mut bytes = vec![0; LEASE_BYTES];
    std::os::unix::fs::FileExt::read_exact_at(&file, &mut bytes, 0).ok()?;
    Some(bytes)
}

/// The ledgers that processes of `owner` hold and this process may read.
fn ledgers(owner: u32) -> io::Result<BTreeMap<LeaseName, LedgerSnapshot>> {
    let mut found = BTreeMap::new();
    for entry in fs::read_dir("/proc")?.filter_map(Result::ok) {
        let file_name = entry.file_name();
        let Some(pid) = file_name.to_str().and_then(|name| name.parse().ok()) else {
            continue;
        };
        if effective_uid(pid).is_ok_and(|uid| uid == owner) {
            held_by(pid, &mut found);
        }
    }
    Ok(found)
}

fn held_by(pid: u32, found: &mut BTreeMap<LeaseName, LedgerSnapshot>) {
    for (name, ledger) in held_ledgers(pid) {
        let snapshot = || match ledger.read() {
            Ok(snapshot) => sanitise(None, snapshot, |_| Some(u64::MAX), &[], 0),
            Err(error) => LedgerSnapshot {
                warnings: vec![error.to_string()],
                ..LedgerSnapshot::default()
            },
        };
        found.entry(name).or_insert_with(snapshot);
    }
}

/// The ledgers a process has open descriptors of. Processes come and go and most are not for us to
/// read: errors mean "nothing here".
#[must_use]
pub fn held_ledgers(pid: u32) -> Vec<(LeaseName, LedgerFile)> {
    let Ok(entries) = fs::read_dir(format!("/proc/{pid}/fd")) else {
        return Vec::new();
    };
    let ledgers = entries.filter_map(|entry| {
        let path = entry.ok()?.path();
        let target = fs::read_link(&path).ok()?;
        let memfd = target.to_str()?.strip_prefix("/memfd:")?;
        let name = LeaseName::from_ledger(memfd.strip_suffix(" (deleted)").unwrap_or(memfd))?;
        // Not sealed: not a ledger, whatever it is called.
        let ledger = LedgerFile::adopt(open(&path).ok()?.into()).ok()?;
        Some((name, ledger))
    });
    ledgers.collect()
}

/// Never waits, whatever kind of file the name leads to.
fn open(path: &Path) -> io::Result<File> {
    OpenOptions::new()
        .read(true)
        .custom_flags(libc::O_NONBLOCK)
        .open(path)
}

#[cfg(test)]
mod tests {
    use aegis_common::id::{JobId, ProcessKey};

    use super::super::super::process::start_ticks;
    use super::*;

    #[test]
    fn keepers_and_pages_tell_all_without_a_daemon() {
        let dir = tempfile::tempdir().unwrap();
        let leases = dir.path().join(LEASES);
        fs::create_dir(&leases).unwrap();
        let pid = std::process::id();
        let process = ProcessKey {
            pid,
            start_ticks: start_ticks(pid).unwrap(),
        };
        // Numbers no other test of this process uses.
        let [held, dead] = [918_273, 918_274].map(|job| LeaseName {
            job: JobId(job),
            process,
        });
        let dead = LeaseName {
            process: ProcessKey {
                start_ticks: 1,
                ..process
            },
            ..dead
        };
        // This process stands in for the keeper.
        let ledger = LedgerFile::create(&held.ledger()).unwrap();
        let line = LeaseLineView {
            uuid: [1; 16],
            limit: 77,
            virtual_total: 0,
            flags: 0,
        };
        for name in [held, dead] {
            let page = LeasePage::create(&leases, name).unwrap();
            page.set_line(0, line).unwrap();
        }
        fs::write(leases.join("918275:1:2.lease"), "no page").unwrap();

        let inspection = offline(dir.path()).unwrap();
        assert!(!inspection.daemon);
        let ours: Vec<_> = inspection
            .processes
            .iter()
            .filter(|view| view.job.is_some_and(|job| job.0 / 10 == 91_827))
            .collect();
        let [first, second] = ours[..] else {
            panic!("{ours:?}")
        };
        assert_eq!((first.job, first.alive), (Some(held.job), true));
        assert_eq!(first.warning, None);
        assert_eq!(first.gpus.len(), 1);
        assert_eq!(first.gpus[0].limit, Some(77));
        assert_eq!((second.job, second.alive), (Some(dead.job), false));
        assert_eq!(second.warning.as_deref(), Some(NOT_READABLE));
        drop(ledger);
    }
}
