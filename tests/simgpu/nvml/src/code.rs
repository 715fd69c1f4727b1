//! Return codes (values of `nvmlReturn_t`).

/// A failure code.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Code(pub(crate) u32);

pub(crate) type Result<T> = std::result::Result<T, Code>;

impl Code {
    pub(crate) const UNINITIALIZED: Self = Self(1);
    pub(crate) const INVALID_ARGUMENT: Self = Self(2);
    pub(crate) const NOT_SUPPORTED: Self = Self(3);
    pub(crate) const NOT_FOUND: Self = Self(6);
    pub(crate) const INSUFFICIENT_SIZE: Self = Self(7);
    pub(crate) const DRIVER_NOT_LOADED: Self = Self(9);
    pub(crate) const TIMEOUT: Self = Self(10);
    pub(crate) const ARGUMENT_VERSION_MISMATCH: Self = Self(25);
    pub(crate) const UNKNOWN: Self = Self(999);
}

/// Text of a code, NUL-terminated.
pub(crate) fn describe(code: u32) -> &'static str {
    match code {
        0 => "Success\0",
        1 => "Uninitialized\0",
        2 => "Invalid Argument\0",
        3 => "Not Supported\0",
        4 => "Insufficient Permissions\0",
        6 => "Not Found\0",
        7 => "Insufficient Size\0",
        8 => "Insufficient External Power\0",
        9 => "Driver Not Loaded\0",
        10 => "Timeout\0",
        13 => "Function Not Found\0",
        15 => "GPU is lost\0",
        17 => "The operating system has blocked the request.\0",
        18 => "RM has detected an NVML/RM version mismatch.\0",
        20 => "Insufficient Memory\0",
        25 => "Argument version mismatch\0",
        _ => "Unknown Error\0",
    }
}
