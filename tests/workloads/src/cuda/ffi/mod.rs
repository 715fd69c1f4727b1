//! The driver's C interface: types, the tables of functions, and the routes that fill them.

mod alloc_calls;
mod api;
mod calls;
mod load;

pub use api::{AllocApi, Api, Symbol};
pub use calls::{Context, Function, Graph, Stream};
pub use load::Loaded;
