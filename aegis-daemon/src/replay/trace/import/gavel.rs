//! Gavel's job traces: ten fields separated by tabs and no header. A job has steps instead of a
//! time: it takes as long as on one V100 alone, by Gavel's own measurements. With several GPUs each
//! is taken to make as many steps, of a batch that is so many times larger.

use super::csv::{self, CENTURY_S, wrong};
use super::{ImportError, ImportedJob};

const FIELDS: usize = 10;

/// Steps per second on a V100 alone, to four digits: `oracle_throughputs.json` of Gavel
/// (stanford-futuredata/gavel, MIT).
const STEPS_PER_S: [(&str, f64); 26] = [
    ("ResNet-18 (batch size 16)", 77.32),
    ("ResNet-18 (batch size 32)", 65.81),
    ("ResNet-18 (batch size 64)", 48.88),
    ("ResNet-18 (batch size 128)", 30.29),
    ("ResNet-18 (batch size 256)", 16.99),
    ("ResNet-50 (batch size 16)", 17.37),
    ("ResNet-50 (batch size 32)", 9.921),
    ("ResNet-50 (batch size 64)", 5.458),
    ("ResNet-50 (batch size 128)", 2.846),
    ("Transformer (batch size 16)", 12.85),
    ("Transformer (batch size 32)", 12.48),
    ("Transformer (batch size 64)", 9.568),
    ("Transformer (batch size 128)", 5.771),
    ("Transformer (batch size 256)", 1.707),
    ("A3C", 8.233),
    ("LM (batch size 5)", 167.1),
    ("LM (batch size 10)", 143.4),
    ("LM (batch size 20)", 108.0),
    ("LM (batch size 40)", 71.72),
    ("LM (batch size 80)", 43.9),
    ("Recommendation (batch size 512)", 0.3315),
    ("Recommendation (batch size 1024)", 0.48),
    ("Recommendation (batch size 2048)", 0.5675),
    ("Recommendation (batch size 4096)", 0.6244),
    ("Recommendation (batch size 8192)", 0.6024),
    ("CycleGAN", 4.918),
];

pub(super) fn parse(text: &str) -> Result<Vec<ImportedJob>, ImportError> {
    let lines = (1..).zip(text.lines());
    lines
        .filter(|(_, line)| !line.trim().is_empty())
        .map(|(line, text)| job(line, text))
        .collect()
}

fn job(line: usize, text: &str) -> Result<ImportedJob, ImportError> {
    let fields: Vec<&str> = text.split('\t').collect();
    let &[model, _, _, _, _, steps, gpus, _, _, arrival] = fields.as_slice() else {
        let problem = format!("{} fields instead of {FIELDS}", fields.len());
        return Err(wrong(line, "job type", &problem));
    };
    let known = STEPS_PER_S.iter().find(|(name, _)| *name == model.trim());
    let Some((name, rate)) = known else {
        return Err(wrong(line, "job type", "its speed is not known"));
    };
    Ok(ImportedJob {
        submit_s: Some(csv::seconds(line, "arrival time", arrival, 1.0)?),
        gpus: csv::gpus(line, "scale factor", gpus)?,
        duration_s: csv::number(line, "steps", steps, CENTURY_S * rate)? / rate,
        program: Some((*name).to_owned()),
        cluster: String::new(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const LINE: &str =
        "ResNet-50 (batch size 64)\tpython3 main.py\tdir\t--n\t1\t2931\t2\t1\t-1.0\t7";

    #[test]
    fn steps_become_time() {
        let jobs = parse(LINE).unwrap();
        let job = jobs.first().unwrap();
        assert_eq!((job.submit_s, job.gpus), (Some(7.0), 2));
        assert!((job.duration_s - 537.0).abs() < 0.1, "{}", job.duration_s);
        let error = |text: &str| parse(text).unwrap_err().to_string();
        assert_eq!(error("a\tb\n"), "line 1, job type: 2 fields instead of 10");
        let other = LINE.replace("ResNet-50", "Unknown");
        assert_eq!(
            error(&format!("{LINE}\n{other}")),
            "line 2, job type: its speed is not known"
        );
        assert!(error(&LINE.replace("2931", "many")).contains("steps"));
    }

    proptest! {
        #[test]
        fn any_bytes_give_jobs_or_an_error(
            text in ".*",
            fields in prop::collection::vec("[0-9]{1,40}|-1|nan|A3C|\\PC{0,5}", 0..12),
        ) {
            for text in [text, format!("A3C\t{}", fields.join("\t"))] {
                if let Ok(jobs) = parse(&text) {
                    prop_assert!(jobs.iter().all(|job| job.gpus > 0 && job.duration_s.is_finite()));
                }
            }
        }
    }
}
