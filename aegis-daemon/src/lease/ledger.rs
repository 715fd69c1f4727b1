//! A process's ledger: memory made by the daemon, written by the process.

use std::fs::File;
use std::io;
use std::mem::offset_of;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::FileExt;

use aegis_common::abi::ledger::{GPU_LINES_OFFSET, GpuLine, LEDGER_BYTES, LedgerHeader};
use aegis_common::abi::trace::TRACED_LEDGER_BYTES;
use aegis_common::abi::{ABI_MAJOR, ABI_MINOR, MAGIC, MAX_GPUS};
use rustix::fs::{
    MemfdFlags, SealFlags, fcntl_add_seals, fcntl_get_seals, ftruncate, memfd_create,
};
use rustix::io::Errno;

use super::snapshot::{LedgerError, LedgerSnapshot};

/// What keeps a ledger's size fixed whoever holds it.
const SEALS: SealFlags = SealFlags::SHRINK
    .union(SealFlags::GROW)
    .union(SealFlags::SEAL);

/// A ledger's descriptor. The memory is hostile: it is only ever copied out with `pread`, never
/// mapped or referred to.
#[derive(Debug)]
pub struct LedgerFile(File);

impl LedgerFile {
    /// A new, empty ledger in a sealed memfd called `name` (see [`super::LeaseName::ledger`]).
    ///
    /// # Errors
    ///
    /// Whatever the kernel reports; `InvalidInput` for a name with a zero byte.
    pub fn create(name: &str) -> io::Result<Self> {
        let flags = MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING;
        let fd = match memfd_create(name, flags | MemfdFlags::NOEXEC_SEAL) {
            // Kernels before 6.3 do not know the flag; some newer ones demand it.
            Err(Errno::INVAL) => memfd_create(name, flags)?,
            other => other?,
        };
        ftruncate(&fd, TRACED_LEDGER_BYTES as u64)?;
        let file = File::from(fd);
        for (offset, bytes) in [
            (
                offset_of!(LedgerHeader, magic),
                MAGIC.to_ne_bytes().as_slice(),
            ),
            (
                offset_of!(LedgerHeader, abi_major),
                &ABI_MAJOR.to_ne_bytes(),
            ),
            (
                offset_of!(LedgerHeader, abi_minor),
                &ABI_MINOR.to_ne_bytes(),
            ),
            (
                offset_of!(LedgerHeader, size),
                &(LEDGER_BYTES as u32).to_ne_bytes(),
            ),
        ] {
            file.write_all_at(bytes, offset as u64)?;
        }
        fcntl_add_seals(&file, SEALS)?;
        Ok(Self(file))
    }

    /// Takes over a descriptor that a keeper held while the daemon was away. The ledger of an older
    /// daemon has no traces.
    ///
    /// # Errors
    ///
    /// [`LedgerError::Unsealed`] if it is not sealed memory, [`LedgerError::Size`] if it has another
    /// size, [`LedgerError::Io`] if the kernel refuses.
    pub fn adopt(fd: OwnedFd) -> Result<Self, LedgerError> {
        match fcntl_get_seals(&fd) {
            Ok(seals) if seals.contains(SEALS) => {}
            // INVAL: not memory at all.
            Ok(_) | Err(Errno::INVAL) => return Err(LedgerError::Unsealed),
            Err(error) => return Err(LedgerError::Io(error.into())),
        }
        let file = File::from(fd);
        let size = file.metadata()?.len();
        if ![LEDGER_BYTES, TRACED_LEDGER_BYTES].contains(&usize::try_from(size).unwrap_or(0)) {
            return Err(LedgerError::Size(size));
        }
        Ok(Self(file))
    }

    /// What it says now. Counters written meanwhile may or may not be included, each on its own:
    /// the ABI never needs two of them to agree. `used + inflight` is never too small.
    ///
    /// # Errors
    ///
    /// Any [`LedgerError`]: its writer can put anything there.
    pub fn read(&self) -> Result<LedgerSnapshot, LedgerError> {
        // The shim raises `used` before it lowers `inflight`. Taken from an earlier copy than the
        // rest, `inflight` may count a block twice; taken later, it could miss one.
        let earlier = self.copy(0, LEDGER_BYTES)?;
        let mut bytes = self.copy(0, LEDGER_BYTES)?;
        for line in 0..MAX_GPUS {
            let from =
                GPU_LINES_OFFSET + line * size_of::<GpuLine>() + offset_of!(GpuLine, inflight);
            let field = from..from + size_of::<u64>();
            if let (Some(to), Some(from)) = (bytes.get_mut(field.clone()), earlier.get(field)) {
                to.copy_from_slice(from);
            }
        }
        LedgerSnapshot::decode(&bytes)
    }

    /// A copy of `count` bytes from `from`.
    pub(super) fn copy(&self, from: usize, count: usize) -> Result<Vec<u8>, LedgerError> {
        let mut bytes = vec![0; count];
        let mut filled = 0;
        while let Some(rest) = bytes.get_mut(filled..).filter(|rest| !rest.is_empty()) {
            match self.0.read_at(rest, (from + filled) as u64) {
                Ok(0) => return Err(LedgerError::Torn(filled)),
                Ok(count) => filled += count,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error.into()),
            }
        }
        Ok(bytes)
    }

    /// A second descriptor of the same memory, for the keeper.
    ///
    /// # Errors
    ///
    /// The process is out of descriptors.
    pub fn try_clone(&self) -> io::Result<OwnedFd> {
        Ok(self.0.try_clone()?.into())
    }
}

impl AsFd for LedgerFile {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

#[cfg(test)]
mod tests {
    use rustix::fs::FallocateFlags;

    use super::*;

    #[test]
    fn a_new_ledger_is_empty_and_its_size_is_fixed() {
        let ledger = LedgerFile::create("aegis-ledger:1:2:3").unwrap();
        assert_eq!(ledger.read().unwrap(), LedgerSnapshot::default());
        assert!(ledger.0.set_len(0).is_err());
        assert!(ledger.0.set_len(1 << 20).is_err());
        let adopted = LedgerFile::adopt(ledger.try_clone().unwrap()).unwrap();
        ledger
            .0
            .write_all_at(
                &1u32.to_ne_bytes(),
                offset_of!(LedgerHeader, gpu_lines) as u64,
            )
            .unwrap();
        ledger
            .0
            .write_all_at(&[7; 24], GPU_LINES_OFFSET as u64)
            .unwrap();
        let snapshot = adopted.read().unwrap();
        assert_eq!(snapshot.gpus.len(), 1);
        assert_eq!(
            snapshot.gpu(&[7; 16]).unwrap().used,
            u64::from_ne_bytes([7; 8])
        );
    }

    #[test]
    fn a_holed_ledger_is_an_error_and_no_signal() {
        let ledger = LedgerFile::create("aegis-ledger:1:2:3").unwrap();
        let hole = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
        rustix::fs::fallocate(&ledger.0, hole, 0, 4096).unwrap();
        assert!(matches!(ledger.read(), Err(LedgerError::Magic(0))));
    }

    #[test]
    fn only_sealed_memory_of_the_right_size_is_adopted() {
        let file = tempfile::tempfile().unwrap();
        file.set_len(LEDGER_BYTES as u64).unwrap();
        let adopted = LedgerFile::adopt(file.into());
        assert!(matches!(adopted, Err(LedgerError::Unsealed)));

        let flags = MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING;
        let older = memfd_create("aegis-ledger:1:2:3", flags).unwrap();
        ftruncate(&older, LEDGER_BYTES as u64).unwrap();
        fcntl_add_seals(&older, SEALS).unwrap();
        LedgerFile::adopt(older).unwrap();

        let unsealed = memfd_create("aegis-ledger:1:2:3", flags).unwrap();
        let unsealed = LedgerFile::adopt(unsealed);
        assert!(matches!(unsealed, Err(LedgerError::Unsealed)));

        let short = memfd_create("aegis-ledger:1:2:3", flags).unwrap();
        ftruncate(&short, 100).unwrap();
        fcntl_add_seals(&short, SEALS).unwrap();
        assert!(matches!(
            LedgerFile::adopt(short),
            Err(LedgerError::Size(100))
        ));

        // Cut between `adopt` and `read`.
        let cut = memfd_create("aegis-ledger:1:2:3", flags).unwrap();
        ftruncate(&cut, 100).unwrap();
        assert!(matches!(
            LedgerFile(cut.into()).read(),
            Err(LedgerError::Torn(100))
        ));
    }
}
