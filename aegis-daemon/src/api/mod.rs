//! Serving clients on the Unix socket.
