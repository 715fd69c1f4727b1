//! Kernel launches.

use std::ffi::c_void;

use crate::ffi::pointers::{Arguments, In};
use crate::launch::{Shape, launch};

/// `CUlaunchConfig`.
#[repr(C)]
#[derive(Clone, Copy)]
pub(super) struct Config {
    grid: [u32; 3],
    block: [u32; 3],
    shared_bytes: u32,
    stream: u64,
    attributes: In<c_void>,
    attribute_count: u32,
}

export! {
    counted [stream] fn cuLaunchKernel, cuLaunchKernel_ptsz(
        function: u64, grid_x: u32, grid_y: u32, grid_z: u32, block_x: u32, block_y: u32, block_z: u32,
        _shared_bytes: u32, stream: u64, params: In<In<c_void>>, extra: In<In<c_void>>
    ) {
        let shape = Shape { grid: [grid_x, grid_y, grid_z], block: [block_x, block_y, block_z] };
        launch(function, shape, stream, || Arguments { params, extra }.timed_cost())
    }

    counted [stream] fn cuLaunchCooperativeKernel, cuLaunchCooperativeKernel_ptsz(
        function: u64, grid_x: u32, grid_y: u32, grid_z: u32, block_x: u32, block_y: u32, block_z: u32,
        _shared_bytes: u32, stream: u64, params: In<In<c_void>>
    ) {
        let shape = Shape { grid: [grid_x, grid_y, grid_z], block: [block_x, block_y, block_z] };
        launch(function, shape, stream, || Arguments { params, extra: In::null() }.timed_cost())
    }

    counted fn cuLaunchKernelEx(config: In<Config>, function: u64, params: In<In<c_void>>, extra: In<In<c_void>>) {
        let config = config.get()?;
        let shape = Shape { grid: config.grid, block: config.block };
        launch(function, shape, config.stream, || Arguments { params, extra }.timed_cost())
    }

    counted fn cuLaunchKernelEx_ptsz(config: In<Config>, function: u64, params: In<In<c_void>>, extra: In<In<c_void>>) {
        let config = config.get()?;
        let shape = Shape { grid: config.grid, block: config.block };
        let stream = super::per_thread(config.stream);
        launch(function, shape, stream, || Arguments { params, extra }.timed_cost())
    }
}
