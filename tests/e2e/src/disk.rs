//! A small disk that can be filled.

use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use rustix::mount::{MountFlags, UnmountFlags, mount, unmount};

/// A tmpfs of a few megabytes; unmounted when dropped.
#[derive(Debug)]
pub struct SmallDisk {
    path: PathBuf,
}

impl SmallDisk {
    /// A fresh directory to mount at, outside every world: it must outlive the world's processes.
    ///
    /// # Errors
    /// It cannot be made.
    pub fn place() -> Result<PathBuf> {
        let directory = tempfile::Builder::new().prefix("aegis-disk-").tempdir()?;
        Ok(directory.keep())
    }

    /// Mounts `bytes` at `path`; `None` if this user may not.
    ///
    /// # Errors
    /// The kernel refuses for another reason.
    pub fn mount(path: &Path, bytes: u64) -> Result<Option<Self>> {
        let options = std::ffi::CString::new(format!("size={bytes}"))?;
        match mount(
            "tmpfs",
            path,
            "tmpfs",
            MountFlags::NOSUID,
            options.as_c_str(),
        ) {
            Ok(()) => Ok(Some(Self {
                path: path.to_owned(),
            })),
            Err(rustix::io::Errno::PERM | rustix::io::Errno::ACCESS) => {
                std::fs::remove_dir(path)?;
                Ok(None)
            }
            Err(error) => Err(error).with_context(|| format!("mounting {}", path.display())),
        }
    }

    /// Where it is.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Writes a file until nothing more fits; returns the file.
    ///
    /// # Errors
    /// Writing fails for another reason.
    pub fn fill(&self) -> Result<PathBuf> {
        let path = self.path.join("filler");
        let mut file = File::create(&path)?;
        loop {
            match file.write(&[0; 4096]) {
                Ok(0) => bail!("a write of nothing"),
                Ok(_) => {}
                Err(error) if error.kind() == std::io::ErrorKind::StorageFull => return Ok(path),
                Err(error) => return Err(error).context("filling the disk"),
            }
        }
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        // Lazily: a process that is just ending may still have a file open.
        let _ = unmount(&self.path, UnmountFlags::DETACH);
        let _ = std::fs::remove_dir(&self.path);
    }
}
