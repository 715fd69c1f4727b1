//! The daemon's side of the shim socket, as a test wants it to behave.

use std::os::fd::{AsRawFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering::SeqCst;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::Duration;

use aegis_common::abi::lease::{FLAG_HELD, LeaseLine, UNLIMITED};
use aegis_common::abi::ledger::LEDGER_BYTES;
use aegis_common::abi::message::{Answer, Op, Request, Verdict};
use aegis_common::abi::{ABI_MAJOR, ABI_MINOR, MAGIC};
use tempfile::TempDir;

use crate::sys::{self, Lease, Ledger, monotonic_ns};

/// The token of every test job.
pub const TOKEN: &str = "0123456789abcdef0123456789abcdef";

/// How to treat one `grow`.
pub enum Act {
    /// Answer with a verdict, after setting the GPU's limit.
    Answer(Verdict, Option<u64>),
    /// Answer `wait`, and finally what arrives here; a closed channel hangs up.
    Wait(u32, Receiver<(Verdict, Option<u64>)>),
    /// Say nothing until the peer gives up.
    Silence,
    /// Close the connection.
    HangUp,
}

type Policy = Box<dyn FnMut(&Request) -> Act + Send>;

/// What all connections share.
struct Shared {
    lease: Lease,
    ledgers: Mutex<Vec<Arc<Ledger>>>,
    policy: Mutex<Policy>,
    requests: Mutex<Sender<Request>>,
    /// `None`: a hello is never answered.
    hello: Option<Verdict>,
    /// The minor ABI version it speaks.
    minor: u32,
}

/// A daemon for tests: both GPUs are held without limit and growth is denied, until told otherwise.
pub struct FakeDaemon {
    directory: TempDir,
    socket: Arc<OwnedFd>,
    shared: Arc<Shared>,
    requests: Receiver<Request>,
    listener: Option<JoinHandle<()>>,
}

impl FakeDaemon {
    /// Starts one that grants `hello`.
    #[must_use]
    pub fn start() -> Self {
        Self::answering_hello(Some(Verdict::Granted))
    }

    /// Starts one of ABI 1.0, whose ledgers have no traces.
    #[must_use]
    pub fn of_abi_1_0() -> Self {
        Self::new(Some(Verdict::Granted), 0)
    }

    /// Starts one that answers `hello` with `verdict`, or never.
    ///
    /// # Panics
    /// If the system gives no socket or memory.
    #[must_use]
    pub fn answering_hello(verdict: Option<Verdict>) -> Self {
        Self::new(verdict, ABI_MINOR)
    }

    fn new(verdict: Option<Verdict>, minor: u32) -> Self {
        let directory = TempDir::with_prefix("aegis-").expect("a directory");
        let socket = Arc::new(sys::listen(&directory.path().join("s")).expect("a socket"));
        let lease = Lease::new().expect("memory");
        lease.header().magic.store(MAGIC, SeqCst);
        lease.header().abi_major.store(ABI_MAJOR, SeqCst);
        lease.header().abi_minor.store(minor, SeqCst);
        lease.header().heartbeat_ns.store(monotonic_ns(), SeqCst);
        for (gpu, byte) in [0xa0u8, 0xa1].into_iter().enumerate() {
            let line = lease.line(gpu);
            for word in &line.uuid {
                word.store(u64::from_ne_bytes([byte; 8]), SeqCst);
            }
            line.limit.store(UNLIMITED, SeqCst);
            line.flags.store(FLAG_HELD, SeqCst);
        }
        lease.header().lines.store(2, SeqCst);
        let (sender, requests) = channel();
        let shared = Arc::new(Shared {
            lease,
            ledgers: Mutex::default(),
            policy: Mutex::new(Box::new(|_| Act::Answer(Verdict::Denied, None))),
            requests: Mutex::new(sender),
            hello: verdict,
            minor,
        });
        let listener = std::thread::spawn({
            let (socket, shared) = (Arc::clone(&socket), Arc::clone(&shared));
            move || {
                while let Ok(connection) = sys::accept(&socket) {
                    let shared = Arc::clone(&shared);
                    std::thread::spawn(move || shared.serve(&connection));
                }
            }
        });
        Self {
            directory,
            socket,
            shared,
            requests,
            listener: Some(listener),
        }
    }

    /// The socket's path.
    #[must_use]
    pub fn path(&self) -> PathBuf {
        self.directory.path().join("s")
    }

    /// Decides about `grow` from now on.
    ///
    /// # Panics
    /// If a policy panicked.
    pub fn on_grow(&self, policy: impl FnMut(&Request) -> Act + Send + 'static) {
        *self.shared.policy.lock().expect("not poisoned") = Box::new(policy);
    }

    /// A GPU's terms.
    #[must_use]
    pub fn line(&self, gpu: usize) -> &LeaseLine {
        self.shared.lease.line(gpu)
    }

    /// The lease page.
    #[must_use]
    pub fn lease(&self) -> &Lease {
        &self.shared.lease
    }

    /// The ledger of the n-th process that registered.
    ///
    /// # Panics
    /// If there is none.
    #[must_use]
    pub fn ledger(&self, n: usize) -> Arc<Ledger> {
        let ledgers = self.shared.ledgers.lock().expect("not poisoned");
        Arc::clone(ledgers.get(n).expect("a process registered"))
    }

    /// Number of processes that registered.
    ///
    /// # Panics
    /// If a connection panicked.
    #[must_use]
    pub fn registered(&self) -> usize {
        self.shared.ledgers.lock().expect("not poisoned").len()
    }

    /// The next request that is not a `hello`.
    ///
    /// # Panics
    /// If none arrives in 20 seconds.
    #[must_use]
    pub fn next_request(&self) -> Request {
        self.requests
            .recv_timeout(Duration::from_secs(20))
            .expect("a request")
    }

    /// The requests that arrived and were not looked at.
    #[must_use]
    pub fn pending_requests(&self) -> Vec<Request> {
        self.requests.try_iter().collect()
    }

    /// Dies: nobody listens any more, the heartbeat stays as it is.
    ///
    /// # Panics
    /// If the listener panicked.
    pub fn die(&mut self) {
        sys::shut_down(&self.socket);
        // The file of a dead daemon's socket stays.
        if let Some(listener) = self.listener.take() {
            listener.join().expect("the listener ends");
        }
    }
}

impl Drop for FakeDaemon {
    fn drop(&mut self) {
        self.die();
    }
}

impl Shared {
    fn serve(&self, connection: &OwnedFd) {
        let Ok(packet) = sys::receive(connection) else {
            return;
        };
        let Some(request) = Request::from_bytes(&packet) else {
            return;
        };
        assert_eq!(&request.token, TOKEN.as_bytes());
        if request.op == Op::Hello {
            self.hello(connection);
            return;
        }
        let act =
            (request.op == Op::Grow).then(|| (self.policy.lock().expect("not poisoned"))(&request));
        // Decided first: a test that sees the request may rely on its policy's state.
        let _ = self.requests.lock().expect("not poisoned").send(request);
        let Some(act) = act else { return };
        match act {
            Act::Answer(verdict, limit) => self.answer(connection, &request, verdict, 0, limit),
            Act::Wait(milliseconds, decision) => {
                self.answer(connection, &request, Verdict::Wait, milliseconds, None);
                if let Ok((verdict, limit)) = decision.recv() {
                    self.answer(connection, &request, verdict, 0, limit);
                }
            }
            Act::Silence => {
                let _ = sys::receive(connection);
            }
            Act::HangUp => {}
        }
    }

    fn hello(&self, connection: &OwnedFd) {
        let Some(verdict) = self.hello else {
            // Until the peer gives up.
            let _ = sys::receive(connection);
            return;
        };
        let answer = Answer {
            verdict,
            wait_ms: 0,
            limit: 0,
        }
        .to_bytes();
        if verdict != Verdict::Granted {
            let _ = sys::send(connection, &answer, &[]);
            return;
        }
        let ledger = match self.minor {
            0 => Ledger::untraced(),
            _ => Ledger::new(),
        }
        .expect("memory");
        ledger.header().magic.store(MAGIC, SeqCst);
        ledger.header().abi_major.store(ABI_MAJOR, SeqCst);
        ledger.header().abi_minor.store(self.minor, SeqCst);
        ledger.header().size.store(LEDGER_BYTES as u32, SeqCst);
        let lease = self.lease.0.read_only().expect("/proc");
        let descriptors = [ledger.0.fd(), lease.as_raw_fd()];
        self.ledgers
            .lock()
            .expect("not poisoned")
            .push(Arc::new(ledger));
        let _ = sys::send(connection, &answer, &descriptors);
    }

    fn answer(
        &self,
        connection: &OwnedFd,
        request: &Request,
        verdict: Verdict,
        wait_ms: u32,
        limit: Option<u64>,
    ) {
        // The GPUs' identities repeat one byte: 0xa0, 0xa1.
        let line = self.lease.line(usize::from(request.gpu[0] - 0xa0));
        if let Some(limit) = limit {
            line.limit.store(limit, SeqCst);
        }
        let limit = line.limit.load(SeqCst);
        let _ = sys::send(
            connection,
            &Answer {
                verdict,
                wait_ms,
                limit,
            }
            .to_bytes(),
            &[],
        );
    }
}

/// A path at which nobody listens.
#[must_use]
pub fn nobody() -> &'static Path {
    Path::new("/nonexistent/aegis/shim.sock")
}
