//! Reading: every problem of a file at once, each with its line.

use std::ops::Range;
use std::path::PathBuf;
use std::time::Duration;

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::schema::{Visit, walk};
use super::setting::Setting;
use super::{Config, Problem, paths, quantity};

/// Text longer than this is cut in messages.
const SHOWN_CHARS: usize = 160;

/// Reads `text` over `defaults`.
pub(super) fn read(text: &str, defaults: Config) -> Result<Config, Vec<Problem>> {
    let (root, errors) = DeTable::parse_recoverable(text);
    let mut problems: Vec<Problem> = errors
        .iter()
        .map(|error| Problem {
            line: error.span().map_or(0, |span| line_of(text, span.start)),
            key: String::new(),
            message: first_line(error.message()),
        })
        .collect();
    if !problems.is_empty() {
        // What is recovered after a syntax error would be complained about without being wrong.
        problems.sort_by_key(|problem| problem.line);
        return Err(problems);
    }
    let mut config = defaults;
    let default_sockets = (
        config.daemon.socket.clone(),
        config.daemon.shim_socket.clone(),
    );
    config.daemon.socket = PathBuf::new();
    config.daemon.shim_socket = PathBuf::new();
    let default_runtime = config.daemon.runtime_dir.clone();

    let mut reader = Reader {
        text,
        root: root.get_ref(),
        table: None,
        name: "",
        known: Vec::new(),
        problems,
    };
    walk(&mut config, &mut reader);
    reader.report_unknown();
    let mut problems = reader.problems;

    let moved = config.daemon.runtime_dir != default_runtime;
    let sockets = [
        (
            &mut config.daemon.socket,
            default_sockets.0,
            paths::SOCKET_NAME,
        ),
        (
            &mut config.daemon.shim_socket,
            default_sockets.1,
            paths::SHIM_SOCKET_NAME,
        ),
    ];
    for (socket, default, name) in sockets {
        if socket.as_os_str().is_empty() {
            *socket = if moved {
                config.daemon.runtime_dir.join(name)
            } else {
                default
            };
        }
    }
    if problems.is_empty() {
        together(&config, &mut problems);
    }
    if problems.is_empty() {
        Ok(config)
    } else {
        problems.sort_by_key(|problem| problem.line);
        Err(problems)
    }
}

/// Checks that concern more than one key.
fn together(config: &Config, problems: &mut Vec<Problem>) {
    let mut check = |fine: bool, key: &str, message: String| {
        if !fine {
            problems.push(Problem {
                line: 0,
                key: key.to_owned(),
                message,
            });
        }
    };
    for (key, socket) in [
        ("daemon.socket", &config.daemon.socket),
        ("daemon.shim_socket", &config.daemon.shim_socket),
    ] {
        if let Err(error) = paths::check_socket(socket) {
            check(false, key, error.to_string());
        }
    }
    check(
        config.daemon.socket != config.daemon.shim_socket,
        "daemon.shim_socket",
        "must differ from daemon.socket".to_owned(),
    );
    let policy = &config.scheduler;
    let show = |millis| quantity::show_duration(Duration::from_millis(millis));
    for (key, value) in [
        ("scheduler.observe_min", policy.observe_min_ms),
        ("scheduler.plateau", policy.plateau_ms),
    ] {
        check(
            value <= policy.observe_max_ms,
            key,
            format!(
                "{} exceeds scheduler.observe_max = {}",
                show(value),
                show(policy.observe_max_ms)
            ),
        );
    }
    if let (Some(default), Some(max)) = (config.jobs.default_time_limit, config.jobs.max_time_limit)
    {
        check(
            default <= max,
            "jobs.default_time_limit",
            format!(
                "{} exceeds jobs.max_time_limit = {}",
                quantity::show_duration(default),
                quantity::show_duration(max)
            ),
        );
    }
    if let Some(library) = &config.shim.library {
        check(
            paths::can_preload(library),
            "shim.library",
            format!(
                "{} contains a space or a colon, which LD_PRELOAD cannot express",
                library.display()
            ),
        );
    }
}

struct Reader<'a> {
    text: &'a str,
    root: &'a DeTable<'a>,
    table: Option<&'a DeTable<'a>>,
    name: &'static str,
    known: Vec<(&'static str, Vec<&'static str>)>,
    problems: Vec<Problem>,
}

impl Visit for Reader<'_> {
    fn table(&mut self, name: &'static str, _doc: &'static str) {
        self.name = name;
        self.known.push((name, Vec::new()));
        self.table = None;
        let Some(value) = self.root.get(name) else {
            return;
        };
        self.table = value.get_ref().as_table();
        if self.table.is_none() {
            let message = format!("must be a table: write [{name}] and its keys below");
            self.problem(&value.span(), name.to_owned(), message);
        }
    }

    fn key(&mut self, name: &'static str, _doc: &'static str, setting: &mut dyn Setting) {
        if let Some((_, keys)) = self.known.last_mut() {
            keys.push(name);
        }
        let Some(value) = self.table.and_then(|table| table.get(name)) else {
            return;
        };
        if let Err(message) = setting.read(value.get_ref()) {
            let message = format!("{}: {message}", shown(self.text, value));
            self.problem(&value.span(), format!("{}.{name}", self.name), message);
        }
    }
}

impl Reader<'_> {
    fn problem(&mut self, span: &Range<usize>, key: String, message: String) {
        self.problems.push(Problem {
            line: line_of(self.text, span.start),
            key,
            message,
        });
    }

    fn report_unknown(&mut self) {
        let tables: Vec<&'static str> = self.known.iter().map(|(name, _)| *name).collect();
        let mut unknown = Vec::new();
        for (name, value) in self.root {
            let name_text: &str = name.get_ref();
            let Some((_, keys)) = self.known.iter().find(|(table, _)| *table == name_text) else {
                let hint = self
                    .home_of(name_text)
                    .or_else(|| {
                        nearest(name_text, &tables).map(|near| format!("did you mean [{near}]?"))
                    })
                    .unwrap_or_else(|| format!("the tables are {}", tables.join(", ")));
                unknown.push((name.span(), printable(name_text), hint));
                continue;
            };
            for key in value
                .get_ref()
                .as_table()
                .into_iter()
                .flat_map(|table| table.keys())
            {
                let key_text: &str = key.get_ref();
                if keys.contains(&key_text) {
                    continue;
                }
                let hint = self
                    .home_of(key_text)
                    .or_else(|| nearest(key_text, keys).map(|near| format!("did you mean {near}?")))
                    .unwrap_or_else(|| format!("[{name_text}] has {}", keys.join(", ")));
                unknown.push((
                    key.span(),
                    format!("{name_text}.{}", printable(key_text)),
                    hint,
                ));
            }
        }
        for (span, key, hint) in unknown {
            self.problem(&span, key, format!("unknown key; {hint}"));
        }
    }

    /// The table that has a key of exactly this name.
    fn home_of(&self, key: &str) -> Option<String> {
        self.known
            .iter()
            .find(|(_, keys)| keys.contains(&key))
            .map(|(table, _)| format!("it belongs in [{table}]"))
    }
}

/// The known name most like `name`, if any is alike at all.
fn nearest<'a>(name: &str, known: &[&'a str]) -> Option<&'a str> {
    known
        .iter()
        .map(|candidate| (strsim::jaro_winkler(name, candidate), *candidate))
        .filter(|(likeness, _)| *likeness > 0.8)
        .max_by(|a, b| a.0.total_cmp(&b.0))
        .map(|(_, candidate)| candidate)
}

/// Line of a byte offset, from 1.
fn line_of(text: &str, offset: usize) -> usize {
    let before = text.as_bytes().get(..offset).unwrap_or(text.as_bytes());
    1 + before.iter().filter(|byte| **byte == b'\n').count()
}

fn first_line(message: &str) -> String {
    printable(message.lines().next().unwrap_or("cannot be understood"))
}

/// The value as written, on one line and cut.
fn shown(text: &str, value: &Spanned<DeValue<'_>>) -> String {
    printable(text.get(value.span()).unwrap_or(""))
}

/// Without control characters, and not endless.
fn printable(text: &str) -> String {
    let mut out = String::new();
    for (count, c) in text.chars().enumerate() {
        if count == SHOWN_CHARS {
            out.push('…');
            break;
        }
        if matches!(c, '"' | '\'' | '\\') {
            out.push(c);
        } else {
            out.extend(c.escape_debug());
        }
    }
    out
}
