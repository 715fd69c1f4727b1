//! The exported functions, and the reading and writing of what their pointers point to.

/// Defines exported functions. `journalled` ones leave a record, `counted` ones do not. With
/// `[stream]` two are made: the second, for programs compiled with per-thread default streams,
/// takes stream 0 as the per-thread one; with `[stream = default]` the stream is no argument.
macro_rules! export {
    () => {};
    ($(#[$meta:meta])* journalled fn $name:ident($($arg:ident: $ty:ty),* $(,)?)
        |$call:ident| $body:block $($rest:tt)*) => {
        $(#[$meta])*
        #[unsafe(no_mangle)]
        pub(super) extern "C" fn $name($($arg: $ty),*) -> i32 {
            crate::call::run(stringify!($name), |$call: &mut crate::call::Call| $body)
        }
        export! { $($rest)* }
    };
    ($(#[$meta:meta])* counted fn $name:ident($($arg:ident: $ty:ty),* $(,)?)
        $body:block $($rest:tt)*) => {
        $(#[$meta])*
        #[unsafe(no_mangle)]
        pub(super) extern "C" fn $name($($arg: $ty),*) -> i32 {
            crate::call::quiet(|| $body)
        }
        export! { $($rest)* }
    };
    ($(#[$meta:meta])* journalled [$stream:ident] fn $name:ident, $variant:ident($($arg:ident: $ty:ty),* $(,)?)
        |$call:ident| $body:block $($rest:tt)*) => {
        export! {
            $(#[$meta])* journalled fn $name($($arg: $ty),*) |$call| $body
            $(#[$meta])* journalled fn $variant($($arg: $ty),*) |$call| {
                let $stream = crate::ffi::per_thread($stream);
                $body
            }
            $($rest)*
        }
    };
    ($(#[$meta:meta])* counted [$stream:ident] fn $name:ident, $variant:ident($($arg:ident: $ty:ty),* $(,)?)
        $body:block $($rest:tt)*) => {
        export! {
            $(#[$meta])* counted fn $name($($arg: $ty),*) $body
            $(#[$meta])* counted fn $variant($($arg: $ty),*) {
                let $stream = crate::ffi::per_thread($stream);
                $body
            }
            $($rest)*
        }
    };
    ($(#[$meta:meta])* counted [$stream:ident = default] fn $name:ident, $variant:ident($($arg:ident: $ty:ty),* $(,)?)
        $body:block $($rest:tt)*) => {
        export! {
            $(#[$meta])* counted fn $name($($arg: $ty),*) { let $stream = 0u64; $body }
            $(#[$meta])* counted fn $variant($($arg: $ty),*) { let $stream = crate::stream::PER_THREAD; $body }
            $($rest)*
        }
    };
}

/// Functions that exist in the driver but are not simulated.
macro_rules! unsupported {
    ($($name:ident)*) => {$(
        #[unsafe(no_mangle)]
        pub(super) extern "C" fn $name() -> i32 {
            crate::call::run(stringify!($name), |_| Err(crate::code::Code::NOT_SUPPORTED))
        }
    )*};
}

mod array;
mod attribute;
mod context;
mod copy;
mod device;
mod event;
mod fill;
mod graph;
mod launch;
mod legacy;
mod library;
mod link;
mod memory;
mod module;
mod pointers;
mod pool;
mod proc_address;
mod stream;
mod table;
mod vmm;

/// Stream 0 as programs with per-thread default streams mean it.
fn per_thread(stream: u64) -> u64 {
    if stream == 0 {
        crate::stream::PER_THREAD
    } else {
        stream
    }
}
