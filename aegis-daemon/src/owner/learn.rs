//! What runs taught, from the core to the store and back to the next submission.

use std::collections::BTreeMap;

use aegis_common::id::JobId;
use aegis_common::learned::{Learned, Observed};
use aegis_common::wire::{ErrorCode, Failure};
use tracing::{error, warn};

use super::Owner;
use super::resumed::in_one_piece;
use crate::learning::Command;
use crate::store::{JobRecord, LearnedKey};

impl Owner {
    /// What is known of a submitted command, on the GPUs that most of the machine is made of. A
    /// store that cannot be read knows nothing; it does not refuse the job.
    pub(crate) fn recall(&mut self, record: &JobRecord) -> Learned {
        let Some(gpu_model) = self.main_model() else {
            return Learned::default();
        };
        let command = command_of(record);
        let key = LearnedKey {
            uid: record.uid,
            gpu_model: &gpu_model,
            command: &command,
        };
        let learned = self.store.learned(key).unwrap_or_else(|failure| {
            warn!(job = %record.id, error = %failure, "what earlier runs taught cannot be read");
            Learned::default()
        });
        let used = self.store.used_again(key, record.id, record.submitted);
        if let Err(failure) = used {
            error!(job = %record.id, error = %failure, "its command is not noted as used");
        }
        learned
    }

    /// Puts what the attempt that just ended taught into the open transaction: that of the event
    /// which ended it.
    pub(super) fn record_learned(&mut self, job: JobId, observed: &Observed) {
        let attempt = self
            .core
            .job(job)
            .and_then(|job| job.attempts.last().map(|a| a.number));
        let Some(attempt) = attempt else {
            return;
        };
        // The environment is part of how a command is recognised.
        let record = match self.whole_record(job) {
            Ok(record) => record,
            Err(error) => {
                error!(%job, error, "what the attempt taught is lost");
                return;
            }
        };
        // The attempt itself was not stopped for others: then it would not have completed.
        let before = self.ran_before(job).filter(|_| observed.completed);
        let observed = &in_one_piece(observed, before.unwrap_or(0));
        let command = command_of(&record);
        let key = LearnedKey {
            uid: record.uid,
            gpu_model: &observed.gpu_model,
            command: &command,
        };
        if let Err(failure) = self.store.learn(key, (job, attempt), observed) {
            error!(%job, error = %failure, "what the attempt taught is lost");
        }
    }

    /// Removes records of the learning store for good.
    ///
    /// # Errors
    /// The journal cannot be written.
    pub(crate) fn forget_learned(&mut self, ids: Vec<i64>) -> Result<(), Failure> {
        self.store.forget_learned(ids);
        self.commit();
        match self.journal_trouble() {
            None => Ok(()),
            Some(error) => Err(Failure {
                hint: Some("free disk space in the daemon's state directory".to_owned()),
                ..Failure::new(
                    ErrorCode::Storage,
                    format!("noted, but forgotten only once the journal can be written: {error}"),
                )
            }),
        }
    }

    /// The product name of most GPUs; of equally many, that of the lowest index.
    fn main_model(&self) -> Option<String> {
        let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
        for gpu in &self.machine {
            *counts.entry(&gpu.name).or_default() += 1;
        }
        let most = counts.values().copied().max()?;
        let first = self
            .machine
            .iter()
            .find(|gpu| counts.get(gpu.name.as_str()) == Some(&most));
        first.map(|gpu| gpu.name.clone())
    }
}

/// The command of a submission as it is recognised.
pub(crate) fn command_of(record: &JobRecord) -> Command {
    let launch = &record.launch;
    Command::of(
        &launch.argv,
        &launch.cwd,
        &launch.env,
        record.resources.gpus,
    )
}
