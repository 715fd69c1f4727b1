//! Which streams are being captured into a graph, anywhere in the process.
#![forbid(unsafe_code)]

use core::sync::atomic::{AtomicU32, Ordering};

use crate::sys::spin::SpinLock;

/// Streams told apart. More at once are counted without their names.
const NAMED: usize = 32;

#[derive(Clone, Copy)]
struct Open {
    stream: u64,
    count: u32,
}

/// The open captures. Zeroed memory: none.
pub struct Captures {
    total: AtomicU32,
    open: SpinLock<[Open; NAMED]>,
}

impl Default for Captures {
    fn default() -> Self {
        Self::new()
    }
}

impl Captures {
    /// No capture.
    #[must_use]
    pub const fn new() -> Self {
        Self {
            total: AtomicU32::new(0),
            open: SpinLock::new(
                [Open {
                    stream: 0,
                    count: 0,
                }; NAMED],
            ),
        }
    }

    /// Captures open now.
    pub fn open(&self) -> u32 {
        self.total.load(Ordering::Relaxed)
    }

    /// A capture began on `stream`. (The default stream's handle can be captured by several threads
    /// at once.) Returns the captures open now.
    pub fn begin(&self, stream: u64) -> u32 {
        let mut open = self.open.lock();
        let at = open
            .iter()
            .position(|entry| entry.count > 0 && entry.stream == stream)
            .or_else(|| open.iter().position(|entry| entry.count == 0));
        // With all names taken the capture stays unknown and open() does not count it: better a
        // denial in the 33rd simultaneous capture than none for the rest of the process's life.
        if let Some(entry) = at.and_then(|at| open.get_mut(at)) {
            *entry = Open {
                stream,
                count: entry.count + 1,
            };
        }
        self.publish(&open)
    }

    /// A capture on `stream` ended. Returns the captures open now.
    pub fn end(&self, stream: u64) -> u32 {
        let mut open = self.open.lock();
        if let Some(entry) = open
            .iter_mut()
            .find(|entry| entry.count > 0 && entry.stream == stream)
        {
            entry.count -= 1;
        }
        self.publish(&open)
    }

    /// `stream` was destroyed, and its captures with it. Returns the captures open now.
    pub fn forget(&self, stream: u64) -> u32 {
        let mut open = self.open.lock();
        for entry in open.iter_mut().filter(|entry| entry.stream == stream) {
            entry.count = 0;
        }
        self.publish(&open)
    }

    fn publish(&self, open: &[Open; NAMED]) -> u32 {
        let total = open.iter().map(|entry| entry.count).sum();
        self.total.store(total, Ordering::Relaxed);
        total
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn captures_are_counted_by_stream() {
        let captures = Captures::new();
        assert_eq!(captures.begin(7), 1);
        assert_eq!(captures.begin(2), 2);
        assert_eq!(captures.begin(2), 3);
        assert_eq!(captures.end(9), 3, "a stream that is not captured");
        assert_eq!(captures.end(2), 2);
        assert_eq!(captures.forget(2), 1);
        assert_eq!(captures.end(7), 0);
        assert_eq!(captures.end(7), 0);
        assert_eq!(captures.open(), 0);
    }

    #[test]
    fn too_many_captures_do_not_stay_open() {
        let captures = Captures::new();
        for stream in 1..100 {
            captures.begin(stream);
        }
        for stream in 1..100 {
            captures.end(stream);
        }
        assert_eq!(captures.open(), 0);
    }
}
