//! Reading `cuda.h` and `cudaTypedefs.h`: which functions a driver exports, and in which versions.

use std::collections::BTreeSet;
use std::path::Path;

use anyhow::{Context, Result, bail};

/// A signature as `cuGetProcAddress` tells it from others of its name.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Signature {
    /// The name it is asked for by.
    pub(super) base: String,
    /// The CUDA version that brought it, 1000 x major + 10 x minor.
    pub(super) since: u32,
    /// For per-thread default streams.
    pub(super) per_thread: bool,
}

/// What a CUDA version declares.
#[derive(Debug, Default)]
pub(super) struct Header {
    /// `CUDA_VERSION`.
    pub(super) version: u32,
    /// Exported symbols, old versions and per-thread variants included.
    pub(super) symbols: BTreeSet<String>,
    /// Empty without `cudaTypedefs.h`.
    pub(super) signatures: BTreeSet<Signature>,
}

impl Header {
    /// Reads a `cuda.h`, and the `cudaTypedefs.h` beside it if there is one.
    ///
    /// # Errors
    /// It cannot be read, or declares no driver function.
    pub(super) fn read(path: &Path) -> Result<Self> {
        let read = |path: &Path| {
            std::fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))
        };
        let text = read(path)?;
        let typedefs = path.with_file_name("cudaTypedefs.h");
        let typedefs = if typedefs.exists() {
            read(&typedefs)?
        } else {
            String::new()
        };
        let header = Self::parse(&text, &typedefs);
        if header.symbols.is_empty() || header.version == 0 {
            bail!("{} is no cuda.h", path.display());
        }
        Ok(header)
    }

    /// What two texts declare.
    pub(super) fn parse(cuda: &str, typedefs: &str) -> Self {
        let mut header = Self::default();
        for line in cuda.lines() {
            let words: Vec<&str> = line.split_ascii_whitespace().collect();
            match words.as_slice() {
                ["#define", "CUDA_VERSION", version, ..] => {
                    header.version = version.parse().unwrap_or(0);
                }
                ["#define", name, target, ..] if is_driver_name(name) => {
                    header.symbols.extend(targets(target));
                }
                _ => {}
            }
        }
        // A name may follow on the next line.
        let declarations = cuda.split("CUDAAPI").skip(1).filter_map(declared);
        header.symbols.extend(declarations.map(str::to_owned));
        header.signatures = typedefs
            .split("PFN_")
            .skip(1)
            .filter_map(signature)
            .collect();
        header
    }

    /// As people write it.
    pub(super) fn version_text(&self) -> String {
        format!("CUDA {}.{}", self.version / 1000, self.version % 1000 / 10)
    }
}

/// `cuName` of `… CUDAAPI cuName(…`, without what stands before the name.
fn declared(rest: &str) -> Option<&str> {
    let (name, _) = rest.trim_start().split_once('(')?;
    (is_driver_name(name) && name.chars().all(is_name)).then_some(name)
}

/// The symbols that a name is mapped to: `cuName_v2`, or with `__CUDA_API_PTSZ(cuName_v2)` that and
/// its per-thread variant.
fn targets(target: &str) -> Vec<String> {
    for (macro_name, suffix) in [("__CUDA_API_PTSZ(", "_ptsz"), ("__CUDA_API_PTDS(", "_ptds")] {
        if let Some(name) = target
            .strip_prefix(macro_name)
            .and_then(|rest| rest.strip_suffix(')'))
        {
            return vec![name.to_owned(), format!("{name}{suffix}")];
        }
    }
    if is_driver_name(target) && target.chars().all(is_name) {
        vec![target.to_owned()]
    } else {
        Vec::new()
    }
}

/// `cuName_v12080_ptsz)…`. Names without a version stand for the newest one.
fn signature(text: &str) -> Option<Signature> {
    let (name, _) = text.split_once(|c| !is_name(c))?;
    let stripped = name
        .strip_suffix("_ptsz")
        .or_else(|| name.strip_suffix("_ptds"));
    let (base, version) = stripped.unwrap_or(name).rsplit_once("_v")?;
    Some(Signature {
        base: base.to_owned(),
        since: version.parse().ok()?,
        per_thread: stripped.is_some(),
    })
}

fn is_name(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == '_'
}

fn is_driver_name(name: &str) -> bool {
    name.strip_prefix("cu")
        .is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_uppercase()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn declarations_and_renamings_are_exports() {
        let header = Header::parse(
            "#define CUDA_VERSION 13050\n\
             #define cuMemAlloc       cuMemAlloc_v2\n\
             #define cuMemcpy  __CUDA_API_PTDS(cuMemcpy)\n\
             #define cudaNot  cudaNot_v2\n\
             #define cuWeird(x) x\n\
             __CUDA_DEPRECATED CUresult CUDAAPI cuLaunch(CUfunction f);\n\
             CUresult CUDAAPI cuMemAlloc(CUdeviceptr *dptr, size_t bytesize);\n\
             CUresult CUDAAPI\ncuLinkDestroy(CUlinkState state);\n\
             /* CUDAAPI in a comment */\n",
            "typedef CUresult (CUDAAPI *PFN_cuMemAlloc_v3020)(CUdeviceptr_v2 *dptr);\n\
             #define PFN_cuMemAlloc  PFN_cuMemAlloc_v3020\n\
             typedef CUresult (CUDAAPI *PFN_cuMemcpy_v7000_ptds)(CUdeviceptr_v2 dst);\n",
        );
        assert_eq!(header.version, 13050);
        let symbols: Vec<&str> = header.symbols.iter().map(String::as_str).collect();
        assert_eq!(
            symbols,
            [
                "cuLaunch",
                "cuLinkDestroy",
                "cuMemAlloc",
                "cuMemAlloc_v2",
                "cuMemcpy",
                "cuMemcpy_ptds"
            ]
        );
        let signatures: Vec<(&str, u32, bool)> = header
            .signatures
            .iter()
            .map(|s| (s.base.as_str(), s.since, s.per_thread))
            .collect();
        assert_eq!(
            signatures,
            [("cuMemAlloc", 3020, false), ("cuMemcpy", 7000, true)]
        );
        assert_eq!(header.version_text(), "CUDA 13.5");
    }
}
