//! Loading and attaching the programs.

use aya::maps::{HashMap, MapData, MapError, PerCpuArray, RingBuf};
use aya::programs::RawTracePoint;
use aya::{Ebpf, EbpfLoader};

use super::Unavailable;
use super::btf::Types;

/// Aligned as the ELF reader wants it.
#[repr(C, align(8))]
struct Aligned<T: ?Sized>(T);

/// The object; empty if it was not built.
static OBJECT: &Aligned<[u8]> = &Aligned(*include_bytes!(concat!(env!("OUT_DIR"), "/aegis.bpf.o")));

/// Programs and the tracepoints they belong to.
const PROGRAMS: [(&str, &str); 5] = [
    ("fork", "sched_process_fork"),
    ("exec", "sched_process_exec"),
    ("exit", "sched_process_exit"),
    ("signal", "signal_generate"),
    ("victim", "mark_victim"),
];

/// Variables of the programs, and the structure and field whose offset they hold.
const OFFSETS: [(&str, &str, &str); 10] = [
    ("TASK_PID", "task_struct", "pid"),
    ("TASK_TGID", "task_struct", "tgid"),
    ("TASK_START", "task_struct", "start_boottime"),
    ("TASK_LEADER", "task_struct", "group_leader"),
    ("TASK_SIGNAL", "task_struct", "signal"),
    ("TASK_EXIT_CODE", "task_struct", "exit_code"),
    ("SIGNAL_FLAGS", "signal_struct", "flags"),
    ("SIGNAL_EXIT_CODE", "signal_struct", "group_exit_code"),
    ("SIGNAL_LIVE", "signal_struct", "live"),
    ("SIGINFO_CODE", "kernel_siginfo", "si_code"),
];

/// What the programs share with the daemon. The map's values are a root and a start time.
pub(super) struct Loaded {
    /// Keeps the programs attached.
    pub(super) programs: Ebpf,
    pub(super) followed: HashMap<MapData, u32, [u64; 2]>,
    pub(super) dropped: PerCpuArray<MapData, u64>,
    pub(super) events: RingBuf<MapData>,
}

/// Loads and attaches them; `ring` is the ring buffer's size in bytes if not the usual one.
pub(super) fn load(ring: Option<u32>) -> Result<Loaded, Unavailable> {
    let Aligned(object) = OBJECT;
    if object.is_empty() {
        return Err(Unavailable::NotBuilt);
    }
    if !rustix::process::geteuid().is_root() {
        return Err(Unavailable::NotRoot);
    }
    let offsets = offsets()?;
    let mut loader = EbpfLoader::new();
    for ((variable, _, _), offset) in OFFSETS.iter().zip(&offsets) {
        loader.override_global(variable, offset, true);
    }
    if let Some(bytes) = ring {
        loader.map_max_entries("EVENTS", bytes);
    }
    let mut programs = loader.load(object).map_err(refused)?;
    for (name, tracepoint) in PROGRAMS {
        let program = programs.program_mut(name).ok_or_else(|| missing(name))?;
        let program: &mut RawTracePoint = program.try_into().map_err(refused)?;
        program.load().map_err(refused)?;
        program.attach(tracepoint).map_err(refused)?;
    }
    Ok(Loaded {
        followed: map(&mut programs, "FOLLOWED")?,
        dropped: map(&mut programs, "DROPPED")?,
        events: map(&mut programs, "EVENTS")?,
        programs,
    })
}

fn offsets() -> Result<[u32; OFFSETS.len()], Unavailable> {
    let bytes = std::fs::read("/sys/kernel/btf/vmlinux")
        .map_err(|error| Unavailable::Types(error.to_string()))?;
    let types = Types::parse(&bytes).ok_or_else(|| Unavailable::Types("unreadable".to_owned()))?;
    let mut offsets = [0; OFFSETS.len()];
    for (place, (_, structure, field)) in offsets.iter_mut().zip(OFFSETS) {
        *place = types.offset(structure, field).ok_or_else(|| {
            Unavailable::Types(format!("struct {structure} has no field {field}"))
        })?;
    }
    Ok(offsets)
}

fn map<T: TryFrom<aya::maps::Map, Error = MapError>>(
    programs: &mut Ebpf,
    name: &str,
) -> Result<T, Unavailable> {
    let map = programs.take_map(name).ok_or_else(|| missing(name))?;
    map.try_into().map_err(refused)
}

fn missing(name: &str) -> Unavailable {
    Unavailable::Refused(format!("the object has no {name}"))
}

/// The whole chain of causes on one line; a verifier's log can be pages long.
fn refused(error: impl std::error::Error) -> Unavailable {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        text.push_str(": ");
        text.push_str(&error.to_string());
        cause = error.source();
    }
    Unavailable::Refused(text.lines().take(3).collect::<Vec<_>>().join(" "))
}
