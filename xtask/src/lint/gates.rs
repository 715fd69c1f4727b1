//! What the built preload library must look like (readelf on the release build).
//!
//! It is loaded into every process of every job, whatever C library version and threads that has:
//! it may need nothing but an old libc, run nothing by itself, and export nothing but its hooks.

use std::collections::BTreeSet;
use std::process::Command;

use anyhow::{Context, Result};

use super::Violation;
use crate::artifacts::{Profile, build_shim};
use crate::command::capture;
use crate::workspace::shim;

/// Newest glibc version a symbol may be bound to (CentOS 7's).
const GLIBC: (u32, u32) = (2, 17);
/// Most bytes of thread-local storage: it comes from the small static reserve of glibc.
const TLS_BYTES: u64 = 64;
/// Sections whose presence means code that runs at load or unload.
const RUNS_BY_ITSELF: [&str; 6] = [
    ".init_array",
    ".fini_array",
    ".preinit_array",
    ".ctors",
    ".dtors",
    ".init",
];
/// The hook list, one exported name a line, kept by hand in the shim's workspace.
const EXPORTS: &str = "exports.txt";

/// Builds the shim and looks at it.
pub(crate) fn check() -> Result<Vec<Violation>> {
    let library = build_shim(Profile::Release)?;
    let readelf = |arguments: &[&str]| {
        capture(
            Command::new("readelf")
                .env("LC_ALL", "C")
                .arg("--wide")
                .args(arguments)
                .arg(&library),
        )
    };
    let listed = shim().join(EXPORTS);
    let exports = std::fs::read_to_string(&listed)
        .with_context(|| format!("cannot read the hook list {}", listed.display()))?;
    let symbols = readelf(&["--dyn-syms"])?;
    let mut problems = needed(&readelf(&["--dynamic"])?);
    problems.extend(glibc(&readelf(&["--version-info"])?));
    problems.extend(sections(&readelf(&["--section-headers"])?));
    problems.extend(tls(&readelf(&["--program-headers"])?));
    problems.extend(undefined(&symbols));
    problems.extend(exported(&symbols, &exports));
    let violation = |message| Violation {
        path: Some("aegis-shim".into()),
        line: 0,
        message,
    };
    Ok(problems.into_iter().map(violation).collect())
}

/// Libraries other than libc, from `--dynamic`.
fn needed(text: &str) -> Vec<String> {
    let libraries: Vec<&str> = text
        .lines()
        .filter(|line| line.contains("(NEEDED)"))
        .filter_map(bracketed)
        .collect();
    if libraries == ["libc.so.6"] {
        Vec::new()
    } else {
        vec![format!("needs {libraries:?}, must need libc.so.6 alone")]
    }
}

/// Versions above [`GLIBC`], from `--version-info`.
fn glibc(text: &str) -> Vec<String> {
    text.split_whitespace()
        .filter_map(|word| word.strip_prefix("GLIBC_"))
        .collect::<BTreeSet<_>>()
        .into_iter()
        .filter(|version| {
            let mut parts = version.split('.').map(str::parse::<u32>);
            match (parts.next(), parts.next()) {
                (Some(Ok(major)), Some(Ok(minor))) => (major, minor) > GLIBC,
                // GLIBC_PRIVATE changes without notice.
                _ => true,
            }
        })
        .map(|version| {
            format!(
                "binds GLIBC_{version}, at most GLIBC_{}.{} is allowed",
                GLIBC.0, GLIBC.1
            )
        })
        .collect()
}

/// Sections that run code, from `--section-headers`.
fn sections(text: &str) -> Vec<String> {
    let names: Vec<&str> = text.split_whitespace().collect();
    RUNS_BY_ITSELF
        .iter()
        .filter(|name| names.contains(name))
        .map(|name| format!("has a section {name}: nothing may run at load or unload"))
        .collect()
}

/// Thread-local bytes, from `--program-headers`.
fn tls(text: &str) -> Vec<String> {
    text.lines()
        .filter_map(|line| {
            let fields: Vec<&str> = line.split_whitespace().collect();
            // Type, offset, virtual and physical address, size in the file, size in memory.
            match fields.as_slice() {
                ["TLS", _, _, _, _, size, ..] => {
                    let digits = size.strip_prefix("0x").unwrap_or(size);
                    Some(u64::from_str_radix(digits, 16).unwrap_or(u64::MAX))
                }
                _ => None,
            }
        })
        .filter(|size| *size > TLS_BYTES)
        .map(|size| {
            format!("has {size} bytes of thread-local storage, at most {TLS_BYTES} are allowed")
        })
        .collect()
}

/// Undefined symbols that no libc promises, from `--dyn-syms`.
fn undefined(text: &str) -> Vec<String> {
    symbols(text)
        .filter(|(section, name)| *section == "UND" && !name.contains("@GLIBC_"))
        .map(|(_, name)| format!("leaves `{name}` undefined: a process without it would not start"))
        .collect()
}

/// Differences between the exports, from `--dyn-syms`, and the list.
fn exported(text: &str, list: &str) -> Vec<String> {
    let wanted: BTreeSet<&str> = list
        .lines()
        .map(str::trim)
        .filter(|line| !line.is_empty() && !line.starts_with('#'))
        .collect();
    let found: BTreeSet<&str> = symbols(text)
        .filter(|(section, _)| *section != "UND")
        .map(|(_, name)| name.split('@').next().unwrap_or(name))
        .collect();
    let unlisted = found
        .difference(&wanted)
        .map(|name| format!("exports `{name}`, which {EXPORTS} does not list"));
    let missing = wanted
        .difference(&found)
        .map(|name| format!("does not export `{name}`, which {EXPORTS} lists"));
    unlisted.chain(missing).collect()
}

/// Section index and name of each dynamic symbol.
fn symbols(text: &str) -> impl Iterator<Item = (&str, &str)> {
    text.lines().filter_map(|line| {
        let fields: Vec<&str> = line.split_whitespace().collect();
        // Num:, value, size, type, bind, visibility, section, name, and perhaps (version index).
        match fields.as_slice() {
            [number, _, _, _, "GLOBAL" | "WEAK", _, section, name, ..] if number.ends_with(':') => {
                Some((*section, *name))
            }
            _ => None,
        }
    })
}

fn bracketed(line: &str) -> Option<&str> {
    line.split_once('[')?
        .1
        .split_once(']')
        .map(|(name, _)| name)
}

#[cfg(test)]
mod tests;
