//! System calls the crates used here do not wrap. The only place with `unsafe`.

pub mod gpm;
pub mod reactor;
pub mod seqpacket;
pub mod shm;
