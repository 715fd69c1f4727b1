//! The driver libraries of a directory.

use std::fs;
use std::path::{Path, PathBuf};

use crate::error::{Error, Result};
use crate::machine::set_mode;

const CUDA: &str = "libsimgpu_cuda.so";
const NVML: &str = "libsimgpu_nvml.so";

/// Copies the built libraries into a driver directory under the driver's names: `libcuda.so.1` and
/// `libnvidia-ml.so.1`, each with the link that has no version.
///
/// # Errors
/// A library cannot be read, or the directory not written.
pub fn install_libraries(directory: &Path, cuda: &Path, nvml: &Path) -> Result<()> {
    for (source, name, link) in [
        (cuda, "libcuda.so.1", "libcuda.so"),
        (nvml, "libnvidia-ml.so.1", "libnvidia-ml.so"),
    ] {
        let target = directory.join(name);
        // A copy, then a rename: a process that runs on the old library keeps it.
        let fresh = directory.join(format!("{name}.new"));
        fs::copy(source, &fresh).map_err(Error::io(source))?;
        set_mode(&fresh, 0o755)?;
        fs::rename(&fresh, &target).map_err(Error::io(&target))?;
        let link = directory.join(link);
        match std::os::unix::fs::symlink(name, &link) {
            Err(error) if error.kind() != std::io::ErrorKind::AlreadyExists => {
                return Err(Error::io(link)(error));
            }
            _ => {}
        }
    }
    Ok(())
}

/// The libraries (CUDA, NVML) that cargo built for the running program: beside it or one or two
/// folders above, the newest if there are several. `None` if one is not built: then
/// `cargo build -p simgpu-cuda -p simgpu-nvml` is missing, or a dev-dependency on both packages,
/// which makes cargo build them first.
pub fn built_libraries() -> Option<(PathBuf, PathBuf)> {
    let program = std::env::current_exe().ok()?;
    let newest = |name: &str| {
        let folders = program.ancestors().skip(1).take(3);
        let candidates = folders.flat_map(|f| [f.join(name), f.join("deps").join(name)]);
        let dated = candidates.filter_map(|path| {
            let time = fs::metadata(&path).ok()?.modified().ok()?;
            Some((time, path))
        });
        dated.max().map(|(_, path)| path)
    };
    Some((newest(CUDA)?, newest(NVML)?))
}
