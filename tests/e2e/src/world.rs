//! A simulated machine with its daemon, in a temporary directory.

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::process::Command;

use aegis_common::id::JobId;
use anyhow::{Context, Result, bail};
use simgpu_core::Machine;
use tempfile::TempDir;

use crate::{Artifacts, Daemon, Guard, Setup};

/// Everything a test needs. Dropping it ends every process in it.
pub struct World {
    // Declared first: processes end before their directory goes.
    guard: Guard,
    daemon: Option<Daemon>,
    /// The simulated machine.
    pub machine: Machine,
    /// The built programs.
    pub artifacts: Artifacts,
    setup: Setup,
    directory: TempDir,
}

impl World {
    /// Makes the machine and starts the daemon.
    ///
    /// # Errors
    /// Something is not built, or the daemon did not get ready.
    pub fn start(setup: Setup) -> Result<Self> {
        let mut world = Self::prepare(setup)?;
        world.start_daemon()?;
        Ok(world)
    }

    /// Makes the machine without a daemon.
    ///
    /// # Errors
    /// Something is not built.
    pub fn prepare(setup: Setup) -> Result<Self> {
        let mut artifacts = Artifacts::locate()?;
        // Not below TMPDIR if that is long: a socket path has 107 bytes at most.
        let base = std::env::temp_dir();
        let base = if base.as_os_str().len() > 60 {
            Path::new("/tmp")
        } else {
            &base
        };
        let directory = tempfile::Builder::new()
            .prefix("aegis-")
            .tempdir_in(base)
            .with_context(|| format!("temporary directory in {}", base.display()))?;
        if !setup.rootless {
            use std::os::unix::fs::PermissionsExt;
            // Other users' jobs must reach the driver, the sockets and the programs.
            std::fs::set_permissions(directory.path(), std::fs::Permissions::from_mode(0o755))?;
            artifacts = artifacts.copied_to(&directory.path().join("bin"))?;
        }
        let machine = Machine::create(&directory.path().join("driver"), &setup.machine)
            .context("simulated machine")?;
        machine
            .install_libraries(&artifacts.cuda, &artifacts.nvml)
            .context("simulated driver")?;
        let world = Self {
            guard: Guard::new(directory.path()),
            daemon: None,
            machine,
            artifacts,
            setup,
            directory,
        };
        world.write_config()?;
        Ok(world)
    }

    /// The world's directory.
    #[must_use]
    pub fn path(&self) -> &Path {
        self.directory.path()
    }

    /// The simulated driver's directory: what a job has in `LD_LIBRARY_PATH`.
    #[must_use]
    pub fn driver(&self) -> PathBuf {
        self.path().join("driver")
    }

    /// Journal, records and logs.
    #[must_use]
    pub fn state_dir(&self) -> PathBuf {
        self.path().join("state")
    }

    /// Sockets and lease pages.
    #[must_use]
    pub fn runtime_dir(&self) -> PathBuf {
        self.path().join("aegis")
    }

    /// Where `aegis` connects.
    #[must_use]
    pub fn socket(&self) -> PathBuf {
        self.runtime_dir().join("aegis.sock")
    }

    /// Where the shim connects.
    #[must_use]
    pub fn shim_socket(&self) -> PathBuf {
        self.runtime_dir().join("shim.sock")
    }

    /// The configuration file.
    #[must_use]
    pub fn config_file(&self) -> PathBuf {
        self.path().join("aegis.toml")
    }

    /// A job's directory of records.
    #[must_use]
    pub fn job_dir(&self, job: JobId) -> PathBuf {
        self.state_dir().join("jobs").join(job.to_string())
    }

    /// Where the daemon reads how much tasks wait; there is nothing unless the test writes it.
    #[must_use]
    pub fn pressure_dir(&self) -> PathBuf {
        self.path().join("pressure")
    }

    /// A file for the test's own use.
    #[must_use]
    pub fn file(&self, name: &str) -> PathBuf {
        self.path().join(name)
    }

    /// The processes of the world that run now.
    #[must_use]
    pub fn processes(&self) -> Vec<u32> {
        self.guard.members()
    }

    fn write_config(&self) -> Result<()> {
        let quoted = |path: &Path| format!("{:?}", path.display().to_string());
        let nvml = self.driver().join("libnvidia-ml.so.1");
        let text = self.setup.config(&[
            ("daemon.state_dir", quoted(&self.state_dir())),
            ("daemon.runtime_dir", quoted(&self.runtime_dir())),
            ("telemetry.nvml_library", quoted(&nvml)),
            ("shim.library", quoted(&self.artifacts.shim)),
            // How busy the machine is that runs the tests changes nothing.
            ("telemetry.pressure_dir", quoted(&self.pressure_dir())),
        ]);
        std::fs::write(self.config_file(), text).context("configuration")
    }

    /// Changes the configuration for the next daemon.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn reconfigure(&mut self, change: impl FnOnce(Setup) -> Setup) -> Result<()> {
        self.setup = change(self.setup.clone());
        self.write_config()
    }

    /// `aegisd` with this world's configuration.
    #[must_use]
    pub fn aegisd(&self) -> Command {
        let mut command = Command::new(&self.artifacts.aegisd);
        command
            .current_dir(self.path())
            .arg("--config")
            .arg(self.config_file())
            .env("XDG_RUNTIME_DIR", self.path())
            .env("HOME", self.path())
            .env_remove("LD_LIBRARY_PATH")
            .env_remove("AEGIS_CRASH_AT")
            .envs(
                self.setup
                    .daemon_env
                    .iter()
                    .map(|(name, value)| (name, value)),
            );
        if self.setup.rootless {
            command.arg("--rootless");
        }
        command
    }

    /// Starts the daemon.
    ///
    /// # Errors
    /// It did not get ready.
    pub fn start_daemon(&mut self) -> Result<()> {
        let command = self.aegisd();
        self.daemon = Some(Daemon::start(command, &self.log())?);
        Ok(())
    }

    /// Starts a daemon that may crash at any moment; `false` if it did so before it was ready.
    ///
    /// # Errors
    /// It could not be started, or ended otherwise than by a crash point.
    pub fn start_crashing(&mut self, crash_at: u64) -> Result<bool> {
        let mut command = self.aegisd();
        command.env("AEGIS_CRASH_AT", crash_at.to_string());
        match Daemon::start(command, &self.log()) {
            Ok(daemon) => {
                self.daemon = Some(daemon);
                Ok(true)
            }
            Err(error) if format!("{error:#}").contains(&format!("crash point {crash_at} (")) => {
                Ok(false)
            }
            Err(error) => Err(error),
        }
    }

    /// The daemon.
    ///
    /// # Errors
    /// None was started.
    pub fn daemon(&mut self) -> Result<&mut Daemon> {
        match &mut self.daemon {
            Some(daemon) => Ok(daemon),
            None => bail!("no daemon runs in this world"),
        }
    }

    /// Gives the daemon to the caller, who ends it.
    ///
    /// # Errors
    /// None was started.
    pub fn take_daemon(&mut self) -> Result<Daemon> {
        self.daemon.take().context("no daemon runs in this world")
    }

    /// SIGKILL to the daemon alone, and a new one.
    ///
    /// # Errors
    /// The new one did not get ready.
    pub fn crash_and_restart(&mut self) -> Result<()> {
        self.take_daemon()?.kill()?;
        self.start_daemon()
    }

    /// The daemon's log file.
    #[must_use]
    pub fn log(&self) -> PathBuf {
        self.path().join("aegisd.log")
    }

    /// The command line of the training-like program.
    #[must_use]
    pub fn workload<S: AsRef<OsStr>>(&self, arguments: &[S]) -> Vec<OsString> {
        let program = self.artifacts.workload.as_os_str().to_owned();
        let arguments = arguments.iter().map(|word| word.as_ref().to_owned());
        std::iter::once(program).chain(arguments).collect()
    }

    /// A process outside AEGIS on the same driver.
    #[must_use]
    pub fn outside<S: AsRef<OsStr>>(&self, command: &[S]) -> Command {
        let mut words = command.iter();
        let mut process = Command::new(words.next().map_or(OsStr::new("true"), AsRef::as_ref));
        process
            .args(words)
            .current_dir(self.path())
            .env("LD_LIBRARY_PATH", self.driver())
            .stdin(std::process::Stdio::piped())
            .stdout(std::process::Stdio::piped());
        process
    }

    /// The log of a job's attempt.
    ///
    /// # Errors
    /// The attempt never started.
    pub fn log_of(&self, job: JobId, attempt: u32) -> Result<PathBuf> {
        let view = self.reach(job, "has started that attempt", |view| {
            view.attempts
                .iter()
                .any(|a| a.number == attempt && a.started.is_some())
        })?;
        let attempt = view.attempts.iter().find(|a| a.number == attempt);
        let log = attempt.context("attempt")?.log.clone();
        Ok(PathBuf::from(log.as_os_str()))
    }

    /// Waits for a line of an attempt's log that starts with `prefix`; returns the rest.
    ///
    /// # Errors
    /// It never came.
    pub fn said(&self, job: JobId, attempt: u32, prefix: &str) -> Result<String> {
        crate::wait_line(&self.log_of(job, attempt)?, prefix)
    }
}

impl std::fmt::Debug for World {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("World")
            .field("path", &self.path())
            .finish_non_exhaustive()
    }
}

impl Drop for World {
    fn drop(&mut self) {
        self.guard.end_all();
        if let Some(daemon) = self.daemon.take() {
            // Killed above; this reaps it.
            let _ = daemon.kill();
        }
        if !self.setup.show_log {
            return;
        }
        // Shown by the test runner if the test failed.
        let log = std::fs::read_to_string(self.log()).unwrap_or_default();
        let wanted = |line: &&str| {
            std::env::var_os("AEGIS_E2E_DEBUG").is_some() || !line.contains(" DEBUG ")
        };
        let lines: Vec<&str> = log.lines().filter(wanted).collect();
        let from = lines.len().saturating_sub(60);
        eprintln!(
            "the daemon's log ends with:\n{}",
            lines.get(from..).unwrap_or_default().join("\n")
        );
    }
}
