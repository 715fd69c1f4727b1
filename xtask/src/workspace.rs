//! Where things are in this repository.

use std::path::{Path, PathBuf};

/// The repository's root directory.
pub(crate) fn root() -> &'static Path {
    // `xtask` is a direct child of the root.
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .parent()
        .unwrap_or(Path::new("."))
}

/// The two cargo workspaces that are built by tests, with their names for messages.
pub(crate) fn workspaces() -> [(&'static str, PathBuf); 2] {
    [("root", root().to_owned()), ("shim", shim())]
}

/// The shim's workspace.
pub(crate) fn shim() -> PathBuf {
    root().join("aegis-shim")
}

/// All cargo workspaces, with their names for messages.
pub(crate) fn all_workspaces() -> impl Iterator<Item = (&'static str, PathBuf)> {
    workspaces().into_iter().chain([("ebpf", ebpf())])
}

/// The BPF programs' workspace.
pub(crate) fn ebpf() -> PathBuf {
    root().join("aegis-ebpf")
}

/// Build output of the BPF programs' workspace.
pub(crate) fn ebpf_target() -> PathBuf {
    ebpf().join("target")
}

/// Build output of the root workspace, as cargo resolves it.
pub(crate) fn target() -> PathBuf {
    match std::env::var_os("CARGO_TARGET_DIR") {
        Some(directory) => root().join(directory),
        None => root().join("target"),
    }
}

/// Build output of the shim's workspace. Never shared with the root workspace's.
pub(crate) fn shim_target() -> PathBuf {
    shim().join("target")
}

/// The Python environment that `setup` makes.
pub(crate) fn venv() -> PathBuf {
    target().join("venv")
}

/// Every Rust source file below the root, build output left out, sorted.
///
/// # Errors
/// A directory that cannot be read.
pub(crate) fn rust_files(below: &Path) -> std::io::Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    let mut open = vec![below.to_owned()];
    while let Some(directory) = open.pop() {
        for entry in std::fs::read_dir(&directory)? {
            let entry = entry?;
            let path = entry.path();
            let name = entry.file_name();
            // Symbolic links are not followed: `file_type` is the link's own.
            if entry.file_type()?.is_dir() {
                if name != "target" && !name.as_encoded_bytes().starts_with(b".") {
                    open.push(path);
                }
            } else if path.extension().is_some_and(|e| e == "rs") {
                found.push(path);
            }
        }
    }
    found.sort();
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn build_output_and_hidden_directories_are_left_out() {
        let dir = tempfile::tempdir().unwrap();
        for path in ["a/b.rs", "target/c.rs", ".git/d.rs", "e.txt", "f.rs"] {
            let path = dir.path().join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, "").unwrap();
        }
        let found = rust_files(dir.path()).unwrap();
        assert_eq!(found, [dir.path().join("a/b.rs"), dir.path().join("f.rs")]);
    }
}
