//! The library can be loaded into any process: what its ELF headers promise.

use std::collections::BTreeSet;
use std::path::Path;
use std::process::Command;

use aegis_shim_tests::build::built;

/// The newest glibc symbol version that may be needed: that of CentOS 7.
const NEWEST_GLIBC: (u32, u32) = (2, 17);
/// Static TLS that a library loaded late can still get.
const MOST_TLS: u64 = 64;

fn readelf(arguments: &[&str]) -> String {
    let output = Command::new("readelf")
        .args(arguments)
        .arg(&built().shim)
        .env("LC_ALL", "C")
        .output()
        .expect("readelf (binutils) runs");
    assert!(output.status.success());
    String::from_utf8(output.stdout).expect("text")
}

/// Dynamic symbols as (name, defined).
fn symbols() -> Vec<(String, bool)> {
    readelf(&["--wide", "--dyn-syms"])
        .lines()
        .filter_map(|line| {
            let words: Vec<&str> = line.split_whitespace().collect();
            let (name, section) = (words.get(7)?, words.get(6)?);
            words.first()?.strip_suffix(':')?.parse::<u32>().ok()?;
            Some(((*name).to_owned(), *section != "UND"))
        })
        .collect()
}

#[test]
fn it_needs_libc_and_nothing_else() {
    let dynamic = readelf(&["--wide", "--dynamic"]);
    let needed: Vec<&str> = dynamic
        .lines()
        .filter(|line| line.contains("(NEEDED)"))
        .collect();
    assert_eq!(needed.len(), 1, "{dynamic}");
    assert!(needed[0].contains("[libc.so.6]"), "{dynamic}");
    let undefined: Vec<String> = symbols()
        .into_iter()
        .filter(|symbol| !symbol.1)
        .map(|symbol| symbol.0)
        .collect();
    assert!(!undefined.is_empty());
    for name in undefined {
        let version = name.split_once("@GLIBC_").map(|(_, version)| version);
        let version = version.unwrap_or_else(|| panic!("{name} is not of libc"));
        let mut numbers = version
            .split('.')
            .map(|part| part.parse::<u32>().expect("a number"));
        let version = (numbers.next().unwrap_or(0), numbers.next().unwrap_or(0));
        assert!(version <= NEWEST_GLIBC, "{name}");
    }
}

#[test]
fn nothing_runs_when_it_is_loaded_or_unloaded() {
    let dynamic = readelf(&["--wide", "--dynamic"]);
    for tag in [
        "(INIT)",
        "(FINI)",
        "(INIT_ARRAY)",
        "(FINI_ARRAY)",
        "(PREINIT_ARRAY)",
        "(TEXTREL)",
    ] {
        assert!(!dynamic.contains(tag), "{dynamic}");
    }
}

#[test]
fn its_thread_local_storage_is_small() {
    let headers = readelf(&["--wide", "--program-headers"]);
    let bytes: u64 = headers
        .lines()
        .filter(|line| line.trim_start().starts_with("TLS"))
        .map(|line| {
            let size = line.split_whitespace().nth(5).expect("a size");
            u64::from_str_radix(size.trim_start_matches("0x"), 16).expect("a number")
        })
        .sum();
    assert!((1..=MOST_TLS).contains(&bytes), "{headers}");
}

#[test]
fn it_exports_the_hooks_and_dlsym_only() {
    let list = Path::new(env!("CARGO_MANIFEST_DIR")).join("../exports.txt");
    let list = std::fs::read_to_string(list).expect("exports.txt");
    let listed: BTreeSet<String> = list
        .lines()
        .filter(|line| !line.starts_with('#'))
        .map(str::to_owned)
        .collect();
    let exported: BTreeSet<String> = symbols()
        .into_iter()
        .filter(|symbol| symbol.1)
        .map(|symbol| symbol.0)
        .collect();
    assert_eq!(exported, listed, "exports.txt is out of date");
    assert!(listed.contains("dlsym"));
    assert!(
        listed
            .iter()
            .all(|name| name == "dlsym" || name.starts_with("cu") || name.starts_with("nvml"))
    );
}
