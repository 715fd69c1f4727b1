//! Standard output: text fitted to its reader, or one JSON document.

use std::io::{self, IsTerminal, Write};

use aegis_common::id::Moment;
use jiff::tz::TimeZone;
use serde::Serialize;

use super::sanitise::escape_json;
use super::style::Style;

/// Where a verb's output goes.
pub(super) struct Out {
    sink: Box<dyn Write>,
    /// `--json` was given.
    pub json: bool,
    /// It is a terminal.
    pub terminal: bool,
    /// How text is to look.
    pub style: Style,
}

impl Out {
    /// This process's standard output.
    pub(super) fn stdout(json: bool) -> Self {
        let stdout = io::stdout();
        let terminal = stdout.is_terminal();
        let width = terminal
            .then(|| rustix::termios::tcgetwinsize(&stdout).ok())
            .flatten()
            .map(|size| usize::from(size.ws_col))
            .filter(|columns| *columns > 0);
        let no_colour = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty())
            || std::env::var_os("TERM").is_some_and(|value| value == "dumb");
        Self {
            sink: Box::new(stdout),
            json,
            terminal,
            style: Style {
                width,
                colour: terminal && !no_colour,
                now: now(),
                zone: TimeZone::system(),
            },
        }
    }

    /// Writes text that is safe for a terminal.
    pub(super) fn text(&mut self, text: &str) -> io::Result<()> {
        self.bytes(text.as_bytes())
    }

    /// Writes bytes as they are.
    pub(super) fn bytes(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.sink.write_all(bytes)?;
        self.sink.flush()
    }

    /// Writes the JSON document.
    pub(super) fn document(&mut self, value: &impl Serialize) -> io::Result<()> {
        let text = serde_json::to_string_pretty(value)?;
        self.text(&(escape_json(&text) + "\n"))
    }

    /// Writes help, as text or in a document: `--json` promises one whatever is asked.
    pub(super) fn help(&mut self, text: &str) -> io::Result<()> {
        if self.json {
            self.document(&Help { help: text })
        } else {
            self.text(text)
        }
    }
}

/// Help as a document.
#[derive(Serialize)]
struct Help<'a> {
    help: &'a str,
}

/// The wall clock.
pub(super) fn now() -> Moment {
    let millis = jiff::Timestamp::now().as_millisecond();
    Moment(u64::try_from(millis).unwrap_or(0))
}

#[cfg(test)]
pub(super) mod tests {
    use super::super::style::tests::plain;
    use super::*;
    use std::cell::RefCell;
    use std::rc::Rc;

    struct Shared<F>(Rc<RefCell<Vec<u8>>>, F);

    impl<F: FnMut(&[u8])> Write for Shared<F> {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.borrow_mut().extend_from_slice(bytes);
            (self.1)(&self.0.borrow());
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    /// An output that keeps what is written, and what it has kept.
    pub(in crate::cli) fn captured(json: bool) -> (Out, impl Fn() -> String) {
        let (mut out, text) = watched(|_| ());
        out.json = json;
        (out, text)
    }

    /// The same, and `seen` is shown all that is kept after each write.
    pub(in crate::cli) fn watched(seen: impl FnMut(&[u8]) + 'static) -> (Out, impl Fn() -> String) {
        let kept = Rc::new(RefCell::new(Vec::new()));
        let out = Out {
            sink: Box::new(Shared(kept.clone(), seen)),
            json: false,
            terminal: false,
            style: plain(),
        };
        (out, move || {
            String::from_utf8(kept.borrow().clone()).unwrap()
        })
    }

    #[test]
    fn a_document_is_one_and_harmless() {
        let (mut out, text) = captured(true);
        out.document(&"a\x1b\u{9b}\u{7f}").unwrap();
        assert_eq!(text(), "\"a\\u001b\\u009b\\u007f\"\n");
    }
}
