//! Orders to a running utility: lines on stdin, SIGTERM, end of stdin.

use std::io::{self, BufRead};
use std::os::fd::AsFd;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;

use rustix::fs::{fstat, major, minor};
use signal_hook::consts::SIGTERM;
use signal_hook::iterator::Signals;

use crate::error::WorkloadError;

/// An order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Order {
    /// A line on stdin, without white space around it.
    Line(String),
    /// SIGTERM, or stdin has ended.
    Quit,
}

/// Starts to listen. From here on SIGTERM is an order, not death.
///
/// A job under a daemon has `/dev/null` as stdin; that ends at once and means nothing, so it is not
/// listened to.
///
/// # Errors
/// [`WorkloadError::Io`] if the signal handler cannot be installed.
pub(super) fn listen() -> Result<Receiver<Order>, WorkloadError> {
    let (orders, received) = channel();
    let mut signals =
        Signals::new([SIGTERM]).map_err(|e| WorkloadError::io("SIGTERM handler", e))?;
    let from_signal = orders.clone();
    thread::spawn(move || {
        if signals.forever().next().is_some() {
            // Fails only when the program is about to end anyway.
            drop(from_signal.send(Order::Quit));
        }
    });
    if !is_dev_null(io::stdin()) {
        thread::spawn(move || read_lines(&orders));
    }
    Ok(received)
}

fn read_lines(orders: &Sender<Order>) {
    for line in io::stdin().lock().lines() {
        let Ok(line) = line else { break };
        if orders.send(Order::Line(line.trim().to_owned())).is_err() {
            return;
        }
    }
    // As above.
    drop(orders.send(Order::Quit));
}

fn is_dev_null(stdin: impl AsFd) -> bool {
    fstat(stdin).is_ok_and(|s| major(s.st_rdev) == 1 && minor(s.st_rdev) == 3)
}

/// Waits for [`Order::Quit`], ignoring lines.
pub(super) fn wait_for_quit(orders: &Receiver<Order>) {
    while let Ok(Order::Line(_)) = orders.recv() {}
}
