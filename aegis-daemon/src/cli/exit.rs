//! Exit codes. They are stable: scripts depend on them.

use aegis_common::job::{Exit, Outcome};

/// Everything went well.
pub(super) const OK: u8 = 0;
/// Checks were made and not all ended well; or a job failed with a code that would read as 0.
pub(super) const SOME_FAILED: u8 = 1;
/// Standard output could not be written (EX_IOERR).
pub(super) const OUTPUT: u8 = 74;

/// A job that ran out of GPU memory for good.
pub(super) const OOM: u8 = 90;
/// A job that was cancelled.
pub(super) const CANCELLED: u8 = 91;
/// A job whose end nobody saw.
pub(super) const LOST: u8 = 92;
/// A job over its time limit; the code of timeout(1).
pub(super) const TIMEOUT: u8 = 124;
/// A job whose command could not be started; the shell's code for that.
pub(super) const START_FAILED: u8 = 126;

/// The table for people.
pub(super) const TABLE: &str = "\
Exit codes:
    0  success; for a closed pipe (| head) too
    1  a check failed (doctor)
   64  the command line is wrong, or the command to submit cannot be run
   66  no such job, process or log
   67  more GPUs or memory than this machine has
   69  the daemon is not running or does not answer
   70  a defect in AEGIS
   74  the daemon cannot write its journal, or output cannot be written
   76  aegis and aegisd are of different versions
   77  somebody else's job
`aegis wait` and `aegis submit --wait` exit with the job's own code (128 + n for signal n; of
several jobs: of the first listed that did not end well), or
   90  the job ran out of GPU memory and no further attempt could help or was allowed
   91  the job was cancelled
   92  the job's end was not seen: its keeper was killed
  124  the job exceeded its time limit
  126  the job's command could not be started
A job may use the same numbers itself: `--json` tells them apart.
";

/// What `wait` exits with for one job.
pub(super) fn of(outcome: &Outcome) -> u8 {
    match outcome {
        Outcome::Ok => OK,
        Outcome::Failed {
            exit: Exit::Unknown,
        }
        | Outcome::Lost => LOST,
        Outcome::Failed { exit } => of_exit(*exit),
        Outcome::Oom { .. } => OOM,
        Outcome::Cancelled { .. } => CANCELLED,
        Outcome::Timeout => TIMEOUT,
        Outcome::StartFailed { .. } => START_FAILED,
    }
}

/// The low eight bits, as the kernel keeps of any exit code; a failure never becomes 0.
fn of_exit(exit: Exit) -> u8 {
    match u8::try_from(exit.shell_code() & 0xff) {
        Ok(OK) | Err(_) => SOME_FAILED,
        Ok(code) => code,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use aegis_common::job::OomFinal;

    #[test]
    fn a_job_passes_on_its_own_code() {
        let failed = |exit| of(&Outcome::Failed { exit });
        assert_eq!(failed(Exit::Code(3)), 3);
        assert_eq!(failed(Exit::Signal(9)), 137);
        assert_eq!(failed(Exit::Unknown), LOST);
        assert_eq!(
            failed(Exit::Code(256)),
            1,
            "a failure never becomes success"
        );
        assert_eq!(of(&Outcome::Ok), 0);
    }

    #[test]
    fn every_code_of_a_job_is_in_the_table() {
        let exit = Exit::Code(1);
        let why = OomFinal::WasExclusive;
        for outcome in [
            Outcome::Oom { exit, why },
            Outcome::Cancelled { by: 0 },
            Outcome::Lost,
            Outcome::Timeout,
            Outcome::StartFailed {
                error: String::new(),
            },
        ] {
            assert!(
                TABLE.contains(&format!("\n{:>5}  ", of(&outcome))),
                "{outcome:?}"
            );
        }
    }

    #[test]
    fn every_failure_code_is_in_the_table() {
        use aegis_common::wire::ErrorCode::*;
        for code in [
            BadRequest,
            NotFound,
            Forbidden,
            Impossible,
            Storage,
            Unreachable,
            Incompatible,
            Internal,
        ] {
            assert!(
                TABLE.contains(&format!("\n{:>5}  ", code.exit_code())),
                "{code:?}"
            );
        }
    }
}
