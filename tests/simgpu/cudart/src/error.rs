//! Result codes (values of `cudaError_t`). The driver's have the same values since CUDA 10.1.

use std::cell::Cell;

/// A failure code.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Error(pub i32);

/// What a runtime function does.
pub type Result<T> = std::result::Result<T, Error>;

impl Error {
    pub(crate) const INVALID_VALUE: Self = Self(1);
    pub(crate) const INVALID_SYMBOL: Self = Self(13);
    pub(crate) const INVALID_DIRECTION: Self = Self(21);
    pub(crate) const INSUFFICIENT_DRIVER: Self = Self(35);
    /// The driver does not have the function.
    pub(crate) const NEWER_DRIVER: Self = Self(36);
    pub(crate) const MISSING_CONFIGURATION: Self = Self(52);
    pub(crate) const INVALID_FUNCTION: Self = Self(98);
    pub(crate) const INVALID_DEVICE: Self = Self(101);
    pub(crate) const NOT_SUPPORTED: Self = Self(801);
}

/// `CUDA_ERROR_NOT_FOUND`.
pub(crate) const NOT_FOUND: i32 = 500;

/// What a driver call answered.
///
/// # Errors
/// Any code but 0.
pub(crate) fn ok(code: i32) -> Result<()> {
    if code == 0 { Ok(()) } else { Err(Error(code)) }
}

thread_local! {
    static LAST: Cell<i32> = const { Cell::new(0) };
}

/// Runs a function's body, remembers a failure for `cudaGetLastError` and returns its code.
pub(crate) fn note(body: impl FnOnce() -> Result<()>) -> i32 {
    match body() {
        Ok(()) => 0,
        Err(Error(code)) => {
            // Not there while the thread ends.
            let _ = LAST.try_with(|last| last.set(code));
            code
        }
    }
}

/// The thread's last failure, which `take` forgets.
pub(crate) fn last(take: bool) -> i32 {
    LAST.try_with(|last| if take { last.replace(0) } else { last.get() })
        .unwrap_or(0)
}

macro_rules! names {
    ($($code:literal $name:literal)*) => {
        /// The name of a code, NUL-terminated.
        pub(crate) fn name(code: i32) -> &'static str {
            match code {
                $($code => concat!($name, "\0"),)*
                _ => "unrecognized error code\0",
            }
        }
    };
}

names! {
    0 "cudaSuccess"
    1 "cudaErrorInvalidValue"
    2 "cudaErrorMemoryAllocation"
    3 "cudaErrorInitializationError"
    4 "cudaErrorCudartUnloading"
    9 "cudaErrorInvalidConfiguration"
    13 "cudaErrorInvalidSymbol"
    17 "cudaErrorInvalidDevicePointer"
    21 "cudaErrorInvalidMemcpyDirection"
    35 "cudaErrorInsufficientDriver"
    36 "cudaErrorCallRequiresNewerDriver"
    52 "cudaErrorMissingConfiguration"
    98 "cudaErrorInvalidDeviceFunction"
    100 "cudaErrorNoDevice"
    101 "cudaErrorInvalidDevice"
    200 "cudaErrorInvalidKernelImage"
    201 "cudaErrorDeviceUninitialized"
    209 "cudaErrorNoKernelImageForDevice"
    214 "cudaErrorECCUncorrectable"
    301 "cudaErrorFileNotFound"
    400 "cudaErrorInvalidResourceHandle"
    401 "cudaErrorIllegalState"
    500 "cudaErrorSymbolNotFound"
    600 "cudaErrorNotReady"
    700 "cudaErrorIllegalAddress"
    701 "cudaErrorLaunchOutOfResources"
    704 "cudaErrorPeerAccessAlreadyEnabled"
    705 "cudaErrorPeerAccessNotEnabled"
    709 "cudaErrorContextIsDestroyed"
    712 "cudaErrorHostMemoryAlreadyRegistered"
    713 "cudaErrorHostMemoryNotRegistered"
    719 "cudaErrorLaunchFailure"
    800 "cudaErrorNotPermitted"
    801 "cudaErrorNotSupported"
    900 "cudaErrorStreamCaptureUnsupported"
    901 "cudaErrorStreamCaptureInvalidated"
    906 "cudaErrorStreamCaptureImplicit"
    910 "cudaErrorGraphExecUpdateFailure"
    999 "cudaErrorUnknown"
}
