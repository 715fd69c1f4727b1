//! `aegis history`: what earlier runs taught, and forgetting it.

use aegis_common::id::{JobId, Moment};
use aegis_common::wire::{ErrorCode, Failure, HistoryEntry, HistoryFilter, HistoryRun, Response};

use crate::learning::{Command, summary};
use crate::owner::{Owner, Peer, command_of, user_name};
use crate::store::{LearnedCommand, PastJobs, StoreError};

/// Entries of which the single attempts are told: a frame is bounded.
const DETAILED: usize = 8;
/// Past jobs in one answer: each has some hundred bytes, a frame 16 MiB.
const PAGE: u32 = 5_000;

/// What is known of the commands that fit.
pub(crate) fn handle(
    owner: &Owner,
    peer: &Peer,
    filter: &HistoryFilter,
) -> Result<Response, Failure> {
    let found = find(owner, peer, filter)?;
    Ok(Response::History {
        entries: entries(owner, &found)?,
    })
}

/// Forgets what is known of the commands that fit; answers with it.
pub(crate) fn forget(
    owner: &mut Owner,
    peer: &Peer,
    filter: &HistoryFilter,
    everything: bool,
) -> Result<Response, Failure> {
    let unfiltered = filter.jobs.is_empty() && filter.words.is_empty();
    if unfiltered != everything {
        return Err(Failure {
            hint: Some("name jobs or words of commands, or everything with --all".to_owned()),
            ..Failure::new(
                ErrorCode::BadRequest,
                if everything {
                    "everything and only some commands cannot both be forgotten"
                } else {
                    "nothing says what to forget"
                },
            )
        });
    }
    let found = find(owner, peer, filter)?;
    let entries = entries(owner, &found)?;
    owner.forget_learned(found.iter().map(|known| known.id).collect())?;
    Ok(Response::History { entries })
}

/// A page of finished jobs; one's own, root everybody's.
pub(crate) fn past(
    owner: &Owner,
    peer: &Peer,
    since: Moment,
    after: Option<JobId>,
) -> Result<Response, Failure> {
    let which = PastJobs {
        uid: (!owner.is_root(peer)).then_some(peer.uid),
        since,
        after,
        limit: PAGE,
    };
    let jobs = owner.store().past_jobs(which).map_err(unreadable)?;
    Ok(Response::PastJobs {
        more: u32::try_from(jobs.len()).is_ok_and(|count| count == PAGE),
        jobs,
    })
}

fn find(
    owner: &Owner,
    peer: &Peer,
    filter: &HistoryFilter,
) -> Result<Vec<LearnedCommand>, Failure> {
    if filter.all_users && !owner.is_root(peer) {
        return Err(Failure {
            hint: Some("leave it out: your own history is yours".to_owned()),
            ..Failure::new(
                ErrorCode::Forbidden,
                "--all-users: only root sees what other people's runs taught",
            )
        });
    }
    let of_jobs = filter
        .jobs
        .iter()
        .map(|job| of_job(owner, peer, *job))
        .collect::<Result<Vec<(u32, Command)>, Failure>>()?;
    // The jobs named may be other people's: `of_job` has checked that.
    let uid = (!filter.all_users && of_jobs.is_empty()).then_some(peer.uid);
    let mut found = owner.store().learned_commands(uid).map_err(unreadable)?;
    found.retain(|known| {
        let named = of_jobs
            .iter()
            .any(|(uid, command)| *uid == known.uid && *command == known.command);
        let text = known.command.to_string();
        (of_jobs.is_empty() || named) && filter.words.iter().all(|word| text.contains(word))
    });
    Ok(found)
}

/// Whose command and which one a job is.
fn of_job(owner: &Owner, peer: &Peer, job: JobId) -> Result<(u32, Command), Failure> {
    let record = owner.store().job_record(job).map_err(unreadable)?;
    let Some(record) = record else {
        return Err(Failure {
            hint: Some("`aegis queue --all` lists the jobs of this machine".to_owned()),
            job: Some(job),
            ..Failure::new(ErrorCode::NotFound, format!("there is no job {job}"))
        });
    };
    if record.uid != peer.uid && !owner.is_root(peer) {
        return Err(Failure {
            hint: Some("only root sees what other people's runs taught".to_owned()),
            job: Some(job),
            ..Failure::new(
                ErrorCode::Forbidden,
                format!("job {job} is somebody else's"),
            )
        });
    }
    Ok((record.uid, command_of(&record)))
}

fn entries(owner: &Owner, found: &[LearnedCommand]) -> Result<Vec<HistoryEntry>, Failure> {
    let detailed = found.len() <= DETAILED;
    let entry = |known: &LearnedCommand| {
        let attempts = owner.store().learned_runs(known.id).map_err(unreadable)?;
        Ok(entry(known, attempts, detailed))
    };
    found.iter().map(entry).collect()
}

fn entry(known: &LearnedCommand, attempts: Vec<HistoryRun>, detailed: bool) -> HistoryEntry {
    let count = |fits: fn(&HistoryRun) -> bool| {
        let fitting = attempts.iter().filter(|run| fits(run)).count();
        u32::try_from(fitting).unwrap_or(u32::MAX)
    };
    let completed = count(|run| run.observed.completed);
    let out_of_memory = count(|run| run.observed.out_of_memory);
    let runs = count(|_| true);
    let mut durations: Vec<u64> = attempts
        .iter()
        .filter(|run| run.observed.completed)
        .map(|run| run.observed.ran_ms)
        .collect();
    durations.sort_unstable();
    let observed: Vec<_> = attempts.iter().map(|run| run.observed.clone()).collect();
    HistoryEntry {
        uid: known.uid,
        user: user_name(known.uid),
        command: known.command.to_string(),
        gpus: known.command.gpus,
        gpu_model: known.gpu_model.clone(),
        runs,
        completed,
        out_of_memory,
        failed: runs.saturating_sub(completed.saturating_add(out_of_memory)),
        duration_p50_ms: durations
            .get(durations.len().saturating_sub(1) / 2)
            .copied(),
        learned: summary(&observed),
        last_job: known.last_job,
        last_used: known.last_used,
        attempts: if detailed { attempts } else { Vec::new() },
    }
}

fn unreadable(error: StoreError) -> Failure {
    Failure::new(ErrorCode::Storage, error.to_string())
}
