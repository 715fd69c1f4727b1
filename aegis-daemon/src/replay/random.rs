//! Reproducible randomness from keys.

/// A number evenly distributed in \[0, 1) that depends on the key alone (the finaliser of
/// SplitMix64: Steele, Lea, Flood 2014).
#[must_use]
pub fn even(seed: u64, key: u64) -> f64 {
    let mut bits = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ key.wrapping_add(0x9e37_79b9);
    for _ in 0..2 {
        bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        bits ^= bits >> 31;
    }
    (bits >> 11) as f64 / (1_u64 << 53) as f64
}

/// Normally distributed around 0 with deviation 1 (Box and Muller 1958).
#[must_use]
pub fn normal(seed: u64, key: u64) -> f64 {
    let radius = (-2.0 * (1.0 - even(seed, 2 * key)).ln()).sqrt();
    radius * (std::f64::consts::TAU * even(seed, 2 * key + 1)).cos()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::replay::stats;

    #[test]
    fn numbers_depend_on_the_key_and_are_distributed_as_named() {
        let draw = |f: fn(u64, u64) -> f64| (0..10_000).map(|key| f(3, key)).collect::<Vec<_>>();
        assert_eq!(draw(even), draw(even));
        assert!((even(3, 4) - even(4, 3)).abs() > 1e-6);
        let even = draw(even);
        assert!((stats::mean(&even) - 0.5).abs() < 0.01);
        let normal = draw(normal);
        assert!(stats::mean(&normal).abs() < 0.03);
        let squares: Vec<f64> = normal.iter().map(|value| value * value).collect();
        assert!((stats::mean(&squares) - 1.0).abs() < 0.05);
    }
}
