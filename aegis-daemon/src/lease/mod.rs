//! Ledgers, lease pages and the shim socket.
