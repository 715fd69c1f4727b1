//! Counting from what the test runners write.

use std::fmt;
use std::ops::AddAssign;

/// A test that cannot run here prints this, a reason, and passes.
const SKIP_MARK: &str = "SKIPPED: ";

/// Numbers of tests.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Counts {
    /// Ran and passed.
    pub(crate) passed: u64,
    /// Failed, timed out, or crashed.
    pub(crate) failed: u64,
    /// Did not run, by test name and reason.
    pub(crate) skips: Vec<(String, String)>,
}

impl AddAssign for Counts {
    fn add_assign(&mut self, other: Self) {
        self.passed += other.passed;
        self.failed += other.failed;
        self.skips.extend(other.skips);
    }
}

impl fmt::Display for Counts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            passed,
            failed,
            skips,
        } = self;
        write!(
            f,
            "{passed} passed, {failed} failed, {} skipped",
            skips.len()
        )
    }
}

/// Counts from nextest's JUnit report.
///
/// Only what nextest writes is understood: one element a line, attributes in double quotes. A test
/// retried to success is one passed test.
pub(crate) fn junit(xml: &str) -> Counts {
    let mut counts = Counts::default();
    for case in xml.split("<testcase ").skip(1) {
        let case = case
            .split_once("</testcase>")
            .map_or(case, |(inside, _)| inside);
        let header = case.split_once('>').map_or(case, |(header, _)| header);
        let name = format!(
            "{}::{}",
            attribute(header, "classname").unwrap_or_default(),
            attribute(header, "name").unwrap_or_default()
        );
        let reason = case.lines().find_map(skip_reason);
        if case.contains("<failure") || case.contains("<error") {
            counts.failed += 1;
        } else if case.contains("<skipped") {
            counts.skips.push((name, "ignored".to_owned()));
        } else if let Some(reason) = reason {
            counts.skips.push((name, reason));
        } else {
            counts.passed += 1;
        }
    }
    counts
}

/// Counts from libtest's `test result:` lines.
pub(crate) fn libtest(text: &str) -> Counts {
    let mut counts = Counts::default();
    for line in text.lines().filter(|l| l.starts_with("test result:")) {
        for part in line.split([';', '.']) {
            let mut words = part.split_whitespace();
            if let (Some(Ok(number)), Some(what)) = (words.next().map(str::parse), words.next()) {
                match what {
                    "passed" => counts.passed += number,
                    "failed" => counts.failed += number,
                    "ignored" => {
                        for _ in 0..number {
                            counts
                                .skips
                                .push(("documentation test".to_owned(), "ignored".to_owned()));
                        }
                    }
                    _ => {}
                }
            }
        }
    }
    counts
}

fn skip_reason(line: &str) -> Option<String> {
    // The first line of an output follows its opening tag at once, the last one precedes the
    // closing tag; what the test wrote itself has its brackets escaped.
    let line = line.split_once("</").map_or(line, |(line, _)| line);
    let line = line.rsplit_once('>').map_or(line, |(_, rest)| rest);
    line.trim_start().strip_prefix(SKIP_MARK).map(unescaped)
}

fn attribute<'a>(header: &'a str, name: &str) -> Option<&'a str> {
    let rest = header
        .split_once(&format!(" {name}=\""))
        .or_else(|| {
            header
                .strip_prefix(&format!("{name}=\""))
                .map(|rest| ("", rest))
        })?
        .1;
    rest.split_once('"').map(|(value, _)| value)
}

fn unescaped(text: &str) -> String {
    [
        ("&lt;", "<"),
        ("&gt;", ">"),
        ("&quot;", "\""),
        ("&apos;", "'"),
        ("&amp;", "&"),
    ]
    .iter()
    .fold(text.trim().to_owned(), |text, (from, to)| {
        text.replace(from, to)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const REPORT: &str = r#"<?xml version="1.0" encoding="UTF-8"?>
<testsuites name="nextest-run" tests="5" failures="1" errors="0" uuid="x">
    <testsuite name="e2e::root" tests="5" disabled="0" errors="0" failures="1">
        <testcase name="as_submitter" classname="e2e::root" time="0.004">
            <system-out>
running 1 test
SKIPPED: needs root &amp; a second user
test as_submitter ... ok
</system-out>
        </testcase>
        <testcase name="first" classname="e2e::root" time="0.004">
            <system-err>SKIPPED: no java</system-err>
        </testcase>
        <testcase name="plain" classname="e2e::root" time="0.004"/>
        <testcase name="said" classname="e2e::root" time="0.004">
            <system-out>nothing was SKIPPED: here</system-out>
        </testcase>
        <testcase name="bad" classname="e2e::root" time="0.004">
            <failure type="test failure">SKIPPED: not an excuse</failure>
        </testcase>
    </testsuite>
</testsuites>"#;

    #[test]
    fn a_report_is_counted_by_outcome() {
        let counts = junit(REPORT);
        assert_eq!((counts.passed, counts.failed), (2, 1));
        assert_eq!(
            counts.skips,
            [
                (
                    "e2e::root::as_submitter".to_owned(),
                    "needs root & a second user".to_owned()
                ),
                ("e2e::root::first".to_owned(), "no java".to_owned()),
            ]
        );
        assert_eq!(counts.to_string(), "2 passed, 1 failed, 2 skipped");
    }

    #[test]
    fn libtest_lines_are_summed() {
        let text = "\nrunning 3 tests\n...\ntest result: ok. 3 passed; 0 failed; 1 ignored; 0 measured; \
                    0 filtered out; finished in 0.5s\ntest result: FAILED. 1 passed; 2 failed; 0 ignored; \
                    0 measured; 0 filtered out; finished in 1.2s\n";
        assert_eq!(libtest(text).to_string(), "4 passed, 2 failed, 1 skipped");
    }
}
