//! Muri's jobs: `job_id,num_gpu,submit_time,iterations,model_name,batch_size,duration,…`, times in
//! milliseconds.

use super::csv::Table;
use super::{ImportError, ImportedJob};

/// The last one tells it from Tiresias' table.
pub(super) const COLUMNS: &[&str] = &[
    "num_gpu",
    "submit_time",
    "model_name",
    "batch_size",
    "duration",
    "iteration_time",
];

pub(super) fn parse(text: &str) -> Result<Vec<ImportedJob>, ImportError> {
    let table = Table::new(text, COLUMNS)?;
    let jobs = table.rows().map(|row| {
        let (model, batch) = (row.text("model_name")?, row.number("batch_size")?);
        Ok(ImportedJob {
            submit_s: Some(row.seconds("submit_time", 1e3)?),
            gpus: row.gpus("num_gpu")?,
            duration_s: row.seconds("duration", 1e3)?,
            program: Some(format!("{model} (batch size {batch})")),
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

    const HEADER: &str = "job_id,num_gpu,submit_time,iterations,model_name,batch_size,duration,\
                          interval,iteration_time,resource_time_0,resource_time_1,resource_time_2,\
                          priority";

    #[test]
    fn milliseconds_become_seconds() {
        let line = "3,1,945683000,3682024,resnet18,128,2868297000,4190000,779,711,110,0,1";
        let jobs = parse(&format!("{HEADER}\n{line}\n")).unwrap();
        let job = jobs.first().unwrap();
        assert_eq!(job.submit_s, Some(945_683.0));
        assert_eq!((job.gpus, job.duration_s), (1, 2_868_297.0));
        assert_eq!(job.program.as_deref(), Some("resnet18 (batch size 128)"));
        let error = parse(&format!("{HEADER}\n3,none\n")).unwrap_err();
        assert!(error.to_string().starts_with("line 2, "), "{error}");
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
