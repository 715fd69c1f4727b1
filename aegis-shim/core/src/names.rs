//! Finding a hook: by exact symbol name, or by what `cuGetProcAddress` was asked for.
#![forbid(unsafe_code)]

use core::cmp::Ordering;

/// One exported driver symbol that is hooked.
#[derive(Clone, Copy, Debug)]
pub struct Route {
    /// The exported symbol, e.g. `cuMemAllocAsync_ptsz`.
    pub symbol: &'static str,
    /// The name `cuGetProcAddress` knows it by, e.g. `cuMemAllocAsync`.
    pub base: &'static str,
    /// The CUDA version (1000 x major + 10 x minor) that brought this signature.
    pub since: i32,
    /// Works on the per-thread default stream (`_ptds`, `_ptsz`).
    pub per_thread: bool,
}

/// `CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM`.
pub const FLAG_PER_THREAD: u64 = 2;
/// `CU_GET_PROC_ADDRESS_LEGACY_STREAM`, which wins over the flag above.
pub const FLAG_LEGACY: u64 = 1;
/// The newest CUDA whose signatures the table was checked against. A newer version may bring a new
/// signature under a known name, so it is not routed by name.
pub const NEWEST_KNOWN: i32 = 13_050;

/// Symbol names in order, with their places in the route table.
pub struct Names<const N: usize> {
    sorted: [(&'static str, u16); N],
}

impl<const N: usize> Names<N> {
    /// Sorts the names; done by the compiler.
    #[must_use]
    pub const fn new(routes: &[Route; N]) -> Self {
        let mut sorted = [("", 0u16); N];
        let mut index = 0;
        while index < N {
            // Insertion sort: the compiler runs it once.
            let mut at = index;
            while at > 0 && less(routes[index].symbol, sorted[at - 1].0) {
                sorted[at] = sorted[at - 1];
                at -= 1;
            }
            sorted[at] = (routes[index].symbol, index as u16);
            index += 1;
        }
        Self { sorted }
    }

    /// The place of exactly that symbol.
    #[must_use]
    pub fn find(&self, name: &[u8]) -> Option<usize> {
        let at = self
            .sorted
            .binary_search_by(|(symbol, _)| symbol.as_bytes().cmp(name))
            .ok()?;
        self.sorted.get(at).map(|(_, index)| usize::from(*index))
    }
}

const fn less(left: &str, right: &str) -> bool {
    let (left, right) = (left.as_bytes(), right.as_bytes());
    let mut at = 0;
    while at < left.len() && at < right.len() {
        if left[at] != right[at] {
            return left[at] < right[at];
        }
        at += 1;
    }
    left.len() < right.len()
}

/// Whether a name looks like a driver entry point (`cu` and a capital letter), as opposed to
/// `cublasCreate`, `cudaMalloc` or `curl_easy_init`.
#[must_use]
pub const fn is_driver_name(name: &[u8]) -> bool {
    matches!(name, [b'c', b'u', letter, ..] if letter.is_ascii_uppercase())
}

/// Whether a name looks like a function of NVML.
#[must_use]
pub const fn is_management_name(name: &[u8]) -> bool {
    matches!(name, [b'n', b'v', b'm', b'l', letter, ..] if letter.is_ascii_uppercase())
}

/// The hook whose signature `cuGetProcAddress(name, version, flags)` promises, for pointers that
/// no exported symbol has. `None`: not hooked, or a version whose signatures are not known.
#[must_use]
pub fn route(routes: &[Route], name: &[u8], version: i32, flags: u64) -> Option<usize> {
    if version > NEWEST_KNOWN {
        return None;
    }
    let per_thread = flags & FLAG_PER_THREAD != 0 && flags & FLAG_LEGACY == 0;
    let mut best: Option<(usize, &Route)> = None;
    for (index, route) in routes.iter().enumerate() {
        if route.base.as_bytes() != name || route.since > version {
            continue;
        }
        if route.per_thread && !per_thread {
            continue;
        }
        let better = best.is_none_or(|(_, held)| match route.per_thread.cmp(&held.per_thread) {
            Ordering::Equal => route.since > held.since,
            order => order.is_gt(),
        });
        if better {
            best = Some((index, route));
        }
    }
    best.map(|(index, _)| index)
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn row(symbol: &'static str, base: &'static str, since: i32, per_thread: bool) -> Route {
        Route {
            symbol,
            base,
            since,
            per_thread,
        }
    }

    const ROUTES: [Route; 7] = [
        row("cuMemFree_v2", "cuMemFree", 3020, false),
        row("cuMemFree", "cuMemFree", 2000, false),
        row("cuGetProcAddress_v2", "cuGetProcAddress", 12000, false),
        row("cuGetProcAddress", "cuGetProcAddress", 11030, false),
        row("cuLaunchKernel_ptsz", "cuLaunchKernel", 7000, true),
        row("cuLaunchKernel", "cuLaunchKernel", 4000, false),
        row("cuMemFreeAsync", "cuMemFreeAsync", 11020, false),
    ];
    const NAMES: Names<7> = Names::new(&ROUTES);

    fn routed(name: &str, version: i32, flags: u64) -> Option<&'static str> {
        route(&ROUTES, name.as_bytes(), version, flags).map(|index| ROUTES[index].symbol)
    }

    #[test]
    fn every_name_is_found_and_no_other() {
        for (index, route) in ROUTES.iter().enumerate() {
            assert_eq!(NAMES.find(route.symbol.as_bytes()), Some(index));
        }
        for name in [
            "",
            "cuMem",
            "cuMemFree_v",
            "cuMemFree_v22",
            "cublasCreate",
            "z",
        ] {
            assert_eq!(NAMES.find(name.as_bytes()), None, "{name}");
        }
    }

    #[test]
    fn the_version_chooses_the_signature() {
        assert_eq!(
            routed("cuGetProcAddress", 11_999, 0),
            Some("cuGetProcAddress")
        );
        assert_eq!(
            routed("cuGetProcAddress", 12_000, 0),
            Some("cuGetProcAddress_v2")
        );
        assert_eq!(routed("cuMemFree", 3010, 0), Some("cuMemFree"));
        assert_eq!(routed("cuMemFree", 13_000, 0), Some("cuMemFree_v2"));
        assert_eq!(routed("cuMemFree", NEWEST_KNOWN + 1, 0), None);
        assert_eq!(routed("cuMemFree", 1000, 0), None);
        assert_eq!(routed("", 0, 0), None);
    }

    #[test]
    fn the_flag_chooses_the_stream() {
        assert_eq!(routed("cuLaunchKernel", 12_000, 0), Some("cuLaunchKernel"));
        assert_eq!(
            routed("cuLaunchKernel", 12_000, 2),
            Some("cuLaunchKernel_ptsz")
        );
        assert_eq!(routed("cuLaunchKernel", 12_000, 3), Some("cuLaunchKernel"));
        assert_eq!(routed("cuLaunchKernel", 6050, 2), Some("cuLaunchKernel"));
        assert_eq!(routed("cuMemFreeAsync", 12_000, 2), Some("cuMemFreeAsync"));
    }

    #[test]
    fn driver_names_have_a_capital_third_letter() {
        assert!(is_driver_name(b"cuInit"));
        assert!(is_management_name(b"nvmlInit_v2"));
        assert!(!is_management_name(b"nvml"));
        assert!(!is_management_name(b"nvtxMark"));
        for name in [
            "cu",
            "cublasCreate",
            "cudaMalloc",
            "curl_easy_init",
            "c",
            "",
            "dlsym",
        ] {
            assert!(!is_driver_name(name.as_bytes()), "{name}");
        }
    }
}
