//! A client of the daemon's socket that can be timed.

use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;

use aegis_common::bytes::ByteString;
use aegis_common::id::JobId;
use aegis_common::job::Resources;
use aegis_common::wire::{JobView, Launch, MAX_FRAME, PROTOCOL, Request, Response, Submit};
use anyhow::{Context, Result, bail};

/// A greeted connection.
pub(crate) struct Client(UnixStream);

impl Client {
    /// Connects and greets.
    ///
    /// # Errors
    /// Nobody is there, or somebody else.
    pub(crate) fn connect(socket: &Path) -> Result<Self> {
        let stream =
            UnixStream::connect(socket).with_context(|| format!("{}", socket.display()))?;
        let mut client = Self(stream);
        let hello = Request::Hello {
            protocol: PROTOCOL,
            version: env!("CARGO_PKG_VERSION").to_owned(),
        };
        match client.ask(&hello)? {
            Response::Hello { .. } => Ok(client),
            other => bail!("hello was answered with {other:?}"),
        }
    }

    /// Sends a request and reads its answer; a refusal is an error.
    ///
    /// # Errors
    /// The connection broke or the daemon refused.
    pub(crate) fn ask(&mut self, request: &Request) -> Result<Response> {
        self.ask_encoded(&serde_json::to_vec(request)?)
    }

    /// The same with a request that was encoded before, so that encoding is not timed.
    ///
    /// # Errors
    /// As [`Client::ask`].
    pub(crate) fn ask_encoded(&mut self, json: &[u8]) -> Result<Response> {
        let mut frame = u32::try_from(json.len())
            .context("length")?
            .to_be_bytes()
            .to_vec();
        frame.extend_from_slice(json);
        self.0.write_all(&frame)?;
        let mut length = [0; 4];
        self.0.read_exact(&mut length)?;
        let length = usize::try_from(u32::from_be_bytes(length))?;
        if length > MAX_FRAME {
            bail!("an answer of {length} bytes");
        }
        let mut answer = vec![0; length];
        self.0.read_exact(&mut answer)?;
        match serde_json::from_slice(&answer)? {
            Response::Failed(failure) => bail!("{}", failure.message),
            response => Ok(response),
        }
    }

    /// Submits; the job as the daemon answered.
    ///
    /// # Errors
    /// As [`Client::ask`].
    pub(crate) fn submit(&mut self, submit: Submit) -> Result<JobView> {
        match self.ask(&Request::Submit(Box::new(submit)))? {
            Response::Submitted { job, .. } => Ok(*job),
            other => bail!("submit was answered with {other:?}"),
        }
    }

    /// Waits for a job's end.
    ///
    /// # Errors
    /// As [`Client::ask`].
    pub(crate) fn wait(&mut self, job: JobId) -> Result<JobView> {
        match self.ask(&Request::Wait { jobs: vec![job] })? {
            Response::Jobs { jobs } => jobs.into_iter().next().context("no job in the answer"),
            other => bail!("wait was answered with {other:?}"),
        }
    }

    /// Ends a job.
    ///
    /// # Errors
    /// As [`Client::ask`].
    pub(crate) fn cancel(&mut self, job: JobId) -> Result<()> {
        self.ask(&Request::Cancel { jobs: vec![job] }).map(drop)
    }
}

/// One GPU, nothing declared.
pub(crate) const fn resources() -> Resources {
    Resources {
        gpus: 1,
        gpu_mem: None,
        priority: 0,
        exclusive: false,
        requeue: true,
        retries: 3,
        time_limit_s: None,
        on_suspend: None,
    }
}

/// A submission with an environment of the usual size.
pub(crate) fn submission(resources: Resources, argv: &[String], cwd: &Path) -> Submit {
    Submit {
        on_suspend: None,
        resources,
        requeue: None,
        retries: None,
        name: None,
        launch: Launch {
            argv: argv
                .iter()
                .map(|word| ByteString::from(word.as_str()))
                .collect(),
            cwd: ByteString::from(cwd.as_os_str().to_owned()),
            env: environment(),
            umask: 0o022,
        },
    }
}

/// 40 variables, 2.3 KB: what a login shell had where pueue's environment in its state file was
/// measured.
fn environment() -> Vec<ByteString> {
    let filler = "/usr/share/of/the/usual/length/of/a/value";
    let mut variables = vec![ByteString::from(
        "PATH=/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin",
    )];
    variables.extend((1..40).map(|number| {
        let text = format!("A_USUAL_VARIABLE_{number}={filler}");
        ByteString::from(text.as_str())
    }));
    variables
}
