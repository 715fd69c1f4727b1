//! Graphs: a list of work in the order it was added or captured, replayed as one after the other.

use std::collections::BTreeMap;
use std::ffi::c_void;
use std::sync::atomic::Ordering::{Relaxed, Release};

use simgpu_core::kernel::Cost;

use crate::code::{Code, Result};
use crate::driver::{Driver, lock};
use crate::host::{self, HostFunction};
use crate::launch::{copy_cost, enqueue};
use crate::stream::{self, CAPTURES, Stream};
use crate::sys;

const FIRST: u64 = 0x9000_0000;
const STEP: u64 = 0x10;

/// What a node does.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Work {
    Kernel(Cost),
    Copy {
        to: u64,
        from: u64,
        bytes: u64,
        within_device: bool,
    },
    Fill {
        to: u64,
        value: u32,
        width: usize,
        count: usize,
    },
    Host {
        function: HostFunction,
        data: usize,
    },
    Nothing,
}

#[derive(Debug, Clone, Default)]
struct Graph {
    nodes: Vec<(u64, Work)>,
}

#[derive(Default)]
pub(crate) struct Graphs {
    graphs: BTreeMap<u64, Graph>,
    executables: BTreeMap<u64, Graph>,
    made: u64,
}

impl Graphs {
    fn handle(&mut self) -> u64 {
        self.made += 1;
        FIRST + self.made * STEP
    }

    /// Adds work to the graph that a capture makes.
    pub(crate) fn capture(&mut self, graph: u64, work: Work) -> Result<()> {
        self.add(graph, work).map(drop)
    }

    /// Adds a node.
    pub(crate) fn add(&mut self, graph: u64, work: Work) -> Result<u64> {
        let node = self.handle();
        let graph = self.graphs.get_mut(&graph).ok_or(Code::INVALID_VALUE)?;
        graph.nodes.push((node, work));
        Ok(node)
    }

    pub(crate) fn create(&mut self) -> u64 {
        let handle = self.handle();
        self.graphs.insert(handle, Graph::default());
        handle
    }

    pub(crate) fn copy_of(&mut self, graph: u64) -> Result<u64> {
        let copy = self
            .graphs
            .get(&graph)
            .cloned()
            .ok_or(Code::INVALID_VALUE)?;
        let handle = self.handle();
        self.graphs.insert(handle, copy);
        Ok(handle)
    }

    pub(crate) fn destroy(&mut self, graph: u64) -> Result<()> {
        self.graphs
            .remove(&graph)
            .map(drop)
            .ok_or(Code::INVALID_VALUE)
    }

    pub(crate) fn nodes(&self, graph: u64) -> Result<Vec<u64>> {
        let graph = self.graphs.get(&graph).ok_or(Code::INVALID_VALUE)?;
        Ok(graph.nodes.iter().map(|(handle, _)| *handle).collect())
    }

    pub(crate) fn instantiate(&mut self, graph: u64) -> Result<u64> {
        let copy = self
            .graphs
            .get(&graph)
            .cloned()
            .ok_or(Code::INVALID_VALUE)?;
        let handle = self.handle();
        self.executables.insert(handle, copy);
        Ok(handle)
    }

    pub(crate) fn destroy_executable(&mut self, executable: u64) -> Result<()> {
        self.executables
            .remove(&executable)
            .map(drop)
            .ok_or(Code::INVALID_VALUE)
    }

    /// Replaces the work of a node in an executable graph.
    pub(crate) fn set(&mut self, executable: u64, node: u64, work: Work) -> Result<()> {
        let graph = self
            .executables
            .get_mut(&executable)
            .ok_or(Code::INVALID_VALUE)?;
        let slot = graph.nodes.iter_mut().find(|(handle, _)| *handle == node);
        slot.ok_or(Code::INVALID_VALUE)?.1 = work;
        Ok(())
    }

    /// Makes an executable do what a graph of the same shape does now.
    pub(crate) fn update(&mut self, executable: u64, graph: u64) -> Result<bool> {
        let fresh = self
            .graphs
            .get(&graph)
            .cloned()
            .ok_or(Code::INVALID_VALUE)?;
        let old = self
            .executables
            .get_mut(&executable)
            .ok_or(Code::INVALID_VALUE)?;
        let same = |a: &Work, b: &Work| std::mem::discriminant(a) == std::mem::discriminant(b);
        let fits = old.nodes.len() == fresh.nodes.len()
            && old
                .nodes
                .iter()
                .zip(&fresh.nodes)
                .all(|(a, b)| same(&a.1, &b.1));
        if fits {
            for (node, (_, work)) in old.nodes.iter_mut().zip(fresh.nodes) {
                node.1 = work;
            }
        }
        Ok(fits)
    }
}

/// `cuGraphLaunch`.
pub(crate) fn launch(
    driver: &'static Driver,
    executable: u64,
    stream: &'static Stream,
) -> Result<()> {
    let graph = lock(&driver.graphs)
        .executables
        .get(&executable)
        .cloned()
        .ok_or(Code::INVALID_VALUE)?;
    driver
        .process
        .counters()
        .graph_launches
        .fetch_add(1, Relaxed);
    for (_, work) in graph.nodes {
        perform(driver, stream, work)?;
    }
    Ok(())
}

/// Does one piece of work in a stream, now.
pub(crate) fn perform(driver: &'static Driver, stream: &'static Stream, work: Work) -> Result<()> {
    match work {
        Work::Kernel(cost) => enqueue(driver, stream, &cost),
        Work::Copy {
            to,
            from,
            bytes,
            within_device,
        } => {
            sys::copy(to, from, bytes as usize);
            enqueue(driver, stream, &copy_cost(bytes, within_device));
        }
        Work::Fill {
            to,
            value,
            width,
            count,
        } => {
            fill(driver, to, value, width, count);
            enqueue(driver, stream, &copy_cost((width * count) as u64, true));
        }
        Work::Host { function, data } => host::launch(driver, stream, function, data)?,
        Work::Nothing => {}
    }
    Ok(())
}

/// Fills memory; zeroing private memory gives its pages back instead.
fn fill(driver: &Driver, to: u64, value: u32, width: usize, count: usize) {
    let bytes = (width * count) as u64;
    let range = lock(&driver.heap).find(to, bytes);
    let private = range.is_some_and(|r| r.kind != crate::heap::Kind::Reserved);
    if value == 0 && private {
        sys::zero(to, bytes);
    } else {
        sys::fill(to, value, width, count);
    }
}

/// `cuStreamBeginCapture`.
pub(crate) fn begin_capture(driver: &Driver, stream: &Stream) -> Result<()> {
    if stream.capture.load(Relaxed) != 0 {
        return Err(Code::ILLEGAL_STATE);
    }
    let graph = lock(&driver.graphs).create();
    stream.capture.store(graph, Release);
    CAPTURES.fetch_add(1, Release);
    Ok(())
}

/// `cuStreamEndCapture`.
pub(crate) fn end_capture(stream: &Stream) -> Result<u64> {
    let graph = stream.capture.load(Relaxed);
    if graph == 0 {
        return Err(Code::ILLEGAL_STATE);
    }
    stream::end_capture(graph);
    CAPTURES.fetch_sub(1, Release);
    Ok(graph)
}

/// Either performs work or, in a capture, adds it to the graph.
pub(crate) fn submit(driver: &'static Driver, stream: &'static Stream, work: Work) -> Result<()> {
    let capture = stream.capture.load(Relaxed);
    if capture != 0 {
        return lock(&driver.graphs).capture(capture, work);
    }
    perform(driver, stream, work)
}

/// A host function from its C pointer; `None` for NULL.
pub(crate) type RawHostFunction = Option<extern "C" fn(*mut c_void)>;
