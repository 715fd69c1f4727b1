//! The daemon process.

use std::fs::OpenOptions;
use std::io::{BufRead, BufReader};
use std::os::fd::AsRawFd;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};

use anyhow::{Context, Result, bail};
use rustix::process::Signal;

use crate::processes::kill;

/// A running daemon.
#[derive(Debug)]
pub struct Daemon {
    child: Child,
    log: PathBuf,
}

impl Daemon {
    /// Starts `command` (an `aegisd`) and waits until it says that clients can connect. Its log is
    /// appended to `log`.
    ///
    /// # Errors
    /// It ended before; the message has its log.
    pub fn start(mut command: Command, log: &Path) -> Result<Self> {
        let file = OpenOptions::new()
            .create(true)
            .append(true)
            .open(log)
            .with_context(|| log.display().to_string())?;
        let (reader, writer) = std::io::pipe().context("pipe")?;
        // Inherited under its own number; the copy here is closed below.
        rustix::io::fcntl_setfd(&writer, rustix::io::FdFlags::empty()).context("fcntl")?;
        command
            .arg("--ready-fd")
            .arg(writer.as_raw_fd().to_string())
            .stdin(Stdio::null())
            .stdout(file.try_clone().context("log")?)
            .stderr(file)
            // A terminal's interrupt is for the test, which then ends the daemon itself.
            .process_group(0);
        let mut child = command
            .spawn()
            .with_context(|| format!("starting {}", command.get_program().display()))?;
        drop(writer);
        let mut line = String::new();
        BufReader::new(reader)
            .read_line(&mut line)
            .context("reading from --ready-fd")?;
        if line != "READY\n" {
            kill(child.id(), Signal::KILL);
            let status = child.wait().context("waiting for aegisd")?;
            let text = std::fs::read_to_string(log).unwrap_or_default();
            bail!("aegisd did not get ready ({status}); its log:\n{text}");
        }
        Ok(Self {
            child,
            log: log.to_owned(),
        })
    }

    /// Its pid.
    #[must_use]
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Everything it logged so far, former daemons of the same world included.
    #[must_use]
    pub fn log(&self) -> String {
        std::fs::read_to_string(&self.log).unwrap_or_default()
    }

    /// SIGKILL, and waits for its end.
    ///
    /// # Errors
    /// It cannot be waited for.
    pub fn kill(mut self) -> Result<ExitStatus> {
        kill(self.child.id(), Signal::KILL);
        self.child.wait().context("waiting for aegisd")
    }

    /// SIGTERM, and waits for its end.
    ///
    /// # Errors
    /// It cannot be waited for.
    pub fn terminate(mut self) -> Result<ExitStatus> {
        kill(self.child.id(), Signal::TERM);
        self.child.wait().context("waiting for aegisd")
    }

    /// Waits until it ends by itself.
    ///
    /// # Errors
    /// It cannot be waited for.
    pub fn ended(mut self) -> Result<ExitStatus> {
        self.child.wait().context("waiting for aegisd")
    }

    /// Whether it has ended by itself.
    ///
    /// # Errors
    /// It cannot be asked.
    pub fn try_ended(&mut self) -> Result<Option<ExitStatus>> {
        self.child.try_wait().context("waiting for aegisd")
    }
}
