//! Lints are suppressed with `#[expect(…, reason = "…")]`, which complains when it is no longer
//! needed; never with `#[allow]`.

use super::{Source, Violation};

/// `allow` attributes.
pub(crate) fn check(sources: &[Source]) -> Vec<Violation> {
    sources
        .iter()
        .flat_map(|source| {
            let outer = source.find(&["#", "[", "allow", "("], true);
            let inner = source.find(&["#", "!", "[", "allow", "("], true);
            outer.chain(inner).map(|line| Violation {
                path: Some(source.path.clone()),
                line,
                message: "use #[expect(lint, reason = \"…\")] instead of allow".to_owned(),
            })
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn allow_is_found_in_both_forms() {
        let text = "#![allow(x)]\n#[allow(y)]\nfn f() { allow(z) }\n#[expect(w, reason = \"\")]\nfn g() {}";
        let source = Source::parse("a.rs".into(), text).unwrap();
        let lines: Vec<_> = check(&[source]).into_iter().map(|v| v.line).collect();
        assert_eq!(lines, [2, 1]);
    }
}
