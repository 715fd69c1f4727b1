//! Starting, watching, stopping and adopting attempts; one keeper process per job.
