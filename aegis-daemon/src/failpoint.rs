//! Crash points for tests: `AEGIS_CRASH_AT=n` aborts a debug build of the daemon at the n-th call
//! of [`hit`]. Release builds contain none of this.

/// Marks a place after which a crash must lose nothing. `name` shows up in the abort message.
#[inline]
pub fn hit(name: &'static str) {
    #[cfg(debug_assertions)]
    armed::hit(name);
    #[cfg(not(debug_assertions))]
    let _ = name;
}

#[cfg(debug_assertions)]
mod armed {
    use std::sync::OnceLock;
    use std::sync::atomic::{AtomicU64, Ordering};

    static HITS: AtomicU64 = AtomicU64::new(0);
    static CRASH_AT: OnceLock<u64> = OnceLock::new();

    pub(super) fn hit(name: &'static str) {
        let crash_at = *CRASH_AT.get_or_init(|| {
            std::env::var("AEGIS_CRASH_AT")
                .ok()
                .and_then(|text| text.parse().ok())
                .unwrap_or(u64::MAX)
        });
        if HITS.fetch_add(1, Ordering::Relaxed) + 1 == crash_at {
            eprintln!("aegisd: crash point {crash_at} ({name})");
            std::process::abort();
        }
    }
}
