//! The C client under a test's control.

use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use crate::build::built;
use crate::daemon::TOKEN;

/// How the client finds the driver's functions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// `dlsym`, symbol by symbol.
    Dlsym,
    /// `cuGetProcAddress` before CUDA 12, looked up through itself.
    Gpa11,
    /// `cuGetProcAddress_v2`, looked up through itself.
    Gpa12,
    /// Linked to the driver.
    Direct,
}

/// All ways.
pub const WAYS: [Way; 4] = [Way::Dlsym, Way::Gpa11, Way::Gpa12, Way::Direct];

/// A client to be started.
#[derive(Debug)]
pub struct Setup {
    command: Command,
}

impl Setup {
    /// A client without the shim.
    #[must_use]
    pub fn bare(way: Way) -> Self {
        let (program, argument) = match way {
            Way::Dlsym => ("client", "dlsym"),
            Way::Gpa11 => ("client", "gpa11"),
            Way::Gpa12 => ("client", "gpa12"),
            Way::Direct => ("client_direct", "direct"),
        };
        let directory = &built().directory;
        let mut command = Command::new(directory.join(program));
        command
            .arg(argument)
            .env("LD_LIBRARY_PATH", directory)
            .env_remove("LD_PRELOAD")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped());
        Self { command }
    }

    /// A client with the shim and its two variables.
    #[must_use]
    pub fn with_shim(way: Way, socket: &Path) -> Self {
        Self::bare(way)
            .env("LD_PRELOAD", &built().shim)
            .env("AEGIS_SHIM_SOCKET", socket)
            .env("AEGIS_JOB_TOKEN", TOKEN)
    }

    /// Sets a variable.
    #[must_use]
    pub fn env(mut self, name: &str, value: impl AsRef<std::ffi::OsStr>) -> Self {
        self.command.env(name, value);
        self
    }

    /// Starts the client.
    ///
    /// # Panics
    /// If it cannot be started.
    #[must_use]
    pub fn start(mut self) -> Client {
        let mut child = self.command.spawn().expect("the client starts");
        let input = child.stdin.take();
        let output = BufReader::new(child.stdout.take().expect("a pipe"));
        Client {
            child,
            input,
            output,
        }
    }
}

/// What the driver call answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Outcome {
    /// `CUresult`, or -1 if the call changed `errno`.
    pub status: i32,
    /// First output, 0xdead if untouched.
    pub out: u64,
    /// Second output, 0xdead if untouched.
    pub out2: u64,
}

/// A running client.
#[derive(Debug)]
pub struct Client {
    child: Child,
    input: Option<ChildStdin>,
    output: BufReader<ChildStdout>,
}

impl Client {
    /// Its process id.
    #[must_use]
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Gives a command without waiting for the answer.
    ///
    /// # Panics
    /// If the client is gone.
    pub fn tell(&mut self, command: &str) {
        let input = self.input.as_mut().expect("open");
        writeln!(input, "{command}").expect("the client lives");
    }

    /// The next line of output.
    ///
    /// # Panics
    /// If the client is gone.
    pub fn line(&mut self) -> String {
        let mut line = String::new();
        self.output.read_line(&mut line).expect("the client lives");
        assert!(
            !line.is_empty(),
            "the client ended: {:?}",
            self.child.wait()
        );
        line.trim_end().to_owned()
    }

    /// The next line of output as an outcome.
    ///
    /// # Panics
    /// If it is not one.
    pub fn outcome(&mut self) -> Outcome {
        let line = self.line();
        let parse = || {
            let mut words = line.split(' ');
            let hex = |word: Option<&str>| {
                let word = word?;
                u64::from_str_radix(word.strip_prefix("0x").unwrap_or(word), 16).ok()
            };
            let status = words.next()?.parse().ok()?;
            Some(Outcome {
                status,
                out: hex(words.next())?,
                out2: hex(words.next())?,
            })
        };
        parse().unwrap_or_else(|| panic!("not an outcome: {line:?}"))
    }

    /// Gives a command and waits for its outcome.
    pub fn run(&mut self, command: &str) -> Outcome {
        self.tell(command);
        self.outcome()
    }

    /// As [`Client::run`], for a command that must succeed; returns the first output.
    ///
    /// # Panics
    /// If it does not succeed.
    pub fn ok(&mut self, command: &str) -> u64 {
        let outcome = self.run(command);
        assert_eq!(outcome.status, 0, "{command}");
        outcome.out
    }

    /// Initialises the driver and makes the context of GPU 0 current.
    pub fn begin(&mut self) {
        self.ok("init");
        self.ok("context 0");
    }

    /// Ends the client's input and waits for its end.
    ///
    /// # Panics
    /// If it does not exit with 0.
    pub fn end(mut self) {
        self.input = None;
        let status = self.child.wait().expect("the client ends");
        assert!(status.success(), "{status}");
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        self.input = None;
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
