//! `unsafe` only where a reader expects it: in `ffi`, `hooks` and `sys` files and directories.

use super::{Source, Violation};

const HOMES: [&str; 3] = ["ffi", "hooks", "sys"];

/// Uses of `unsafe` elsewhere, tests included.
pub(crate) fn check(sources: &[Source]) -> Vec<Violation> {
    sources
        .iter()
        .filter(|source| !source.within(&HOMES))
        .flat_map(|source| {
            source.find(&["unsafe"], true).map(|line| Violation {
                path: Some(source.path.clone()),
                line,
                message: "`unsafe` outside a file or directory called ffi, hooks or sys".to_owned(),
            })
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(path: &str, text: &str) -> usize {
        check(&[Source::parse(path.into(), text).unwrap()]).len()
    }

    #[test]
    fn unsafe_is_confined() {
        let text = "fn f() { unsafe { g() } }\n#[unsafe(no_mangle)]\nextern \"C\" fn h() {}";
        assert_eq!(lines("a/src/table.rs", text), 2);
        for home in [
            "a/src/sys.rs",
            "a/src/hooks/alloc.rs",
            "a/src/ffi/mod.rs",
            "a/sys/deep/b.rs",
        ] {
            assert_eq!(lines(home, text), 0, "{home}");
        }
        assert_eq!(lines("a/src/system.rs", text), 2);
    }

    #[test]
    fn the_lint_of_that_name_is_no_use() {
        assert_eq!(
            lines("a.rs", "#![forbid(unsafe_code)]\n// unsafe\nfn f() {}"),
            0
        );
    }
}
