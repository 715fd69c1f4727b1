//! Any number of keepers, one run.

use aegis_common::job::Exit;

use crate::bench::{Bench, sh};

#[tokio::test]
async fn of_many_keepers_for_one_attempt_one_runs_it() {
    let mut bench = Bench::new();
    let mut rivals: Vec<_> = (0..3).map(|_| bench.another_daemon()).collect();
    rivals.push(bench.daemon.take().unwrap());
    for job in 1..=8 {
        let ran = bench.path().join(format!("ran-{job}"));
        let launch = sh(&format!("echo x >> {}; exit 4", ran.display()));
        for rival in &mut rivals {
            rival.start(job, launch.clone());
        }
        for rival in &mut rivals {
            rival.expect_started(job).await;
            assert_eq!(rival.expect_ended(job).await, Exit::Code(4));
        }
        assert_eq!(std::fs::read_to_string(ran).unwrap(), "x\n");
    }
}

#[tokio::test]
async fn a_second_start_reports_the_first_ones_end() {
    let mut bench = Bench::new();
    let ran = bench.path().join("ran");
    let launch = sh(&format!("echo x >> {}; exit 4", ran.display()));
    for _ in 0..2 {
        bench.start(1, launch.clone());
        bench.start(1, launch.clone());
        bench.expect_started(1).await;
        assert_eq!(bench.expect_ended(1).await, Exit::Code(4));
    }
    assert_eq!(std::fs::read_to_string(ran).unwrap(), "x\n");
}
