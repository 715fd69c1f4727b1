//! What a module image offers: entry and variable names.
//!
//! Kernels are never executed, so a name is all that is needed. PTX text is searched for `.entry`
//! and `.global`; of a binary image (cubin, fat binary) nothing is read, any name is found in it.

use std::collections::BTreeMap;

/// Names in an image.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Image {
    /// From PTX: kernels, and variables with their size in bytes.
    Text {
        kernels: Vec<String>,
        globals: BTreeMap<String, u64>,
    },
    /// Binary: every name exists.
    Binary,
}

/// First bytes of binary images: ELF, fat binary, fat binary wrapper.
const BINARY: [[u8; 4]; 3] = [
    *b"\x7fELF",
    [0x50, 0xed, 0x55, 0xba],
    [0xb1, 0x43, 0x62, 0x46],
];

pub(crate) fn is_binary(start: [u8; 4]) -> bool {
    BINARY.contains(&start)
}

/// Reads PTX text; `None` if it is none.
pub(crate) fn parse(text: &str) -> Option<Image> {
    let code: String = text
        .lines()
        .map(|line| line.split("//").next().unwrap_or(""))
        .collect::<Vec<_>>()
        .join("\n");
    if !code.contains(".version") || !code.contains(".target") {
        return None;
    }
    let kernels = code
        .split(".entry")
        .skip(1)
        .filter_map(|rest| name(rest.trim_start()))
        .collect();
    let globals = code.split(".global").skip(1).filter_map(variable).collect();
    Some(Image::Text { kernels, globals })
}

fn name(text: &str) -> Option<String> {
    let of_name = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '$' | '%');
    let end = text.find(|c| !of_name(c)).unwrap_or(text.len());
    (end > 0).then(|| text[..end].to_owned())
}

/// `.align 4 .b8 table[16] = {…};` → ("table", 16). Instructions such as `ld.global.f32` have no
/// space after `.global` and give nothing.
fn variable(rest: &str) -> Option<(String, u64)> {
    let declaration = rest.split([';', '=', '\n']).next()?;
    if !declaration.starts_with(char::is_whitespace) {
        return None;
    }
    let mut element = None;
    let mut words = declaration.split_whitespace().peekable();
    while let Some(word) =
        words.next_if(|w| w.starts_with('.') || w.chars().all(|c| c.is_ascii_digit()))
    {
        let bits = word
            .strip_prefix(['.'])
            .and_then(|w| w.get(1..))
            .and_then(|digits| digits.parse::<u64>().ok());
        element = bits.or(element);
    }
    let declarator = words.next()?;
    let name = name(declarator)?;
    let count = declarator
        .split_once('[')
        .and_then(|(_, n)| n.trim_end_matches(']').parse().ok())
        .unwrap_or(1);
    Some((name, element? / 8 * count))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn entries_and_variables_are_found() {
        let text = ".version 7.0\n.target sm_80 // .entry not_me(\n.global .align 4 .b8 table[16];\n\
                    .visible .entry add_1(.param .u64 a)\n{ ld.global.f32 %f1, [%r1]; ret; }\n\
                    .entry $other\n(\n) { ret; }";
        let kernels = vec!["add_1".to_owned(), "$other".to_owned()];
        let globals = BTreeMap::from([("table".to_owned(), 16)]);
        assert_eq!(parse(text), Some(Image::Text { kernels, globals }));
    }

    #[test]
    fn other_text_is_no_image() {
        assert_eq!(parse("int main() {}"), None);
        assert_eq!(parse(""), None);
        assert!(is_binary(*b"\x7fELF") && !is_binary(*b".ver"));
    }

    proptest! {
        #[test]
        fn any_text_is_read_or_refused(text in "(\\.version|\\.target|\\.entry|\\.global|\\.b8|[ -~\\n]|é){0,60}") {
            let _ = parse(&text);
        }

        #[test]
        fn an_entry_is_found_whatever_is_around(before in "[ -~\\n]{0,40}", name in "[a-z_][a-z0-9_]{0,20}") {
            let text = format!("{before}\n.version 7.0\n.target sm_52\n.entry {name}(\n) {{ ret; }}");
            let found = parse(&text);
            let listed = matches!(found, Some(Image::Text { kernels, .. }) if kernels.contains(&name));
            prop_assert!(listed);
        }
    }
}
