//! Commands as a shell would take them, so that what is shown can be copied and run.

use std::fmt::Write;

use aegis_common::bytes::ByteString;

use super::super::sanitise::is_active;

/// The command line with each argument quoted where needed.
pub(in crate::cli) fn command(argv: &[ByteString]) -> String {
    let words: Vec<String> = argv.iter().map(|arg| word(&arg.0)).collect();
    words.join(" ")
}

/// One argument. Bytes that are not harmless text are written as `$'\x1b'`.
pub(in crate::cli) fn word(bytes: &[u8]) -> String {
    match std::str::from_utf8(bytes) {
        Ok(text) if !text.contains(is_active) => quoted(text),
        _ => ansi_c(bytes),
    }
}

fn quoted(text: &str) -> String {
    let plain = |c: char| c.is_alphanumeric() || "-_./=:,+@%".contains(c);
    if !text.is_empty() && text.chars().all(plain) {
        text.to_owned()
    } else {
        format!("'{}'", text.replace('\'', "'\\''"))
    }
}

fn ansi_c(bytes: &[u8]) -> String {
    let mut out = "$'".to_owned();
    for chunk in bytes.utf8_chunks() {
        for c in chunk.valid().chars() {
            match c {
                '\'' | '\\' => out.extend(['\\', c]),
                '\n' => out.push_str("\\n"),
                '\t' => out.push_str("\\t"),
                c if is_active(c) => {
                    let mut utf8 = [0; 4];
                    hex(&mut out, c.encode_utf8(&mut utf8).as_bytes());
                }
                c => out.push(c),
            }
        }
        hex(&mut out, chunk.invalid());
    }
    out.push('\'');
    out
}

fn hex(out: &mut String, bytes: &[u8]) {
    for byte in bytes {
        let _ = write!(out, "\\x{byte:02x}");
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn only_what_needs_quotes_gets_them() {
        let argv = ["python", "a b.py", "--lr=0.1", "", "it's"].map(ByteString::from);
        assert_eq!(command(&argv), "python 'a b.py' --lr=0.1 '' 'it'\\''s'");
        assert_eq!(word(b"a\x1b\xff'\n"), "$'a\\x1b\\xff\\'\\n'");
    }

    proptest! {
        #[test]
        fn no_argument_commands_the_terminal(bytes in proptest::collection::vec(any::<u8>(), 0..40)) {
            prop_assert!(!word(&bytes).contains(is_active));
        }
    }

    /// The shell itself is the judge of the quoting.
    #[test]
    fn bash_reads_back_the_bytes() {
        let args: [&[u8]; 5] = [
            b"a b",
            b"it's $HOME `x`",
            b"\x1b[31m\xff\n1",
            b"",
            "ü\u{9b}f".as_bytes(),
        ];
        let list: Vec<String> = args.iter().map(|arg| word(arg)).collect();
        let script = format!("printf '%s\\0' {}", list.join(" "));
        let output = std::process::Command::new("bash")
            .args(["-c", &script])
            .output()
            .unwrap();
        let mut expected = args.join(&0);
        expected.push(0);
        assert_eq!(output.stdout, expected);
    }
}
