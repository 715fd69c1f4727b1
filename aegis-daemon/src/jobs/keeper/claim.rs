//! The start record: whoever creates it runs the command.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use aegis_common::id::ProcessKey;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{FallocateFlags, FlockOperation, Gid, Uid};
use rustix::process::getppid;

use super::super::control::open_directory;
use super::super::layout::Layout;
use super::super::record::{RECORD_VERSION, StartRecord, boot_id, now};
use super::{Order, number};

/// Blocks reserved for the end record before the job can fill the disk.
const END_RECORD_BYTES: u64 = 4096;

/// Why the start record was not made.
#[derive(Debug)]
pub(super) enum ClaimError {
    /// Another keeper made it.
    Beaten,
    /// The daemon died first; its successor may already have found that nothing ran.
    Orphaned,
    /// Something else, with the path.
    Io(PathBuf, io::Error),
}

impl ClaimError {
    /// Room on the disk would help.
    pub(super) fn is_full(&self) -> bool {
        let full = [io::ErrorKind::StorageFull, io::ErrorKind::QuotaExceeded];
        matches!(self, Self::Io(_, error) if full.contains(&error.kind()))
    }
}

impl std::fmt::Display for ClaimError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Beaten => f.write_str("another keeper runs this attempt"),
            Self::Orphaned => f.write_str("the daemon ended before the command was started"),
            Self::Io(path, error) => write!(f, "{}: {error}", path.display()),
        }
    }
}

/// Attaches the path to an error.
fn at(path: &Path) -> impl FnOnce(io::Error) -> ClaimError {
    let path = path.to_owned();
    move |error| ClaimError::Io(path, error)
}

/// Makes the directories and the start record. Returns the output directory.
///
/// Nothing waits for the disk here: see [`super::super::boot`].
pub(super) fn claim(
    order: &Order,
    layout: &Layout,
    keeper: ProcessKey,
    socket: &str,
    control: &OwnedFd,
) -> Result<OwnedFd, ClaimError> {
    let job = layout.job(order.job);
    make_directory(&job, 0o711)?;
    let output = layout.output(order.job, order.attempt);
    make_directory(&output, 0o700)?;
    let output_fd = open_directory(&output).map_err(at(&output))?;
    if !order.rootless {
        let (uid, gid) = (Uid::from_raw(order.uid), Gid::from_raw(order.gid));
        rustix::fs::fchown(&output_fd, Some(uid), Some(gid))
            .map_err(|error| ClaimError::Io(output, error.into()))?;
    }

    let reserved = layout.reserved_end(order.job, order.attempt, keeper.pid);
    let draft = job.join(format!(".{}.start.{}", order.attempt, keeper.pid));
    let result = reserve(&reserved).and_then(|()| {
        write_draft(order, keeper, socket, &draft)?;
        link(order, layout, &draft, control)
    });
    let _ = std::fs::remove_file(&draft);
    match result {
        Ok(()) => Ok(output_fd),
        Err(error) => {
            let _ = std::fs::remove_file(&reserved);
            Err(error)
        }
    }
}

fn make_directory(path: &Path, mode: u32) -> Result<(), ClaimError> {
    match std::fs::DirBuilder::new().mode(mode).create(path) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => Err(at(path)(error)),
        _ => Ok(()),
    }
}

fn create(path: &Path) -> io::Result<File> {
    OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(path)
}

/// The end of a job whose log filled the disk must still fit.
fn reserve(path: &Path) -> Result<(), ClaimError> {
    let file = create(path).map_err(at(path))?;
    match rustix::fs::fallocate(&file, FallocateFlags::empty(), 0, END_RECORD_BYTES) {
        // Not every file system can: then the writer has to wait for room.
        Ok(()) | Err(rustix::io::Errno::OPNOTSUPP) => Ok(()),
        Err(error) => Err(at(path)(error.into())),
    }
}

fn write_draft(
    order: &Order,
    keeper: ProcessKey,
    socket: &str,
    draft: &Path,
) -> Result<(), ClaimError> {
    let record = StartRecord {
        version: RECORD_VERSION,
        job: order.job,
        attempt: order.attempt,
        uid: order.uid,
        gpus: order.gpus.clone(),
        token: order.token,
        boot_id: boot_id().map_err(at(Path::new("/proc/sys/kernel/random/boot_id")))?,
        keeper,
        socket: socket.to_owned(),
        at: now(),
    };
    let bytes = serde_json::to_vec(&record).map_err(|error| at(draft)(error.into()))?;
    let mut file = create(draft).map_err(at(draft))?;
    file.write_all(&bytes).map_err(at(draft))
}

/// The decision. `link` gives the record its name with its contents complete, and fails if the
/// name is taken. The fence orders it before or after a new daemon's look at the records.
fn link(order: &Order, layout: &Layout, draft: &Path, control: &OwnedFd) -> Result<(), ClaimError> {
    let path = layout.start_record(order.job, order.attempt);
    let fence = layout.fence();
    let lock = File::open(&fence).map_err(at(&fence))?;
    rustix::fs::flock(&lock, FlockOperation::LockShared)
        .map_err(|error| ClaimError::Io(fence, error.into()))?;
    if !daemon_lives(order, control) {
        return Err(ClaimError::Orphaned);
    }
    match std::fs::hard_link(draft, &path) {
        Ok(()) => Ok(()),
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Err(ClaimError::Beaten),
        Err(error) => Err(at(&path)(error)),
    }
}

/// The daemon that gave the order is still the parent and holds its end of the control socket.
pub(super) fn daemon_lives(order: &Order, control: &OwnedFd) -> bool {
    let hung_up = wait(control, Timespec::default()).contains(PollFlags::HUP);
    !hung_up && getppid().is_some_and(|parent| number(parent) == order.daemon)
}

/// Waits until something happens on the control socket.
pub(super) fn wait(control: &OwnedFd, timeout: Timespec) -> PollFlags {
    let mut poll_fd = [PollFd::from_borrowed_fd(control.as_fd(), PollFlags::IN)];
    match poll(&mut poll_fd, Some(&timeout)) {
        Ok(_) => poll_fd[0].revents(),
        Err(_) => PollFlags::empty(),
    }
}

#[cfg(test)]
mod tests {
    use super::super::super::control::pair;
    use super::super::super::layout::Layout;
    use super::super::super::record::{StartRecord, read};
    use super::super::{ORDER_VERSION, Order, number};
    use super::{ClaimError, claim};
    use aegis_common::id::{GpuIndex, JobId, ProcessKey};
    use rustix::process::{getppid, getuid};

    const KEY: ProcessKey = ProcessKey {
        pid: 1,
        start_ticks: 2,
    };

    fn order(job: u64) -> Order {
        Order {
            version: ORDER_VERSION,
            job: JobId(job),
            attempt: 1,
            uid: getuid().as_raw(),
            gid: 0,
            groups: Vec::new(),
            argv: vec!["true".into()],
            cwd: "/".into(),
            env: Vec::new(),
            umask: 0,
            gpus: vec![GpuIndex(0)],
            token: *b"0123456789abcdef0123456789abcdef",
            state_dir: "".into(),
            runtime_dir: "".into(),
            grace_ms: 0,
            rootless: true,
            daemon: number(getppid().unwrap()),
        }
    }

    #[test]
    fn only_the_first_claims_and_none_without_its_daemon() {
        let directory = tempfile::tempdir().unwrap();
        let layout = Layout::new(directory.path(), directory.path());
        std::fs::create_dir(&layout.jobs).unwrap();
        std::fs::write(layout.fence(), "").unwrap();
        let (daemon, control) = pair().unwrap();

        claim(&order(1), &layout, KEY, "socket", &control).unwrap();
        let first: StartRecord = read(&layout.start_record(JobId(1), 1)).unwrap().unwrap();
        assert_eq!((first.keeper, first.gpus), (KEY, vec![GpuIndex(0)]));
        let other = ProcessKey { pid: 2, ..KEY };
        let second = claim(&order(1), &layout, other, "other", &control);
        assert!(matches!(second, Err(ClaimError::Beaten)));
        let first: StartRecord = read(&layout.start_record(JobId(1), 1)).unwrap().unwrap();
        assert_eq!(first.keeper, KEY);

        let stranger = Order {
            daemon: std::process::id(),
            ..order(2)
        };
        let orphan = claim(&stranger, &layout, KEY, "socket", &control);
        assert!(matches!(orphan, Err(ClaimError::Orphaned)));
        drop(daemon);
        let orphan = claim(&order(2), &layout, KEY, "socket", &control);
        assert!(matches!(orphan, Err(ClaimError::Orphaned)));
        // Neither a record nor a draft is left.
        let left = std::fs::read_dir(layout.job(JobId(2))).unwrap();
        let names: Vec<_> = left.map(|entry| entry.unwrap().file_name()).collect();
        assert_eq!(names, ["1"]);
    }
}
