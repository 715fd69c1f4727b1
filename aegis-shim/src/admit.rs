//! May a request go to the driver? The fast answer compares with the lease page; the slow one asks
//! the daemon.
#![forbid(unsafe_code)]

use core::sync::atomic::Ordering;

use aegis_common::abi::lease::LeaseLine;
use aegis_common::abi::ledger::{Bypass, GpuLine, LAUNCH_LINES};
use aegis_common::abi::message::Op;
use shim_core::account::{Account, launches};
use shim_core::episode::{self, Refuser};
use shim_core::lease::{Decision, Reply, decide};
use shim_core::sys::syscall;

use crate::gpus;
use crate::session;
use crate::sys::state::State;

/// Grants after which the limit still does not cover the request, before the daemon counts as late:
/// other threads may take what was granted, but not for ever.
const RECHECKS: u32 = 4;

/// The request may not go to the driver.
pub(crate) struct Denied;

/// Reserves `bytes` on a GPU: on success they are in flight.
#[inline]
pub(crate) fn admit(
    state: &'static State,
    gpu: usize,
    line: &GpuLine,
    bytes: u64,
) -> Result<(), Denied> {
    let held = Account(line).reserve(bytes);
    match gpus::lease(state, gpu) {
        // A GPU that the daemon does not manage has no limit; a request for nothing needs no room.
        None => Ok(()),
        Some(lease) if bytes == 0 || gpus::terms(lease).cover(held) => Ok(()),
        Some(lease) => ask(state, gpu, line, lease, bytes),
    }
}

#[cold]
fn ask(
    state: &'static State,
    gpu: usize,
    line: &GpuLine,
    lease: &LeaseLine,
    bytes: u64,
) -> Result<(), Denied> {
    let account = Account(line);
    for round in 0..=RECHECKS {
        // Nothing is in flight while the daemon thinks: other threads' requests must not look
        // larger for it.
        account.withdraw(bytes);
        if state.captures.open() > 0 {
            return pass(state, line, bytes, Bypass::Capture);
        }
        let flags = gpus::terms(lease).flags;
        let reply = if !gpus::terms(lease).holds() {
            Reply::NotAsked
        } else if round == RECHECKS {
            Reply::Late
        } else {
            let held = account.held().saturating_add(bytes);
            session::grow(
                state,
                gpus::uuid(line),
                bytes,
                held,
                try_number(state, gpu, line),
            )
        };
        let heartbeat = state
            .shared
            .terms()
            .map_or(0, |terms| terms.heartbeat_ns.load(Ordering::Relaxed));
        match decide(reply, flags, syscall::monotonic_ns(), heartbeat) {
            Decision::Recheck => {
                if gpus::terms(lease).cover(account.reserve(bytes)) {
                    return Ok(());
                }
            }
            Decision::Pass(bypass) => return pass(state, line, bytes, bypass),
            Decision::Deny => {
                // Another thread's request, since refused, may have made this one look too large.
                if gpus::terms(lease).cover(account.reserve(bytes)) {
                    return Ok(());
                }
                account.withdraw(bytes);
                break;
            }
        }
    }
    refused(state, gpu, line, Refuser::Shim, bytes);
    Err(Denied)
}

fn pass(state: &State, line: &GpuLine, bytes: u64, bypass: Bypass) -> Result<(), Denied> {
    count_bypass(state, bypass);
    Account(line).reserve(bytes);
    Ok(())
}

/// Notes a refusal and tells the daemon when it begins an episode.
#[cold]
pub(crate) fn refused(state: &State, gpu: usize, line: &GpuLine, refuser: Refuser, bytes: u64) {
    let launched = launches((0..LAUNCH_LINES).filter_map(|slot| state.shared.launch_line(slot)));
    let begins = episode::refuse(line, refuser, bytes, syscall::monotonic_ns(), launched);
    if let Some(tries) = state.tries.get(gpu) {
        if begins {
            tries.store(1, Ordering::Relaxed);
        } else {
            tries.fetch_add(1, Ordering::Relaxed);
        }
    }
    if begins {
        session::tell(state, Op::Refused, gpus::uuid(line), bytes);
    }
}

/// 1 for a request outside any episode, 2 for the first one after a refusal, and so on.
fn try_number(state: &State, gpu: usize, line: &GpuLine) -> u32 {
    if !episode::open(line) {
        return 1;
    }
    state
        .tries
        .get(gpu)
        .map_or(1, |tries| tries.load(Ordering::Relaxed).saturating_add(1))
}

/// Counts a call that was passed through unchanged.
#[cold]
pub(crate) fn count_bypass(state: &State, bypass: Bypass) {
    if let Some(count) = state
        .shared
        .header()
        .and_then(|header| header.bypass.get(bypass as usize))
    {
        count.fetch_add(1, Ordering::Relaxed);
    }
}
