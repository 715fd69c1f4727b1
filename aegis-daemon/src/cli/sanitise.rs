//! Keeping foreign text from commanding the terminal.
//!
//! Names, commands, paths and error texts come from other users. Escape sequences in them could
//! rewrite the screen or the terminal's settings; bidirectional controls could reorder it.

use std::fmt::Write;

/// One line of text without any character that a terminal interprets; those become `\x1b`,
/// `\n`, `\u{202e}` and so on.
pub(in crate::cli) fn sanitise(text: &str) -> String {
    escape(text, |_| false)
}

/// The same, but line feeds stay.
pub(in crate::cli) fn sanitise_lines(text: &str) -> String {
    escape(text, |c| c == '\n')
}

/// The same, but line feeds and tabs stay: for another user's log on a terminal.
pub(in crate::cli) fn sanitise_output(text: &str) -> String {
    escape(text, |c| matches!(c, '\n' | '\t'))
}

fn escape(text: &str, keep: impl Fn(char) -> bool) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            c if !is_active(c) || keep(c) => out.push(c),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            c if u32::from(c) < 0x80 => {
                let _ = write!(out, "\\x{:02x}", u32::from(c));
            }
            c => {
                let _ = write!(out, "\\u{{{:x}}}", u32::from(c));
            }
        }
    }
    out
}

/// JSON text with what `serde_json` leaves as it is (DEL, C1 controls, bidirectional controls)
/// escaped. Such characters can only stand inside strings.
pub(in crate::cli) fn escape_json(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        if is_active(c) && c != '\n' {
            let mut units = [0; 2];
            for unit in c.encode_utf16(&mut units) {
                let _ = write!(out, "\\u{unit:04x}");
            }
        } else {
            out.push(c);
        }
    }
    out
}

/// Controls (C0, DEL, C1), line and paragraph separators, bidirectional and other invisible
/// format characters, interlinear annotations, tags.
pub(in crate::cli) fn is_active(c: char) -> bool {
    c.is_control()
        || matches!(
            c,
            '\u{ad}'
                | '\u{61c}'
                | '\u{180e}'
                | '\u{200b}'..='\u{200f}'
                | '\u{2028}'..='\u{202e}'
                | '\u{2060}'..='\u{206f}'
                | '\u{feff}'
                | '\u{fff9}'..='\u{fffb}'
                | '\u{e0000}'..='\u{e007f}'
        )
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn escapes_become_visible() {
        assert_eq!(
            sanitise("a\x1b[31m\n\u{9b}2J\u{202e}"),
            "a\\x1b[31m\\n\\u{9b}2J\\u{202e}"
        );
        assert_eq!(sanitise("Größe 数 🚀"), "Größe 数 🚀");
        assert_eq!(sanitise_lines("a\nb\r"), "a\nb\\r");
    }

    #[test]
    fn json_keeps_its_meaning() {
        let text = "\u{7f}\u{9b}\u{202e}\u{e0041}\x1b \"q\"\n";
        let json = escape_json(&serde_json::to_string(text).unwrap());
        assert!(!json.contains(is_active), "{json}");
        assert_eq!(serde_json::from_str::<String>(&json).unwrap(), text);
    }

    proptest! {
        #[test]
        fn nothing_active_passes(text: String) {
            prop_assert!(!sanitise(&text).contains(is_active));
            prop_assert!(!sanitise_lines(&text).contains(|c| is_active(c) && c != '\n'));
            let json = escape_json(&serde_json::to_string(&text).unwrap());
            prop_assert!(!json.contains(is_active));
            prop_assert_eq!(serde_json::from_str::<String>(&json).unwrap(), text);
        }

        #[test]
        fn harmless_text_is_unchanged(text in "[ -~äß数🚀]*") {
            prop_assert_eq!(sanitise(&text), text);
        }
    }
}
