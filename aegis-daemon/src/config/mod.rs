//! The configuration file.
//!
//! Every quantity is written as a string with its unit: sizes `"5GiB"`, durations `"10s"`, shares
//! `"55%"`. One list of keys (`schema`) serves reading, checking and documenting, so a key cannot
//! be read without being documented, nor documented without being read.

mod error;
mod file;
mod names;
pub mod paths;
mod print;
pub mod quantity;
mod reader;
mod schema;
mod setting;
pub mod signal;
#[cfg(test)]
mod tests;

use std::path::{Path, PathBuf};
use std::time::Duration;

use aegis_common::policy::Policy;

pub use error::{ConfigError, Problem};
pub use names::Admins;
pub(crate) use schema::SUSPEND_GRACE_MAX;

/// The daemon's whole configuration, checked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Config {
    /// One user's daemon, without privileges.
    pub rootless: bool,
    /// `[daemon]`.
    pub daemon: Daemon,
    /// `[scheduler]`: every threshold of the scheduler core.
    pub scheduler: Policy,
    /// `[jobs]`.
    pub jobs: Jobs,
    /// `[telemetry]`.
    pub telemetry: Telemetry,
    /// `[shim]`.
    pub shim: Shim,
}

/// `[daemon]`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Daemon {
    /// Journal, job records and logs. Absolute.
    pub state_dir: PathBuf,
    /// Sockets, ledgers and lease pages; on tmpfs. Absolute.
    pub runtime_dir: PathBuf,
    /// Where `aegis` connects; at most [`paths::SOCKET_PATH_MAX`] bytes.
    pub socket: PathBuf,
    /// Where the shim connects; at most [`paths::SOCKET_PATH_MAX`] bytes.
    pub shim_socket: PathBuf,
    /// Who may act on everybody's jobs, besides root.
    pub admins: Admins,
    /// Least severe messages that are logged.
    pub log_level: LogLevel,
}

/// How much the daemon logs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LogLevel {
    /// Only what needs repair.
    Error,
    /// What an administrator should look at.
    Warn,
    /// Each job's life.
    Info,
    /// Each decision.
    Debug,
    /// Each message.
    Trace,
}

impl LogLevel {
    /// The name as in the file and in `tracing`'s filters.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Error => "error",
            Self::Warn => "warn",
            Self::Info => "info",
            Self::Debug => "debug",
            Self::Trace => "trace",
        }
    }
}

/// `[jobs]`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Jobs {
    /// `--requeue` where a submission says neither `--requeue` nor `--no-requeue`.
    pub default_requeue: bool,
    /// `--retries` where a submission gives none.
    pub default_retries: u32,
    /// `--time-limit` where a submission gives none; `None`: unlimited.
    pub default_time_limit: Option<Duration>,
    /// Longest `--time-limit` accepted; `None`: any, and unlimited jobs too.
    pub max_time_limit: Option<Duration>,
    /// Between SIGTERM and SIGKILL.
    pub grace: Duration,
    /// Time to save and exit after `--on-suspend`'s signal where the submission gives none.
    pub suspend_grace: Duration,
    /// A GPU that a running job holds without using it is reported after this long.
    pub idle_after: Duration,
}

/// `[telemetry]`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Telemetry {
    /// NVML's library; `None`: `libnvidia-ml.so.1` by the dynamic linker's search.
    pub nvml_library: Option<PathBuf>,
    /// Between two readings of memory in use and utilisation.
    pub sample_interval: Duration,
    /// Between two GPM samples.
    pub gpm_interval: Duration,
    /// Between two readings of the process lists.
    pub process_interval: Duration,
    /// Where the kernel tells how much tasks wait for CPUs and disks.
    pub pressure_dir: PathBuf,
}

/// `[shim]`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Shim {
    /// The shim's library; `None`: looked for by [`paths::find_shim`].
    pub library: Option<PathBuf>,
}

impl Config {
    /// The defaults of a root or a rootless daemon.
    ///
    /// # Errors
    /// Rootless: [`ConfigError::Paths`] if the user's directories cannot be determined or a socket
    /// path would be too long.
    pub fn default_for(rootless: bool) -> Result<Self, ConfigError> {
        let paths = paths::Paths::for_mode(rootless)?;
        Ok(Self::with_paths(rootless, &paths))
    }

    /// The defaults over given directories.
    #[must_use]
    pub fn with_paths(rootless: bool, paths: &paths::Paths) -> Self {
        Self {
            rootless,
            daemon: Daemon {
                state_dir: paths.state_dir.clone(),
                runtime_dir: paths.runtime_dir.clone(),
                socket: paths.runtime_dir.join(paths::SOCKET_NAME),
                shim_socket: paths.runtime_dir.join(paths::SHIM_SOCKET_NAME),
                admins: Admins::default(),
                log_level: LogLevel::Info,
            },
            scheduler: Policy::default(),
            jobs: Jobs {
                default_requeue: true,
                default_retries: 3,
                default_time_limit: None,
                max_time_limit: None,
                grace: Duration::from_secs(10),
                suspend_grace: Duration::from_secs(60),
                idle_after: Duration::from_secs(600),
            },
            telemetry: Telemetry {
                nvml_library: None,
                sample_interval: Duration::from_millis(200),
                gpm_interval: Duration::from_millis(500),
                process_interval: Duration::from_secs(1),
                pressure_dir: "/proc/pressure".into(),
            },
            shim: Shim { library: None },
        }
    }

    /// Reads and checks the file at `path`; root or rootless by the effective uid.
    ///
    /// # Errors
    /// [`ConfigError`] naming the file and, for each problem, line, key, value and what is allowed.
    pub fn load(path: &Path) -> Result<Self, ConfigError> {
        Self::load_for(path, !rustix::process::geteuid().is_root())
    }

    /// Reads and checks the file at `path` for a root or a rootless daemon.
    ///
    /// # Errors
    /// As [`Config::load`].
    pub fn load_for(path: &Path, rootless: bool) -> Result<Self, ConfigError> {
        let text = file::read(path)?;
        Self::parse(&text, path, Self::default_for(rootless)?)
    }

    /// Reads `explicit` if given (it must exist), else the mode's usual file if there is one, else
    /// takes the defaults. Returns the file that was read.
    ///
    /// # Errors
    /// As [`Config::load`].
    pub fn find(
        explicit: Option<&Path>,
        rootless: bool,
    ) -> Result<(Self, Option<PathBuf>), ConfigError> {
        if let Some(path) = explicit {
            return Ok((Self::load_for(path, rootless)?, Some(path.to_owned())));
        }
        let usual = paths::Paths::for_mode(rootless)?.config_file;
        match Self::load_for(&usual, rootless) {
            Ok(config) => Ok((config, Some(usual))),
            Err(ConfigError::Read { source, .. })
                if source.kind() == std::io::ErrorKind::NotFound =>
            {
                Ok((Self::default_for(rootless)?, None))
            }
            Err(error) => Err(error),
        }
    }

    /// Checks `text` over `defaults`; `path` is for messages.
    ///
    /// # Errors
    /// [`ConfigError::Invalid`] with every problem found.
    pub fn parse(text: &str, path: &Path, defaults: Self) -> Result<Self, ConfigError> {
        reader::read(text, defaults).map_err(|problems| ConfigError::Invalid {
            path: path.to_owned(),
            problems,
        })
    }

    /// A complete commented file with this configuration's values, every key commented out.
    ///
    /// Commented out, so that a key nobody touched follows the defaults of later versions.
    #[must_use]
    pub fn documented(&self) -> String {
        print::document(self)
    }
}
