//! Which clients there are, and what is expected of each.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use e2e::World;

/// What runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Program {
    /// A script of `clients/`.
    Script(&'static str),
    /// A Python module with arguments, unmodified, held before it ends.
    Module(&'static [&'static str]),
    /// A program of `tests/workloads` with arguments; it holds what it has by itself.
    Workload(&'static [&'static str]),
}

/// One client.
#[derive(Clone, Copy, Debug)]
pub struct Client {
    /// Its name in the table.
    pub name: &'static str,
    /// The Python package that it is about, whose version is shown.
    pub package: Option<&'static str>,
    /// What runs.
    pub program: Program,
    /// Text that its output has if it works.
    pub works: &'static str,
    /// It allocates GPU memory.
    pub allocates: bool,
    /// Refusals for lack of memory that it provokes and survives.
    pub refusals: u64,
    /// Part of the light set that every `cargo xtask test` runs.
    pub light: bool,
}

const HOLD: &str = "300MiB";

const fn workload(name: &'static str, words: &'static [&'static str]) -> Client {
    Client {
        name,
        package: None,
        program: Program::Workload(words),
        works: "READY",
        allocates: true,
        refusals: 0,
        light: false,
    }
}

const fn python(name: &'static str, package: &'static str, script: &'static str) -> Client {
    Client {
        name,
        package: Some(package),
        program: Program::Script(script),
        works: "WORKS",
        allocates: true,
        refusals: 0,
        light: true,
    }
}

const fn monitor(
    name: &'static str,
    words: &'static [&'static str],
    works: &'static str,
) -> Client {
    Client {
        name,
        package: Some(name),
        program: Program::Module(words),
        works,
        allocates: false,
        refusals: 0,
        light: true,
    }
}

/// Every client, in the order of the table.
pub const CLIENTS: &[Client] = &[
    workload(
        "workload, cuMemAlloc",
        &["hold", HOLD, "--pieces", "7", "--launch"],
    ),
    workload(
        "workload, pools",
        &[
            "hold",
            HOLD,
            "--pieces",
            "7",
            "--backend",
            "async",
            "--route",
            "getprocaddress",
        ],
    ),
    workload(
        "workload, virtual memory",
        &[
            "hold",
            HOLD,
            "--pieces",
            "7",
            "--backend",
            "vmm",
            "--route",
            "link",
        ],
    ),
    Client {
        refusals: 1,
        light: false,
        ..python("tinygrad", "tinygrad", "tinygrad_client.py")
    },
    Client {
        refusals: 5,
        ..python("cuda-bindings", "cuda-bindings", "cuda_bindings_client.py")
    },
    python(
        "cuda-bindings, reset",
        "cuda-bindings",
        "cuda_bindings_reset.py",
    ),
    python("nvidia-ml-py", "nvidia-ml-py", "nvml_client.py"),
    monitor(
        "gpustat",
        &["gpustat", "--no-color", "--show-pid"],
        "1024 MB",
    ),
    monitor("nvitop", &["nvitop", "--once", "--ascii"], "NVITOP"),
    Client {
        refusals: 1,
        light: false,
        ..python("numba-cuda", "numba-cuda", "numba_client.py")
    },
];

/// Clients that are not run, with the reason: shown, never left out.
pub const NOT_RUN: &[(&str, &str)] = &[
    (
        "PyTorch, CuPy, JAX, nvcc's runtime",
        "NVIDIA's CUDA runtime accepts a genuine driver only, which is not dodged: needs a GPU",
    ),
    (
        "cudarc, Taichi",
        "not among the clients yet; both use the driver's API alone",
    ),
];

impl Client {
    /// The client of that name.
    #[must_use]
    pub fn named(name: &str) -> Option<&'static Self> {
        CLIENTS.iter().find(|client| client.name == name)
    }

    /// The line at which it has stopped: the process, and nothing more happens.
    #[must_use]
    pub const fn stop(&self) -> &'static str {
        match self.program {
            Program::Workload(_) => "READY ",
            Program::Script(_) | Program::Module(_) => "CHECKPOINT ",
        }
    }

    /// Its command line; `None` without Python.
    #[must_use]
    pub fn command(&self, world: &World, gate: &Path) -> Option<Vec<OsString>> {
        let python = world.artifacts.python.clone();
        let mut words = vec!["/usr/bin/env".into()];
        let mut variable = |name: &str, value: &Path| {
            let mut word = OsString::from(format!("{name}="));
            word.push(value);
            words.push(word);
        };
        variable("COMPAT_GATE", gate);
        // Nothing that a client caches outlives its world, or lands beside the scripts.
        variable("PYTHONDONTWRITEBYTECODE", Path::new("1"));
        variable("XDG_CACHE_HOME", world.path());
        variable("NUMBA_CACHE_DIR", world.path());
        match self.program {
            Program::Script(script) => {
                words.push(python?.into());
                words.push(directory().join(script).into());
            }
            Program::Module(arguments) => {
                words.push(python?.into());
                words.push(directory().join("checkpoint.py").into());
                words.extend(arguments.iter().map(OsString::from));
            }
            Program::Workload(arguments) => words.extend(world.workload(arguments)),
        }
        Some(words)
    }
}

/// Where the scripts and their requirements are.
#[must_use]
pub fn directory() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("clients")
}
