//! Means and how sure they are.

/// The mean; 0 without values.
#[must_use]
pub fn mean(values: &[f64]) -> f64 {
    if values.is_empty() {
        return 0.0;
    }
    values.iter().sum::<f64>() / values.len() as f64
}

/// Half the width of the mean's 95 % confidence interval by Student's t; 0 for fewer than two
/// values.
#[must_use]
pub fn half_width(values: &[f64]) -> f64 {
    let count = values.len() as f64;
    if values.len() < 2 {
        return 0.0;
    }
    let mean = mean(values);
    let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
    t975(count - 1.0) * (squares / (count - 1.0) / count).sqrt()
}

/// The 97.5 % quantile of Student's t by Cornish and Fisher's expansion (Abramowitz and Stegun
/// 26.7.5, four terms); within 1 % from three degrees of freedom on.
fn t975(freedom: f64) -> f64 {
    const Z: f64 = 1.959_964;
    let power = |n| Z.powi(n);
    Z + (power(3) + Z) / (4.0 * freedom)
        + (5.0 * power(5) + 16.0 * power(3) + 3.0 * Z) / (96.0 * freedom.powi(2))
        + (3.0 * power(7) + 19.0 * power(5) + 17.0 * power(3) - 15.0 * Z)
            / (384.0 * freedom.powi(3))
        + (79.0 * power(9) + 776.0 * power(7) + 1_482.0 * power(5) - 1_920.0 * power(3) - 945.0 * Z)
            / (92_160.0 * freedom.powi(4))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_interval_is_students() {
        // Table values of t(.975).
        for (freedom, table) in [(3.0, 3.182), (8.0, 2.306), (59.0, 2.001)] {
            let ours = t975(freedom);
            assert!((ours / table - 1.0).abs() < 0.01, "{freedom}: {ours}");
        }
        let values = [1.0, 2.0, 3.0, 4.0];
        assert!((half_width(&values) - 3.182 * 1.290_99 / 2.0).abs() < 0.02);
        assert!(half_width(&[1.0]).abs() < 1e-12);
    }
}
