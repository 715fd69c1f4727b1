//! File length: 500 lines at most; above 400 is worth a look.

use super::{Source, Violation};

const MOST: usize = 500;
const LONG: usize = 400;

/// Files above the limit. Long ones are only mentioned.
pub(crate) fn check(sources: &[Source]) -> Vec<Violation> {
    for source in sources.iter().filter(|s| s.lines > LONG && s.lines <= MOST) {
        println!(
            "lint: length: note: {} has {} lines",
            source.path.display(),
            source.lines
        );
    }
    sources
        .iter()
        .filter(|source| source.lines > MOST)
        .map(|source| Violation {
            path: Some(source.path.clone()),
            line: 0,
            message: format!(
                "{} lines, at most {MOST} are allowed: split it",
                source.lines
            ),
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_limit_is_inclusive() {
        let source =
            |lines: usize| Source::parse("a.rs".into(), &"fn a() {}\n".repeat(lines)).unwrap();
        assert!(check(&[source(500)]).is_empty());
        assert_eq!(check(&[source(501)]).len(), 1);
    }
}
