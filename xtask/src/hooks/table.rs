//! Reading the shim's hook table and the list of what it leaves alone.

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::{Context, Result, bail};

use super::header::Signature;

/// What the shim knows.
#[derive(Debug, Default)]
pub(super) struct Table {
    /// Hooked symbols and what they are asked for by.
    pub(super) rows: BTreeMap<String, Signature>,
    /// Symbols that are left alone, with the reason.
    pub(super) passed: BTreeMap<String, String>,
    /// The newest CUDA version whose signatures the look-up takes for known.
    pub(super) newest: u32,
}

impl Table {
    /// Reads them below the shim's directory.
    ///
    /// # Errors
    /// A file is missing or is not what it should be.
    pub(super) fn read(shim: &Path) -> Result<Self> {
        let read = |name: &str| {
            let path = shim.join(name);
            std::fs::read_to_string(&path)
                .with_context(|| format!("cannot read {}", path.display()))
        };
        Self::parse(
            &read("src/hooks/table.rs")?,
            &read("passed.txt")?,
            &read("core/src/names.rs")?,
        )
    }

    /// From the three texts.
    pub(super) fn parse(table: &str, passed: &str, names: &str) -> Result<Self> {
        let rows: BTreeMap<_, _> = table.lines().filter_map(row).collect();
        if rows.is_empty() {
            bail!("the hook table has no rows");
        }
        let newest = names
            .lines()
            .find_map(|line| line.split_once("NEWEST_KNOWN: i32 = "))
            .and_then(|(_, value)| value.trim_end_matches(';').replace('_', "").parse().ok())
            .context("NEWEST_KNOWN is not where it was")?;
        Ok(Self {
            rows,
            passed: reasons(passed)?,
            newest,
        })
    }

    /// What is both hooked and passed.
    pub(super) fn contradictions(&self) -> Vec<String> {
        self.passed
            .keys()
            .filter(|name| self.rows.contains_key(*name))
            .map(|name| format!("{name} is hooked and in passed.txt"))
            .collect()
    }
}

/// `kind symbol [base since stream]…`.
fn row(line: &str) -> Option<(String, Signature)> {
    let (head, rest) = line.trim_start().split_once('[')?;
    let mut head = head.split_ascii_whitespace();
    let kind = head.next()?;
    let symbol = head.next()?;
    if !matches!(kind, "call" | "count" | "launch") || !symbol.starts_with("cu") {
        return None;
    }
    let (inner, _) = rest.split_once(']')?;
    let mut inner = inner.split_ascii_whitespace();
    let signature = Signature {
        base: inner.next()?.to_owned(),
        since: inner.next()?.parse().ok()?,
        per_thread: inner.next()? == "per_thread",
    };
    Some((symbol.to_owned(), signature))
}

/// A reason, ended by a colon, and below it, indented, the names.
fn reasons(text: &str) -> Result<BTreeMap<String, String>> {
    let mut passed = BTreeMap::new();
    let mut reason = None;
    let lines = text.lines().enumerate();
    for (number, line) in lines.filter(|(_, line)| !line.is_empty() && !line.starts_with('#')) {
        if let Some(names) = line.strip_prefix("  ") {
            let reason = reason.with_context(|| format!("passed.txt:{}: no reason", number + 1))?;
            for name in names.split_ascii_whitespace() {
                if passed
                    .insert(name.to_owned(), str::to_owned(reason))
                    .is_some()
                {
                    bail!("passed.txt:{}: {name} is there twice", number + 1);
                }
            }
        } else {
            let ended = line.strip_suffix(':');
            reason = Some(ended.with_context(|| format!("passed.txt:{}: no colon", number + 1))?);
        }
    }
    Ok(passed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_and_reasons_are_read() {
        let table = Table::parse(
            "    call cuMemAlloc_v2 [cuMemAlloc 3020 legacy]\n        (out: *mut u64) => a::b;\n\
             count cuMemcpy_ptds [cuMemcpy 7000 per_thread] += copies;\n\
             call nvmlDeviceGetMemoryInfo [nvmlDeviceGetMemoryInfo 0 legacy]\n",
            "# note\n\nno GPU's:\n  cuMemHostAlloc\n  cuMemFreeHost cuMemAllocHost\n",
            "pub const NEWEST_KNOWN: i32 = 13_030;\n",
        )
        .unwrap();
        assert_eq!(table.rows.len(), 2);
        assert!(table.rows["cuMemcpy_ptds"].per_thread);
        assert_eq!(table.rows["cuMemAlloc_v2"].since, 3020);
        assert_eq!(table.passed.len(), 3);
        assert_eq!(table.passed["cuMemAllocHost"], "no GPU's");
        assert_eq!(table.newest, 13030);
    }

    #[test]
    fn a_list_without_reasons_is_refused() {
        for (list, expected) in [
            ("  cuA\n", "passed.txt:1: no reason"),
            ("why:\n  cuA cuA\n", "passed.txt:2: cuA is there twice"),
            ("why\n", "passed.txt:1: no colon"),
        ] {
            assert_eq!(reasons(list).unwrap_err().to_string(), expected);
        }
    }

    #[test]
    fn the_shims_own_are_read_and_agree_with_its_exports() {
        let shim = crate::workspace::shim();
        let table = Table::read(&shim).unwrap();
        assert!(table.contradictions().is_empty());
        let exports = std::fs::read_to_string(shim.join("exports.txt")).unwrap();
        let exported: Vec<&str> = exports.lines().filter(|l| l.starts_with("cu")).collect();
        let hooked: Vec<&str> = table.rows.keys().map(String::as_str).collect();
        assert_eq!(hooked, exported);
        // The shim's look-up by name relies on it.
        for row in table.rows.values() {
            assert!(
                table.rows.contains_key(&row.base),
                "{} is no symbol",
                row.base
            );
        }
    }
}
