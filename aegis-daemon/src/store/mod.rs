//! The journal and the job records, in one SQLite database.
