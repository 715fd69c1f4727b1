//! The file as a whole.

use std::path::Path;
use std::time::Duration;

use proptest::prelude::*;

use super::{Config, ConfigError, LogLevel, Problem, paths};
use aegis_common::policy::Placement;

fn defaults() -> Config {
    Config::with_paths(false, &paths::Paths::root())
}

fn parse(text: &str) -> Result<Config, Vec<Problem>> {
    Config::parse(text, Path::new("aegis.toml"), defaults()).map_err(|error| match error {
        ConfigError::Invalid { problems, .. } => problems,
        other => panic!("{other}"),
    })
}

fn problems(text: &str) -> Vec<String> {
    let found = parse(text).unwrap_err();
    found.iter().map(|p| format!("{} {p}", p.line)).collect()
}

/// Turns each commented key into a live one.
fn uncommented(document: &str) -> String {
    let live = |line: &str| match line.strip_prefix('#') {
        Some(rest) if rest.starts_with(|c: char| c.is_ascii_lowercase()) => rest.to_owned(),
        _ => line.to_owned(),
    };
    document.lines().map(|line| live(line) + "\n").collect()
}

#[test]
fn the_documented_file_reads_back() {
    let document = defaults().documented();
    assert_eq!(parse(&document).unwrap(), defaults());
    let live = uncommented(&document);
    assert_eq!(live.matches(" = ").count(), 45, "one line per key");
    assert_eq!(parse(&live).unwrap(), defaults());
}

#[test]
fn the_documented_file_carries_changed_values_too() {
    let mut changed = defaults();
    changed.scheduler.gate_sm_active = 605;
    changed.scheduler.first_lease = (3 << 30) + (1 << 20);
    changed.scheduler.placement = Placement::BestFit;
    changed.jobs.default_time_limit = Some(Duration::from_secs(5400));
    changed.daemon.log_level = LogLevel::Debug;
    changed.telemetry.nvml_library = Some("/opt/ml.so".into());
    assert_eq!(parse(&uncommented(&changed.documented())).unwrap(), changed);
}

#[test]
fn an_empty_file_is_the_defaults() {
    assert_eq!(parse("").unwrap(), defaults());
}

#[test]
fn moving_the_runtime_directory_moves_the_sockets() {
    let config = parse("[daemon]\nruntime_dir = \"/x\"\nshim_socket = \"/y/s\"\n").unwrap();
    assert_eq!(config.daemon.socket, Path::new("/x/aegis.sock"));
    assert_eq!(config.daemon.shim_socket, Path::new("/y/s"));
}

#[test]
fn every_problem_is_reported_at_once_with_its_line() {
    let found = problems(
        "[scheduler]\nfirst_leese = \"5GiB\"\ngate_sm_active = \"155%\"\n\
         grow_wait = 20\n[jobs]\nplateau = \"1s\"\ndefault_retries = -1\n[shed]\nx = 1\n",
    );
    assert_eq!(
        found,
        [
            "2 scheduler.first_leese: unknown key; did you mean first_lease?",
            "3 scheduler.gate_sm_active: \"155%\": must be between 0.1% and 100%",
            "4 scheduler.grow_wait: 20: must be a string like \"10s\", not an integer",
            "6 jobs.plateau: unknown key; it belongs in [scheduler]",
            "7 jobs.default_retries: -1: must be a whole number between 0 and 100",
            "8 shed: unknown key; did you mean [scheduler]?",
        ]
    );
}

#[test]
fn units_are_asked_for() {
    let found = problems("[scheduler]\nfirst_lease = \"5\"\n[jobs]\ngrace = \"ten\"\n");
    assert!(found[0].contains("unit is missing"), "{found:?}");
    assert!(found[1].contains("not a duration"), "{found:?}");
}

#[test]
fn contradictions_between_keys_are_found() {
    let found = problems(
        "[scheduler]\nobserve_min = \"3m\"\n[jobs]\ndefault_time_limit = \"2h\"\n\
         max_time_limit = \"1h\"\n[shim]\nlibrary = \"/a b/x.so\"\n",
    );
    assert_eq!(
        found,
        [
            "0 scheduler.observe_min: 3m exceeds scheduler.observe_max = 2m",
            "0 jobs.default_time_limit: 2h exceeds jobs.max_time_limit = 1h",
            "0 shim.library: /a b/x.so contains a space or a colon, which LD_PRELOAD cannot express",
        ]
    );
    let long = format!("[daemon]\nsocket = \"/{}\"\n", "x".repeat(107));
    assert!(problems(&long)[0].contains("108 bytes"));
}

#[test]
fn syntax_errors_carry_their_line_and_nothing_else() {
    let found = problems("[daemon]\nstate_dir = \n");
    assert_eq!(found.len(), 1, "{found:?}");
    assert!(found[0].starts_with("2 "), "{found:?}");
}

#[test]
fn administrators_must_exist_and_are_recognised() {
    let config = parse("[daemon]\nadmin_users = [\"4242\"]\nadmin_groups = [\"root\"]\n").unwrap();
    let admins = &config.daemon.admins;
    assert!(admins.allows(0, &[]) && admins.allows(4242, &[]) && admins.allows(7, &[0]));
    assert!(!admins.allows(7, &[7]));
    let found = problems("[daemon]\nadmin_users = [\"no such user\"]\n");
    assert!(found[0].contains("no user \"no such user\""), "{found:?}");
}

#[test]
fn control_characters_do_not_reach_messages() {
    let text = "\"\\u001b[31m\" = 1\n[jobs]\ngrace = \"\\u001b[31m\"\n'\u{9b}x' = 1\n";
    let error = Config::parse(text, Path::new("x"), defaults()).unwrap_err();
    assert!(
        !error
            .to_string()
            .contains(|c: char| c.is_control() && c != '\n')
    );
}

#[test]
fn files_are_named_in_errors() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("a.toml");
    let missing = Config::load_for(&path, false).unwrap_err();
    assert!(missing.to_string().contains("a.toml"), "{missing}");
    std::fs::write(&path, "x = 1\n").unwrap();
    let text = Config::load_for(&path, false).unwrap_err().to_string();
    assert!(text.contains("a.toml:1: x: unknown key"), "{text}");
    std::fs::write(&path, vec![b'#'; (1 << 20) + 1]).unwrap();
    let text = Config::load_for(&path, false).unwrap_err().to_string();
    assert!(text.contains("longer than 1 MiB"), "{text}");
    assert!(Config::find(Some(&dir.path().join("none")), false).is_err());
}

proptest! {
    #[test]
    fn no_text_panics(text in "\\PC*") {
        let _ = Config::parse(&text, Path::new("x"), defaults());
    }

    #[test]
    fn no_near_miss_panics(
        table in "(daemon|scheduler|jobs|telemetry|shim|[a-z]{1,8})",
        key in "(state_dir|first_lease|grace|gate_window|library|[a-z_]{1,12})",
        value in "([0-9.e+-]{1,24}|\"[0-9A-Za-z %./]{0,20}\"|true|\\[\\]|\\{\\}|1979-05-27)",
    ) {
        let _ = Config::parse(&format!("[{table}]\n{key} = {value}\n"), Path::new("x"), defaults());
    }

    #[test]
    fn a_broken_document_never_panics(cut in 0_usize..6000, junk in "\\PC{0,4}") {
        let document = uncommented(&defaults().documented());
        let cut = (0..=cut.min(document.len())).rev().find(|at| document.is_char_boundary(*at));
        let _ = Config::parse(&format!("{}{junk}", &document[..cut.unwrap_or(0)]), Path::new("x"), defaults());
    }
}
