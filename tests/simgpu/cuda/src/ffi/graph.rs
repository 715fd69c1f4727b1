//! Graphs.

use std::ffi::c_void;
use std::sync::atomic::Ordering::Relaxed;

use crate::call::Call;
use crate::code::{Code, Result};
use crate::driver::{self, lock};
use crate::ffi::copy::check_device;
use crate::ffi::pointers::{Arguments, In, Out};
use crate::graph::{self, RawHostFunction, Work};
use crate::launch::{Shape, cost_of};
use crate::module;
use crate::stream;

/// `CUDA_KERNEL_NODE_PARAMS`; v2 has a kernel and a context more.
#[repr(C)]
#[derive(Clone, Copy)]
pub(super) struct KernelNode {
    function: u64,
    grid: [u32; 3],
    block: [u32; 3],
    shared_bytes: u32,
    params: In<In<c_void>>,
    extra: In<In<c_void>>,
}

#[repr(C)]
#[derive(Clone, Copy)]
pub(super) struct KernelNodeV2 {
    node: KernelNode,
    kernel: u64,
    context: u64,
}

impl KernelNode {
    fn work(self) -> Result<Work> {
        let function = module::function(self.function)?;
        let shape = Shape {
            grid: self.grid,
            block: self.block,
        };
        let arguments = Arguments {
            params: self.params,
            extra: self.extra,
        };
        Ok(Work::Kernel(cost_of(function, shape, || {
            arguments.timed_cost()
        })?))
    }
}

impl KernelNodeV2 {
    fn work(self) -> Result<Work> {
        let function = if self.node.function == 0 {
            self.kernel
        } else {
            self.node.function
        };
        KernelNode {
            function,
            ..self.node
        }
        .work()
    }
}

/// `CUDA_MEMSET_NODE_PARAMS`.
#[repr(C)]
#[derive(Clone, Copy)]
pub(super) struct FillNode {
    to: u64,
    pitch: usize,
    value: u32,
    element: u32,
    width: usize,
    height: usize,
}

/// `CUDA_HOST_NODE_PARAMS`.
#[repr(C)]
#[derive(Clone, Copy)]
pub(super) struct HostNode {
    function: RawHostFunction,
    data: usize,
}

fn add(node: Out<u64>, graph: u64, work: Work, call: &mut Call) -> Result<()> {
    call.hex("graph", graph);
    let added = lock(&driver::get()?.graphs).add(graph, work)?;
    call.hex("node", added);
    node.set(added)
}

fn instantiate(result: Out<u64>, graph: u64, call: &mut Call) -> Result<()> {
    call.hex("graph", graph);
    result.check()?;
    let made = lock(&driver::get()?.graphs).instantiate(graph)?;
    call.hex("executable", made);
    result.set(made)
}

export! {
    journalled fn cuGraphCreate(result: Out<u64>, flags: u32) |call| {
        call.arg("flags", flags);
        result.check()?;
        let made = lock(&driver::get()?.graphs).create();
        call.hex("graph", made);
        result.set(made)
    }

    journalled fn cuGraphClone(result: Out<u64>, graph: u64) |call| {
        call.hex("graph", graph);
        result.set(lock(&driver::get()?.graphs).copy_of(graph)?)
    }

    journalled fn cuGraphDestroy(graph: u64) |call| {
        call.hex("graph", graph);
        lock(&driver::get()?.graphs).destroy(graph)
    }

    journalled fn cuGraphAddKernelNode(node: Out<u64>, graph: u64, _dependencies: In<u64>, _count: usize, params: In<KernelNode>) |call| {
        add(node, graph, params.get()?.work()?, call)
    }

    journalled fn cuGraphAddKernelNode_v2(node: Out<u64>, graph: u64, _dependencies: In<u64>, _count: usize, params: In<KernelNodeV2>) |call| {
        add(node, graph, params.get()?.work()?, call)
    }

    journalled fn cuGraphAddEmptyNode(node: Out<u64>, graph: u64, _dependencies: In<u64>, _count: usize) |call| {
        add(node, graph, Work::Nothing, call)
    }

    journalled fn cuGraphAddHostNode(node: Out<u64>, graph: u64, _dependencies: In<u64>, _count: usize, params: In<HostNode>) |call| {
        let params = params.get()?;
        let function = params.function.ok_or(Code::INVALID_VALUE)?;
        add(node, graph, Work::Host { function, data: params.data }, call)
    }

    journalled fn cuGraphAddMemsetNode(node: Out<u64>, graph: u64, _dependencies: In<u64>, _count: usize, params: In<FillNode>, _context: u64) |call| {
        let p = params.get()?;
        if p.height > 1 || !matches!(p.element, 1 | 2 | 4) {
            return Err(Code::NOT_SUPPORTED);
        }
        let width = p.element as usize;
        check_device(driver::get()?, p.to, (p.width * width) as u64)?;
        add(node, graph, Work::Fill { to: p.to, value: p.value, width, count: p.width }, call)
    }

    journalled fn cuGraphGetNodes(graph: u64, nodes: Out<u64>, count: Out<usize>) |call| {
        call.hex("graph", graph);
        let found = lock(&driver::get()?.graphs).nodes(graph)?;
        let total = found.len();
        if nodes.check().is_ok() {
            nodes.set_all(found, total)?;
        }
        count.set(total)
    }

    journalled fn cuGraphInstantiate(result: Out<u64>, graph: u64, _node: Out<u64>, _log: u64, _bytes: usize) |call| {
        instantiate(result, graph, call)
    }

    journalled fn cuGraphInstantiate_v2(result: Out<u64>, graph: u64, _node: Out<u64>, _log: u64, _bytes: usize) |call| {
        instantiate(result, graph, call)
    }

    journalled fn cuGraphInstantiateWithFlags(result: Out<u64>, graph: u64, flags: u64) |call| {
        call.arg("flags", flags);
        instantiate(result, graph, call)
    }

    journalled fn cuGraphInstantiateWithParams(result: Out<u64>, graph: u64, _params: In<c_void>) |call| {
        instantiate(result, graph, call)
    }

    journalled fn cuGraphInstantiateWithParams_ptsz(result: Out<u64>, graph: u64, params: In<c_void>) |call| {
        // Which stream an upload would use makes no difference here.
        call.arg("params", !params.is_null());
        instantiate(result, graph, call)
    }

    journalled fn cuGraphExecDestroy(executable: u64) |call| {
        call.hex("executable", executable);
        lock(&driver::get()?.graphs).destroy_executable(executable)
    }

    journalled fn cuGraphExecKernelNodeSetParams(executable: u64, node: u64, params: In<KernelNode>) |_call| {
        let work = params.get()?.work()?;
        lock(&driver::get()?.graphs).set(executable, node, work)
    }

    journalled fn cuGraphExecKernelNodeSetParams_v2(executable: u64, node: u64, params: In<KernelNodeV2>) |_call| {
        let work = params.get()?.work()?;
        lock(&driver::get()?.graphs).set(executable, node, work)
    }

    journalled fn cuGraphExecUpdate(executable: u64, graph: u64, _node: Out<u64>, result: Out<i32>) |_call| {
        let fits = lock(&driver::get()?.graphs).update(executable, graph)?;
        // 0 success, 2 topology changed
        result.set_if_wanted(if fits { 0 } else { 2 });
        if fits { Ok(()) } else { Err(Code(910)) }
    }

    journalled fn cuGraphExecUpdate_v2(executable: u64, graph: u64, result: Out<i32>) |_call| {
        let fits = lock(&driver::get()?.graphs).update(executable, graph)?;
        result.set_if_wanted(if fits { 0 } else { 2 });
        if fits { Ok(()) } else { Err(Code(910)) }
    }

    counted [stream] fn cuGraphLaunch, cuGraphLaunch_ptsz(executable: u64, stream: u64) {
        let (driver, of_stream) = stream::get(stream)?;
        if of_stream.capture.load(Relaxed) != 0 {
            return Err(Code::STREAM_CAPTURE_UNSUPPORTED);
        }
        graph::launch(driver, executable, of_stream)
    }

    journalled [stream] fn cuGraphUpload, cuGraphUpload_ptsz(_executable: u64, stream: u64) |_call| {
        stream::get(stream).map(drop)
    }

    journalled fn cuDeviceGraphMemTrim(device: i32) |call| {
        call.arg("device", device);
        driver::get()?.gpu(device).map(drop)
    }

    journalled fn cuDeviceGetGraphMemAttribute(device: i32, attribute: i32, value: Out<u64>) |call| {
        call.arg("attribute", attribute);
        driver::get()?.gpu(device)?;
        // There are no memory nodes, so graphs hold no memory.
        value.set(0)
    }
}

unsupported! {
    cuGraphAddNode cuGraphAddNode_v2 cuGraphAddMemAllocNode cuGraphAddMemFreeNode cuGraphAddChildGraphNode
    cuGraphAddEventRecordNode cuGraphAddEventWaitNode cuGraphGetEdges cuGraphGetRootNodes
    cuGraphKernelNodeGetParams_v2 cuGraphKernelNodeSetParams_v2 cuGraphNodeGetType cuGraphDebugDotPrint
    cuUserObjectCreate cuGraphRetainUserObject
}
