//! System calls the crates used here do not wrap. The only place with `unsafe`.

pub mod gpm;
pub mod inherit;
pub mod peer;
pub mod process;
pub mod reactor;
pub mod seqpacket;
pub mod shm;
