//! The driver's C interface: types, the table of functions, and the routes that fill it.

mod api;
mod calls;
mod load;

pub use api::{Api, Symbol};
pub use calls::{Context, Function, Stream};
pub use load::load;
