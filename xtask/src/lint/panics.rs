//! Nothing the daemon or the shim runs may panic on purpose.

use super::{Source, Violation};

/// Code that must not panic.
const PLACES: [&str; 4] = [
    "aegis-daemon/src",
    "aegis-common/src",
    "aegis-shim/src",
    "aegis-shim/core/src",
];

/// What panics.
const PATTERNS: [&[&str]; 8] = [
    &[".", "unwrap", "("],
    &[".", "unwrap_err", "("],
    &[".", "expect", "("],
    &[".", "expect_err", "("],
    &["panic", "!"],
    &["unreachable", "!"],
    &["todo", "!"],
    &["unimplemented", "!"],
];

/// Exceptions: file, first two or three tokens joined, and why it cannot happen.
const ALLOWED: [(&str, &str, &str); 0] = [];

/// Panicking calls outside tests, and exceptions that are no longer needed.
pub(crate) fn check(sources: &[Source]) -> Vec<Violation> {
    check_with(sources, &ALLOWED)
}

fn check_with(sources: &[Source], allowed: &[(&str, &str, &str)]) -> Vec<Violation> {
    let mut used = vec![false; allowed.len()];
    let mut found = Vec::new();
    for source in sources.iter().filter(|s| PLACES.iter().any(|p| s.under(p))) {
        for pattern in PATTERNS {
            let text = pattern.concat();
            for line in source.find(pattern, false) {
                let excuse = allowed.iter().position(|(path, what, _)| {
                    source.path == std::path::Path::new(path) && text == *what
                });
                if let Some(slot) = excuse.and_then(|index| used.get_mut(index)) {
                    *slot = true;
                    continue;
                }
                found.push(Violation {
                    path: Some(source.path.clone()),
                    line,
                    message: format!(
                        "`{text}` can end the daemon or a training process: return an error"
                    ),
                });
            }
        }
    }
    for ((path, what, _), _) in allowed.iter().zip(&used).filter(|(_, used)| !**used) {
        found.push(Violation {
            path: Some(path.into()),
            line: 0,
            message: format!("the exception for `{what}` in lint/panics.rs is no longer needed"),
        });
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "fn f() { a.unwrap(); b.expect(\"x\"); panic!(\"y\"); c.unwrap_or(1); }\n\
                        #[cfg(test)] mod tests { fn g() { a.unwrap() } }";

    fn source(path: &str) -> Source {
        Source::parse(path.into(), TEXT).unwrap()
    }

    #[test]
    fn panics_count_only_in_the_daemon_and_the_shim() {
        assert_eq!(
            check_with(&[source("aegis-daemon/src/api/mod.rs")], &[]).len(),
            3
        );
        assert_eq!(
            check_with(&[source("aegis-shim/core/src/a.rs")], &[]).len(),
            3
        );
        assert!(check_with(&[source("xtask/src/main.rs")], &[]).is_empty());
    }

    #[test]
    fn exceptions_apply_to_one_file_and_must_be_needed() {
        let allowed = [("aegis-daemon/src/a.rs", "panic!", "why")];
        assert_eq!(
            check_with(&[source("aegis-daemon/src/a.rs")], &allowed).len(),
            2
        );
        let other = check_with(&[source("aegis-daemon/src/b.rs")], &allowed);
        assert_eq!(other.len(), 4);
        assert!(other[3].message.contains("no longer needed"));
    }
}
