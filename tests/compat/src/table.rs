//! The table of clients, for people and for programs.

use serde::Serialize;

/// One thing that was checked about one client.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "state", content = "detail", rename_all = "snake_case")]
pub enum Cell {
    /// It holds; how.
    Passed(String),
    /// It does not; why.
    Failed(String),
    /// The client does not try it.
    NotTried,
}

impl Cell {
    /// What a check found.
    #[must_use]
    pub fn of(result: anyhow::Result<String>) -> Self {
        match result {
            Ok(detail) => Self::Passed(detail),
            Err(error) => Self::Failed(format!("{error:#}")),
        }
    }
}

impl std::fmt::Display for Cell {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Passed(detail) if detail.is_empty() => f.write_str("ok"),
            Self::Passed(detail) => write!(f, "ok: {detail}"),
            Self::Failed(reason) => write!(f, "FAILED: {reason}"),
            Self::NotTried => f.write_str("-"),
        }
    }
}

/// One client.
#[derive(Clone, Debug, Serialize)]
pub struct Row {
    /// Its name.
    pub client: String,
    /// The version of its package.
    pub version: Option<String>,
    /// Why it did not run.
    pub skipped: Option<String>,
    /// It did what it should and ended well.
    pub works: Cell,
    /// The shim's ledger equals the simulator's journal.
    pub ledger: Cell,
    /// What it makes of a refusal.
    pub oom: Cell,
}

impl Row {
    /// A client about which nothing is known yet.
    #[must_use]
    pub fn new(client: &str, version: Option<String>) -> Self {
        Self {
            client: client.to_owned(),
            version,
            skipped: None,
            works: Cell::NotTried,
            ledger: Cell::NotTried,
            oom: Cell::NotTried,
        }
    }

    /// A client that could not run.
    #[must_use]
    pub fn skipped(client: &str, reason: String) -> Self {
        Self {
            skipped: Some(reason),
            ..Self::new(client, None)
        }
    }

    /// Whether a check failed.
    #[must_use]
    pub fn failed(&self) -> bool {
        self.cells().any(|cell| matches!(cell, Cell::Failed(_)))
    }

    fn cells(&self) -> impl Iterator<Item = &Cell> {
        [&self.works, &self.ledger, &self.oom].into_iter()
    }
}

impl std::fmt::Display for Row {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let name = match &self.version {
            Some(version) => format!("{} {version}", self.client),
            None => self.client.clone(),
        };
        write!(f, "{name:<26} ")?;
        match &self.skipped {
            Some(reason) => write!(f, "skipped: {reason}"),
            None => write!(
                f,
                "works {} | ledger {} | oom {}",
                self.works, self.ledger, self.oom
            ),
        }
    }
}

/// Clients that passed every check, failed one, or did not run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Counts {
    /// All checks hold.
    pub passed: usize,
    /// One or more do not.
    pub failed: usize,
    /// Not run, the reason is in the row.
    pub skipped: usize,
}

impl Counts {
    /// Of a table.
    #[must_use]
    pub fn of(rows: &[Row]) -> Self {
        let skipped = rows.iter().filter(|row| row.skipped.is_some()).count();
        let failed = rows.iter().filter(|row| row.failed()).count();
        Self {
            passed: rows.len().saturating_sub(skipped + failed),
            failed,
            skipped,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_failed_check_fails_the_client_and_skipped_ones_count_apart() {
        let good = Row {
            works: Cell::Passed(String::new()),
            ..Row::new("a", Some("1.0".to_owned()))
        };
        let bad = Row {
            ledger: Cell::Failed("1 B, not 2 B".to_owned()),
            ..good.clone()
        };
        let rows = [good, bad, Row::skipped("b", "no network".to_owned())];
        assert_eq!(
            Counts::of(&rows),
            Counts {
                passed: 1,
                failed: 1,
                skipped: 1
            }
        );
        assert!(rows[1].to_string().contains("ledger FAILED: 1 B, not 2 B"));
        assert!(rows[2].to_string().ends_with("skipped: no network"));
    }
}
