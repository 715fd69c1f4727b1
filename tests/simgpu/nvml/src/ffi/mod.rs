//! The exported functions, and the reading and writing of what their pointers point to.

/// Defines exported functions; a second name is an older or newer version of the same signature.
macro_rules! export {
    () => {};
    ($(#[$meta:meta])* fn $name:ident ($($arg:ident: $ty:ty),* $(,)?) $body:block $($rest:tt)*) => {
        export! { @one $(#[$meta])* $name ($($arg: $ty),*) $body }
        export! { $($rest)* }
    };
    ($(#[$meta:meta])* fn $name:ident, $other:ident ($($arg:ident: $ty:ty),* $(,)?) $body:block $($rest:tt)*) => {
        export! { @one $(#[$meta])* $name ($($arg: $ty),*) $body }
        export! { @one $(#[$meta])* $other ($($arg: $ty),*) $body }
        export! { $($rest)* }
    };
    (@one $(#[$meta:meta])* $name:ident ($($arg:ident: $ty:ty),*) $body:block) => {
        $(#[$meta])*
        #[unsafe(no_mangle)]
        pub(super) extern "C" fn $name($($arg: $ty),*) -> u32 {
            let body = || -> crate::code::Result<()> { $body };
            body().err().map_or(0, |code| code.0)
        }
    };
}

/// Functions that exist but answer that the device cannot do it.
macro_rules! unsupported {
    ($($name:ident)*) => {$(
        #[unsafe(no_mangle)]
        pub(super) extern "C" fn $name(device: u64) -> u32 {
            crate::library::device(device).err().unwrap_or(crate::code::Code::NOT_SUPPORTED).0
        }
    )*};
}

mod device;
mod event;
mod gpm;
mod identity;
mod memory;
mod pointers;
mod process;
mod system;
mod topology;
mod utilization;
