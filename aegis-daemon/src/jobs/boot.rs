//! Which boot of the machine the records are of.
//!
//! Keepers do not wait for the disk: while the machine is up everybody sees a record that was
//! made, and no process outlives the machine. Only after a reboot a missing (or empty) start
//! record no longer proves that nothing ran. So the boot's identity is on disk before the first
//! attempt of a boot is started.

use std::fs::File;
use std::io::{self, ErrorKind, Write};
use std::os::unix::fs::OpenOptionsExt;

use super::keepers::Keepers;
use super::layout::Layout;
use super::record::boot_id;

impl Keepers {
    /// To be called before a start: everything found of an earlier boot is in the journal then.
    pub(super) fn note_boot(&mut self) {
        if self.boot_noted {
            return;
        }
        match note(&self.layout) {
            Ok(()) => self.boot_noted = true,
            // Should the machine go down now, attempts just started may be started once more.
            Err(error) => tracing::error!("{}: {error}", self.layout.boot().display()),
        }
    }
}

/// Whether attempts were started, and the machine went down since. A directory without a note is
/// new, or of a version whose keepers waited for the disk.
///
/// # Errors
/// The note or the boot's identity cannot be read.
pub(crate) fn changed(layout: &Layout) -> io::Result<bool> {
    match std::fs::read(layout.boot()) {
        Ok(noted) => Ok(noted != boot_id()?.into_bytes()),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(false),
        Err(error) => Err(error),
    }
}

/// Notes this boot, durably, unless it is noted already.
///
/// # Errors
/// The note cannot be written.
fn note(layout: &Layout) -> io::Result<()> {
    let boot = boot_id()?;
    let path = layout.boot();
    if std::fs::read(&path).is_ok_and(|noted| noted == boot.as_bytes()) {
        return Ok(());
    }
    let draft = path.with_extension("new");
    let mut file = std::fs::OpenOptions::new()
        .write(true)
        .create(true)
        .truncate(true)
        .mode(0o600)
        .open(&draft)?;
    file.write_all(boot.as_bytes())?;
    file.sync_all()?;
    std::fs::rename(&draft, &path)?;
    File::open(&layout.jobs)?.sync_all()
}

#[cfg(test)]
mod tests {
    use super::super::layout::Layout;
    use super::{changed, note};

    #[test]
    fn only_another_boots_note_says_that_the_machine_went_down() {
        let directory = tempfile::tempdir().unwrap();
        let layout = Layout::new(directory.path(), directory.path());
        std::fs::create_dir(&layout.jobs).unwrap();
        assert!(!changed(&layout).unwrap());
        note(&layout).unwrap();
        note(&layout).unwrap();
        assert!(!changed(&layout).unwrap());
        for other in ["", "00000000-0000-4000-8000-000000000000"] {
            std::fs::write(layout.boot(), other).unwrap();
            assert!(changed(&layout).unwrap(), "{other:?}");
        }
    }
}
