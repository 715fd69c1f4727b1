//! `aegis inspect`.

use aegis_common::id::JobId;
use aegis_common::wire::{ErrorCode, Failure, Inspection, Response};

use crate::owner::Owner;

/// Ledgers, leases and counters, freshly read.
pub(crate) fn handle(
    owner: &mut Owner,
    pid: Option<u32>,
    job: Option<JobId>,
) -> Result<Response, Failure> {
    if let Some(job) = job {
        owner.known(&[job])?;
    }
    let mut processes = owner.ledger_views();
    processes.retain(|process| {
        pid.is_none_or(|pid| process.process.pid == pid)
            && job.is_none_or(|job| process.job == Some(job))
    });
    if let Some(pid) = pid
        && processes.is_empty()
    {
        return Err(Failure {
            hint: Some("`aegis inspect` lists the processes that have one".to_owned()),
            ..Failure::new(ErrorCode::NotFound, format!("process {pid} has no ledger"))
        });
    }
    Ok(Response::Inspected(Inspection {
        daemon: true,
        processes,
    }))
}
