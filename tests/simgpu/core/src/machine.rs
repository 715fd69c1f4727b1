//! The driver directory: making, opening and equipping it.

use std::fs::{self, File, OpenOptions, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering::{Acquire, Release};

use memmap2::MmapRaw;

use crate::config::MachineConfig;
use crate::error::{Error, Result};
use crate::install::install_libraries;
use crate::layout::{MAGIC, State};
use crate::sys;

/// Environment variable that names the state file, instead of the one next to the library.
pub const STATE_VARIABLE: &str = "SIMGPU_STATE";

const STATE_FILE: &str = "simgpu.state";
const CONFIG_FILE: &str = "config.json";
const JOURNAL_DIR: &str = "journal";

/// A simulated machine, open in this process.
pub struct Machine {
    directory: PathBuf,
    config: MachineConfig,
    map: MmapRaw,
}

impl Machine {
    /// Makes a driver directory (created if missing; it must not hold a machine yet). The files
    /// are open to all users, as a driver's device files are.
    pub fn create(directory: &Path, config: &MachineConfig) -> Result<Self> {
        let config = config.clone().completed()?;
        let path = directory.join(STATE_FILE);
        if path.exists() {
            let exists = std::io::ErrorKind::AlreadyExists.into();
            return Err(Error::io(path)(exists));
        }
        fs::create_dir_all(directory).map_err(Error::io(directory))?;
        set_mode(directory, 0o755)?;
        let journal = directory.join(JOURNAL_DIR);
        fs::create_dir_all(&journal).map_err(Error::io(&journal))?;
        set_mode(&journal, 0o1777)?;

        let path = directory.join(CONFIG_FILE);
        let text = serde_json::to_vec_pretty(&config).map_err(|source| Error::Json {
            path: path.clone(),
            source,
        })?;
        fs::write(&path, text).map_err(Error::io(&path))?;
        set_mode(&path, 0o644)?;

        // Under another name until it is ready: who sees the name sees a usable mutex.
        let path = directory.join(STATE_FILE);
        let fresh = directory.join("simgpu.state.new");
        let file = OpenOptions::new()
            .read(true)
            .write(true)
            .create_new(true)
            .open(&fresh);
        let file = file.map_err(Error::io(&fresh))?;
        file.set_len(size_of::<State>() as u64)
            .map_err(Error::io(&fresh))?;
        set_mode(&fresh, 0o666)?;
        let map = MmapRaw::map_raw(&file).map_err(Error::io(&fresh))?;
        let machine = Self {
            directory: directory.to_owned(),
            config,
            map,
        };
        let state = machine.state();
        state.lock.initialise().map_err(Error::io(&fresh))?;
        for gpu in &state.gpus {
            gpu.lock.initialise().map_err(Error::io(&fresh))?;
        }
        state.magic.store(MAGIC, Release);
        fs::hard_link(&fresh, &path).map_err(Error::io(&path))?;
        fs::remove_file(&fresh).map_err(Error::io(&fresh))?;
        Ok(machine)
    }

    /// Opens a driver directory that [`Machine::create`] made.
    pub fn open(directory: &Path) -> Result<Self> {
        Self::open_state(&directory.join(STATE_FILE))
    }

    /// Opens the machine of a state file; the rest is looked for next to it.
    pub fn open_state(path: &Path) -> Result<Self> {
        let directory = path.parent().unwrap_or(Path::new(".")).to_owned();
        let file = OpenOptions::new()
            .read(true)
            .write(true)
            .open(path)
            .map_err(Error::io(path))?;
        let length = file.metadata().map_err(Error::io(path))?.len();
        if length != size_of::<State>() as u64 {
            return Err(Error::Version(path.to_owned()));
        }
        let config_path = directory.join(CONFIG_FILE);
        let config = File::open(&config_path).map_err(Error::io(&config_path))?;
        let config =
            serde_json::from_reader(std::io::BufReader::new(config)).map_err(|source| {
                Error::Json {
                    path: config_path,
                    source,
                }
            })?;
        let map = MmapRaw::map_raw(&file).map_err(Error::io(path))?;
        let machine = Self {
            directory,
            config,
            map,
        };
        if machine.state().magic.load(Acquire) != MAGIC {
            return Err(Error::Version(path.to_owned()));
        }
        Ok(machine)
    }

    /// Opens the machine that a driver library belongs to: [`STATE_VARIABLE`], else the state file
    /// next to the object that contains `symbol` (any function of the library).
    ///
    /// # Errors
    /// As [`Machine::open_state`]; a missing file means: no driver loaded.
    pub fn of_library(symbol: *const std::ffi::c_void) -> Result<Self> {
        if let Some(path) = std::env::var_os(STATE_VARIABLE) {
            return Self::open_state(Path::new(&path));
        }
        let object = sys::object_of(symbol).unwrap_or_default();
        Self::open(object.parent().unwrap_or(Path::new(".")))
    }

    /// [`install_libraries`] into this machine's directory.
    pub fn install_libraries(&self, cuda: &Path, nvml: &Path) -> Result<()> {
        install_libraries(&self.directory, cuda, nvml)
    }

    /// The driver directory.
    pub fn directory(&self) -> &Path {
        &self.directory
    }

    /// Where processes write their journals.
    pub fn journal_directory(&self) -> PathBuf {
        self.directory.join(JOURNAL_DIR)
    }

    /// The configuration, UUIDs filled in.
    pub fn config(&self) -> &MachineConfig {
        &self.config
    }

    pub(crate) fn state(&self) -> &State {
        sys::state(&self.map)
    }

    pub(crate) fn scaled(&self, duration_ns: u64) -> u64 {
        (duration_ns as f64 * self.config.time_scale) as u64
    }
}

pub(crate) fn set_mode(path: &Path, mode: u32) -> Result<()> {
    // Not left to the umask of whoever makes the machine.
    fs::set_permissions(path, Permissions::from_mode(mode)).map_err(Error::io(path))
}
