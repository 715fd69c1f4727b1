//! Work on all processors.

use std::collections::BTreeMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

/// Maps in any order on as many threads as there are processors; the results keep the order of the
/// items. `done` is told how many are finished, by one thread at a time.
pub fn parallel<T: Sync, R: Send>(
    items: &[T],
    map: impl Fn(&T) -> R + Sync,
    done: impl Fn(usize) + Sync,
) -> Vec<R> {
    let next = AtomicUsize::new(0);
    let results: Mutex<BTreeMap<usize, R>> = Mutex::new(BTreeMap::new());
    let threads = thread::available_parallelism().map_or(1, usize::from);
    thread::scope(|scope| {
        for _ in 0..threads.min(items.len()) {
            scope.spawn(|| {
                loop {
                    let place = next.fetch_add(1, Ordering::Relaxed);
                    let Some(item) = items.get(place) else { break };
                    let result = map(item);
                    if let Ok(mut results) = results.lock() {
                        results.insert(place, result);
                        done(results.len());
                    }
                }
            });
        }
    });
    results
        .into_inner()
        .map(|results| results.into_values().collect())
        .unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::parallel;
    use std::sync::Mutex;

    #[test]
    fn results_keep_the_order_and_each_is_counted() {
        let items: Vec<u32> = (0..100).collect();
        let counted = Mutex::new(Vec::new());
        let doubled = parallel(
            &items,
            |item| item * 2,
            |done| counted.lock().unwrap().push(done),
        );
        assert!(doubled.iter().zip(&items).all(|(two, one)| *two == one * 2));
        assert_eq!(*counted.lock().unwrap(), (1..=100).collect::<Vec<_>>());
        assert!(parallel(&[], |item: &u32| *item, |_| ()).is_empty());
    }
}
