//! Handles and matrix layouts: numbers whose state is kept here.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

/// `cublasStatus_t`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Status(pub(crate) i32);

impl Status {
    pub(crate) const NOT_INITIALIZED: Self = Self(1);
    pub(crate) const INVALID_VALUE: Self = Self(7);
    pub(crate) const EXECUTION_FAILED: Self = Self(13);
    pub(crate) const NOT_SUPPORTED: Self = Self(15);
}

pub(crate) type Result<T> = std::result::Result<T, Status>;

/// What a handle remembers.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Context {
    pub(crate) stream: u64,
    pub(crate) pointer_mode: i32,
    pub(crate) math_mode: i32,
}

/// `cublasLtMatrixLayout_t`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Layout {
    pub(crate) rows: u64,
    pub(crate) columns: u64,
    pub(crate) batches: u64,
}

/// Things by number; numbers are not given out twice.
#[derive(Debug)]
pub(crate) struct Table<T> {
    entries: Mutex<(u64, BTreeMap<u64, T>)>,
}

/// Handles are addresses in the real library: none is NULL.
const FIRST: u64 = 0x1000;

impl<T: Copy> Table<T> {
    pub(crate) const fn new() -> Self {
        Self {
            entries: Mutex::new((FIRST, BTreeMap::new())),
        }
    }

    pub(crate) fn add(&self, entry: T) -> u64 {
        let mut table = self.entries.lock().unwrap_or_else(PoisonError::into_inner);
        let handle = table.0;
        table.0 += 1;
        table.1.insert(handle, entry);
        handle
    }

    pub(crate) fn remove(&self, handle: u64) -> Result<()> {
        let mut table = self.entries.lock().unwrap_or_else(PoisonError::into_inner);
        table
            .1
            .remove(&handle)
            .map(drop)
            .ok_or(Status::INVALID_VALUE)
    }

    /// Changes an entry and returns it.
    pub(crate) fn update(&self, handle: u64, change: impl FnOnce(&mut T)) -> Result<T> {
        let mut table = self.entries.lock().unwrap_or_else(PoisonError::into_inner);
        let entry = table.1.get_mut(&handle).ok_or(Status::NOT_INITIALIZED)?;
        change(entry);
        Ok(*entry)
    }

    pub(crate) fn get(&self, handle: u64) -> Result<T> {
        self.update(handle, |_| ())
    }
}

pub(crate) static CONTEXTS: Table<Context> = Table::new();
pub(crate) static LAYOUTS: Table<Layout> = Table::new();
/// Descriptors and preferences of cuBLASLt, of which nothing is read.
pub(crate) static DESCRIPTIONS: Table<()> = Table::new();
