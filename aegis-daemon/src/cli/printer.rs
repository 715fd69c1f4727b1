//! Passing a job's output on to whoever reads it.

use std::fs::File;
use std::io::{self, Read};

use aegis_common::wire::Failure;

use super::error::CliError;
use super::out::Out;
use super::sanitise::sanitise_output;

/// Passes log bytes on, as they are or escaped.
pub(super) struct Printer<'a> {
    out: &'a mut Out,
    escape: bool,
    /// The beginning of a character whose rest has not been read yet.
    pending: Vec<u8>,
}

impl<'a> Printer<'a> {
    pub(super) fn new(out: &'a mut Out, escape: bool) -> Self {
        Self {
            out,
            escape,
            pending: Vec::new(),
        }
    }

    /// Copies what is left of `file`.
    pub(super) fn copy(
        &mut self,
        file: &mut File,
        unreadable: impl Fn(&io::Error) -> Failure,
    ) -> Result<(), CliError> {
        let mut buffer = vec![0; 64 << 10];
        loop {
            match file.read(&mut buffer) {
                Ok(0) => return Ok(()),
                Ok(count) => self.print(buffer.get(..count).unwrap_or_default())?,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(unreadable(&error).into()),
            }
        }
    }

    fn print(&mut self, bytes: &[u8]) -> io::Result<()> {
        if !self.escape {
            return self.out.bytes(bytes);
        }
        self.pending.extend_from_slice(bytes);
        // Of text that is cut at the end, the last character waits for its rest.
        let whole = match std::str::from_utf8(&self.pending) {
            Err(error) if error.error_len().is_none() => error.valid_up_to(),
            _ => self.pending.len(),
        };
        let rest = self.pending.split_off(whole);
        let text = sanitise_output(&String::from_utf8_lossy(&self.pending));
        self.pending = rest;
        self.out.text(&text)
    }
}

#[cfg(test)]
mod tests {
    use super::super::out::tests::captured;
    use super::*;

    #[test]
    fn escaped_output_survives_cuts_within_a_character() {
        let (mut out, text) = captured(false);
        let mut printer = Printer::new(&mut out, true);
        for byte in "ü\x1b[1m\tx\n数".as_bytes() {
            printer.print(&[*byte]).unwrap();
        }
        assert_eq!(text(), "ü\\x1b[1m\tx\n数");
    }
}
