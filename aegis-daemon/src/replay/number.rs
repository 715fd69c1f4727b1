//! Figures as whole numbers.

/// Rounded; what is negative or no number becomes 0.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "`as` saturates: what is negative or no number becomes 0"
)]
pub(super) fn whole(value: f64) -> u64 {
    value.round() as u64
}

/// Whole milliseconds that have passed after so many seconds.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "`as` saturates"
)]
pub(super) fn millis(seconds: f64) -> u64 {
    (seconds * 1e3) as u64
}
