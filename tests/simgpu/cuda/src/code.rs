//! Result codes of the driver API (values of `CUresult`).

/// A failure code.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Code(pub(crate) i32);

pub(crate) type Result<T> = std::result::Result<T, Code>;

macro_rules! codes {
    ($($name:ident = $value:literal, $symbol:literal, $text:literal;)*) => {
        impl Code {
            $(pub(crate) const $name: Self = Self($value);)*
        }

        /// Symbol and description of a code, NUL-terminated.
        pub(crate) fn describe(code: i32) -> Option<(&'static str, &'static str)> {
            match code {
                0 => Some(("CUDA_SUCCESS\0", "no error\0")),
                // Only returned when a test arms a fault with it.
                719 => Some(("CUDA_ERROR_LAUNCH_FAILED\0", "unspecified launch failure\0")),
                $($value => Some((concat!($symbol, "\0"), concat!($text, "\0"))),)*
                _ => None,
            }
        }
    };
}

codes! {
    INVALID_VALUE = 1, "CUDA_ERROR_INVALID_VALUE", "invalid argument";
    OUT_OF_MEMORY = 2, "CUDA_ERROR_OUT_OF_MEMORY", "out of memory";
    NOT_INITIALIZED = 3, "CUDA_ERROR_NOT_INITIALIZED", "initialization error";
    NO_DEVICE = 100, "CUDA_ERROR_NO_DEVICE", "no CUDA-capable device is detected";
    INVALID_DEVICE = 101, "CUDA_ERROR_INVALID_DEVICE", "invalid device ordinal";
    INVALID_IMAGE = 200, "CUDA_ERROR_INVALID_IMAGE", "device kernel image is invalid";
    INVALID_CONTEXT = 201, "CUDA_ERROR_INVALID_CONTEXT", "invalid device context";
    FILE_NOT_FOUND = 301, "CUDA_ERROR_FILE_NOT_FOUND", "file not found";
    INVALID_HANDLE = 400, "CUDA_ERROR_INVALID_HANDLE", "invalid resource handle";
    NOT_FOUND = 500, "CUDA_ERROR_NOT_FOUND", "named symbol not found";
    NOT_READY = 600, "CUDA_ERROR_NOT_READY", "device not ready";
    HOST_MEMORY_ALREADY_REGISTERED = 712, "CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED", "part or all of the requested memory range is already mapped";
    HOST_MEMORY_NOT_REGISTERED = 713, "CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED", "pointer does not correspond to a registered memory region";
    NOT_SUPPORTED = 801, "CUDA_ERROR_NOT_SUPPORTED", "operation not supported";
    STREAM_CAPTURE_UNSUPPORTED = 900, "CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED", "operation not permitted when stream is capturing";
    ILLEGAL_STATE = 401, "CUDA_ERROR_ILLEGAL_STATE", "the operation cannot be performed in the present state";
    UNKNOWN = 999, "CUDA_ERROR_UNKNOWN", "unknown error";
}
