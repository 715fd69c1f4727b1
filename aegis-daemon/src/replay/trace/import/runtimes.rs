//! Run times alone, one a line: Philly's in the analysis of the Alibaba traces (`runtime`), Yarn's
//! that Tiresias ships (`duration`). Seconds, of one GPU; when the jobs came is not told.

use super::csv::Table;
use super::{ImportError, ImportedJob};

pub(super) fn parse(text: &str) -> Result<Vec<ImportedJob>, ImportError> {
    let (table, column) = match Table::new(text, &["runtime"]) {
        Ok(table) => (table, "runtime"),
        Err(_) => (Table::new(text, &["duration"])?, "duration"),
    };
    let jobs = table.rows().map(|row| {
        Ok(ImportedJob {
            gpus: 1,
            duration_s: row.seconds(column, 1.0)?,
            ..ImportedJob::default()
        })
    });
    jobs.collect()
}

#[cfg(test)]
mod tests {
    use super::super::csv::tests::tables;
    use super::*;
    use proptest::prelude::*;

    const HEADER: &str = "runtime";

    #[test]
    fn both_headers_are_known() {
        for header in ["runtime", "duration"] {
            let jobs = parse(&format!("{header}\n0.0\n1186.5\n")).unwrap();
            let times: Vec<f64> = jobs.iter().map(|job| job.duration_s).collect();
            assert_eq!(times, [0.0, 1_186.5]);
            assert_eq!(jobs[0].submit_s, None);
        }
        let error = parse("runtime\n-3\n").unwrap_err().to_string();
        assert!(error.starts_with("line 2, runtime: \"-3\""), "{error}");
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
