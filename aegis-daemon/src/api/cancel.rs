//! `aegis cancel`.

use aegis_common::event::Event;
use aegis_common::id::JobId;
use aegis_common::job::JobState;
use aegis_common::wire::{ErrorCode, Failure};

use crate::owner::{Owner, Peer};

/// Asks for the end of all the jobs, or of none if one is unknown or somebody else's.
pub(crate) fn handle(owner: &mut Owner, peer: &Peer, jobs: &[JobId]) -> Result<(), Failure> {
    for job in jobs {
        owner.authorise(peer, *job)?;
    }
    let mut asked = false;
    for job in jobs {
        if !matches!(owner.view(*job)?.state, JobState::Done { .. }) {
            asked = true;
            owner.feed_client(Event::CancelRequested {
                job: *job,
                by: peer.uid,
            });
        }
    }
    match owner.journal_trouble().filter(|_| asked) {
        None => Ok(()),
        // Nothing is stopped before the request is on disk, which may be never: do not keep the
        // client waiting for it.
        Some(error) => Err(Failure {
            hint: Some(
                "free disk space in the daemon's state directory; `aegis queue` shows the end"
                    .to_owned(),
            ),
            ..Failure::new(
                ErrorCode::Storage,
                format!("noted, but stopped only once the journal can be written: {error}"),
            )
        }),
    }
}
