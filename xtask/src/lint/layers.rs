//! Which module may know which.

use super::{Source, Violation};

/// A rule for the files below a directory.
struct Layer {
    directory: &'static str,
    /// Token sequences that must not occur outside tests.
    forbidden: &'static [&'static [&'static str]],
    why: &'static str,
}

const LAYERS: [Layer; 4] = [
    Layer {
        directory: "aegis-daemon/src/scheduler",
        forbidden: &[
            &["Instant"],
            &["SystemTime"],
            &["std", ":", ":", "fs"],
            &["std", ":", ":", "net"],
            &["std", ":", ":", "env"],
            &["std", ":", ":", "process"],
            &["std", ":", ":", "thread"],
            &["std", ":", ":", "io"],
            &["tokio"],
            &["rand"],
            &["HashMap"],
            &["HashSet"],
            &["println", "!"],
            &["eprintln", "!"],
            &["failpoint"],
        ],
        why: "the scheduler core has no clock, input, output, randomness or hash order: \
              the journal replayed must give the same actions",
    },
    Layer {
        directory: "aegis-daemon/src/cli",
        forbidden: &[
            &["crate", ":", ":", "scheduler"],
            &["crate", ":", ":", "owner"],
            &["crate", ":", ":", "store"],
            &["crate", ":", ":", "api"],
        ],
        why: "the command line knows the daemon only through the wire protocol",
    },
    Layer {
        directory: "aegis-common/src/abi",
        forbidden: &[&["std"], &["alloc"], &["serde"]],
        why: "the ABI is no_std and free of dependencies: the shim links it",
    },
    Layer {
        directory: "aegis-shim/src",
        forbidden: &[
            &["println", "!"],
            &["eprintln", "!"],
            &["std", ":", ":"],
            &["crate", "alloc"],
        ],
        why: "the shim neither prints nor allocates",
    },
];

/// Crates the scheduler core may import from; `std`'s parts are ruled by [`LAYERS`].
const SCHEDULER_CRATES: [&str; 8] = [
    "aegis_common",
    "serde",
    "std",
    "core",
    "self",
    "super",
    "crate",
    "proptest",
];

/// Imports and calls across the layers.
pub(crate) fn check(sources: &[Source]) -> Vec<Violation> {
    let mut found = Vec::new();
    for layer in &LAYERS {
        for source in sources.iter().filter(|s| s.under(layer.directory)) {
            for pattern in layer.forbidden {
                found.extend(source.find(pattern, false).map(|line| Violation {
                    path: Some(source.path.clone()),
                    line,
                    message: format!("`{}` here: {}", pattern.concat(), layer.why),
                }));
            }
        }
    }
    for source in sources
        .iter()
        .filter(|s| s.under("aegis-daemon/src/scheduler"))
    {
        found.extend(scheduler_imports(source));
    }
    found
}

fn scheduler_imports(source: &Source) -> Vec<Violation> {
    let violation = |line, what: &str| Violation {
        path: Some(source.path.clone()),
        line,
        message: format!(
            "`{what}` here: the scheduler core knows only aegis_common, serde and itself"
        ),
    };
    let own_modules: Vec<&str> = source
        .tokens
        .windows(2)
        .filter(|pair| pair[0].text == "mod")
        .map(|pair| pair[1].text.as_str())
        .collect();
    let mut found = Vec::new();
    for window in source.tokens.windows(2) {
        let [use_word, root] = window else { continue };
        let known = SCHEDULER_CRATES.contains(&root.text.as_str())
            || own_modules.contains(&root.text.as_str());
        if use_word.text == "use" && !use_word.test && !known && root.text != ":" {
            found.push(violation(use_word.line, &format!("use {}", root.text)));
        }
    }
    for window in source.tokens.windows(4) {
        let [root, first, second, module] = window else {
            continue;
        };
        if root.text == "crate"
            && first.text == ":"
            && second.text == ":"
            && module.text != "scheduler"
            && !root.test
        {
            found.push(violation(root.line, &format!("crate::{}", module.text)));
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn messages(path: &str, text: &str) -> Vec<String> {
        let source = Source::parse(path.into(), text).unwrap();
        check(&[source]).into_iter().map(|v| v.message).collect()
    }

    #[test]
    fn the_scheduler_core_has_no_clock_and_no_files() {
        let path = "aegis-daemon/src/scheduler/place.rs";
        for bad in [
            "use std::time::Instant;",
            "fn f() { std::fs::read(x); }",
            "use std::collections::HashMap;",
            "use tokio::sync::mpsc;",
            "use crate::store::Journal;",
            "fn f() { crate::failpoint::hit(\"x\"); }",
            "use rusqlite::Connection;",
        ] {
            assert!(!messages(path, bad).is_empty(), "{bad}");
        }
        let good = "mod floor;\nuse std::collections::BTreeMap;\nuse aegis_common::id::JobId;\n\
                    use crate::scheduler::state::State;\nuse super::place;\nuse floor::next;\n\
                    #[cfg(test)] mod tests { use std::time::Instant; }";
        assert_eq!(messages(path, good), Vec::<String>::new());
        assert!(messages("aegis-daemon/src/owner/mod.rs", "use std::time::Instant;").is_empty());
    }

    #[test]
    fn the_command_line_knows_only_the_protocol() {
        let path = "aegis-daemon/src/cli/queue.rs";
        assert_eq!(messages(path, "use crate::scheduler::Core;").len(), 1);
        assert_eq!(
            messages(path, "use crate::cli::table; use aegis_common::wire;").len(),
            0
        );
    }

    #[test]
    fn the_abi_stays_free_of_std() {
        assert_eq!(
            messages("aegis-common/src/abi/mod.rs", "use std::fmt;").len(),
            1
        );
        assert_eq!(
            messages("aegis-common/src/event.rs", "use std::fmt;").len(),
            0
        );
    }
}
