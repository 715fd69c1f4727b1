//! System calls the crates used here do not wrap. The only place with `unsafe`.

pub mod inherit;
pub mod peer;
pub mod pidfd;
pub mod process;
pub mod readable;
pub mod time;
