//! What every allocation and every free has in common.
#![forbid(unsafe_code)]

use aegis_common::abi::ledger::{Bypass, Kind};
use shim_core::account::Account;
use shim_core::blocks::Block;
use shim_core::episode::{self, Refuser};

use crate::admit::{admit, count_bypass, refused};
use crate::gpus::{self, Place};
use crate::hooks::driver::{OUT_OF_MEMORY, SUCCESS};
use crate::session::active;
use crate::sys::state::State;
use crate::sys::thread::Depth;

/// An allocation's size and where to keep it.
pub(crate) struct Request {
    /// What kind of memory.
    pub(crate) kind: Kind,
    /// Bytes; `None` if they cannot be told, then the call passes unaccounted.
    pub(crate) bytes: Option<u64>,
}

/// Runs an allocation: reserve, call the driver, enter what it gave.
///
/// `place` tells the GPU, `call` is the driver's call, and `result` reads its outputs: the address
/// or handle, and the bytes that it really takes.
#[inline]
pub(crate) fn allocate(
    request: &Request,
    place: impl FnOnce(&State) -> Option<Place>,
    call: impl FnOnce() -> i32,
    result: impl FnOnce() -> (u64, u64),
) -> i32 {
    let enter = |state: &'static State, address, block| match state.blocks.enter(address, block) {
        Ok(earlier) => {
            if let Some(earlier) = earlier {
                released(state, &earlier);
            }
            true
        }
        Err(_) => false,
    };
    allocate_into(request, place, call, result, enter)
}

/// As [`allocate`], with the book to enter the block in; `enter` answers whether there was room.
#[inline]
pub(crate) fn allocate_into(
    request: &Request,
    place: impl FnOnce(&State) -> Option<Place>,
    call: impl FnOnce() -> i32,
    result: impl FnOnce() -> (u64, u64),
    enter: impl FnOnce(&'static State, u64, Block) -> bool,
) -> i32 {
    let Some(_depth) = Depth::enter() else {
        return call();
    };
    let Some(state) = active() else { return call() };
    let Some(bytes) = request.bytes else {
        count_bypass(state, Bypass::UnknownSize);
        return call();
    };
    let found = place(state).and_then(|place| Some((place, state.shared.gpu(place.gpu)?)));
    let Some((place, line)) = found else {
        count_bypass(state, Bypass::UnknownDevice);
        return call();
    };
    if admit(state, place.gpu, line, bytes).is_err() {
        return OUT_OF_MEMORY;
    }
    let account = Account(line);
    let status = call();
    if status != SUCCESS {
        account.withdraw(bytes);
        if status == OUT_OF_MEMORY {
            refused(state, place.gpu, line, Refuser::Driver, bytes);
        }
        return status;
    }
    let (address, taken) = result();
    if enter(
        state,
        address,
        Block::new(taken, place.gpu, request.kind, place.context),
    ) {
        account.commit(request.kind, bytes, taken);
    } else {
        account.withdraw(bytes);
        count_bypass(state, Bypass::TableFull);
    }
    episode::succeed(line, bytes);
    status
}

/// Runs a free: take the block out, call the driver, account.
#[inline]
pub(crate) fn free(address: u64, call: impl FnOnce() -> i32) -> i32 {
    let Some(_depth) = Depth::enter() else {
        return call();
    };
    let Some(state) = active() else { return call() };
    let block = state.blocks.take(address);
    let status = call();
    match block {
        Some(block) if status == SUCCESS => released(state, &block),
        Some(block) if state.blocks.enter(address, block).is_err() => {
            released(state, &block);
            count_bypass(state, Bypass::TableFull);
        }
        Some(_) => {}
        // A free of null is no free.
        None if address != 0 => count_bypass(state, Bypass::UnknownFree),
        None => {}
    }
    status
}

/// Takes a block off its GPU's account.
pub(crate) fn released(state: &State, block: &Block) {
    if let Some(line) = state.shared.gpu(block.gpu()) {
        Account(line).release(block.kind_index(), block.bytes);
    }
}

/// The blocks of a context that ended are gone.
pub(crate) fn context_ended(state: &State, context: u64) {
    state.contexts.forget(context);
    state
        .blocks
        .drop_context(context, |block| released(state, block));
}

/// The place of most allocations: the current context.
pub(crate) fn here(state: &State) -> Option<Place> {
    gpus::current(state)
}
