//! Memory and events of other processes.

use super::driver::IpcHandle;
use super::{Handle, Place};
use crate::error::ok;

api! {
    fn cudaIpcGetMemHandle(handle: Place, pointer: Handle) |driver| {
        ok((driver.ipc_get_mem_handle)(handle, pointer))
    }

    fn cudaIpcOpenMemHandle(pointer: Place, handle: IpcHandle, flags: u32) |driver| {
        ok((driver.ipc_open_mem_handle)(pointer, handle, flags))
    }

    fn cudaIpcCloseMemHandle(pointer: Handle) |driver| {
        ok((driver.ipc_close_mem_handle)(pointer))
    }

    fn cudaIpcGetEventHandle(handle: Place, event: Handle) |driver| {
        ok((driver.ipc_get_event_handle)(handle, event))
    }

    fn cudaIpcOpenEventHandle(event: Place, handle: IpcHandle) |driver| {
        ok((driver.ipc_open_event_handle)(event, handle))
    }
}
