//! Environment variables that the keeper sets for a job and the shim reads.

/// Path of the daemon's shim socket. Without it the shim passes everything through.
pub const SHIM_SOCKET: &str = "AEGIS_SHIM_SOCKET";
/// The job's secret: 32 lower-case hexadecimal digits.
pub const JOB_TOKEN: &str = "AEGIS_JOB_TOKEN";
/// The job's number, for the user's scripts.
pub const JOB_ID: &str = "AEGIS_JOB_ID";
/// 1 for the first attempt, 2 after one retry, and so on. For the user's scripts.
pub const ATTEMPT: &str = "AEGIS_ATTEMPT";
/// `1` if an earlier attempt was stopped for others after it had been asked to save its state. For
/// the user's scripts.
pub const RESUMED: &str = "AEGIS_RESUMED";
/// `1` switches the shim off in this process and its children.
pub const SHIM_DISABLE: &str = "AEGIS_SHIM_DISABLE";
