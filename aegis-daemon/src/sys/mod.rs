//! System calls the crates used here do not wrap. The only place with `unsafe`.
