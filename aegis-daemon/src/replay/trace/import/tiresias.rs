//! Tiresias' jobs: `job_id,num_gpu,submit_time,iterations,model_name,duration,interval`, times in
//! seconds.

use super::csv::Table;
use super::{ImportError, ImportedJob};

pub(super) const COLUMNS: &[&str] = &["num_gpu", "submit_time", "model_name", "duration"];

pub(super) fn parse(text: &str) -> Result<Vec<ImportedJob>, ImportError> {
    let table = Table::new(text, COLUMNS)?;
    let jobs = table.rows().map(|row| {
        Ok(ImportedJob {
            submit_s: Some(row.seconds("submit_time", 1.0)?),
            gpus: row.gpus("num_gpu")?,
            duration_s: row.seconds("duration", 1.0)?,
            program: Some(row.text("model_name")?.to_owned()),
            cluster: String::new(),
        })
    });
    jobs.collect()
}

#[cfg(test)]
mod tests {
    use super::super::csv::tests::tables;
    use super::*;
    use proptest::prelude::*;

    const HEADER: &str = "job_id,num_gpu,submit_time,iterations,model_name,duration,interval";

    #[test]
    fn a_line_is_a_job() {
        let jobs = parse(&format!("{HEADER}\n1,8,30,133,vgg11,147,23\n")).unwrap();
        let job = jobs.first().unwrap();
        assert_eq!(
            (job.submit_s, job.gpus, job.duration_s),
            (Some(30.0), 8, 147.0)
        );
        assert_eq!(job.program.as_deref(), Some("vgg11"));
        let error = parse(&format!("{HEADER}\n1,0,30,133,vgg11,147,23\n")).unwrap_err();
        assert_eq!(
            error.to_string(),
            "line 2, num_gpu: \"0\" is no number of GPUs"
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
