//! The jobs.

use std::ffi::OsString;
use std::path::Path;

use e2e::{Artifacts, World};

/// A job of the demo.
#[derive(Clone, Debug)]
pub(crate) struct Job {
    /// Unique name.
    pub(crate) name: &'static str,
    /// GPUs it needs.
    pub(crate) gpus: u32,
    /// Options of `aegis submit` beside the number of GPUs.
    pub(crate) options: &'static [&'static str],
    /// What it runs.
    command: Program,
}

#[derive(Clone, Debug)]
enum Program {
    /// The training-like program with these arguments.
    Workload(&'static [&'static str]),
    /// tinygrad's training script with these arguments.
    Tinygrad(&'static [&'static str]),
}

/// A list of jobs in the order of submission.
#[derive(Clone, Debug)]
pub(crate) struct Mix {
    /// The jobs.
    pub(crate) jobs: Vec<Job>,
}

const fn job(
    name: &'static str,
    options: &'static [&'static str],
    arguments: &'static [&'static str],
) -> Job {
    Job {
        name,
        gpus: 1,
        options,
        command: Program::Workload(arguments),
    }
}

impl Mix {
    /// Twelve jobs of four kinds, one of a framework nobody here wrote, one on two GPUs, two that
    /// grow until memory really runs out.
    ///
    /// The first two hold most of each GPU's memory and little of its time; the growing ones are
    /// placed beside them and later want more than is left.
    pub(crate) fn training() -> Self {
        let jobs = vec![
            job(
                "ranking-1",
                &["--gpu-mem", "12GiB"],
                &[
                    "recommender",
                    "--startup",
                    "0.8",
                    "--weights",
                    "5GiB",
                    "--steps",
                    "150",
                    "--epochs",
                    "2",
                    "--loader-ms",
                    "22",
                ],
            ),
            job(
                "ranking-2",
                &["--gpu-mem", "12GiB"],
                &[
                    "recommender",
                    "--startup",
                    "0.8",
                    "--weights",
                    "5GiB",
                    "--steps",
                    "150",
                    "--epochs",
                    "2",
                    "--loader-ms",
                    "22",
                ],
            ),
            job(
                "growing-vision",
                &[],
                &[
                    "vision",
                    "--startup",
                    "0.6",
                    "--sm",
                    "0.4",
                    "--loader-ms",
                    "25",
                    "--steps",
                    "90",
                    "--epochs",
                    "1",
                    "--grow-at",
                    "35",
                    "--grow-bytes",
                    "12GiB",
                ],
            ),
            job(
                "growing-encoder",
                &[],
                &[
                    "transformer",
                    "--startup",
                    "0.6",
                    "--sm",
                    "0.4",
                    "--kernels",
                    "12",
                    "--loader-ms",
                    "30",
                    "--steps",
                    "80",
                    "--epochs",
                    "1",
                    "--grow-at",
                    "30",
                    "--grow-bytes",
                    "11GiB",
                ],
            ),
            job(
                "vision-1",
                &["--gpu-mem", "4GiB"],
                &[
                    "vision",
                    "--startup",
                    "0.6",
                    "--sm",
                    "0.45",
                    "--loader-ms",
                    "20",
                    "--steps",
                    "60",
                ],
            ),
            Job {
                command: Program::Tinygrad(&[
                    "--steps",
                    "120",
                    "--step-ms",
                    "25",
                    "--optimizer",
                    "sgd",
                    "--width",
                    "256",
                    "--batch",
                    "64",
                ]),
                ..job("tinygrad-mlp", &["--gpu-mem", "2GiB"], &[])
            },
            job(
                "ranking-3",
                &["--gpu-mem", "3GiB"],
                &["recommender", "--startup", "0.6", "--steps", "120"],
            ),
            job(
                "encoder-1",
                &["--gpu-mem", "7GiB"],
                &[
                    "transformer",
                    "--startup",
                    "0.6",
                    "--sm",
                    "0.5",
                    "--kernels",
                    "12",
                    "--loader-ms",
                    "20",
                    "--steps",
                    "70",
                ],
            ),
            job(
                "vision-2",
                &["--gpu-mem", "4GiB"],
                &[
                    "vision",
                    "--startup",
                    "0.6",
                    "--sm",
                    "0.45",
                    "--loader-ms",
                    "20",
                    "--steps",
                    "60",
                ],
            ),
            job(
                "decoder-1",
                &["--gpu-mem", "9GiB"],
                &[
                    "llm",
                    "--startup",
                    "0.6",
                    "--weights",
                    "1GiB",
                    "--activations",
                    "2GiB",
                    "--sm",
                    "0.5",
                    "--kernels",
                    "16",
                    "--loader-ms",
                    "15",
                    "--steps",
                    "130",
                ],
            ),
            job(
                "ranking-4",
                &["--gpu-mem", "3GiB"],
                &["recommender", "--startup", "0.6", "--steps", "120"],
            ),
            Job {
                gpus: 2,
                ..job(
                    "vision-2gpu",
                    &["--gpu-mem", "4GiB"],
                    &[
                        "vision",
                        "--startup",
                        "0.6",
                        "--gpus",
                        "2",
                        "--ranks",
                        "processes",
                        "--sm",
                        "0.4",
                        "--loader-ms",
                        "15",
                        "--steps",
                        "40",
                    ],
                )
            },
        ];
        Self { jobs }
    }

    /// Four jobs each of which keeps a whole GPU busy.
    pub(crate) fn saturating() -> Self {
        const ARGUMENTS: &[&str] = &[
            "transformer",
            "--startup",
            "0.5",
            "--saturate",
            "--epochs",
            "1",
            "--steps",
            "120",
        ];
        let names = ["busy-1", "busy-2", "busy-3", "busy-4"];
        Self {
            jobs: names
                .into_iter()
                .map(|name| job(name, &["--gpu-mem", "7GiB"], ARGUMENTS))
                .collect(),
        }
    }

    /// Number of jobs.
    pub(crate) fn len(&self) -> usize {
        self.jobs.len()
    }
}

impl Job {
    /// Its command line, progress going to `progress`.
    pub(crate) fn command(&self, world: &World, progress: &Path) -> Vec<OsString> {
        let mut words: Vec<OsString> = match &self.command {
            Program::Workload(arguments) => world.workload(arguments),
            Program::Tinygrad(arguments) => {
                // Plain code generation in one process: start-up costs 3 s instead of 10.
                let python = world.artifacts.python.clone().unwrap_or_default();
                let mut words: Vec<OsString> = ["env", "NOOPT=1", "PARALLEL=0"]
                    .map(OsString::from)
                    .to_vec();
                words.push(python.into());
                words.push(Artifacts::tinygrad_script().into());
                words.extend(arguments.iter().map(OsString::from));
                words
            }
        };
        words.push("--progress".into());
        words.push(progress.into());
        words
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_mix_is_what_the_demo_promises() {
        let mix = Mix::training();
        assert!(mix.len() >= 10);
        // Growing jobs do not say how much they need: that is the point.
        let growing: Vec<_> = mix.jobs.iter().filter(|job| grows(job)).collect();
        assert_eq!(growing.len(), 2);
        assert!(growing.iter().all(|job| job.options.is_empty()));
        assert_eq!(mix.jobs.iter().filter(|job| job.gpus == 2).count(), 1);
        let kind = |job: &Job| match &job.command {
            Program::Workload(arguments) => arguments.first().copied().unwrap_or_default(),
            Program::Tinygrad(_) => "tinygrad",
        };
        let kinds: std::collections::BTreeSet<_> = mix.jobs.iter().map(kind).collect();
        let expected = ["llm", "recommender", "tinygrad", "transformer", "vision"];
        assert_eq!(kinds.into_iter().collect::<Vec<_>>(), expected);
        let names: std::collections::BTreeSet<_> = mix.jobs.iter().map(|job| job.name).collect();
        assert_eq!(names.len(), mix.len());
    }

    fn grows(job: &Job) -> bool {
        matches!(&job.command, Program::Workload(arguments) if arguments.contains(&"--grow-at"))
    }
}
