//! `aegis-compat`: the table of clients. Run it through `cargo xtask compat`, which builds and
//! installs what it needs.

use std::process::ExitCode;

use anyhow::{Result, bail};
use clap::Parser;
use compat::check::check;
use compat::client::{CLIENTS, Client, NOT_RUN};
use compat::table::{Counts, Row};
use serde_json::json;

#[derive(Parser)]
#[command(
    name = "aegis-compat",
    about = "Runs client software under the shim on the simulated driver"
)]
struct Arguments {
    /// Print one JSON document on standard output
    #[arg(long)]
    json: bool,
    /// Only clients whose name contains this
    #[arg(long, value_name = "NAME")]
    only: Option<String>,
}

fn main() -> ExitCode {
    match run(&Arguments::parse()) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("aegis-compat: {error:#}");
            ExitCode::FAILURE
        }
    }
}

/// Whether every client that ran passed.
fn run(arguments: &Arguments) -> Result<bool> {
    let wanted = arguments.only.as_deref().unwrap_or_default();
    let clients: Vec<&Client> = CLIENTS
        .iter()
        .filter(|client| client.name.contains(wanted))
        .collect();
    if clients.is_empty() {
        let names: Vec<&str> = CLIENTS.iter().map(|client| client.name).collect();
        bail!(
            "no client's name contains `{wanted}`; there are: {}",
            names.join("; ")
        );
    }
    let say = |line: &str| {
        if arguments.json {
            eprintln!("{line}");
        } else {
            println!("{line}");
        }
    };
    say("simulated driver, own programs and clients of the driver API; no GPU is involved");
    let mut rows = Vec::new();
    for client in clients {
        let row = check(client)?;
        say(&row.to_string());
        rows.push(row);
    }
    if wanted.is_empty() {
        for (name, reason) in NOT_RUN {
            let row = Row::skipped(name, (*reason).to_owned());
            say(&row.to_string());
            rows.push(row);
        }
    }
    let counts = Counts::of(&rows);
    if arguments.json {
        println!(
            "{}",
            json!({ "simulated": true, "clients": rows, "counts": counts })
        );
    }
    say(&format!(
        "compat: {} passed, {} failed",
        counts.passed, counts.failed
    ));
    Ok(counts.failed == 0)
}
