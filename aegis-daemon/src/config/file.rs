//! Reading the file without trusting what is at its path.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

use super::ConfigError;

/// Longer files are refused: a device or a log was named by mistake.
const MAX_BYTES: u64 = 1 << 20;

pub(super) fn read(path: &Path) -> Result<String, ConfigError> {
    let wrap = |source| ConfigError::Read {
        path: path.to_owned(),
        source,
    };
    let mut text = String::new();
    let read = File::open(path)
        .and_then(|file| file.take(MAX_BYTES + 1).read_to_string(&mut text))
        .map_err(wrap)?;
    if read as u64 > MAX_BYTES {
        return Err(wrap(io::Error::new(
            io::ErrorKind::FileTooLarge,
            "longer than 1 MiB; is this the right file?",
        )));
    }
    Ok(text)
}
