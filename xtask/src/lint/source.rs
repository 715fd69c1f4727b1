//! A source file as a flat list of tokens: comments and the insides of strings cannot trip a rule,
//! and code inside macro calls is seen like any other.

use std::path::PathBuf;
use std::str::FromStr;

use anyhow::{Result, anyhow};
use proc_macro2::{Delimiter, Group, TokenStream, TokenTree};

/// A token with its line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Token {
    /// Identifier, single punctuation character, bracket, or a literal as written.
    pub(crate) text: String,
    /// From 1.
    pub(crate) line: usize,
    /// Inside an item marked `#[cfg(test)]` or `#[test]`.
    pub(crate) test: bool,
}

/// A parsed file.
#[derive(Clone, Debug)]
pub(crate) struct Source {
    /// Relative to the root.
    pub(crate) path: PathBuf,
    /// Number of lines.
    pub(crate) lines: usize,
    /// All tokens in order.
    pub(crate) tokens: Vec<Token>,
}

impl Source {
    /// Reads a file's text.
    ///
    /// # Errors
    /// It is no Rust.
    pub(crate) fn parse(path: PathBuf, text: &str) -> Result<Self> {
        // A `#!` line is not part of the grammar; `#![…]` is.
        let body = match text.strip_prefix("#!") {
            Some(rest) if !rest.trim_start().starts_with('[') => {
                rest.split_once('\n').map_or("", |(_, rest)| rest)
            }
            _ => text,
        };
        let stream = TokenStream::from_str(body)
            .map_err(|error| anyhow!("{}: cannot be read as Rust: {error}", path.display()))?;
        let in_tests = is_test_file(&path) || begins_with_cfg_test(body);
        let mut tokens = Vec::new();
        flatten(stream, in_tests, &mut tokens);
        Ok(Self {
            path,
            lines: text.lines().count(),
            tokens,
        })
    }

    /// Whether a directory of that name is above the file, or the file is called so.
    pub(crate) fn within(&self, names: &[&str]) -> bool {
        let stem = self.path.file_stem();
        let directories = self.path.parent().into_iter().flat_map(|p| p.iter());
        directories
            .chain(stem)
            .any(|part| names.iter().any(|name| part == *name))
    }

    /// Whether the path starts with this one.
    pub(crate) fn under(&self, directory: &str) -> bool {
        self.path.starts_with(directory)
    }

    /// Lines at which these texts follow each other, in test code only if `tests`.
    pub(crate) fn find<'a>(
        &'a self,
        pattern: &'a [&'a str],
        tests: bool,
    ) -> impl Iterator<Item = usize> + 'a {
        self.tokens
            .windows(pattern.len())
            .filter(move |window| {
                window
                    .iter()
                    .zip(pattern)
                    .all(|(token, text)| token.text == **text)
                    && window.first().is_some_and(|token| tests || !token.test)
            })
            .filter_map(|window| window.first().map(|token| token.line))
    }
}

/// Files that only tests compile: `tests.rs`, and everything below a package's `tests` directory.
/// The packages below the root's `tests/` count as code; their own `tests/` as tests.
/// `#![cfg(test)]` before everything but documentation: the whole file is test code.
fn begins_with_cfg_test(body: &str) -> bool {
    let mut lines = body.lines().map(str::trim);
    lines.find(|line| !line.is_empty() && !line.starts_with("//")) == Some("#![cfg(test)]")
}

fn is_test_file(path: &std::path::Path) -> bool {
    let parts: Vec<_> = path.iter().collect();
    let below_root_tests = usize::from(parts.first().is_some_and(|first| *first == "tests"));
    path.file_stem().is_some_and(|stem| stem == "tests")
        || parts
            .iter()
            .skip(below_root_tests)
            .any(|part| *part == "tests")
        || parts.contains(&std::ffi::OsStr::new("benches"))
}

fn flatten(stream: TokenStream, test: bool, out: &mut Vec<Token>) {
    let mut marked = false;
    let mut previous_hash = false;
    for tree in stream {
        let inside = test || marked;
        match tree {
            TokenTree::Group(group) => {
                if previous_hash && group.delimiter() == Delimiter::Bracket {
                    marked |= marks_test(&group);
                    push_group(group, test, out);
                } else {
                    let ends_item = group.delimiter() == Delimiter::Brace;
                    push_group(group, inside, out);
                    if ends_item {
                        marked = false;
                    }
                }
                previous_hash = false;
            }
            TokenTree::Punct(punct) => {
                out.push(Token {
                    text: punct.as_char().to_string(),
                    line: punct.span().start().line,
                    test: inside,
                });
                if punct.as_char() == ';' {
                    marked = false;
                }
                previous_hash = punct.as_char() == '#' || (previous_hash && punct.as_char() == '!');
            }
            TokenTree::Ident(ident) => {
                out.push(Token {
                    text: ident.to_string(),
                    line: ident.span().start().line,
                    test: inside,
                });
                previous_hash = false;
            }
            TokenTree::Literal(literal) => {
                out.push(Token {
                    text: literal.to_string(),
                    line: literal.span().start().line,
                    test: inside,
                });
                previous_hash = false;
            }
        }
    }
}

fn push_group(group: Group, test: bool, out: &mut Vec<Token>) {
    let (open, close) = match group.delimiter() {
        Delimiter::Parenthesis => ("(", ")"),
        Delimiter::Brace => ("{", "}"),
        Delimiter::Bracket => ("[", "]"),
        Delimiter::None => ("", ""),
    };
    let token = |text: &str, line| Token {
        text: text.to_owned(),
        line,
        test,
    };
    out.push(token(open, group.span_open().start().line));
    flatten(group.stream(), test, out);
    out.push(token(close, group.span_close().start().line));
}

/// `#[test]`, `#[cfg(test)]`, `#[cfg(all(test, …))]`, `#[tokio::test]`; not `#[cfg(not(test))]`.
fn marks_test(attribute: &Group) -> bool {
    let mut tokens = Vec::new();
    flatten(attribute.stream(), false, &mut tokens);
    let texts: Vec<&str> = tokens.iter().map(|t| t.text.as_str()).collect();
    texts == ["test"]
        || texts.ends_with(&[":", ":", "test"])
        || (texts.first() == Some(&"cfg") && texts.contains(&"test") && !texts.contains(&"not"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(path: &str, text: &str) -> Source {
        Source::parse(path.into(), text).unwrap()
    }

    #[test]
    fn comments_and_strings_are_not_code() {
        let source = parse(
            "a.rs",
            "// unsafe\nfn f() { g(\"unsafe\"); }\n/* unsafe */\n",
        );
        assert_eq!(source.find(&["unsafe"], true).count(), 0);
        assert_eq!(source.find(&["g", "("], true).collect::<Vec<_>>(), [2]);
        assert_eq!(source.lines, 3);
    }

    #[test]
    fn test_items_are_told_apart() {
        let text = "fn a() { x.unwrap() }\n#[cfg(test)]\nmod tests {\n fn b() { x.unwrap() }\n}\n\
                    fn c() { x.unwrap() }\n#[test]\nfn d() { x.unwrap() }\n#[cfg(not(test))]\nfn e() { x.unwrap() }\n\
                    #[cfg(test)]\nuse super::y;\nfn f() { select! { z => x.unwrap() } }\n";
        let source = parse("a.rs", text);
        let lines: Vec<_> = source.find(&[".", "unwrap"], false).collect();
        assert_eq!(lines, [1, 6, 10, 13]);
        assert_eq!(source.find(&[".", "unwrap"], true).count(), 6);
    }

    #[test]
    fn test_files_are_told_by_their_path() {
        for path in [
            "a/src/plan/tests.rs",
            "tests/e2e/tests/submit.rs",
            "a/tests/x.rs",
        ] {
            assert!(is_test_file(path.as_ref()), "{path}");
        }
        for path in [
            "tests/simgpu/core/src/lib.rs",
            "tests/e2e/src/world.rs",
            "a/src/test.rs",
        ] {
            assert!(!is_test_file(path.as_ref()), "{path}");
        }
    }

    #[test]
    fn a_file_that_is_only_compiled_for_tests_is_test_code() {
        let text = "//! Doc.\n\n#![cfg(test)]\nfn f() {}";
        let source = Source::parse("a/b.rs".into(), text).unwrap();
        assert!(source.tokens.iter().all(|token| token.test));
        let text = "//! Doc.\nfn f() {}\n// #![cfg(test)]";
        let source = Source::parse("a/b.rs".into(), text).unwrap();
        assert!(source.tokens.iter().all(|token| !token.test));
    }
}
