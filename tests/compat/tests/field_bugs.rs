//! The shim's table of field bugs names tests: each exists.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

fn sources(below: &Path, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(below).expect("a directory") {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            if !path.ends_with("target") {
                sources(&path, found);
            }
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            found.push(path);
        }
    }
}

/// Functions with a test attribute below the directories.
fn tests(directories: &[PathBuf]) -> BTreeSet<String> {
    let mut files = Vec::new();
    for directory in directories {
        sources(directory, &mut files);
    }
    let mut names = BTreeSet::new();
    for file in files {
        let text = std::fs::read_to_string(file).expect("text");
        let mut marked = false;
        for line in text.lines().map(str::trim) {
            match line.strip_prefix("fn ") {
                Some(rest) if marked => {
                    names.extend(rest.split('(').next().map(str::to_owned));
                    marked = false;
                }
                _ if line == "#[test]" => marked = true,
                _ => {}
            }
        }
    }
    names
}

#[test]
fn every_test_of_the_table_exists() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let table = std::fs::read_to_string(root.join("aegis-shim/README.md")).expect("the table");
    let known = tests(&["aegis-shim", "tests"].map(|directory| root.join(directory)));
    let rows = table.lines().filter(|line| line.starts_with("| ")).skip(1);
    let mut count = 0;
    for row in rows {
        let named = row.rsplit('|').nth(1).expect("a last column");
        let mut names = named.split('`').skip(1).step_by(2).peekable();
        assert!(names.peek().is_some(), "no test in: {row}");
        for name in names {
            assert!(known.contains(name), "there is no test `{name}`");
            count += 1;
        }
    }
    assert!(count >= 30, "{count} tests named");
}
