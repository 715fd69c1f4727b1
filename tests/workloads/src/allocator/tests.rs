//! The allocator against a driver that is a counter: what is asked of the driver, and what is not.

use proptest::prelude::*;

use super::*;
use crate::fake::FakeGpu;
use crate::units::GIB;

#[test]
fn requests_are_rounded_to_whole_blocks() {
    assert_eq!(rounded(0), BLOCK);
    assert_eq!(rounded(1), BLOCK);
    assert_eq!(rounded(BLOCK), BLOCK);
    assert_eq!(rounded(BLOCK + 1), 2 * BLOCK);
}

#[test]
fn a_freed_block_serves_the_next_request_without_the_driver() {
    let mut gpu = FakeGpu::new(GIB);
    let mut allocator = CachingAllocator::new();
    let first = allocator.alloc(&mut gpu, 100 * MIB).unwrap();
    allocator.free(first).unwrap();
    assert_eq!(gpu.used(), 100 * MIB);
    let second = allocator.alloc(&mut gpu, 90 * MIB).unwrap();
    assert_eq!(first, second);
    assert_eq!(gpu.alloc_calls(), 1);
    assert_eq!(allocator.usage().allocated, 100 * MIB);
}

#[test]
fn a_block_much_larger_than_the_request_is_left_alone() {
    let mut gpu = FakeGpu::new(GIB);
    let mut allocator = CachingAllocator::new();
    let big = allocator.alloc(&mut gpu, 100 * MIB).unwrap();
    allocator.free(big).unwrap();
    assert_ne!(allocator.alloc(&mut gpu, 10 * MIB).unwrap(), big);
    assert_eq!(gpu.used(), 110 * MIB);
}

#[test]
fn out_of_memory_frees_the_cache_and_retries_once() {
    let mut gpu = FakeGpu::new(100 * MIB);
    let mut allocator = CachingAllocator::new();
    let block = allocator.alloc(&mut gpu, 60 * MIB).unwrap();
    allocator.free(block).unwrap();
    allocator.alloc(&mut gpu, 90 * MIB).unwrap();
    assert_eq!(gpu.used(), 90 * MIB);
    assert_eq!(gpu.alloc_calls(), 3, "first, refused, retried");
    assert_eq!(allocator.usage().cache_flushes, 1);
}

#[test]
fn a_second_refusal_is_an_oom_with_the_drivers_numbers() {
    let mut gpu = FakeGpu::new(100 * MIB);
    let mut allocator = CachingAllocator::new();
    let kept = allocator.alloc(&mut gpu, 40 * MIB).unwrap();
    let error = allocator.alloc(&mut gpu, 70 * MIB).unwrap_err();
    assert_eq!(
        gpu.alloc_calls(),
        3,
        "kept, refused, refused again: no third try"
    );
    assert_eq!(error.exit_code(), 1);
    let text = error.to_string();
    assert!(text.contains("Tried to allocate 70.00 MiB. GPU 0 has a total capacity of 100.00 MiB"));
    assert!(text.contains("of which 60.00 MiB is free"), "{text}");
    allocator.free(kept).unwrap();
    allocator.alloc(&mut gpu, 70 * MIB).unwrap();
}

#[test]
fn another_driver_error_is_not_an_oom() {
    let mut gpu = FakeGpu::new(100 * MIB);
    gpu.fail_next_alloc(700);
    let mut allocator = CachingAllocator::new();
    let error = allocator.alloc(&mut gpu, MIB).unwrap_err();
    assert!(
        matches!(error, WorkloadError::Driver { code: 700, .. }),
        "{error}"
    );
    assert_eq!(allocator.usage().cache_flushes, 0);
}

#[test]
fn a_double_free_is_refused() {
    let mut gpu = FakeGpu::new(100 * MIB);
    let mut allocator = CachingAllocator::new();
    let ptr = allocator.alloc(&mut gpu, MIB).unwrap();
    allocator.free(ptr).unwrap();
    assert!(allocator.free(ptr).is_err());
    assert_eq!(allocator.usage().allocated, 0);
}

#[derive(Debug, Clone)]
enum Op {
    Alloc(u64),
    Free(usize),
    EmptyCache,
}

fn ops() -> impl Strategy<Value = Vec<Op>> {
    let op = prop_oneof![
        4 => (1..200 * MIB).prop_map(Op::Alloc),
        4 => any::<usize>().prop_map(Op::Free),
        1 => Just(Op::EmptyCache),
    ];
    prop::collection::vec(op, 1..120)
}

proptest! {
    /// Whatever is asked in whatever order: the driver's bytes are the allocator's reserved bytes,
    /// blocks in use never overlap and cover their requests, and in the end all of it goes back.
    #[test]
    fn no_byte_is_lost(ops in ops(), capacity in 50 * MIB..GIB) {
        let mut gpu = FakeGpu::new(capacity);
        let mut allocator = CachingAllocator::new();
        let mut live: Vec<(DevicePtr, u64)> = Vec::new();
        for op in ops {
            match op {
                Op::Alloc(bytes) => match allocator.alloc(&mut gpu, bytes) {
                    Ok(ptr) => {
                        prop_assert!(gpu.size_of(ptr) >= Some(bytes));
                        prop_assert!(live.iter().all(|&(other, _)| other != ptr));
                        live.push((ptr, bytes));
                    }
                    Err(error) => {
                        prop_assert!(matches!(error, WorkloadError::OutOfMemory(_)));
                        prop_assert_eq!(allocator.usage().reserved, allocator.usage().allocated);
                        prop_assert!(allocator.usage().allocated + rounded(bytes) > capacity);
                    }
                },
                Op::Free(index) if !live.is_empty() => {
                    let (ptr, _) = live.swap_remove(index % live.len());
                    allocator.free(ptr).unwrap();
                }
                Op::Free(_) => {}
                Op::EmptyCache => allocator.empty_cache(&mut gpu).unwrap(),
            }
            let usage = allocator.usage();
            prop_assert_eq!(usage.reserved, gpu.used());
            prop_assert!(usage.allocated <= usage.reserved);
            prop_assert!(usage.reserved <= usage.peak_reserved);
            let in_use: u64 = live.iter().filter_map(|&(ptr, _)| gpu.size_of(ptr)).sum();
            prop_assert_eq!(usage.allocated, in_use);
        }
        for (ptr, _) in live {
            allocator.free(ptr).unwrap();
        }
        allocator.empty_cache(&mut gpu).unwrap();
        prop_assert_eq!(gpu.used(), 0);
        prop_assert_eq!(allocator.usage().reserved, 0);
    }
}
