//! The `aegisd` program.

fn main() {
    let mut arguments = std::env::args_os().skip(1);
    if arguments.next().is_some_and(|first| first == "keeper") {
        std::process::exit(aegis_daemon::jobs::keeper::main(arguments));
    }
}
