//! The command line `aegis`.
