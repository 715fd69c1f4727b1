//! What is going on: a table that is redrawn on a terminal, else a line for each change.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io::{IsTerminal, Write as _};
use std::time::Instant;

use aegis_common::id::JobId;
use aegis_common::job::{JobState, Phase};
use aegis_common::reason::{bytes, permille};
use aegis_common::wire::{GpuView, JobView, QueueView};

/// The display of one run.
pub(crate) struct Table {
    start: Instant,
    terminal: bool,
    /// Lines of the table now on the screen.
    drawn: usize,
    /// What was last said of each job.
    said: BTreeMap<JobId, String>,
}

impl Table {
    /// Starts counting seconds from `start`.
    pub(crate) fn new(start: Instant) -> Self {
        Self {
            start,
            terminal: std::io::stdout().is_terminal(),
            drawn: 0,
            said: BTreeMap::new(),
        }
    }

    /// Shows the present state.
    pub(crate) fn show(&mut self, queue: &QueueView, gpus: &[GpuView]) {
        if self.terminal {
            let text = drawing(queue, gpus, self.start.elapsed().as_secs_f64());
            self.erase();
            print!("{text}");
            self.drawn = text.lines().count();
        } else {
            for view in &queue.jobs {
                self.tell(view);
            }
        }
        // Nobody is hurt if the terminal is gone.
        let _ = std::io::stdout().flush();
    }

    /// A line above the table.
    pub(crate) fn note(&mut self, text: &str) {
        self.erase();
        println!("demo: {:5.1} s  {text}", self.start.elapsed().as_secs_f64());
    }

    /// Leaves the last table on the screen.
    pub(crate) fn end(&mut self) {
        self.drawn = 0;
    }

    fn tell(&mut self, view: &JobView) {
        let now = state_of(view);
        if self.said.get(&view.id) != Some(&now) {
            println!(
                "demo: {:5.1} s  {:<16} {now}",
                self.start.elapsed().as_secs_f64(),
                view.name
            );
            self.said.insert(view.id, now);
        }
    }

    fn erase(&mut self) {
        if self.drawn > 0 {
            // Up by the lines drawn, and clear to the end of the screen.
            print!("\u{1b}[{}A\u{1b}[J", self.drawn);
            self.drawn = 0;
        }
    }
}

/// The whole table.
fn drawing(queue: &QueueView, gpus: &[GpuView], seconds: f64) -> String {
    let mut text = format!(
        "  {seconds:.1} s   {} running, {} waiting\n",
        queue.running, queue.pending
    );
    for gpu in gpus {
        let busy = gpu.sm_active.map_or("-".to_owned(), permille);
        let _ = writeln!(
            text,
            "  GPU {}  {:>10} used  {:>10} promised  SM {busy:>7}  jobs {}",
            gpu.index,
            gpu.used.map_or("-".to_owned(), bytes),
            bytes(gpu.promised),
            gpu.residents.len()
        );
    }
    let mut jobs: Vec<&JobView> = queue.jobs.iter().collect();
    jobs.sort_by_key(|view| view.id);
    for view in jobs {
        let held: u64 = view.holdings.iter().map(|h| h.used).sum();
        let _ = writeln!(
            text,
            "  {:>3} {:<16} {:<44} {:>10}",
            view.id,
            view.name,
            state_of(view),
            if held > 0 { bytes(held) } else { String::new() }
        );
    }
    text
}

/// A job's state in a few words.
fn state_of(view: &JobView) -> String {
    let attempt = view.attempts.last();
    let place = attempt.map_or(String::new(), |attempt| {
        let gpus: Vec<String> = attempt.gpus.iter().map(ToString::to_string).collect();
        format!(" on GPU {}", gpus.join("+"))
    });
    let again = match attempt {
        Some(attempt) if attempt.number > 1 => format!(", attempt {}", attempt.number),
        _ => String::new(),
    };
    match &view.state {
        JobState::Pending if view.attempts.is_empty() => "waits".to_owned(),
        JobState::Pending => {
            let why = attempt.and_then(|attempt| attempt.retried.as_ref());
            why.map_or("waits".to_owned(), |why| format!("waits: {why}"))
        }
        JobState::Starting => format!("starts{place}{again}"),
        JobState::Running { phase } => {
            let phase = match phase {
                Phase::WarmUp => "warms up",
                Phase::Observing => "observed",
                Phase::Steady => "runs",
                Phase::Dormant => "dormant",
            };
            format!("{phase}{place}{again}")
        }
        JobState::Stopping { why } => format!("stops: {why}"),
        JobState::Done { outcome } => match outcome {
            aegis_common::job::Outcome::Ok => format!("done{place}{again}"),
            other => format!("{other:?}"),
        },
    }
}
