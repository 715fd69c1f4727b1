//! The connection to the daemon: one to register, one fresh one per request.
#![forbid(unsafe_code)]

use core::sync::atomic::Ordering;

use aegis_common::abi::lease::LEASE_BINDS_NS;
use aegis_common::abi::message::{
    ANSWER_BYTES, Answer, GROW_DEADLINE_MS, HELLO_ANSWER_MS, HELLO_DEADLINE_MS, Op, Request,
    Verdict, WAIT_MAX_MS,
};
use aegis_common::abi::{GpuUuid, env};
use shim_core::lease::Reply;
use shim_core::sys::syscall::{self, EAGAIN, EINTR, Errno, MAX_DESCRIPTORS};

use crate::sys::environment;
use crate::sys::state::{ACTIVE, Address, FRESH, OFF, STARTING, State, state};

/// How long a full listen queue is tried again, milliseconds.
const CONNECT_DEADLINE_MS: u64 = 5;
/// How long a request waits for a daemon that is being restarted, milliseconds.
const RESTART_PATIENCE_MS: u64 = 1000;
/// Pause between tries to connect, milliseconds.
const CONNECT_PAUSE_MS: i32 = 1;
/// Pause between looks for a daemon that is being restarted, milliseconds.
const RESTART_PAUSE_MS: i32 = 20;
/// Slack on the time in which the daemon promised its final answer, milliseconds.
const WAIT_SLACK_MS: u32 = 500;

/// The state of a process that has a ledger; registers the process at the first call.
#[inline]
pub(crate) fn active() -> Option<&'static State> {
    let state = state()?;
    match state.phase.load(Ordering::Acquire) {
        ACTIVE => Some(state),
        OFF => None,
        _ => start(state),
    }
}

#[cold]
fn start(state: &'static State) -> Option<&'static State> {
    let claim = state
        .phase
        .compare_exchange(FRESH, STARTING, Ordering::AcqRel, Ordering::Acquire);
    if claim.is_ok() {
        let phase = if register(state) { ACTIVE } else { OFF };
        state.phase.store(phase, Ordering::Release);
    }
    // Another thread registers: that takes no longer than a hello and its answer may.
    loop {
        match state.phase.load(Ordering::Acquire) {
            ACTIVE => return Some(state),
            OFF => return None,
            _ => syscall::sleep_ms(1),
        }
    }
}

/// Whether the environment asks for the library at all: then lookups answer with hooks.
pub(crate) fn wanted() -> bool {
    let off = environment::with(env::SHIM_DISABLE, |value| value == b"1").unwrap_or(false);
    !off && environment::with(env::SHIM_SOCKET, |path| !path.is_empty()).unwrap_or(false)
        && environment::with(env::JOB_TOKEN, |token| token.len() == 32).unwrap_or(false)
}

fn register(state: &State) -> bool {
    if !wanted() || !read_environment(&mut state.address.lock()) {
        return false;
    }
    let deadline = now_ms() + HELLO_DEADLINE_MS as u64;
    let Ok(connection) = Connection::open(state, deadline) else {
        return false;
    };
    if !connection.send(state, |token| Request::new(Op::Hello, token)) {
        return false;
    }
    let Some((Some(answer), descriptors)) = connection.receive(now_ms() + HELLO_ANSWER_MS as u64)
    else {
        return false;
    };
    let [ledger, lease, ..] = descriptors;
    let registered = answer.verdict == Verdict::Granted && state.shared.map(ledger, lease);
    for descriptor in descriptors
        .into_iter()
        .filter(|descriptor| *descriptor >= 0)
    {
        syscall::close(descriptor);
    }
    registered
}

fn read_environment(address: &mut Address) -> bool {
    /// `AF_UNIX` as the first two bytes of a socket address.
    const FAMILY: [u8; 2] = 1u16.to_ne_bytes();
    let path = environment::with(env::SHIM_SOCKET, |path| {
        // Room for the terminating NUL.
        if path.len() + FAMILY.len() >= address.socket.len() {
            return false;
        }
        for (to, from) in address.socket.iter_mut().zip(FAMILY.iter().chain(path)) {
            *to = *from;
        }
        address.length = FAMILY.len() + path.len() + 1;
        true
    });
    let token = environment::with(env::JOB_TOKEN, |token| match token.try_into() {
        Ok(token) => {
            address.token = token;
            true
        }
        Err(_) => false,
    });
    path == Some(true) && token == Some(true)
}

/// Asks the daemon for room for `bytes` more and waits for its final answer. No lock is held.
///
/// A daemon that is being restarted is given a moment, and asked again.
pub(crate) fn grow(state: &State, gpu: GpuUuid, bytes: u64, held: u64, try_number: u32) -> Reply {
    let request = |token| Request {
        gpu,
        bytes,
        held,
        try_number,
        ..Request::new(Op::Grow, token)
    };
    let mut gone_since = None;
    loop {
        match grow_once(state, request) {
            Reply::Gone if !heartbeat_is_stale(state) => {
                let now = now_ms();
                if now.saturating_sub(*gone_since.get_or_insert(now)) >= RESTART_PATIENCE_MS {
                    return Reply::Gone;
                }
                syscall::sleep_ms(RESTART_PAUSE_MS);
            }
            reply => return reply,
        }
    }
}

fn grow_once(state: &State, request: impl FnOnce([u8; 32]) -> Request) -> Reply {
    let connection = match Connection::open(state, now_ms() + CONNECT_DEADLINE_MS) {
        Ok(connection) => connection,
        // The queue is full: somebody listens.
        Err(EAGAIN) => return Reply::Late,
        Err(_) => return Reply::Gone,
    };
    if !connection.send(state, request) {
        return Reply::Gone;
    }
    match connection.reply(now_ms() + GROW_DEADLINE_MS as u64) {
        Ok(Answer {
            verdict: Verdict::Wait,
            wait_ms,
            ..
        }) => {
            let wait = wait_ms.min(WAIT_MAX_MS) + WAIT_SLACK_MS;
            match connection.reply(now_ms() + u64::from(wait)) {
                Ok(answer) => Reply::Verdict(answer.verdict),
                Err(reply) => reply,
            }
        }
        Ok(answer) => Reply::Verdict(answer.verdict),
        Err(reply) => reply,
    }
}

/// Tells the daemon something that needs no answer. Lost if the daemon is not there: the ledger
/// has it too.
pub(crate) fn tell(state: &State, op: Op, gpu: GpuUuid, bytes: u64) {
    if let Ok(connection) = Connection::open(state, now_ms() + CONNECT_DEADLINE_MS) {
        connection.send(state, |token| Request {
            gpu,
            bytes,
            ..Request::new(op, token)
        });
    }
}

fn heartbeat_is_stale(state: &State) -> bool {
    state.shared.terms().is_none_or(|terms| {
        let heartbeat = terms.heartbeat_ns.load(Ordering::Relaxed);
        let age = syscall::monotonic_ns().saturating_sub(heartbeat);
        age > LEASE_BINDS_NS
    })
}

fn now_ms() -> u64 {
    syscall::monotonic_ns() / 1_000_000
}

/// A connection, closed when dropped.
struct Connection(i32);

impl Drop for Connection {
    fn drop(&mut self) {
        syscall::close(self.0);
    }
}

impl Connection {
    fn open(state: &State, deadline_ms: u64) -> Result<Self, Errno> {
        const AF_UNIX: i32 = 1;
        const SOCK_SEQPACKET: i32 = 5;
        const SOCK_CLOEXEC: i32 = 0o2_000_000;
        const SOCK_NONBLOCK: i32 = 0o4_000;
        /// Descriptors below belong to the application's standard streams, even while closed.
        const FIRST_OWN: i32 = 3;

        let mut fd = syscall::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK)?;
        if fd < FIRST_OWN {
            let raised = syscall::duplicate_above(fd, FIRST_OWN);
            syscall::close(fd);
            fd = raised?;
        }
        let connection = Self(fd);
        loop {
            let (socket, length) = {
                let address = state.address.lock();
                (address.socket, address.length)
            };
            match syscall::connect(fd, socket.get(..length).unwrap_or(&[])) {
                Ok(()) => return Ok(connection),
                // A full listen queue; poll cannot wait for room in it.
                Err(EAGAIN) if now_ms() < deadline_ms => syscall::sleep_ms(CONNECT_PAUSE_MS),
                Err(EINTR) => {}
                Err(error) => return Err(error),
            }
        }
    }

    fn send(&self, state: &State, request: impl FnOnce([u8; 32]) -> Request) -> bool {
        let token = state.address.lock().token;
        let packet = request(token).to_bytes();
        loop {
            match syscall::send(self.0, &packet) {
                Ok(sent) => return sent == packet.len(),
                Err(EINTR) => {}
                Err(_) => return false,
            }
        }
    }

    /// Waits for an answer without descriptors.
    fn reply(&self, deadline_ms: u64) -> Result<Answer, Reply> {
        match self.receive(deadline_ms) {
            None => Err(Reply::Late),
            Some((Some(answer), _)) => Ok(answer),
            Some((None, _)) => Err(Reply::Gone),
        }
    }

    /// Waits for a packet. `None`: the deadline passed. An answer of `None`: the connection ended
    /// or the packet is not an answer.
    fn receive(&self, deadline_ms: u64) -> Option<(Option<Answer>, [i32; MAX_DESCRIPTORS])> {
        loop {
            let left = deadline_ms.saturating_sub(now_ms()).min(i32::MAX as u64) as i32;
            match syscall::poll_readable(self.0, left) {
                Ok(true) => {}
                Ok(false) => return None,
                Err(EINTR) => continue,
                Err(_) => return Some((None, [-1; MAX_DESCRIPTORS])),
            }
            let mut packet = [0; ANSWER_BYTES];
            match syscall::receive(self.0, &mut packet) {
                Ok((length, descriptors)) => {
                    let answer = packet.get(..length).and_then(Answer::from_bytes);
                    return Some((answer, descriptors));
                }
                Err(EINTR | EAGAIN) => {}
                Err(_) => return Some((None, [-1; MAX_DESCRIPTORS])),
            }
        }
    }
}
