//! Numbers as every reason prints them.

/// Bytes in the largest binary unit that keeps two decimals meaningful: `5.25 GiB`.
#[must_use]
pub fn bytes(value: u64) -> String {
    const UNITS: [(u32, &str); 3] = [(30, "GiB"), (20, "MiB"), (10, "KiB")];
    for (shift, unit) in UNITS {
        if value >= 1 << shift {
            let hundredths = (u128::from(value) * 100) >> shift;
            return format!("{}.{:02} {unit}", hundredths / 100, hundredths % 100);
        }
    }
    format!("{value} B")
}

/// A share in thousandths as a percentage: `64.5 %`.
#[must_use]
pub fn permille(value: u16) -> String {
    format!("{}.{} %", value / 10, value % 10)
}

#[cfg(test)]
mod tests {
    use super::{bytes, permille};

    #[test]
    fn units_change_at_powers_of_two() {
        assert_eq!(bytes(0), "0 B");
        assert_eq!(bytes(1023), "1023 B");
        assert_eq!(bytes(1024), "1.00 KiB");
        assert_eq!(bytes(5 << 30 | 1 << 28), "5.25 GiB");
        assert_eq!(bytes(u64::MAX), "17179869183.99 GiB");
        assert_eq!(permille(645), "64.5 %");
    }
}
