//! Waiting for things to happen, with a deadline that only a defect reaches.

use std::fs::File;
use std::io::Read;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::inotify;

/// Nothing that is waited for takes this long, even on a busy machine of two cores.
pub const DEADLINE: Duration = Duration::from_secs(90);

/// Asks again and again until `condition` gives something: for what no event tells.
///
/// # Errors
/// Never came true; `what` is in the message.
pub fn until<T>(what: &str, mut condition: impl FnMut() -> Result<Option<T>>) -> Result<T> {
    let start = Instant::now();
    loop {
        if let Some(value) = condition()? {
            return Ok(value);
        }
        if start.elapsed() > DEADLINE {
            bail!("waited {} s in vain: {what}", DEADLINE.as_secs());
        }
        std::thread::sleep(Duration::from_millis(15));
    }
}

/// Lines of a file as they are appended, the file perhaps not there yet.
#[derive(Debug)]
pub struct Lines {
    path: PathBuf,
    file: Option<File>,
    inotify: OwnedFd,
    rest: Vec<u8>,
    /// Every complete line so far.
    pub seen: Vec<String>,
}

impl Lines {
    /// Watches `path`, whose directory exists.
    ///
    /// # Errors
    /// inotify refuses.
    pub fn follow(path: &Path) -> Result<Self> {
        let inotify = inotify::init(inotify::CreateFlags::CLOEXEC | inotify::CreateFlags::NONBLOCK)
            .context("inotify")?;
        let directory = path.parent().unwrap_or(Path::new("/"));
        inotify::add_watch(
            &inotify,
            directory,
            inotify::WatchFlags::MODIFY
                | inotify::WatchFlags::CREATE
                | inotify::WatchFlags::MOVED_TO,
        )
        .with_context(|| format!("watching {}", directory.display()))?;
        Ok(Self {
            path: path.to_owned(),
            file: None,
            inotify,
            rest: Vec::new(),
            seen: Vec::new(),
        })
    }

    /// The next line for which `wanted` says so, of those from number `from` on; returns its text.
    ///
    /// # Errors
    /// It never came.
    pub fn wait(&mut self, what: &str, wanted: impl Fn(&str) -> bool) -> Result<String> {
        let start = Instant::now();
        let mut looked = 0;
        loop {
            self.read()?;
            if let Some(found) = self.seen.iter().skip(looked).find(|line| wanted(line)) {
                return Ok(found.clone());
            }
            looked = self.seen.len();
            let Some(left) = DEADLINE.checked_sub(start.elapsed()) else {
                bail!(
                    "no line in {} says {what}; it has:\n{}",
                    self.path.display(),
                    self.seen.join("\n")
                );
            };
            self.sleep(left)?;
        }
    }

    fn sleep(&self, most: Duration) -> Result<()> {
        let timeout = Timespec::try_from(most.min(Duration::from_secs(1))).context("timeout")?;
        let mut fds = [PollFd::new(&self.inotify, PollFlags::IN)];
        match poll(&mut fds, Some(&timeout)) {
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error).context("poll"),
        }
        // The events only say that it is worth looking again.
        let mut buffer = [0; 4096];
        while rustix::io::read(&self.inotify, &mut buffer).is_ok_and(|count| count > 0) {}
        Ok(())
    }

    fn read(&mut self) -> Result<()> {
        if self.file.is_none() {
            match File::open(&self.path) {
                Ok(file) => self.file = Some(file),
                Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(()),
                Err(error) => return Err(error).with_context(|| self.path.display().to_string()),
            }
        }
        if let Some(file) = &mut self.file {
            file.read_to_end(&mut self.rest)?;
        }
        while let Some(end) = self.rest.iter().position(|byte| *byte == b'\n') {
            let line: Vec<u8> = self.rest.drain(..=end).collect();
            let text = String::from_utf8_lossy(&line);
            self.seen.push(text.trim_end_matches('\n').to_owned());
        }
        Ok(())
    }
}

/// Waits for a line of a file that starts with `prefix`; returns the rest of it.
///
/// # Errors
/// It never came.
pub fn wait_line(path: &Path, prefix: &str) -> Result<String> {
    let line = Lines::follow(path)?.wait(prefix, |line| line.starts_with(prefix))?;
    Ok(line
        .strip_prefix(prefix)
        .unwrap_or_default()
        .trim()
        .to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    #[test]
    fn lines_are_seen_whether_written_before_or_after() -> Result<()> {
        let dir = tempfile::tempdir()?;
        let path = dir.path().join("log");
        let mut lines = Lines::follow(&path)?;
        let writer = std::thread::spawn({
            let path = path.clone();
            move || {
                let mut file = File::create(path).unwrap();
                file.write_all(b"one\ntw").unwrap();
                file.write_all(b"o\nREADY 7\n").unwrap();
            }
        });
        assert_eq!(lines.wait("two", |line| line == "two")?, "two");
        writer.join().unwrap();
        assert_eq!(wait_line(&path, "READY")?, "7");
        Ok(())
    }
}
