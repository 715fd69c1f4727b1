//! Graphs.

use std::ffi::c_char;

use super::{Handle, Place};
use crate::error::ok;
use crate::runtime;

api! {
    fn cudaGraphCreate(graph: Place, flags: u32) |driver| { ok((driver.graph_create)(graph, flags)) }

    fn cudaGraphDestroy(graph: Handle) |driver| { ok((driver.graph_destroy)(graph)) }

    fn cudaGraphAddEmptyNode(node: Place, graph: Handle, dependencies: Place, count: usize) |driver| {
        ok((driver.graph_add_empty_node)(node, graph, dependencies, count))
    }

    fn cudaGraphGetNodes(graph: Handle, nodes: Place, count: Place) |driver| {
        ok((driver.graph_get_nodes)(graph, nodes, count))
    }

    fn cudaGraphNodeGetType(node: Handle, kind: Place) |driver| {
        ok((driver.graph_node_get_type)(node, kind))
    }

    fn cudaGraphNodeGetDependencies(node: Handle, dependencies: Place, count: Place) |driver| {
        ok((driver.graph_node_get_dependencies)(node, dependencies, count))
    }

    fn cudaGraphDebugDotPrint(graph: Handle, path: *const c_char, flags: u32) |driver| {
        ok((driver.graph_debug_dot_print)(graph, path, flags))
    }

    fn cudaGraphInstantiate(executable: Place, graph: Handle, flags: u64) |driver| {
        ok((driver.graph_instantiate_with_flags)(executable, graph, flags))
    }

    fn cudaGraphInstantiateWithFlags(executable: Place, graph: Handle, flags: u64) |driver| {
        ok((driver.graph_instantiate_with_flags)(executable, graph, flags))
    }

    fn cudaGraphExecDestroy(executable: Handle) |driver| {
        ok((driver.graph_exec_destroy)(executable))
    }

    fn cudaGraphExecUpdate(executable: Handle, graph: Handle, result: Place) |driver| {
        ok((driver.graph_exec_update)(executable, graph, result))
    }

    fn cudaGraphLaunch, cudaGraphLaunch_ptsz(executable: Handle, stream: Handle) |driver| {
        ok((driver.graph_launch)(executable, stream))
    }

    fn cudaGraphUpload, cudaGraphUpload_ptsz(executable: Handle, stream: Handle) |driver| {
        ok((driver.graph_upload)(executable, stream))
    }

    bare fn cudaDeviceGraphMemTrim(device: i32) {
        ok((runtime::driver()?.device_graph_mem_trim)(device))
    }

    bare fn cudaDeviceGetGraphMemAttribute(device: i32, attribute: i32, value: Place) {
        ok((runtime::driver()?.device_get_graph_mem_attribute)(device, attribute, value))
    }
}
