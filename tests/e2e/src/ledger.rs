//! A shim that lies: the protocol spoken by hand, and a ledger filled at will.

use std::fs::File;
use std::io::IoSliceMut;
use std::mem::{MaybeUninit, offset_of};
use std::os::unix::fs::FileExt;
use std::path::Path;

use aegis_common::abi::ledger::{
    GPU_LINES_OFFSET, GpuLine, LAUNCH_LINES_OFFSET, LaunchLine, LedgerHeader,
};
use aegis_common::abi::message::{ANSWER_BYTES, Answer, Op, Request};
use aegis_common::abi::{GpuUuid, env};
use anyhow::{Context, Result, bail};
use rustix::net::{
    AddressFamily, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendFlags, SocketAddrUnix,
    SocketType, connect, recvmsg, send, socket,
};

/// A process that introduced itself to the daemon and writes its ledger by hand.
#[derive(Debug)]
pub struct HostileShim {
    /// The ledger.
    pub ledger: File,
    /// The lease page, read-only.
    pub lease: File,
}

impl HostileShim {
    /// Says hello with the token that the keeper gave this process.
    ///
    /// # Errors
    /// Not run as a job, or refused.
    pub fn attach() -> Result<Self> {
        let path = std::env::var_os(env::SHIM_SOCKET).context("no shim socket")?;
        let token = std::env::var(env::JOB_TOKEN).context("no job token")?;
        let token = token.as_bytes().try_into().context("token's length")?;
        let (answer, mut files) = ask(Path::new(&path), &Request::new(Op::Hello, token))?;
        let lease = files.pop();
        match (files.pop(), lease) {
            (Some(ledger), Some(lease)) => Ok(Self { ledger, lease }),
            _ => bail!("no ledger and lease came with {answer:?}"),
        }
    }

    /// Takes GPU line 0 for a GPU.
    ///
    /// # Errors
    /// The ledger cannot be written.
    pub fn claim_gpu(&self, uuid: &GpuUuid) -> Result<()> {
        self.ledger.write_all_at(uuid, GPU_LINES_OFFSET as u64)?;
        self.header32(offset_of!(LedgerHeader, gpu_lines), 1)
    }

    /// Writes a field of GPU line 0.
    ///
    /// # Errors
    /// The ledger cannot be written.
    pub fn gpu(&self, field: usize, value: u64) -> Result<()> {
        self.write((GPU_LINES_OFFSET + field) as u64, value)
    }

    /// Writes the kernel count of launch line 0.
    ///
    /// # Errors
    /// The ledger cannot be written.
    pub fn kernels(&self, value: u64) -> Result<()> {
        self.header32(offset_of!(LedgerHeader, launch_lines), 1)?;
        self.write(
            (LAUNCH_LINES_OFFSET + offset_of!(LaunchLine, kernels)) as u64,
            value,
        )
    }

    /// Writes bytes held, all of one kind.
    ///
    /// # Errors
    /// The ledger cannot be written.
    pub fn used(&self, value: u64) -> Result<()> {
        self.gpu(offset_of!(GpuLine, used), value)
    }

    fn header32(&self, field: usize, value: u32) -> Result<()> {
        self.ledger
            .write_all_at(&value.to_ne_bytes(), field as u64)
            .context("writing the ledger")
    }

    fn write(&self, offset: u64, value: u64) -> Result<()> {
        self.ledger
            .write_all_at(&value.to_ne_bytes(), offset)
            .context("writing the ledger")
    }
}

/// Sends one request to the shim socket and reads the first answer with its descriptors.
fn ask(path: &Path, request: &Request) -> Result<(Answer, Vec<File>)> {
    let socket = socket(AddressFamily::UNIX, SocketType::SEQPACKET, None).context("socket")?;
    let address = SocketAddrUnix::new(path).context("socket path")?;
    connect(&socket, &address).with_context(|| format!("connecting to {}", path.display()))?;
    send(&socket, &request.to_bytes(), SendFlags::NOSIGNAL).context("sending")?;
    let mut packet = [0; ANSWER_BYTES];
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(4))];
    let mut ancillary = RecvAncillaryBuffer::new(&mut space);
    let received = recvmsg(
        &socket,
        &mut [IoSliceMut::new(&mut packet)],
        &mut ancillary,
        RecvFlags::CMSG_CLOEXEC,
    )
    .context("receiving")?;
    let mut files = Vec::new();
    for message in ancillary.drain() {
        if let RecvAncillaryMessage::ScmRights(descriptors) = message {
            files.extend(descriptors.map(File::from));
        }
    }
    let answer = packet.get(..received.bytes).and_then(Answer::from_bytes);
    Ok((answer.context("no answer that can be read")?, files))
}
