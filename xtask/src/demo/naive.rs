//! The same jobs without AEGIS: all at once, dealt out round-robin, as people do by hand.

use std::process::{Child, Stdio};

use anyhow::{Context, Result};
use e2e::{World, read_progress};

use super::GPUS;
use super::mix::Mix;
use super::shared::progress_file;

/// Runs the mix; returns how many jobs did not finish their steps.
///
/// # Errors
/// A job cannot be started or waited for.
pub(crate) fn run(world: &World, mix: &Mix) -> Result<usize> {
    let mut children: Vec<(&str, Child)> = Vec::new();
    for (next, job) in mix.jobs.iter().enumerate() {
        let visible: Vec<String> = (0..job.gpus as usize)
            .map(|offset| ((next + offset) % GPUS).to_string())
            .collect();
        let log = std::fs::File::create(world.file(&format!("{}.log", job.name)))?;
        let command = job.command(world, &progress_file(world, job));
        let child = world
            .outside(&command)
            .env("CUDA_VISIBLE_DEVICES", visible.join(","))
            .stdin(Stdio::null())
            .stdout(log.try_clone()?)
            .stderr(log)
            .spawn()
            .with_context(|| format!("starting {}", job.name))?;
        children.push((job.name, child));
    }
    for (name, child) in &mut children {
        let status = child
            .wait()
            .with_context(|| format!("waiting for {name}"))?;
        if !status.success() {
            let log =
                std::fs::read_to_string(world.file(&format!("{name}.log"))).unwrap_or_default();
            println!(
                "demo: {name} failed: {}",
                log.lines().last().unwrap_or("no output")
            );
        }
    }
    let mut failures = 0;
    for job in &mix.jobs {
        if !read_progress(&progress_file(world, job))?.completed() {
            failures += 1;
        }
    }
    println!(
        "demo: {failures} of {} jobs failed without AEGIS",
        mix.len()
    );
    Ok(failures)
}
