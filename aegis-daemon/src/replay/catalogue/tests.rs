use super::*;

fn quantile(mut values: Vec<f64>, share: f64) -> f64 {
    values.sort_by(f64::total_cmp);
    values[((values.len() - 1) as f64 * share).round() as usize]
}

fn named(name: &str) -> Workload {
    workloads()
        .into_iter()
        .find(|workload| workload.name.starts_with(name))
        .unwrap()
}

#[test]
fn every_figure_is_possible() {
    let all = workloads();
    assert_eq!(all.len(), 54);
    for w in &all {
        let share = |value: f64| (0.0..=1.0).contains(&value);
        assert_eq!(w.peaks.len(), w.gpus as usize, "{}", w.name);
        assert!(
            w.peaks
                .iter()
                .all(|&bytes| bytes + CONTEXT_BYTES < 40_960 << 20),
            "{}",
            w.name
        );
        assert!(
            share(w.utilisation) && share(w.sm_active) && share(w.dram_active),
            "{}",
            w.name
        );
        assert!(w.sm_occupancy < w.sm_active, "{}", w.name);
        assert!(w.sm_active <= w.utilisation * 1.4, "{}", w.name);
        assert!(
            w.startup_s < w.solo_s && w.period_s > 0.0 && w.launches > 0,
            "{}",
            w.name
        );
        assert!(w.memory.first_steps_s < w.solo_s, "{}", w.name);
        assert!(
            share(w.memory.at_start) && share(w.memory.peak_at),
            "{}",
            w.name
        );
        assert!(w.memory.at_start < w.memory.after_first_steps, "{}", w.name);
        // A launch takes a few microseconds at least, and the CPU issues it within a millisecond.
        let launch_us = w.period_s / f64::from(w.launches) * 1e6;
        assert!(
            (5.0..2_000.0).contains(&launch_us),
            "{}: {launch_us}",
            w.name
        );
    }
    assert!(all.windows(2).all(|two| two[0].name < two[1].name));
}

#[test]
fn startup_has_the_published_quantiles() {
    let starts: Vec<f64> = workloads().iter().map(|w| w.startup_s).collect();
    for (share, published) in [(0.5, 8.2), (0.9, 10.6), (0.95, 20.6), (1.0, 55.5)] {
        let ours = quantile(starts.clone(), share);
        assert!(
            (ours / published - 1.0).abs() < 0.06,
            "{share}: {ours} s, published {published} s"
        );
    }
}

#[test]
fn the_gaps_are_filled_as_documented() {
    let xlnet = named("xlnet_base");
    assert_eq!((xlnet.gpus, xlnet.unused_gpus, xlnet.peaks[1]), (2, 1, 0));
    assert_eq!(named("gpt2_large").unused_gpus, 0);
    let late = workloads()
        .iter()
        .filter(|w| w.memory.peak_at > 0.0)
        .count();
    assert_eq!(late, 4);
    let resnet = named("resnet50_imagenet_bs32");
    assert!((resnet.cpu_cores - 5.6).abs() < 0.3, "{}", resnet.cpu_cores);
}
