//! Signals as people write them: by name, with or without `SIG`, or by number.

/// The signals of Linux on x86-64 that have a name (signal(7)).
const NAMES: [(&str, i32); 31] = [
    ("HUP", libc::SIGHUP),
    ("INT", libc::SIGINT),
    ("QUIT", libc::SIGQUIT),
    ("ILL", libc::SIGILL),
    ("TRAP", libc::SIGTRAP),
    ("ABRT", libc::SIGABRT),
    ("BUS", libc::SIGBUS),
    ("FPE", libc::SIGFPE),
    ("KILL", libc::SIGKILL),
    ("USR1", libc::SIGUSR1),
    ("SEGV", libc::SIGSEGV),
    ("USR2", libc::SIGUSR2),
    ("PIPE", libc::SIGPIPE),
    ("ALRM", libc::SIGALRM),
    ("TERM", libc::SIGTERM),
    ("STKFLT", libc::SIGSTKFLT),
    ("CHLD", libc::SIGCHLD),
    ("CONT", libc::SIGCONT),
    ("STOP", libc::SIGSTOP),
    ("TSTP", libc::SIGTSTP),
    ("TTIN", libc::SIGTTIN),
    ("TTOU", libc::SIGTTOU),
    ("URG", libc::SIGURG),
    ("XCPU", libc::SIGXCPU),
    ("XFSZ", libc::SIGXFSZ),
    ("VTALRM", libc::SIGVTALRM),
    ("PROF", libc::SIGPROF),
    ("WINCH", libc::SIGWINCH),
    ("IO", libc::SIGIO),
    ("PWR", libc::SIGPWR),
    ("SYS", libc::SIGSYS),
];
/// Real-time signals that programs may use; the C library keeps 32 and 33.
const REAL_TIME: std::ops::RangeInclusive<i32> = 34..=64;

/// A signal that asks a program for something: one it can catch.
///
/// # Errors
/// What is wrong and how it is written.
pub fn request(text: &str) -> Result<i32, String> {
    const HOW: &str = "signals are written like SIGUSR1, usr1 or 10";
    let text = text.trim();
    let signal = match text.parse::<i32>() {
        Ok(number) => number,
        Err(_) => {
            let upper = text.to_ascii_uppercase();
            let name = upper.strip_prefix("SIG").unwrap_or(&upper);
            let known = NAMES.iter().find(|(known, _)| *known == name);
            known.ok_or_else(|| format!("no signal {text:?}; {HOW}"))?.1
        }
    };
    check(signal)?;
    Ok(signal)
}

/// Refuses numbers that are no signal, and signals that no program can catch.
///
/// # Errors
/// What is wrong and what to use.
pub fn check(signal: i32) -> Result<(), String> {
    if signal == libc::SIGKILL || signal == libc::SIGSTOP {
        return Err(format!(
            "{} cannot be caught: the program could not save anything; use SIGUSR1",
            name(signal)
        ));
    }
    if NAMES.iter().any(|(_, number)| *number == signal) || REAL_TIME.contains(&signal) {
        return Ok(());
    }
    Err(format!(
        "no signal {signal}: numbers are 1 to 31 and 34 to 64"
    ))
}

/// `SIGUSR1`; the number where there is no name.
#[must_use]
pub fn name(signal: i32) -> String {
    let known = NAMES.iter().find(|(_, number)| *number == signal);
    known.map_or_else(
        || format!("signal {signal}"),
        |(name, _)| format!("SIG{name}"),
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn names_and_numbers_mean_the_same() {
        for text in ["SIGUSR1", "usr1", "SIGusr1", " 10 "] {
            assert_eq!(request(text), Ok(10), "{text}");
        }
        assert_eq!(request("35"), Ok(35));
        assert_eq!(name(35), "signal 35");
        for (text, part) in [
            ("KILL", "SIGKILL cannot be caught"),
            ("19", "SIGSTOP cannot be caught"),
            ("SIGFOO", "no signal \"SIGFOO\""),
            ("", "written like"),
            ("0", "no signal 0"),
            ("32", "34 to 64"),
            ("-1", "no signal -1"),
        ] {
            let error = request(text).unwrap_err();
            assert!(error.contains(part), "{text}: {error}");
        }
    }

    proptest! {
        #[test]
        fn what_is_shown_reads_back(signal in 1..65) {
            if check(signal).is_ok() && signal < 32 {
                prop_assert_eq!(request(&name(signal)), Ok(signal));
            }
        }

        #[test]
        fn no_text_panics(text in "\\PC*") {
            let _ = request(&text);
        }
    }
}
