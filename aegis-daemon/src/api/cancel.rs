//! `aegis cancel`.

use aegis_common::event::Event;
use aegis_common::id::JobId;
use aegis_common::job::JobState;
use aegis_common::wire::Failure;

use crate::owner::{Owner, Peer};

/// Asks for the end of all the jobs, or of none if one is unknown or somebody else's.
pub(crate) fn handle(owner: &mut Owner, peer: &Peer, jobs: &[JobId]) -> Result<(), Failure> {
    for job in jobs {
        owner.authorise(peer, *job)?;
    }
    for job in jobs {
        if !matches!(owner.view(*job)?.state, JobState::Done { .. }) {
            owner.feed_client(Event::CancelRequested {
                job: *job,
                by: peer.uid,
            });
        }
    }
    Ok(())
}
