//! What is compared: the published baselines and the core's modes.

use std::fmt;

use aegis_daemon::replay::policy::{self, EXCLUSIVE, is_ours, names};
use anyhow::Result;

/// A policy and how much it knows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Contender {
    /// One of [`policy::names`].
    pub(crate) name: &'static str,
    pub(crate) history: History,
}

/// Of what share of the jobs the command was seen before.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum History {
    /// Of none.
    Cold,
    /// Of that many in a hundred.
    Warm(u8),
}

impl fmt::Display for History {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Cold => f.write_str("cold"),
            Self::Warm(percent) => write!(f, "warm{percent}"),
        }
    }
}

/// The contenders of these names, or all; the core's modes with each of these histories.
/// Exclusive use is always among them, first.
///
/// # Errors
/// A name nobody has.
pub(crate) fn contenders(wanted: &[String], histories: &[History]) -> Result<Vec<Contender>> {
    for name in wanted {
        policy::named(name)?;
    }
    let chosen = |name: &str| {
        name == EXCLUSIVE || wanted.is_empty() || wanted.iter().any(|wanted| wanted == name)
    };
    let mut contenders = Vec::new();
    for name in names().filter(|name| chosen(name)) {
        if is_ours(name) {
            let known = histories.iter().map(|&history| Contender { name, history });
            contenders.extend(known);
        } else {
            let history = History::Cold;
            contenders.push(Contender { name, history });
        }
    }
    Ok(contenders)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exclusive_is_always_there_and_only_the_core_learns() {
        let both = [History::Cold, History::Warm(60)];
        let chosen = contenders(&["lucid".into(), "control".into()], &both).unwrap();
        let shown: Vec<_> = chosen
            .iter()
            .map(|one| format!("{} {}", one.name, one.history))
            .collect();
        let expected = [
            "exclusive cold",
            "lucid cold",
            "control cold",
            "control warm60",
        ];
        assert_eq!(shown, expected);
        assert_eq!(contenders(&[], &both).unwrap().len(), 8 + 2 * 5);
        let error = contenders(&["luzid".into()], &both).unwrap_err();
        assert!(error.to_string().contains("lucid-paper"), "{error}");
    }
}
