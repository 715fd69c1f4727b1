//! Where the hook table and a header disagree.

use std::collections::BTreeSet;

use super::header::Header;
use super::table::Table;

/// Parts of names by which a function allocates, gives back, launches, copies or shows memory.
const WORDS: [&str; 31] = [
    "Alloc",
    "BeginCapture",
    "Bind",
    "Cpy",
    "Create",
    "Decompress",
    "Destroy",
    "Discard",
    "EndCapture",
    "Free",
    "Import",
    "Launch",
    "Load",
    "Map",
    "MemGetInfo",
    "MemOp",
    "Memcpy",
    "Memset",
    "Open",
    "Pool",
    "Prefetch",
    "Register",
    "Release",
    "Reserve",
    "Reset",
    "Retain",
    "TotalMem",
    "Trim",
    "Unload",
    "Unmap",
    "GetProcAddress",
];

/// Functions of that kind that are neither hooked nor passed.
pub(super) fn unknown(table: &Table, header: &Header) -> Vec<String> {
    header
        .symbols
        .iter()
        .filter(|symbol| WORDS.iter().any(|word| symbol.contains(word)))
        .filter(|symbol| !table.rows.contains_key(*symbol) && !table.passed.contains_key(*symbol))
        .map(|symbol| {
            format!(
                "{symbol} of {} is neither hooked nor passed",
                header.version_text()
            )
        })
        .collect()
}

/// Versions that only one side has.
pub(super) fn signatures(table: &Table, header: &Header) -> Vec<String> {
    if header.signatures.is_empty() {
        return Vec::new();
    }
    let mut problems = Vec::new();
    if header.version > table.newest {
        problems.push(format!(
            "{} is newer than NEWEST_KNOWN, {}: pointers that no exported symbol has are not routed",
            header.version_text(),
            table.newest
        ));
    }
    for (symbol, row) in &table.rows {
        let declared = header.symbols.contains(symbol);
        if declared && !header.signatures.contains(row) {
            problems.push(format!(
                "{symbol} is not {} of version {} there, as the table has it",
                row.base, row.since
            ));
        }
    }
    let hooked: BTreeSet<&str> = table.rows.values().map(|row| row.base.as_str()).collect();
    let rows: BTreeSet<_> = table.rows.values().collect();
    for signature in &header.signatures {
        if hooked.contains(signature.base.as_str()) && !rows.contains(signature) {
            problems.push(format!(
                "{} of version {}{} has no row",
                signature.base,
                signature.since,
                if signature.per_thread {
                    ", per-thread,"
                } else {
                    ""
                }
            ));
        }
    }
    problems
}

/// What is hooked or passed and no header declares.
pub(super) fn stale(table: &Table, headers: &[Header]) -> Vec<String> {
    table
        .rows
        .keys()
        .chain(table.passed.keys())
        .filter(|symbol| {
            !headers
                .iter()
                .any(|header| header.symbols.contains(*symbol))
        })
        .map(|symbol| format!("{symbol} is in no header"))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table() -> Table {
        Table::parse(
            "call cuMemAlloc_v2 [cuMemAlloc 3020 legacy]\n\
             count cuLaunchHostFunc [cuLaunchHostFunc 9000 legacy]\n",
            "no GPU's:\n  cuMemHostAlloc cuGone\n",
            "NEWEST_KNOWN: i32 = 13_000;",
        )
        .unwrap()
    }

    fn header() -> Header {
        Header::parse(
            "#define CUDA_VERSION 13010\n\
             CUresult CUDAAPI cuMemAlloc_v2(int a);\n\
             CUresult CUDAAPI cuMemHostAlloc(int a);\n\
             CUresult CUDAAPI cuMemSomethingAlloc(int a);\n\
             CUresult CUDAAPI cuDeviceGetName(int a);\n\
             CUresult CUDAAPI cuLaunchHostFunc(int a);\n",
            "PFN_cuMemAlloc_v3020) PFN_cuLaunchHostFunc_v10000) PFN_cuLaunchHostFunc_v13010_ptsz) \
             PFN_cuDeviceGetName_v2000)",
        )
    }

    #[test]
    fn new_functions_are_named() {
        assert_eq!(
            unknown(&table(), &header()),
            ["cuMemSomethingAlloc of CUDA 13.1 is neither hooked nor passed"]
        );
    }

    #[test]
    fn wrong_and_missing_versions_are_named() {
        let found = signatures(&table(), &header());
        assert_eq!(found.len(), 4, "{found:?}");
        assert!(found[0].starts_with("CUDA 13.1 is newer"));
        assert!(found[1].contains("cuLaunchHostFunc of version 9000"));
        assert!(found[2].contains("cuLaunchHostFunc of version 10000 has no row"));
        assert!(found[3].contains("version 13010, per-thread, has no row"));
    }

    #[test]
    fn names_that_no_header_has_are_named() {
        assert_eq!(stale(&table(), &[header()]), ["cuGone is in no header"]);
    }
}
