//! Programs that only start another one: stripped, so that `nice python -u train.py` is the same
//! command as `python train.py`.

use super::argument::{Arg, parse};
use super::path::{self, base};
use super::shell::assignment;

/// A program that runs the command after its own options.
struct Wrapper {
    name: &'static str,
    /// A word that must come first, as in `uv run`.
    verb: Option<&'static str>,
    /// Options that take the next word along.
    valued: &'static [&'static str],
    /// Words of its own before the command.
    operands: usize,
}

const fn wrapper(name: &'static str, valued: &'static [&'static str], operands: usize) -> Wrapper {
    Wrapper {
        name,
        verb: None,
        valued,
        operands,
    }
}

const fn runner(name: &'static str, valued: &'static [&'static str]) -> Wrapper {
    Wrapper {
        name,
        verb: Some("run"),
        valued,
        operands: 0,
    }
}

const CONDA: &[&str] = &["-n", "--name", "-p", "--prefix", "--cwd"];
const WRAPPERS: [Wrapper; 20] = [
    wrapper("exec", &["-a"], 0),
    wrapper("command", &[], 0),
    wrapper("nohup", &[], 0),
    wrapper("setsid", &[], 0),
    wrapper("unbuffer", &[], 0),
    wrapper("nice", &["-n", "--adjustment"], 0),
    wrapper("ionice", &["-c", "-n", "--class", "--classdata"], 0),
    wrapper("chrt", &[], 1),
    wrapper("time", &["-f", "-o", "--format", "--output"], 0),
    wrapper("timeout", &["-k", "-s", "--kill-after", "--signal"], 1),
    wrapper("stdbuf", &["-i", "-o", "-e"], 0),
    wrapper("taskset", &[], 1),
    wrapper("numactl", &["-N", "-m", "-C", "-i", "-p"], 0),
    wrapper("xvfb-run", &["-s", "-n", "-e", "-f", "-p", "-w"], 0),
    runner(
        "uv",
        &[
            "--with",
            "--python",
            "-p",
            "--project",
            "--directory",
            "--extra",
        ],
    ),
    runner("poetry", &[]),
    runner("pipenv", &[]),
    runner("conda", CONDA),
    runner("mamba", CONDA),
    runner("micromamba", CONDA),
];

/// Programs that start several processes of a Python script, `accelerate` by its verb `launch`.
const LAUNCHERS: [&str; 5] = ["torchrun", "deepspeed", "horovodrun", "mpirun", "mpiexec"];
/// The same as modules.
const LAUNCHER_MODULES: [&str; 4] = [
    "torch.distributed.run",
    "torch.distributed.launch",
    "accelerate.commands.launch",
    "deepspeed.launcher.runner",
];

/// The command inside, with what the wrapper adds to it.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Inner {
    pub(super) words: Vec<String>,
    /// Where it runs, if somewhere else.
    pub(super) cwd: Option<String>,
    /// What of the wrapper counts.
    pub(super) args: Vec<Arg>,
}

/// Takes off the outermost wrapper. `None`: there is none.
pub(super) fn strip(words: &[String], cwd: &str) -> Option<Inner> {
    let name = base(words.first()?);
    if name == "env" {
        return env(words, cwd);
    }
    launcher(words).or_else(|| prefix(words, name))
}

fn prefix(words: &[String], name: &str) -> Option<Inner> {
    let wrapper = WRAPPERS.iter().find(|wrapper| wrapper.name == name)?;
    let mut at = 1;
    if let Some(verb) = wrapper.verb {
        if words.get(1).map(String::as_str) != Some(verb) {
            return None;
        }
        at = 2;
    }
    while let Some(word) = words.get(at).filter(|word| word.starts_with('-')) {
        at += 1;
        if word == "--" {
            break;
        }
        if wrapper.valued.contains(&word.as_str()) {
            at += 1;
        }
    }
    inner(words.get(at + wrapper.operands..)?, Vec::new())
}

/// `env -u X -C DIR A=B command`: what it sets counts.
fn env(words: &[String], cwd: &str) -> Option<Inner> {
    let mut at = 1;
    let mut directory = None;
    let mut set = Vec::new();
    while let Some(word) = words.get(at) {
        match word.as_str() {
            "-u" | "--unset" => at += 1,
            "-C" | "--chdir" => {
                at += 1;
                directory = words.get(at).map(|to| path::resolve(cwd, to));
            }
            "-S" | "--split-string" => return None,
            word if word.starts_with('-') => {}
            word if assignment(word).is_some() => set.push(word.to_owned()),
            _ => break,
        }
        at += 1;
    }
    let found = inner(words.get(at..)?, parse(&set, ""))?;
    Some(Inner {
        cwd: directory,
        ..found
    })
}

/// `torchrun --nproc-per-node 2 train.py`: its options count as `launch.…`.
fn launcher(words: &[String]) -> Option<Inner> {
    let name = base(words.first()?);
    let word = |at: usize| words.get(at).map(String::as_str);
    let own = if LAUNCHERS.contains(&name) {
        1
    } else if name == "accelerate" && word(1) == Some("launch") {
        2
    } else if is_python(name) {
        let module = words.iter().position(|word| word == "-m")?;
        let flags = words.get(1..module)?;
        let known = word(module + 1).is_some_and(|name| LAUNCHER_MODULES.contains(&name));
        if !known || !flags.iter().all(|flag| flag.starts_with('-')) {
            return None;
        }
        module + 2
    } else {
        return None;
    };
    let rest = words.get(own..)?;
    let begins = |word: &String| {
        matches!(word.as_str(), "-m" | "--module") || word.ends_with(".py") || is_python(base(word))
    };
    let start = rest.iter().position(begins)?;
    let (options, script) = rest.split_at_checked(start)?;
    let first = script.first()?;
    let mut command = Vec::new();
    if !is_python(base(first)) {
        command.push("python".to_owned());
    }
    if first == "--module" {
        command.push("-m".to_owned());
        command.extend(script.iter().skip(1).cloned());
    } else {
        command.extend(script.iter().cloned());
    }
    inner(&command, parse(options, "launch."))
}

fn inner(words: &[String], args: Vec<Arg>) -> Option<Inner> {
    (!words.is_empty()).then(|| Inner {
        words: words.to_vec(),
        cwd: None,
        args,
    })
}

/// `python`, `python3.11`, `pypy3`, …
pub(super) fn is_python(name: &str) -> bool {
    let version = name
        .strip_prefix("python")
        .or_else(|| name.strip_prefix("pypy"));
    version.is_some_and(|version| version.bytes().all(|b| b.is_ascii_digit() || b == b'.'))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(line: &str) -> Vec<String> {
        line.split_whitespace().map(str::to_owned).collect()
    }

    fn stripped(line: &str) -> Option<String> {
        let inner = strip(&words(line), "/home")?;
        let args = inner.args.iter().map(|arg| match &arg.value {
            Some(value) => format!(" [{}={value}]", arg.name),
            None => format!(" [{}]", arg.name),
        });
        let at = inner.cwd.map(|cwd| format!(" in {cwd}"));
        Some(inner.words.join(" ") + &args.collect::<String>() + &at.unwrap_or_default())
    }

    #[test]
    fn wrappers_come_off() {
        for (line, expected) in [
            ("nice -n 5 python t.py", "python t.py"),
            ("nice -5 python t.py", "python t.py"),
            ("/usr/bin/timeout -k 5 1h python t.py", "python t.py"),
            ("taskset -c 0-3 python t.py", "python t.py"),
            ("numactl --cpunodebind=0 -m 0 python t.py", "python t.py"),
            ("uv run --with x t.py", "t.py"),
            (
                "conda run -n torch --live-stream python t.py",
                "python t.py",
            ),
            ("env -i -u X A=1 SEED=2 python t.py", "python t.py [A=1]"),
            ("env -C w python t.py", "python t.py in /home/w"),
            (
                "torchrun --nproc_per_node=2 --rdzv_id 7 t.py --bs 1",
                "python t.py --bs 1 [launch.nproc-per-node=2]",
            ),
            (
                "python3 -u -m torch.distributed.run --nnodes 1 -m pkg.train x",
                "python -m pkg.train x [launch.nnodes=1]",
            ),
            (
                "accelerate launch --mixed_precision bf16 t.py",
                "python t.py [launch.mixed-precision=bf16]",
            ),
            (
                "mpirun -np 2 python3 t.py a",
                "python3 t.py a [launch.np=2]",
            ),
        ] {
            assert_eq!(stripped(line).as_deref(), Some(expected), "{line}");
        }
    }

    #[test]
    fn what_wraps_nothing_stays() {
        for line in [
            "python t.py",
            "python -m pkg.train",
            "python t.py -m torch.distributed.run x.py",
            "uv sync",
            "nice",
            "timeout 5",
            "env A=1",
            "accelerate config",
            "torchrun --help",
        ] {
            assert_eq!(stripped(line), None, "{line}");
        }
    }
}
