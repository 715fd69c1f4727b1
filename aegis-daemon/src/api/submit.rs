//! `aegis submit`.

use std::time::Duration;

use aegis_common::event::Event;
use aegis_common::job::{JobState, OnSuspend};
use aegis_common::wire::{ErrorCode, Failure, NAME_MAX, Response, Submit, SuspendWish};

use crate::config::quantity::show_duration;
use crate::config::{SUSPEND_GRACE_MAX, signal};
use crate::owner::{Owner, Peer};
use crate::store::JobRecord;

/// Highest number of retries a user may ask for.
const RETRIES_MAX: u32 = 100;

/// Accepts the job once it is on disk, or says why it never could run here.
pub(crate) fn handle(owner: &mut Owner, peer: &Peer, submit: Submit) -> Result<Response, Failure> {
    let mut record = accept(owner, peer, submit)?;
    record.learned = owner.recall(&record);
    let job = record.id;
    let event = Event::Submitted {
        job,
        uid: record.uid,
        resources: record.resources.clone(),
        learned: record.learned.clone(),
    };
    owner.enqueue(record, event).map_err(|error| Failure {
        code: ErrorCode::Storage,
        message: format!("the job could not be written to the journal: {error}"),
        hint: Some("free disk space in the daemon's state directory and submit again".to_owned()),
        job: None,
    })?;
    let view = owner.view(job)?;
    let explanation = owner.explanation(&view);
    Ok(Response::Submitted {
        job: Box::new(view),
        explanation,
    })
}

fn accept(owner: &mut Owner, peer: &Peer, submit: Submit) -> Result<JobRecord, Failure> {
    let Submit {
        mut resources,
        requeue,
        retries,
        on_suspend,
        name,
        launch,
    } = submit;
    let settings = owner.settings();
    if settings.rootless && peer.uid != settings.uid {
        return Err(Failure::new(
            ErrorCode::Forbidden,
            format!(
                "this daemon runs rootless and serves only uid {}",
                settings.uid
            ),
        ));
    }
    let Some(program) = launch.argv.first().filter(|program| !program.0.is_empty()) else {
        return Err(bad(
            "the command is empty",
            "put it after --: aegis submit -- python train.py",
        ));
    };
    if launch
        .argv
        .iter()
        .chain(&launch.env)
        .any(|text| text.0.contains(&0))
    {
        return Err(bad(
            "the command or environment contains a NUL byte",
            "remove it",
        ));
    }
    if !launch.cwd.0.starts_with(b"/") {
        return Err(bad(
            "the working directory is not absolute",
            "submit through `aegis submit`",
        ));
    }
    if resources.gpus == 0 {
        return Err(bad(
            "--gpus is 0",
            "AEGIS places GPU jobs: ask for at least 1",
        ));
    }
    if resources.gpu_mem == Some(0) {
        return Err(bad(
            "--gpu-mem is 0",
            "give the peak per GPU, or leave it out if unknown",
        ));
    }
    if resources.priority > 0 && !owner.is_admin(peer) {
        return Err(Failure {
            code: ErrorCode::Forbidden,
            message: format!("--priority {} is above 0", resources.priority),
            hint: Some(
                "users may only lower their priority; administrators may raise it".to_owned(),
            ),
            job: None,
        });
    }
    resources.requeue = requeue.unwrap_or(settings.default_requeue);
    resources.retries = retries.unwrap_or(settings.default_retries);
    if resources.retries > RETRIES_MAX {
        return Err(bad(
            &format!("--retries {} is above {RETRIES_MAX}", resources.retries),
            "use fewer retries",
        ));
    }
    resources.on_suspend = match on_suspend {
        Some(wish) => Some(suspension(wish, settings.suspend_grace_s)?),
        None => None,
    };
    // With a maximum every job has a limit.
    resources.time_limit_s = resources
        .time_limit_s
        .or(settings.default_time_limit_s)
        .or(settings.max_time_limit_s);
    if let (Some(limit), Some(most)) = (resources.time_limit_s, settings.max_time_limit_s)
        && limit > most
        && !owner.is_admin(peer)
    {
        return Err(bad(
            &format!(
                "--time-limit {}: the maximum here is {}",
                show(limit),
                show(most)
            ),
            "ask for less, or ask an administrator (jobs.max_time_limit in the configuration)",
        ));
    }
    if resources.time_limit_s == Some(0) {
        return Err(bad("--time-limit is 0", "give a duration such as 4h"));
    }
    owner.check_feasible(&resources)?;
    if name.as_ref().is_some_and(|name| name.len() > NAME_MAX) {
        return Err(bad(
            &format!("--name has more than {NAME_MAX} bytes"),
            "choose a shorter name",
        ));
    }
    let file_name = || {
        program
            .0
            .rsplit(|byte| *byte == b'/')
            .next()
            .unwrap_or_default()
            .to_vec()
    };
    let mut name = name.unwrap_or_else(|| String::from_utf8_lossy(&file_name()).into_owned());
    if name.len() > NAME_MAX {
        let end = (0..=NAME_MAX)
            .rev()
            .find(|end| name.is_char_boundary(*end))
            .unwrap_or(0);
        name.truncate(end);
    }
    owner.new_record(peer, name, resources, launch)
}

/// How it is asked to save its state, with the default where it does not say how long it needs.
fn suspension(wish: SuspendWish, default_s: u32) -> Result<OnSuspend, Failure> {
    signal::check(wish.signal).map_err(|problem| {
        bad(
            &format!("--on-suspend: {problem}"),
            "see `aegis submit --help`",
        )
    })?;
    let grace_s = wish.grace_s.unwrap_or(default_s);
    let most = SUSPEND_GRACE_MAX.as_secs();
    if grace_s == 0 || u64::from(grace_s) > most {
        return Err(bad(
            &format!(
                "--on-suspend: {} to save its state, allowed are 1s to {}",
                show(grace_s.into()),
                show(most)
            ),
            "save less, or more often and less at the end",
        ));
    }
    Ok(OnSuspend {
        signal: wish.signal,
        grace_s,
    })
}

fn show(seconds: u64) -> String {
    show_duration(Duration::from_secs(seconds))
}

fn bad(message: &str, hint: &str) -> Failure {
    Failure {
        code: ErrorCode::BadRequest,
        message: message.to_owned(),
        hint: Some(hint.to_owned()),
        job: None,
    }
}

impl Owner {
    /// Appends the job and its event in one transaction and lets the core see it.
    ///
    /// If the journal cannot be written the job is withdrawn again and the error returned: what
    /// was not promised to be on disk never starts.
    fn enqueue(&mut self, record: JobRecord, event: Event) -> Result<(), String> {
        if let Some(error) = self.journal_trouble() {
            return Err(error);
        }
        let (job, uid) = (record.id, record.uid);
        self.remember(record);
        self.feed_client(event);
        match self.journal_trouble() {
            None => Ok(()),
            Some(error) => {
                let live = self
                    .view(job)
                    .is_ok_and(|view| !matches!(view.state, JobState::Done { .. }));
                if live {
                    self.feed_client(Event::CancelRequested { job, by: uid });
                }
                Err(error)
            }
        }
    }
}
