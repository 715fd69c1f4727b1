//! A process's lease page: a tmpfs file the daemon alone can write (contract C2).

use std::fs::{self, File, OpenOptions, Permissions};
use std::io;
use std::mem::offset_of;
use std::os::fd::OwnedFd;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;

use aegis_common::abi::lease::{LEASE_BYTES, LEASE_LINES_OFFSET, LeaseHeader, LeaseLine};
use aegis_common::abi::{ABI_MAJOR, ABI_MINOR, GpuUuid, MAGIC, MAX_GPUS};
use rustix::fs::{FallocateFlags, fallocate};
use rustix::io::Errno;

use super::name::LeaseName;
use super::snapshot::{take, u32_at, u64_at};
use crate::sys::shm::SharedPage;

/// Why a lease page cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum LeaseError {
    /// The kernel refused.
    #[error("the lease page cannot be used: {0}")]
    Io(#[from] io::Error),
    /// The file is not a lease page of this ABI version.
    #[error("not a lease page of ABI version {ABI_MAJOR}")]
    Foreign,
    /// Another user owns the file, or it is no regular file.
    #[error("the lease page does not belong to this daemon's user")]
    NotOurs,
    /// A process uses at most [`MAX_GPUS`] GPUs.
    #[error("lease line {0} of {MAX_GPUS}")]
    NoSuchLine(usize),
    /// Somebody shortened the file.
    #[error("the lease page was cut")]
    Cut,
}

/// What a process may hold on one GPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LeaseLineView {
    /// The GPU.
    pub uuid: GpuUuid,
    /// Bytes it may hold; [`aegis_common::abi::lease::UNLIMITED`] denies nothing.
    pub limit: u64,
    /// Total shown to the process; 0 is the real one.
    pub virtual_total: u64,
    /// See [`aegis_common::abi::lease`].
    pub flags: u32,
}

/// A lease page, mapped writable.
#[derive(Debug)]
pub struct LeasePage {
    page: SharedPage,
    path: PathBuf,
}

impl LeasePage {
    /// A new page with no lines in `dir` (on a tmpfs, so that a write never waits for a disk).
    ///
    /// # Errors
    ///
    /// `AlreadyExists` if the process has one; else whatever the kernel reports.
    pub fn create(dir: &Path, name: LeaseName) -> Result<Self, LeaseError> {
        let path = dir.join(name.file());
        let file = OpenOptions::new()
            .read(true)
            .write(true)
            .create_new(true)
            .mode(0o644)
            .open(&path)?;
        let prepared = Self::prepare(&file, &path);
        if prepared.is_err() {
            // A half-made page would stand in the way of the next attempt.
            let _ = fs::remove_file(&path);
        }
        prepared?;
        let page = Self {
            page: SharedPage::map(file, LEASE_BYTES)?,
            path,
        };
        page.store_u64(offset_of!(LeaseHeader, magic), MAGIC)?;
        page.store_u32(offset_of!(LeaseHeader, abi_major), ABI_MAJOR)?;
        page.store_u32(offset_of!(LeaseHeader, abi_minor), ABI_MINOR)?;
        Ok(page)
    }

    fn prepare(file: &File, path: &Path) -> io::Result<()> {
        // The umask may have taken the readers' bits.
        fs::set_permissions(path, Permissions::from_mode(0o644))?;
        // Memory that exists now cannot be missing at the first store (SIGBUS on a full tmpfs).
        match fallocate(file, FallocateFlags::empty(), 0, LEASE_BYTES as u64) {
            Err(Errno::OPNOTSUPP) => {
                std::os::unix::fs::FileExt::write_all_at(file, &[0; LEASE_BYTES], 0)
            }
            other => Ok(other?),
        }
    }

    /// The page a former daemon made. Its lines bind until they are written again.
    ///
    /// # Errors
    ///
    /// [`LeaseError::Foreign`] and [`LeaseError::NotOurs`] if the file cannot be one;
    /// [`LeaseError::Io`] if it cannot be opened.
    pub fn reopen(path: &Path) -> Result<Self, LeaseError> {
        let file = OpenOptions::new()
            .read(true)
            .write(true)
            .custom_flags(libc::O_NOFOLLOW | libc::O_NONBLOCK)
            .open(path)?;
        let metadata = file.metadata()?;
        if !metadata.is_file() || metadata.uid() != rustix::process::geteuid().as_raw() {
            return Err(LeaseError::NotOurs);
        }
        if metadata.len() != LEASE_BYTES as u64 {
            return Err(LeaseError::Foreign);
        }
        let page = Self {
            page: SharedPage::map(file, LEASE_BYTES)?,
            path: path.to_owned(),
        };
        let ours = page.load_u64(offset_of!(LeaseHeader, magic)) == MAGIC
            && page.load_u32(offset_of!(LeaseHeader, abi_major)) == ABI_MAJOR;
        if ours {
            Ok(page)
        } else {
            Err(LeaseError::Foreign)
        }
    }

    /// Where the page is.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// A descriptor for the process, opened read-only by itself: unlike a duplicate of the
    /// daemon's, it can neither be mapped writable nor be made so.
    ///
    /// # Errors
    ///
    /// The page was removed or the process is out of descriptors.
    pub fn read_only_fd(&self) -> io::Result<OwnedFd> {
        Ok(File::open(&self.path)?.into())
    }

    /// Writes line `index`. `virtual_total` must stay what it first was (contract C10). The limit
    /// is stored with SeqCst ordering: see [`super::shrink()`].
    ///
    /// # Errors
    ///
    /// [`LeaseError::NoSuchLine`], or [`LeaseError::Cut`] if the file was shortened.
    pub fn set_line(&self, index: usize, line: LeaseLineView) -> Result<(), LeaseError> {
        let at = line_offset(index)?;
        let [low, high] = halves(&line.uuid);
        let uuid_at = at + offset_of!(LeaseLine, uuid);
        let lines = self.lines();
        if index < lines && self.line(index).is_some_and(|old| old.uuid != line.uuid) {
            // A reader must not meet one GPU's UUID with another one's limit.
            self.store_u64(at + offset_of!(LeaseLine, limit), 0)?;
        }
        self.store_u64(uuid_at, low)?;
        self.store_u64(uuid_at + 8, high)?;
        self.store_u64(
            at + offset_of!(LeaseLine, virtual_total),
            line.virtual_total,
        )?;
        self.store_u32(at + offset_of!(LeaseLine, flags), line.flags)?;
        self.store_u64(at + offset_of!(LeaseLine, limit), line.limit)?;
        if index >= lines {
            let lines = u32::try_from(index + 1).map_err(|_| LeaseError::NoSuchLine(index))?;
            self.store_u32(offset_of!(LeaseHeader, lines), lines)?;
        }
        Ok(())
    }

    /// Changes the limit in line `index` alone.
    ///
    /// # Errors
    ///
    /// As for [`LeasePage::set_line`].
    pub fn set_limit(&self, index: usize, limit: u64) -> Result<(), LeaseError> {
        if index >= self.lines() {
            return Err(LeaseError::NoSuchLine(index));
        }
        self.store_u64(line_offset(index)? + offset_of!(LeaseLine, limit), limit)
    }

    /// The limit in line `index`; `None` if the line is not in use.
    #[must_use]
    pub fn limit(&self, index: usize) -> Option<u64> {
        self.line(index).map(|line| line.limit)
    }

    /// Line `index`; `None` if it is not in use.
    #[must_use]
    pub fn line(&self, index: usize) -> Option<LeaseLineView> {
        if index >= self.lines() {
            return None;
        }
        let at = line_offset(index).ok()?;
        let uuid_at = at + offset_of!(LeaseLine, uuid);
        let mut uuid = GpuUuid::default();
        let words = [self.load_u64(uuid_at), self.load_u64(uuid_at + 8)];
        for (slot, byte) in uuid
            .iter_mut()
            .zip(words.into_iter().flat_map(u64::to_ne_bytes))
        {
            *slot = byte;
        }
        Some(LeaseLineView {
            uuid,
            limit: self.load_u64(at + offset_of!(LeaseLine, limit)),
            virtual_total: self.load_u64(at + offset_of!(LeaseLine, virtual_total)),
            flags: self.load_u32(at + offset_of!(LeaseLine, flags)),
        })
    }

    /// The line of that GPU, if there is one.
    #[must_use]
    pub fn line_of(&self, uuid: &GpuUuid) -> Option<usize> {
        (0..self.lines()).find(|index| self.line(*index).is_some_and(|line| line.uuid == *uuid))
    }

    /// Lines in use.
    #[must_use]
    pub fn lines(&self) -> usize {
        (self.load_u32(offset_of!(LeaseHeader, lines)) as usize).min(MAX_GPUS)
    }

    /// Tells the process that the daemon lives; due every ten seconds. `now_ns` is
    /// `CLOCK_MONOTONIC` (see [`monotonic_ns`]).
    ///
    /// # Errors
    ///
    /// [`LeaseError::Cut`] if the file was shortened.
    pub fn heartbeat(&self, now_ns: u64) -> Result<(), LeaseError> {
        self.store_u64(offset_of!(LeaseHeader, heartbeat_ns), now_ns)
    }

    /// Removes the file. A process that still maps it keeps its last content.
    ///
    /// # Errors
    ///
    /// Whatever the kernel reports, except that the file is gone already.
    pub fn remove(self) -> io::Result<()> {
        match fs::remove_file(&self.path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            other => other,
        }
    }

    /// The lines of a page in a file somebody else may write: for `aegis inspect`.
    #[must_use]
    pub fn decode(bytes: &[u8]) -> Option<Vec<LeaseLineView>> {
        let ours = bytes.len() == LEASE_BYTES
            && u64_at(bytes, offset_of!(LeaseHeader, magic)) == MAGIC
            && u32_at(bytes, offset_of!(LeaseHeader, abi_major)) == ABI_MAJOR;
        if !ours {
            return None;
        }
        let lines = u32_at(bytes, offset_of!(LeaseHeader, lines)) as usize;
        let line = |index: usize| {
            let at = LEASE_LINES_OFFSET + index * size_of::<LeaseLine>();
            LeaseLineView {
                uuid: take(bytes, at + offset_of!(LeaseLine, uuid)),
                limit: u64_at(bytes, at + offset_of!(LeaseLine, limit)),
                virtual_total: u64_at(bytes, at + offset_of!(LeaseLine, virtual_total)),
                flags: u32_at(bytes, at + offset_of!(LeaseLine, flags)),
            }
        };
        Some((0..lines.min(MAX_GPUS)).map(line).collect())
    }

    fn store_u64(&self, offset: usize, value: u64) -> Result<(), LeaseError> {
        self.check()?;
        let word = self.page.u64_at(offset).ok_or(LeaseError::Cut)?;
        word.store(value, Ordering::SeqCst);
        Ok(())
    }

    fn store_u32(&self, offset: usize, value: u32) -> Result<(), LeaseError> {
        self.check()?;
        let word = self.page.u32_at(offset).ok_or(LeaseError::Cut)?;
        word.store(value, Ordering::SeqCst);
        Ok(())
    }

    /// In rootless mode a job runs as the daemon's user and could cut the file by accident.
    fn check(&self) -> Result<(), LeaseError> {
        if self.page.intact() {
            Ok(())
        } else {
            Err(LeaseError::Cut)
        }
    }

    fn load_u64(&self, offset: usize) -> u64 {
        if !self.page.intact() {
            return 0;
        }
        self.page
            .u64_at(offset)
            .map_or(0, |word| word.load(Ordering::SeqCst))
    }

    fn load_u32(&self, offset: usize) -> u32 {
        if !self.page.intact() {
            return 0;
        }
        self.page
            .u32_at(offset)
            .map_or(0, |word| word.load(Ordering::SeqCst))
    }
}

/// `CLOCK_MONOTONIC` in nanoseconds: the clock of heartbeats and ledgers.
#[must_use]
pub fn monotonic_ns() -> u64 {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
    let seconds = u64::try_from(now.tv_sec).unwrap_or(0);
    let nanos = u64::try_from(now.tv_nsec).unwrap_or(0);
    seconds.saturating_mul(1_000_000_000).saturating_add(nanos)
}

fn line_offset(index: usize) -> Result<usize, LeaseError> {
    if index < MAX_GPUS {
        Ok(LEASE_LINES_OFFSET + index * size_of::<LeaseLine>())
    } else {
        Err(LeaseError::NoSuchLine(index))
    }
}

fn halves(uuid: &GpuUuid) -> [u64; 2] {
    [u64_at(uuid, 0), u64_at(uuid, 8)]
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::FileExt;

    use aegis_common::abi::lease::{FLAG_HELD, UNLIMITED};
    use aegis_common::id::{JobId, ProcessKey};
    use proptest::prelude::*;

    use super::*;

    const NAME: LeaseName = LeaseName {
        job: JobId(7),
        process: ProcessKey {
            pid: 42,
            start_ticks: 99,
        },
    };

    fn line(first: u8, limit: u64) -> LeaseLineView {
        LeaseLineView {
            uuid: [first; 16],
            limit,
            virtual_total: 0,
            flags: FLAG_HELD,
        }
    }

    #[test]
    fn what_the_daemon_writes_every_reader_sees_and_a_new_daemon_continues() {
        let dir = tempfile::tempdir().unwrap();
        let page = LeasePage::create(dir.path(), NAME).unwrap();
        assert_eq!(page.limit(0), None);
        page.set_line(0, line(1, 100)).unwrap();
        page.set_line(1, line(2, UNLIMITED)).unwrap();
        let seen = File::from(page.read_only_fd().unwrap());
        let mut bytes = vec![0; LEASE_BYTES];
        seen.read_exact_at(&mut bytes, 0).unwrap();
        let lines = LeasePage::decode(&bytes).unwrap();
        assert_eq!(lines, [line(1, 100), line(2, UNLIMITED)]);
        assert!(seen.write_at(&[0], 0).is_err());

        let path = page.path().to_owned();
        drop(page);
        let page = LeasePage::reopen(&path).unwrap();
        assert_eq!(page.line(0), Some(line(1, 100)));
        assert_eq!(page.line_of(&[2; 16]), Some(1));
        page.set_limit(0, 50).unwrap();
        page.heartbeat(5).unwrap();
        seen.read_exact_at(&mut bytes, 0).unwrap();
        let lines = LeasePage::decode(&bytes).unwrap();
        assert_eq!(lines.first().map(|line| line.limit), Some(50));
        assert!(matches!(
            page.set_limit(2, 1),
            Err(LeaseError::NoSuchLine(2))
        ));
        assert!(matches!(
            page.set_line(MAX_GPUS, line(3, 1)),
            Err(LeaseError::NoSuchLine(MAX_GPUS))
        ));
        page.remove().unwrap();
        assert!(!path.exists());
    }

    #[test]
    fn a_cut_page_is_an_error_and_no_signal() {
        let dir = tempfile::tempdir().unwrap();
        let page = LeasePage::create(dir.path(), NAME).unwrap();
        page.set_line(0, line(1, 100)).unwrap();
        fs::write(page.path(), "").unwrap();
        assert!(matches!(page.heartbeat(1), Err(LeaseError::Cut)));
        assert_eq!(page.limit(0), None);
        assert!(matches!(
            LeasePage::reopen(page.path()),
            Err(LeaseError::Foreign)
        ));
    }

    #[test]
    fn other_files_are_not_taken_for_pages() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("zeros");
        fs::write(&path, [0; LEASE_BYTES]).unwrap();
        assert!(matches!(LeasePage::reopen(&path), Err(LeaseError::Foreign)));
        let link = dir.path().join("link");
        std::os::unix::fs::symlink(&path, &link).unwrap();
        assert!(matches!(LeasePage::reopen(&link), Err(LeaseError::Io(_))));
        LeasePage::create(dir.path(), NAME).unwrap();
        assert!(LeasePage::create(dir.path(), NAME).is_err());
    }

    proptest! {
        #[test]
        fn any_page_is_read_without_panic(
            mut bytes in proptest::collection::vec(any::<u8>(), LEASE_BYTES),
            valid: bool,
            cut in 0..LEASE_BYTES,
        ) {
            if valid {
                bytes[..8].copy_from_slice(&MAGIC.to_ne_bytes());
                bytes[8..12].copy_from_slice(&ABI_MAJOR.to_ne_bytes());
            }
            let lines = LeasePage::decode(&bytes);
            prop_assert!(!valid || lines.is_some_and(|lines| lines.len() <= MAX_GPUS));
            prop_assert!(LeasePage::decode(&bytes[..cut]).is_none());
        }
    }
}
