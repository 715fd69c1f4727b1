//! What a test's machine and daemon look like.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use simgpu_core::{GpuConfig, MachineConfig};

/// Bytes in a mebibyte.
pub const MIB: u64 = 1 << 20;
/// Bytes in a gibibyte.
pub const GIB: u64 = 1 << 30;

/// A machine and a configuration.
#[derive(Clone, Debug)]
pub struct Setup {
    /// The simulated machine.
    pub machine: MachineConfig,
    /// Configuration keys `table.key` with their TOML values.
    keys: BTreeMap<String, String>,
    /// Text of the configuration instead of the keys.
    pub raw_config: Option<String>,
    /// Environment of the daemon beside the test's own.
    pub daemon_env: Vec<(String, String)>,
    /// Give jobs the shim.
    pub shim: bool,
    /// Serve one user, also when the tests run as root.
    pub rootless: bool,
    /// Print the end of the daemon's log when the world ends, for the report of a failed test.
    pub show_log: bool,
}

impl Setup {
    /// `count` GPUs of `memory` bytes and windows short enough for tests: the daemon observes a
    /// job for tenths of a second instead of tens.
    #[must_use]
    pub fn gpus(count: usize, memory: u64) -> Self {
        let setup = Self {
            show_log: true,
            ..Self::plain(count, memory)
        };
        [
            ("scheduler.observe_min", "\"300ms\""),
            ("scheduler.observe_max", "\"3s\""),
            ("scheduler.plateau", "\"300ms\""),
            ("scheduler.gate_window", "4"),
            ("scheduler.stale_after", "\"2s\""),
            ("scheduler.grow_wait", "\"5s\""),
            ("telemetry.sample_interval", "\"50ms\""),
            ("telemetry.gpm_interval", "\"100ms\""),
            ("telemetry.process_interval", "\"100ms\""),
            ("jobs.grace", "\"1s\""),
            ("daemon.log_level", "\"debug\""),
        ]
        .into_iter()
        .fold(setup, |setup, (key, value)| setup.key(key, value))
    }

    /// `count` GPUs of `memory` bytes and the default configuration.
    #[must_use]
    pub fn plain(count: usize, memory: u64) -> Self {
        Self {
            machine: MachineConfig::uniform(count, memory),
            keys: BTreeMap::new(),
            raw_config: None,
            daemon_env: Vec::new(),
            shim: true,
            rootless: true,
            show_log: false,
        }
    }

    /// Sets a configuration key, `table.key`, to a TOML value.
    #[must_use]
    pub fn key(mut self, key: &str, value: &str) -> Self {
        self.keys.insert(key.to_owned(), value.to_owned());
        self
    }

    /// Changes each GPU of the machine.
    #[must_use]
    pub fn each_gpu(mut self, change: impl Fn(&mut GpuConfig)) -> Self {
        self.machine.gpus.iter_mut().for_each(change);
        self
    }

    /// An environment variable of the daemon.
    #[must_use]
    pub fn env(mut self, name: &str, value: &str) -> Self {
        self.daemon_env.push((name.to_owned(), value.to_owned()));
        self
    }

    /// The configuration file, `forced` keys over the test's own.
    pub(crate) fn config(&self, forced: &[(&str, String)]) -> String {
        if let Some(text) = &self.raw_config {
            return text.clone();
        }
        let mut keys = self.keys.clone();
        for (key, value) in forced {
            keys.entry((*key).to_owned())
                .or_insert_with(|| value.clone());
        }
        let mut tables: BTreeMap<&str, Vec<(&str, &str)>> = BTreeMap::new();
        for (key, value) in &keys {
            let (table, name) = key.split_once('.').unwrap_or(("daemon", key));
            tables.entry(table).or_default().push((name, value));
        }
        let mut text = String::new();
        for (table, entries) in tables {
            // Writing to a String cannot fail.
            let _ = writeln!(text, "[{table}]");
            for (name, value) in entries {
                let _ = writeln!(text, "{name} = {value}");
            }
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_grouped_by_table_and_the_tests_own_win() {
        let text = Setup {
            keys: BTreeMap::new(),
            ..Setup::gpus(1, GIB)
        }
        .key("jobs.grace", "\"2s\"")
        .key("daemon.socket", "\"/mine\"")
        .config(&[
            ("daemon.socket", "\"/forced\"".to_owned()),
            ("daemon.state_dir", "\"/s\"".to_owned()),
        ]);
        assert_eq!(
            text,
            "[daemon]\nsocket = \"/mine\"\nstate_dir = \"/s\"\n[jobs]\ngrace = \"2s\"\n"
        );
    }
}
