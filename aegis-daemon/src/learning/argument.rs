//! Arguments as name and value, in one spelling and without what does not count.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::mask::{self, Treatment, option_name};

/// Longest name or value kept as it is, bytes; of a longer one the beginning and a hash are kept.
const TEXT_MAX: usize = 160;
/// Bytes kept of a longer one.
const TEXT_KEPT: usize = 64;
/// Arguments kept; of more, a hash of the rest is one more.
const ARGUMENTS_MAX: usize = 64;

/// An argument.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Arg {
    /// The option's name without dashes; empty for a word without one.
    pub name: String,
    /// Its value; `None` for an option without one.
    pub value: Option<String>,
}

impl Arg {
    pub(super) fn named(name: impl Into<String>, value: Option<&str>) -> Self {
        Self {
            name: bounded(&name.into()),
            value: value.map(|value| bounded(&mask::value(value))),
        }
    }
}

impl fmt::Display for Arg {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.value {
            None => f.write_str(&self.name),
            Some(value) if self.name.is_empty() => f.write_str(value),
            Some(value) => write!(f, "{}={value}", self.name),
        }
    }
}

/// Reads the words after a program. `prefix` goes before each option's name.
pub(super) fn parse(words: &[String], prefix: &str) -> Vec<Arg> {
    let mut args = Vec::new();
    let mut words = words.iter().map(String::as_str).peekable();
    while let Some(word) = words.next() {
        if word == "--" {
            continue;
        }
        let Some((name, inline)) = option(word) else {
            args.push(Arg::named("", Some(word)));
            continue;
        };
        let treatment = mask::treatment(&name);
        let dashed = word.starts_with('-');
        let value = match inline {
            None if dashed && treatment != Treatment::DropFlag => {
                words.next_if(|next| !is_option(next))
            }
            inline => inline,
        };
        if treatment == Treatment::Keep {
            args.push(Arg::named(format!("{prefix}{name}"), value));
        }
    }
    args
}

/// Puts arguments into the order and number in which commands are compared: options by name, then
/// the other words as they came.
pub(super) fn canonical(mut args: Vec<Arg>) -> Vec<Arg> {
    // Stable: what was given twice keeps its order.
    args.sort_by(|a, b| (a.name.is_empty(), &a.name).cmp(&(b.name.is_empty(), &b.name)));
    if args.len() > ARGUMENTS_MAX {
        let rest = args.split_off(ARGUMENTS_MAX);
        let mut hash = Hash::new();
        for arg in &rest {
            hash.add(arg.name.as_bytes());
            hash.add(arg.value.as_deref().unwrap_or("\u{1}").as_bytes());
        }
        let value = format!("{} more #{}", rest.len(), hash.text());
        args.push(Arg {
            name: String::new(),
            value: Some(value),
        });
    }
    args
}

/// The option's name in its one spelling, and the value written to it; `None`: no option.
fn option(word: &str) -> Option<(String, Option<&str>)> {
    if is_option(word) {
        let (name, value) = match word.split_once('=') {
            Some((name, value)) => (name, Some(value)),
            None => short_with_number(word).unwrap_or((word, None)),
        };
        return Some((option_name(name), value));
    }
    // `model.lr=0.1`, `+trainer.devices=2`, `BATCH=64`.
    let (name, value) = word.split_once('=')?;
    let bare = name.trim_start_matches(['+', '~']);
    let named = bare.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
        && bare
            .chars()
            .all(|c| c.is_ascii_alphanumeric() || "._-/@".contains(c));
    named.then(|| (option_name(name), Some(value)))
}

/// `-b32`.
fn short_with_number(word: &str) -> Option<(&str, Option<&str>)> {
    let (name, value) = word.split_at_checked(2)?;
    let numeric = !value.is_empty() && value.bytes().all(|byte| byte.is_ascii_digit());
    (numeric && !name.ends_with('-')).then_some((name, Some(value)))
}

/// Begins with a dash and is no negative number.
fn is_option(word: &str) -> bool {
    word.len() > 1 && word.starts_with('-') && number(word).is_none()
}

/// The number a value is, if it is one.
pub(super) fn number(text: &str) -> Option<f64> {
    // Rust reads "inf" and "nan", too.
    let first = text.trim_start_matches(['-', '+']).chars().next()?;
    if !first.is_ascii_digit() && first != '.' {
        return None;
    }
    text.parse().ok().filter(|number: &f64| number.is_finite())
}

/// `text`, or its beginning and a hash of it if it is long.
pub(super) fn bounded(text: &str) -> String {
    if text.len() <= TEXT_MAX {
        return text.to_owned();
    }
    let mut kept = TEXT_KEPT;
    while !text.is_char_boundary(kept) {
        kept -= 1;
    }
    let mut hash = Hash::new();
    hash.add(text.as_bytes());
    format!(
        "{}...#{}",
        text.get(..kept).unwrap_or_default(),
        hash.text()
    )
}

/// FNV-1a, 64 bits: tells one user's own commands apart, no more.
pub(super) struct Hash(u64);

impl Hash {
    pub(super) const fn new() -> Self {
        Self(0xcbf2_9ce4_8422_2325)
    }

    pub(super) fn add(&mut self, bytes: &[u8]) {
        // Parts are told apart by a byte that no text has.
        for byte in bytes.iter().chain(&[0xff]) {
            self.0 = (self.0 ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3);
        }
    }

    pub(super) fn text(&self) -> String {
        format!("{:016x}", self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn words(line: &str) -> Vec<String> {
        line.split_whitespace().map(str::to_owned).collect()
    }

    fn shown(line: &str) -> String {
        let args = canonical(parse(&words(line), ""));
        let shown = args.iter().map(ToString::to_string);
        shown.collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn one_spelling_for_what_means_the_same() {
        let expected = "batch-size=32 lr=-1e-3 data";
        for line in [
            "--batch-size 32 --lr -1e-3 -- data",
            "--lr=-1e-3 --batch_size=32 data --seed 4",
            "--seed=9 --batch-size=32 --output_dir runs/7 --lr=-1e-3 data",
            "-v --batch-size=32 --lr=-1e-3 data",
        ] {
            assert_eq!(shown(line), expected, "{line}");
        }
        assert_eq!(shown("-b32 -B 64 --amp"), "B=64 amp b=32");
        assert_eq!(
            shown("+model.lr=0.1 seed=1 exp/x=a"),
            "exp/x=a model.lr=0.1"
        );
        // The flag takes no value along: two data sets stay two.
        assert_eq!(shown("--verbose a"), "a");
        assert_eq!(shown("--gpu 0 --gpu 1"), "gpu=0 gpu=1");
        assert_eq!(shown("- a=b c=d=e 1=2"), "a=b c=d=e - 1=2");
    }

    proptest! {
        #[test]
        fn whatever_comes_stays_small(
            list in proptest::collection::vec("\\PC{0,300}", 0..100), sorted: bool
        ) {
            let args = parse(&list, "");
            let args = if sorted { canonical(args) } else { args };
            for arg in &args {
                prop_assert!(arg.name.len() <= TEXT_MAX);
                prop_assert!(arg.value.as_ref().is_none_or(|value| value.len() <= TEXT_MAX));
            }
            prop_assert!(!sorted || args.len() <= ARGUMENTS_MAX + 1);
        }

        #[test]
        fn the_order_of_options_does_not_count(
            pairs in proptest::collection::btree_map("[a-z]{2,5}", "[a-z0-9./]{1,5}", 0..8)
        ) {
            let list = |pair: (&String, &String)| format!("--{}={}", pair.0, pair.1);
            let forth: Vec<String> = pairs.iter().map(list).collect();
            let back: Vec<String> = pairs.iter().rev().map(list).collect();
            prop_assert_eq!(canonical(parse(&forth, "")), canonical(parse(&back, "")));
        }
    }
}
