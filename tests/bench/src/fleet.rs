//! Ten thousand jobs, no two neighbours alike.

use aegis_common::job::Resources;

use crate::client::resources;

/// Pending jobs in every measurement that speaks of many.
pub(crate) const JOBS: u64 = 10_000;
/// Users who submitted them, where there can be several.
pub(crate) const USERS: u64 = 20;
/// Bytes in a gibibyte.
pub(crate) const GIB: u64 = 1 << 30;

/// What the job of that number asks for: three in four declare a peak between 4 and 67 GiB, one in
/// eight wants 2 or 4 GPUs, some are exclusive, limited in time, of low priority, or must not be
/// stopped.
pub(crate) fn demand(number: u64) -> Resources {
    // Steps that share no factor with the periods: all combinations come.
    let declared = 4 + number * 7 % 64;
    Resources {
        gpus: match number % 16 {
            3 => 2,
            11 => 4,
            _ => 1,
        },
        gpu_mem: (!number.is_multiple_of(4)).then_some(declared * GIB),
        priority: -i32::from(number.is_multiple_of(5)) - i32::from(number.is_multiple_of(25)),
        exclusive: number.is_multiple_of(9),
        requeue: !number.is_multiple_of(3),
        time_limit_s: number.is_multiple_of(2).then_some(3600 * (1 + number % 48)),
        ..resources()
    }
}

/// A command line of the usual length.
pub(crate) fn command(number: u64) -> Vec<String> {
    let text = format!("python train.py --model resnet50 --epochs 90 --lr 0.1 --seed {number}");
    text.split(' ').map(str::to_owned).collect()
}
