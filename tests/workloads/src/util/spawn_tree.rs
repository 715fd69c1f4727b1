//! `spawn-tree`: descendants that do what real ones do to outlive a job: leave the session, lose
//! their parent, ignore SIGTERM, drop the environment.

use std::io::{BufRead, BufReader, Read};
use std::process::{Command, Stdio};
use std::thread::park;

use clap::ValueEnum;
use rustix::process::setsid;

use crate::cuda::{Driver, DriverSource, Gpu};
use crate::device::{AllocError, DeviceMemory};
use crate::error::WorkloadError;
use crate::say::say;
use crate::units::parse_bytes;

use super::spin;

/// What a process of the tree does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum Role {
    /// Starts the others.
    Root,
    /// A plain child.
    Child,
    /// Leaves the session, starts a `leaf` and exits: the first half of a double fork.
    Middle,
    /// A child whose parent has exited.
    Leaf,
    /// Ignores SIGTERM.
    Deaf,
}

/// Options of `spawn-tree`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// GPU memory that each process but the root holds
    #[arg(long, value_name = "SIZE", value_parser = parse_bytes)]
    gpu_bytes: Option<u64>,
    /// The root exits once all run, so that only descendants are left
    #[arg(long)]
    root_exits: bool,
    /// What this process does; set by the root
    #[arg(long, value_enum, default_value = "root", hide = true)]
    role: Role,
}

/// Descendants that stay: a child, a deaf child, a daemonised one, and one with an empty environment.
const DESCENDANTS: usize = 4;

/// Prints `TREE <root pid> <pid>...` when all run. Never ends by itself without `--root-exits`.
pub(super) fn run(args: &Args, source: &DriverSource) -> Result<u8, WorkloadError> {
    match args.role {
        Role::Root => root(args),
        Role::Middle => {
            setsid().map_err(|e| WorkloadError::io("setsid", e.into()))?;
            start(args, Role::Leaf, false, Stdio::inherit())?;
            Ok(0)
        }
        Role::Deaf => {
            spin::ignore_signals()?;
            stay(args, source)
        }
        Role::Child | Role::Leaf => stay(args, source),
    }
}

fn root(args: &Args) -> Result<u8, WorkloadError> {
    let (reader, writer) = std::io::pipe().map_err(|e| WorkloadError::io("pipe of the tree", e))?;
    for (role, bare) in [
        (Role::Child, false),
        (Role::Deaf, false),
        (Role::Middle, false),
        (Role::Middle, true),
    ] {
        let writer = writer
            .try_clone()
            .map_err(|e| WorkloadError::io("pipe of the tree", e))?;
        start(args, role, bare, Stdio::from(writer))?;
    }
    drop(writer);
    let mut tree = format!("TREE {}", std::process::id());
    let mut lines = BufReader::new(reader);
    for _ in 0..DESCENDANTS {
        let mut line = String::new();
        // No longer than any pid: a descendant that fails instead ends the pipe.
        let got = lines.by_ref().take(32).read_line(&mut line);
        if !got.is_ok_and(|bytes| bytes > 0) {
            return Err(WorkloadError::io(
                "a descendant did not start",
                std::io::ErrorKind::UnexpectedEof.into(),
            ));
        }
        tree.push(' ');
        tree.push_str(line.trim());
    }
    say(&tree)?;
    if args.root_exits {
        return Ok(0);
    }
    loop {
        park();
    }
}

/// Starts this program again in another role. It is not waited for: `middle` exits at once and stays
/// a zombie of the root, which is one more thing for whoever ends the tree to cope with.
fn start(args: &Args, role: Role, bare: bool, stdout: Stdio) -> Result<(), WorkloadError> {
    let program = std::env::current_exe().map_err(|e| WorkloadError::io("own program", e))?;
    let mut command = Command::new(program);
    if bare {
        command.env_clear();
    }
    let name = match role {
        Role::Root => "root",
        Role::Child => "child",
        Role::Middle => "middle",
        Role::Leaf => "leaf",
        Role::Deaf => "deaf",
    };
    command.args(["spawn-tree", "--role", name]);
    // Without its environment a process may not find the driver.
    if let (Some(bytes), false) = (args.gpu_bytes, bare) {
        command.args(["--gpu-bytes", &bytes.to_string()]);
    }
    command
        .stdin(Stdio::null())
        .stdout(stdout)
        .spawn()
        .map_err(|e| WorkloadError::io("start of a descendant", e))?;
    Ok(())
}

/// Reports this process's pid and stays.
fn stay(args: &Args, source: &DriverSource) -> Result<u8, WorkloadError> {
    // Keeps the memory until the process is killed.
    let _gpu = match args.gpu_bytes {
        None => None,
        Some(bytes) => {
            let driver = Driver::load(source)?;
            let mut gpu = Gpu::open(&driver, 0)?;
            match gpu.alloc(bytes) {
                Ok(_) => Some(gpu),
                Err(AllocError::OutOfMemory) => return Ok(1),
                Err(AllocError::Other(error)) => return Err(error),
            }
        }
    };
    say(&std::process::id().to_string())?;
    loop {
        park();
    }
}
