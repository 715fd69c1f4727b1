//! Microsoft's Philly jobs, recovered from the traces that Gavel ships: `vc,submit_time_s,num_gpus,
//! duration_s`. Only jobs of 20 minutes and more are in it; each virtual cluster's clock starts
//! at 0.

use super::csv::Table;
use super::{ImportError, ImportedJob};

pub(super) const COLUMNS: &[&str] = &["vc", "submit_time_s", "num_gpus", "duration_s"];

pub(super) fn parse(text: &str) -> Result<Vec<ImportedJob>, ImportError> {
    let table = Table::new(text, COLUMNS)?;
    let jobs = table.rows().map(|row| {
        Ok(ImportedJob {
            submit_s: Some(row.seconds("submit_time_s", 1.0)?),
            gpus: row.gpus("num_gpus")?,
            duration_s: row.seconds("duration_s", 1.0)?,
            program: None,
            cluster: row.text("vc")?.to_owned(),
        })
    });
    jobs.collect()
}

#[cfg(test)]
mod tests {
    use super::super::csv::tests::tables;
    use super::*;
    use proptest::prelude::*;

    const HEADER: &str = "vc,submit_time_s,num_gpus,duration_s";

    #[test]
    fn a_line_is_a_job() {
        let jobs = parse(&format!("{HEADER}\n0e4a51,6,2,16602\n")).unwrap();
        let job = jobs.first().unwrap();
        assert_eq!((job.submit_s, job.gpus), (Some(6.0), 2));
        assert_eq!((job.duration_s, job.cluster.as_str()), (16_602.0, "0e4a51"));
        let error = parse(&format!("{HEADER}\na,0,1,5\na,x,1,5\n")).unwrap_err();
        assert_eq!(
            error.to_string(),
            "line 3, submit_time_s: \"x\" is no number"
        );
    }

    proptest! {
        #[test]
        fn any_bytes_give_jobs_or_an_error(text in prop_oneof![".*", tables(HEADER)]) {
            if let Ok(jobs) = parse(&text) {
                prop_assert!(jobs.iter().all(|job| job.gpus > 0 && job.duration_s.is_finite()));
            }
        }
    }
}
