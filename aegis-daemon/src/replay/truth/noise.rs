//! Seeded randomness.

use rand::{RngExt, SeedableRng};
use rand_distr::{Distribution, StandardNormal};
use rand_pcg::Pcg64Mcg;

/// A stream of random numbers that only depends on the key it was made from.
pub(in crate::replay) struct Noise(Pcg64Mcg);

impl Noise {
    /// A stream for a seed and what it is for.
    pub(in crate::replay) fn new(seed: u64, purpose: [u64; 2]) -> Self {
        let key = purpose.into_iter().fold(mix(seed), |key, part| {
            mix(key ^ mix(part.wrapping_add(0x9e37_79b9)))
        });
        Self(Pcg64Mcg::seed_from_u64(key))
    }

    /// Normally distributed around 0 with that standard deviation, cut at 2.5 of them.
    pub(in crate::replay) fn normal(&mut self, deviation: f64) -> f64 {
        if deviation <= 0.0 {
            return 0.0;
        }
        let value: f64 = StandardNormal.sample(&mut self.0);
        value.clamp(-2.5, 2.5) * deviation
    }

    /// About normally distributed with that standard deviation, and cheap: the sum of four evenly
    /// distributed numbers.
    pub(in crate::replay) fn roughly_normal(&mut self, deviation: f64) -> f64 {
        if deviation <= 0.0 {
            return 0.0;
        }
        // One draw of 64 bits gives four numbers of 16; each has a variance of a twelfth.
        let bits: u64 = self.0.random();
        let parts = [bits, bits >> 16, bits >> 32, bits >> 48];
        let sum: u64 = parts.into_iter().map(|part| part & 0xffff).sum();
        (sum as f64 / 65_536.0 - 2.0) * 3.0_f64.sqrt() * deviation
    }
}

/// Spreads the bits of a key: the finaliser of SplitMix64 (Steele, Lea, Flood 2014).
pub(in crate::replay) const fn mix(key: u64) -> u64 {
    let key = (key ^ (key >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let key = (key ^ (key >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    key ^ (key >> 31)
}

#[cfg(test)]
mod tests {
    use super::Noise;

    #[test]
    fn streams_are_reproducible_and_have_the_deviation_asked_for() {
        let draw = |purpose| {
            let mut noise = Noise::new(7, purpose);
            (0..20_000)
                .map(|_| noise.roughly_normal(0.5))
                .collect::<Vec<f64>>()
        };
        assert_eq!(draw([1, 2]), draw([1, 2]));
        assert_ne!(draw([1, 2]), draw([2, 1]));
        let values = draw([3, 0]);
        let mean = values.iter().sum::<f64>() / 20_000.0;
        let variance = values
            .iter()
            .map(|value| (value - mean).powi(2))
            .sum::<f64>()
            / 20_000.0;
        assert!(mean.abs() < 0.02, "{mean}");
        assert!((variance.sqrt() - 0.5).abs() < 0.02, "{variance}");
    }
}
