//! Where `cargo xtask test` has put what the tests run.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};

/// The built programs and libraries.
#[derive(Clone, Debug)]
pub struct Artifacts {
    /// The command line.
    pub aegis: PathBuf,
    /// The daemon.
    pub aegisd: PathBuf,
    /// The preload library.
    pub shim: PathBuf,
    /// The training-like program.
    pub workload: PathBuf,
    /// Simulated `libcuda.so.1`.
    pub cuda: PathBuf,
    /// Simulated `libnvidia-ml.so.1`.
    pub nvml: PathBuf,
    /// Python with tinygrad, if it was installed.
    pub python: Option<PathBuf>,
}

impl Artifacts {
    /// Finds everything beside the running program (a test in `target/debug/deps`, or the demo in
    /// `target/debug`).
    ///
    /// # Errors
    /// Something was not built; the message says how to build it.
    pub fn locate() -> Result<Self> {
        let own = std::env::current_exe().context("own program")?;
        let mut bin = own.parent().unwrap_or(Path::new("/")).to_owned();
        if bin.ends_with("deps") {
            bin.pop();
        }
        let root = Path::new(env!("CARGO_MANIFEST_DIR"))
            .ancestors()
            .nth(2)
            .unwrap_or(Path::new("/"));
        let python = bin.with_file_name("venv").join("bin/python");
        let found = Self {
            aegis: bin.join("aegis"),
            aegisd: bin.join("aegisd"),
            // Of the same profile.
            shim: root
                .join("aegis-shim/target")
                .join(bin.file_name().unwrap_or_default())
                .join("libaegis_shim.so"),
            workload: bin.join("workload"),
            cuda: bin.join("libsimgpu_cuda.so"),
            nvml: bin.join("libsimgpu_nvml.so"),
            python: python.exists().then_some(python),
        };
        for path in [
            &found.aegis,
            &found.aegisd,
            &found.shim,
            &found.workload,
            &found.cuda,
            &found.nvml,
        ] {
            if !path.exists() {
                bail!(
                    "{} has not been built: run `cargo xtask test`, which builds it",
                    path.display()
                );
            }
        }
        Ok(found)
    }

    /// Copies of the programs that users run and of the shim, in a directory that all may enter.
    ///
    /// # Errors
    /// A copy failed.
    pub(crate) fn copied_to(mut self, directory: &Path) -> Result<Self> {
        std::fs::create_dir_all(directory)?;
        for path in [&mut self.aegis, &mut self.shim, &mut self.workload] {
            let copy = directory.join(path.file_name().unwrap_or_default());
            std::fs::copy(&*path, &copy).with_context(|| format!("copying {}", path.display()))?;
            *path = copy;
        }
        Ok(self)
    }

    /// The training script of a framework that nobody here wrote.
    pub fn tinygrad_script() -> PathBuf {
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../workloads/tinygrad/train.py")
    }
}
