//! `--on-suspend`: a job that saves its state makes room and goes on later.

use aegis_common::id::JobId;
use aegis_common::job::Outcome;
use aegis_common::reason::RetryReason;
use anyhow::Result;
use e2e::{GIB, Setup, World};

/// An older job that grows once the younger holds what it will need.
struct Pair {
    world: World,
    old: JobId,
    young: JobId,
}

/// Holds memory until it is asked to save; `asked` is what it does then. Told that an earlier attempt
/// was asked, it says what that one saved and ends.
fn pair(options: &[&str], asked: &str) -> Result<Pair> {
    let world = World::start(Setup::gpus(1, 16 * GIB).key("jobs.default_requeue", "false"))?;
    let grow = world.workload(&[
        "vision",
        "--startup",
        "0",
        "--epochs",
        "1",
        "--steps",
        "400",
        "--grow-at",
        "150",
        "--grow-bytes",
        "9GiB",
    ]);
    let old = world.submit(&[], &grow)?;
    world.steady(old)?;
    let script = format!(
        "{asked}
         if [ -n \"$AEGIS_RESUMED\" ]; then
           echo \"resumed $AEGIS_RESUMED, attempt $AEGIS_ATTEMPT, $(cat \"$2\")\"; exit 0
         fi
         \"$1\" hold 4GiB --launch & child=$!
         wait $child"
    );
    let state = world.file("checkpoint");
    let mut command: Vec<std::ffi::OsString> = ["sh", "-c", &script, "sh"].map(Into::into).to_vec();
    command.push(world.artifacts.workload.clone().into());
    command.push(state.into());
    let young = world.submit(&[&["--gpu-mem", "4GiB"], options].concat(), &command)?;
    world.said(young, 1, "READY")?;
    Ok(Pair { world, old, young })
}

#[test]
fn it_saves_makes_room_and_goes_on_when_there_is_room_again() -> Result<()> {
    let asked = "trap 'echo saved > \"$2\"; echo SAVED; kill $child; exit 0' USR1";
    let Pair { world, old, young } = pair(&["--on-suspend", "SIGUSR1:30s"], asked)?;
    let status = world.run(["status", &young.to_string()])?;
    let told = "saves and exits within 30s on SIGUSR1";
    assert!(status.stdout.contains(told), "{status:?}");
    let (old, outcome) = world.done(old)?;
    assert_eq!((outcome, old.attempts.len()), (Outcome::Ok, 1), "{old:?}");
    let (view, outcome) = world.done(young)?;
    assert_eq!(outcome, Outcome::Ok, "{view:?}");
    assert_eq!(view.attempts.len(), 2, "{view:?}");
    let retried = view.attempts[0].retried.clone();
    assert!(matches!(retried, Some(RetryReason::Evicted { job }) if job == old.id));
    world.said(young, 1, "SAVED")?;
    assert_eq!(world.said(young, 2, "resumed ")?, "1, attempt 2, saved");
    Ok(())
}

#[test]
fn who_does_not_exit_within_the_grace_is_terminated_and_starts_again() -> Result<()> {
    let asked = "trap 'echo ASKED; echo late > \"$2\"' USR1; trap 'echo TERM; exit 5' TERM";
    // After the signal `wait` returns: it waits on.
    let asked = format!(
        "{asked}
         stay() {{ while kill -0 $child 2> /dev/null; do wait $child; done; }}
         trap stay EXIT"
    );
    let Pair { world, old, young } = pair(&["--on-suspend", "USR1:1s"], &asked)?;
    let (old, outcome) = world.done(old)?;
    assert_eq!((outcome, old.attempts.len()), (Outcome::Ok, 1), "{old:?}");
    let (view, _) = world.done(young)?;
    assert_eq!(view.attempts.len(), 2, "{view:?}");
    world.said(young, 1, "ASKED")?;
    assert_eq!(world.said(young, 2, "resumed ")?, "1, attempt 2, late");
    Ok(())
}

#[test]
fn a_wish_that_cannot_be_met_is_refused_with_the_reason() -> Result<()> {
    let world = World::start(Setup::gpus(1, 16 * GIB))?;
    for (option, part) in [
        ("SIGKILL", "cannot be caught"),
        ("SIGFOO", "no signal"),
        ("SIGUSR1:0s", "less than 1s"),
        ("SIGUSR1:2h", "allowed are 1s to 1h"),
    ] {
        let answer = world.try_submit(&["--on-suspend", option], &["true"])?;
        assert_eq!(answer.code, 64, "{option}: {answer:?}");
        assert!(answer.text().contains(part), "{option}: {answer:?}");
    }
    let both = world.try_submit(&["--on-suspend", "USR1", "--no-requeue"], &["true"])?;
    assert_eq!(both.code, 64, "{both:?}");
    Ok(())
}
