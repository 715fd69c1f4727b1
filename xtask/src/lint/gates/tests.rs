//! Each gate on a library that passes and on one that does not.

use super::*;

const DYNAMIC: &str = "\
Dynamic section at offset 0x1df8 contains 20 entries:
  Tag        Type                         Name/Value
 0x0000000000000001 (NEEDED)             Shared library: [libc.so.6]
 0x000000000000000e (SONAME)             Library soname: [libaegis_shim.so]
";

const SYMBOLS: &str = "\
Symbol table '.dynsym' contains 4 entries:
   Num:    Value          Size Type    Bind   Vis      Ndx Name
     0: 0000000000000000     0 NOTYPE  LOCAL  DEFAULT  UND 
     1: 0000000000000000     0 FUNC    GLOBAL DEFAULT  UND dl_iterate_phdr@GLIBC_2.2.5 (2)
     2: 0000000000001120    33 FUNC    GLOBAL DEFAULT   10 cuInit
     3: 0000000000001150    33 FUNC    GLOBAL DEFAULT   10 dlsym
";

#[test]
fn only_libc_is_needed() {
    assert!(needed(DYNAMIC).is_empty());
    let more = format!("{DYNAMIC} 0x0000000000000001 (NEEDED)  Shared library: [libgcc_s.so.1]\n");
    assert!(needed(&more)[0].contains("libgcc_s.so.1"));
    assert_eq!(needed("").len(), 1);
}

#[test]
fn new_glibc_versions_are_refused() {
    assert!(
        glibc("  0x0010:   Name: GLIBC_2.2.5  Flags: none  Version: 2\n Name: GLIBC_2.17")
            .is_empty()
    );
    assert!(glibc("Name: GLIBC_2.34  Flags: none")[0].contains("GLIBC_2.34"));
    assert_eq!(glibc("Name: GLIBC_2.18 Name: GLIBC_PRIVATE").len(), 2);
}

#[test]
fn nothing_may_run_at_load() {
    assert!(sections("  [ 9] .text  PROGBITS\n  [10] .initial PROGBITS").is_empty());
    for bad in [".init_array", ".fini_array", ".ctors"] {
        assert_eq!(
            sections(&format!("  [17] {bad} INIT_ARRAY 0000")).len(),
            1,
            "{bad}"
        );
    }
}

#[test]
fn thread_local_storage_is_small() {
    let header = |size: &str| {
        format!(
            "  TLS            0x002df8 0x3df8 0x3df8 0x000000 {size} R   0x8\n  LOAD 0x0 0x0 0x0 0x999999 0x999999 R 0x1000"
        )
    };
    assert!(tls(&header("0x000040")).is_empty());
    assert_eq!(tls(&header("0x000048")).len(), 1);
    assert!(tls("").is_empty());
}

#[test]
fn every_undefined_symbol_is_libc_s() {
    assert!(undefined(SYMBOLS).is_empty());
    let more = format!(
        "{SYMBOLS}     4: 0000000000000000     0 FUNC    WEAK   DEFAULT  UND __gmon_start__\n"
    );
    assert!(undefined(&more)[0].contains("__gmon_start__"));
}

#[test]
fn exports_equal_the_list() {
    assert!(exported(SYMBOLS, "# hooks\ncuInit\ndlsym\n").is_empty());
    let problems = exported(SYMBOLS, "cuInit\ncuMemAlloc_v2\n");
    assert_eq!(problems.len(), 2);
    assert!(problems[0].starts_with("exports `dlsym`"));
    assert!(problems[1].starts_with("does not export `cuMemAlloc_v2`"));
}
