//! A number for a repeating sequence, the same wherever in it one begins to look.

use std::collections::{BTreeMap, BTreeSet};

/// A sequence of so many different functions is told by their pattern and grids, without their
/// addresses: then it has the same fingerprint in the next run and in every rank. A shorter one
/// is not telling enough.
const TELLING: usize = 8;

/// The fingerprint of one repetition.
pub(super) fn fingerprint(sequence: &[u64]) -> u64 {
    let handles: BTreeSet<u64> = sequence.iter().map(|launch| launch >> 32).collect();
    let pattern = if handles.len() >= TELLING {
        without_addresses(sequence)
    } else {
        sequence.to_vec()
    };
    let start = least_rotation(&pattern);
    let rotated = pattern.iter().cycle().skip(start).take(pattern.len());
    combine(rotated.copied())
}

/// FNV-1a over 64-bit words: fingerprints are stored, so they must not change with the toolchain.
pub(super) fn combine(words: impl Iterator<Item = u64>) -> u64 {
    let bytes = words.flat_map(u64::to_le_bytes);
    bytes.fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    })
}

/// Each handle replaced by the distance to its last use, around the sequence.
fn without_addresses(sequence: &[u64]) -> Vec<u64> {
    let length = sequence.len() as u64;
    let positions = || sequence.iter().zip(0u64..);
    // As seen at the end of a repetition; the positions are those of the repetition before.
    let mut last: BTreeMap<u64, u64> = positions().map(|(launch, at)| (launch >> 32, at)).collect();
    let distances = positions().map(|(launch, at)| {
        let at = at + length;
        let before = last.insert(launch >> 32, at).unwrap_or(at);
        ((at - before) << 32) | (launch & 0xffff_ffff)
    });
    distances.collect()
}

/// Where the smallest rotation begins (Booth's algorithm in the form with two candidates).
fn least_rotation(words: &[u64]) -> usize {
    let length = words.len();
    let (mut one, mut other, mut same) = (0, 1, 0);
    let at = |index: usize| words.get(index % length.max(1));
    while one < length && other < length && same < length {
        match at(one + same).cmp(&at(other + same)) {
            std::cmp::Ordering::Equal => {
                same += 1;
                continue;
            }
            std::cmp::Ordering::Greater => one += same + 1,
            std::cmp::Ordering::Less => other += same + 1,
        }
        if one == other {
            other += 1;
        }
        same = 0;
    }
    one.min(other)
}
