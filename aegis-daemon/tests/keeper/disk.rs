//! A full state disk, made of a small tmpfs. Needs the right to mount.

use std::path::PathBuf;
use std::process::Command;

use aegis_common::action::StopHow;
use aegis_common::job::Exit;

use crate::bench::{Bench, sh, skip};

/// A small file system over the state directory.
struct SmallDisk(PathBuf);

impl SmallDisk {
    fn over(path: PathBuf) -> Option<Self> {
        std::fs::create_dir_all(&path).unwrap();
        let mount = Command::new("mount")
            .args(["-t", "tmpfs", "-o", "size=256k", "aegis-test"])
            .arg(&path)
            .status();
        mount
            .is_ok_and(|status| status.success())
            .then_some(Self(path))
    }

    /// Leaves not a block.
    fn fill(&self) {
        use std::io::Write;
        let mut file = std::fs::File::create(self.0.join("filler")).unwrap();
        while file.write_all(&[0; 4096]).is_ok() {}
    }

    fn free(&self) {
        std::fs::remove_file(self.0.join("filler")).unwrap();
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("-l").arg(&self.0).status();
    }
}

#[tokio::test]
async fn a_full_disk_is_the_jobs_problem_and_its_end_is_recorded_all_the_same() {
    let mut bench = Bench::new();
    let Some(_disk) = SmallDisk::over(bench.path().join("state")) else {
        return skip("mounting a tmpfs is not permitted");
    };
    bench.daemon = Some(bench.another_daemon());
    bench.start(1, sh("head -c 1000000 /dev/zero; exit $?"));
    bench.expect_started(1).await;
    assert_eq!(bench.expect_ended(1).await, Exit::Code(1));
    assert!(bench.log(1).len() < 256 << 10);
}

#[tokio::test]
async fn a_start_waits_for_room() {
    let mut bench = Bench::new();
    let Some(disk) = SmallDisk::over(bench.path().join("state")) else {
        return skip("mounting a tmpfs is not permitted");
    };
    bench.daemon = Some(bench.another_daemon());
    disk.fill();
    bench.start(1, sh("exit 2"));
    // A stop ends the wait.
    bench.start(2, sh("exit 2"));
    bench
        .daemon()
        .keepers
        .stop(aegis_common::id::JobId(2), 1, StopHow::Terminate);
    let error = bench.daemon().expect_start_failed().await;
    assert!(error.contains("No space left"), "{error}");
    disk.free();
    bench.expect_started(1).await;
    assert_eq!(bench.expect_ended(1).await, Exit::Code(2));
}
