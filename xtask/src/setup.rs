//! `cargo xtask setup`: what the machine needs, checked and installed.
//!
//! Each [`Step`] knows how to see whether it is there and how to get it. Nothing is installed
//! outside `target/` and cargo's own `bin`, except Debian's `musl-tools` and a BPF compiler when run
//! as root.

pub(crate) mod bpf;
pub(crate) mod python;
pub(crate) mod tools;

use anyhow::{Result, bail};
use clap::Args;

/// Options of `setup`.
#[derive(Args)]
pub(crate) struct Options {
    /// Only report what is missing
    #[arg(long)]
    check: bool,
}

/// What is being prepared for. A missing part is fatal only to the verbs that need it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Verb {
    /// Everything that can be had.
    Setup,
    /// `cargo xtask test`.
    Test,
    /// `cargo xtask lint`.
    Lint,
    /// `cargo xtask demo`.
    Demo,
    /// `cargo xtask bench`.
    Bench,
    /// `cargo xtask compat`.
    Compat,
    /// `cargo xtask install`.
    Install,
    /// `cargo xtask ebpf`.
    Ebpf,
}

/// One thing a machine needs.
pub(crate) struct Step {
    /// Its name in messages.
    pub(crate) name: &'static str,
    /// Verbs that cannot work without it.
    pub(crate) required_by: &'static [Verb],
    /// Verbs that work with less without it.
    pub(crate) used_by: &'static [Verb],
    /// Its version if it is there, else what is wrong.
    pub(crate) check: fn() -> Result<String>,
    /// Gets it.
    pub(crate) install: fn() -> Result<()>,
    /// The command by which a person gets it.
    pub(crate) by_hand: &'static str,
}

/// `cargo xtask setup`.
///
/// # Errors
/// Something required is missing and could not be installed.
pub(crate) fn run(options: &Options) -> Result<()> {
    prepare(Verb::Setup, !options.check)
}

/// Makes the machine ready for a verb.
///
/// # Errors
/// Something the verb requires is missing and could not be installed.
pub(crate) fn prepare(verb: Verb, install: bool) -> Result<()> {
    let mut steps = tools::steps();
    steps.extend(python::steps());
    steps.extend(bpf::steps());
    let missing = missing(verb, install, &steps);
    if !missing.is_empty() {
        bail!(
            "setup: missing for this command:\n  {}",
            missing.join("\n  ")
        );
    }
    Ok(())
}

/// Goes through the steps that concern `verb`; returns what it requires and lacks.
fn missing(verb: Verb, install: bool, steps: &[Step]) -> Vec<String> {
    let mut missing = Vec::new();
    for step in steps {
        let required = step.required_by.contains(&verb)
            || (verb == Verb::Setup && !step.required_by.is_empty());
        let used = step.used_by.contains(&verb) || verb == Verb::Setup;
        if !required && !used {
            continue;
        }
        let mut state = (step.check)();
        if let Err(reason) = &state
            && install
        {
            eprintln!("setup: {}: {reason:#}; installing", step.name);
            state = (step.install)().and_then(|()| (step.check)());
        }
        match state {
            Ok(version) => eprintln!("setup: {} {version}", step.name),
            Err(reason) => {
                let advice = format!("{}: {reason:#}. To get it: {}", step.name, step.by_hand);
                if required {
                    missing.push(advice);
                } else {
                    eprintln!("setup: optional {advice}");
                }
            }
        }
    }
    missing
}

#[cfg(test)]
mod tests {
    use super::*;
    use anyhow::anyhow;

    fn absent() -> Step {
        Step {
            name: "thing",
            required_by: &[Verb::Demo],
            used_by: &[Verb::Test],
            check: || Err(anyhow!("not found")),
            install: || Err(anyhow!("no network")),
            by_hand: "apt-get install thing",
        }
    }

    #[test]
    fn what_is_missing_is_fatal_only_to_what_requires_it() {
        let demo = missing(Verb::Demo, true, &[absent()]);
        assert_eq!(
            demo,
            ["thing: no network. To get it: apt-get install thing"]
        );
        assert!(missing(Verb::Test, true, &[absent()]).is_empty());
        assert!(missing(Verb::Lint, true, &[absent()]).is_empty());
        assert_eq!(missing(Verb::Setup, true, &[absent()]).len(), 1);
    }

    #[test]
    fn check_alone_installs_nothing() {
        let step = Step {
            install: || panic!("installed"),
            ..absent()
        };
        let demo = missing(Verb::Demo, false, &[step]);
        assert_eq!(demo, ["thing: not found. To get it: apt-get install thing"]);
    }
}
