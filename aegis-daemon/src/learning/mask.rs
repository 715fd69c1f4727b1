//! What is left out of a command because it does not change what the command needs: where results
//! go, how they are called, seeds, ports, log levels, and whatever looks like a fresh name.
//!
//! The list is short on purpose. A name that is masked wrongly mixes commands that need different
//! amounts; one that is missing only makes AEGIS learn a command anew.

use std::sync::LazyLock;

use regex_lite::Regex;

/// Options whose value is left out, with it the option. Names are compared in lower case with `_`
/// as `-`, whole or after their last dot (`trainer.seed`).
const VALUES: [&str; 66] = [
    // Randomness.
    "seed",
    "random-seed",
    "rng-seed",
    "manual-seed",
    "data-seed",
    "pythonhashseed",
    // Where results go.
    "output",
    "output-dir",
    "output-path",
    "output-folder",
    "out",
    "out-dir",
    "outdir",
    "save",
    "save-dir",
    "save-path",
    "save-folder",
    "results-dir",
    "result-dir",
    "checkpoint-dir",
    "ckpt-dir",
    "work-dir",
    "workdir",
    "run-dir",
    "exp-dir",
    "experiment-dir",
    "default-root-dir",
    "run.dir",
    "sweep.dir",
    "tensorboard-dir",
    "tb-dir",
    "log-dir",
    "logdir",
    "logging-dir",
    "log-file",
    "log-path",
    "cache-dir",
    "tmp-dir",
    "tmpdir",
    // How a run is called.
    "run-name",
    "run-id",
    "exp-name",
    "exp-id",
    "experiment-name",
    "job-name",
    "job-id",
    "project",
    "project-name",
    "tag",
    "tags",
    "notes",
    "comment",
    "timestamp",
    "date",
    // Where processes meet.
    "port",
    "master-port",
    "master-addr",
    "main-process-port",
    "main-process-ip",
    "dist-url",
    "init-method",
    // What is told meanwhile.
    "log-level",
    "logging-level",
    "verbosity",
    "report-to",
    "cuda-visible-devices",
];

/// Options without a value that are left out.
const FLAGS: [&str; 9] = [
    "verbose",
    "quiet",
    "v",
    "q",
    "wandb",
    "no-wandb",
    "disable-tqdm",
    "no-progress",
    "overwrite-output-dir",
];

/// Beginnings of names whose value is left out.
const PREFIXES: [&str; 4] = ["wandb-", "mlflow-", "rdzv-", "tensorboard-"];

/// Directories whose contents are temporary.
const TEMPORARY: [&str; 4] = ["/tmp/", "/var/tmp/", "/dev/shm/", "/run/user/"];

/// Stands for what was left out of a value.
pub(super) const ANY: &str = "*";

/// What is done with an option.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Treatment {
    /// It counts.
    Keep,
    /// It and its value are left out.
    DropValue,
    /// It has no value and is left out.
    DropFlag,
}

/// What is done with the option of that name, as [`option_name`] spells it.
pub(super) fn treatment(name: &str) -> Treatment {
    let last = name.rsplit('.').next().unwrap_or(name);
    let is = |list: &[&str]| list.contains(&name) || list.contains(&last);
    let dotted = |entry: &&str| entry.contains('.') && name.ends_with(*entry);
    if is(&FLAGS) {
        Treatment::DropFlag
    } else if is(&VALUES)
        || VALUES.iter().any(dotted)
        || PREFIXES.iter().any(|prefix| last.starts_with(prefix))
    {
        Treatment::DropValue
    } else {
        Treatment::Keep
    }
}

/// An option's or variable's name in the one spelling in which names are compared.
pub(super) fn option_name(word: &str) -> String {
    let name = word.trim_start_matches(['-', '+', '~']);
    if name.chars().count() == 1 {
        return name.to_owned();
    }
    name.to_lowercase().replace('_', "-")
}

/// A UUID; a date of this century, alone or with a time; a Unix time; a long hexadecimal name.
/// A match counts only between characters that are neither letters nor digits.
static SHAPES: LazyLock<Option<Regex>> = LazyLock::new(|| {
    let time =
        "(?:[T_ -]?(?:[0-9]{6}|[0-9]{2}[:_.-][0-9]{2}(?:[:_.-][0-9]{2}(?:[.,][0-9]+)?)?)Z?)?";
    Regex::new(&format!(
        "(?i)[0-9a-f]{{8}}-(?:[0-9a-f]{{4}}-){{3}}[0-9a-f]{{12}}\
         |20[0-9]{{2}}(?:[-_./][01][0-9][-_./][0-3][0-9]|[01][0-9][0-3][0-9]){time}\
         |1[5-9][0-9]{{8}}(?:[0-9]{{3}})?\
         |[0-9a-f]{{16,}}"
    ))
    .ok()
});

/// The value with everything in it replaced that looks like a fresh name. A plain number is kept
/// whatever it looks like.
pub(super) fn value(text: &str) -> String {
    if let Some(place) = TEMPORARY.iter().find(|place| text.starts_with(**place)) {
        return format!("{place}{ANY}");
    }
    if !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit()) {
        return text.to_owned();
    }
    shapes(text)
}

/// A path with its fresh-looking directories replaced; the file's own name is kept even in a
/// temporary directory.
pub(super) fn path(text: &str) -> String {
    if let Some(place) = TEMPORARY.iter().find(|place| text.starts_with(**place)) {
        let name = text.rsplit('/').next().unwrap_or_default();
        return format!("{place}{ANY}/{}", shapes(name));
    }
    shapes(text)
}

fn shapes(text: &str) -> String {
    let Some(regex) = SHAPES.as_ref() else {
        return text.to_owned();
    };
    let mut out = String::new();
    let mut rest = 0;
    let mut from = 0;
    while let Some(found) = regex.find_at(text, from) {
        if stands_alone(text, found.start(), found.end()) && looks_made(found.as_str()) {
            out.push_str(text.get(rest..found.start()).unwrap_or_default());
            out.push_str(ANY);
            rest = found.end();
            from = found.end();
        } else {
            // Another match may begin inside this one.
            from = found.start() + 1;
        }
    }
    out.push_str(text.get(rest..).unwrap_or_default());
    out
}

fn stands_alone(text: &str, start: usize, end: usize) -> bool {
    let before = text.get(..start).and_then(|text| text.chars().next_back());
    let after = text.get(end..).and_then(|text| text.chars().next());
    !before.is_some_and(char::is_alphanumeric) && !after.is_some_and(char::is_alphanumeric)
}

/// Hexadecimal names have letters and digits: a long number or word is something else.
fn looks_made(found: &str) -> bool {
    let hexadecimal = found.len() >= 16 && found.bytes().all(|byte| byte.is_ascii_hexdigit());
    !hexadecimal
        || found.bytes().any(|byte| byte.is_ascii_digit())
            && found.bytes().any(|byte| byte.is_ascii_alphabetic())
}

#[cfg(test)]
mod tests {
    use super::{SHAPES, Treatment, option_name, path, treatment, value};
    use proptest::prelude::*;

    #[test]
    fn the_pattern_is_one() {
        assert!(SHAPES.is_some());
    }

    #[test]
    fn fresh_names_are_replaced_and_figures_kept() {
        let cases = [
            ("runs/2024-05-01_12-30-59/x", "runs/*/x"),
            ("run_20240501", "run_*"),
            ("exp-20240501T123059", "exp-*"),
            ("a/2024-05-01T12:30:59.123Z", "a/*"),
            ("id=0f8fad5b-d9cb-469f-a165-70867728950e.pt", "id=*.pt"),
            ("ckpt_1712345678.pt", "ckpt_*.pt"),
            ("rev-9f86d081884c7d659a2feaa0", "rev-*"),
            ("2024-01-01_2024-01-02", "*_*"),
            ("/tmp/tmpx12/out", "/tmp/*"),
            ("1712345678", "1712345678"),
            ("20240501", "20240501"),
            ("deadbeefdeadbeef", "deadbeefdeadbeef"),
            ("1234567890123456789", "1234567890123456789"),
            ("resnet50", "resnet50"),
            ("3e-4", "3e-4"),
            ("2048x2048", "2048x2048"),
            ("llama-2-7b", "llama-2-7b"),
            ("", ""),
        ];
        for (text, masked) in cases {
            assert_eq!(value(text), masked, "{text}");
        }
        assert_eq!(path("/tmp/tmpx12/train.py"), "/tmp/*/train.py");
        assert_eq!(path("/home/a/20240501/t.py"), "/home/a/*/t.py");
    }

    #[test]
    fn names_are_compared_in_one_spelling() {
        for name in [
            "--seed",
            "SEED",
            "trainer.seed",
            "--output_dir",
            "+hydra.run.dir",
            "WANDB_MODE",
            "--rdzv_endpoint",
            "--log-level",
        ] {
            let name = option_name(name);
            assert_eq!(treatment(&name), Treatment::DropValue, "{name}");
        }
        for name in ["--verbose", "-v"] {
            assert_eq!(treatment(&option_name(name)), Treatment::DropFlag);
        }
        for name in ["--batch-size", "-b", "--model", "--resume", "--data", "lr"] {
            assert_eq!(treatment(&option_name(name)), Treatment::Keep, "{name}");
        }
    }

    proptest! {
        #[test]
        fn masking_is_done_once(text in "\\PC{0,40}", dates in "[-_/ 0-9a-fT:.]{0,60}") {
            for text in [text, dates] {
                let once = value(&text);
                prop_assert_eq!(value(&once), once.clone());
                prop_assert!(once.len() <= text.len().max(12));
            }
        }
    }
}
