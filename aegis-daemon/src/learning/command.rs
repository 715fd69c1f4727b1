//! A command in the form in which it is recognised again.

use std::fmt;

use aegis_common::bytes::ByteString;
use serde::{Deserialize, Serialize};

use super::argument::{Arg, Hash, bounded, canonical, parse};
use super::path::{self, base};
use super::wrapper::{self, is_python};
use super::{mask, shell};

/// Raised when commands are read differently: what was learned under another form is not found
/// any more and ages out.
pub const FORM: u32 = 1;

/// Wrappers within wrappers that are taken off.
const DEPTH: usize = 12;

/// A command without what does not change what it needs.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Command {
    /// What runs: interpreter and script, or the program. Commands of another script are never
    /// similar.
    pub script: String,
    /// GPUs it asks for.
    pub gpus: u32,
    /// What it is told: options by name, then the other words in order.
    pub args: Vec<Arg>,
}

impl Command {
    /// Reads a submission: program and arguments, the directory it runs in, its environment as
    /// `KEY=VALUE` (only variables that a shell text mentions count), and the GPUs it asks for.
    #[must_use]
    pub fn of(argv: &[ByteString], cwd: &ByteString, env: &[ByteString], gpus: u32) -> Self {
        let mut reading = Reading {
            words: argv.iter().map(text).collect(),
            cwd: text(cwd),
            args: Vec::new(),
        };
        for _ in 0..DEPTH {
            if let Some(shell) = shell_text(&reading.words) {
                if reading.enter(&shell, env) {
                    continue;
                }
                return reading.opaque(&shell, env, gpus);
            }
            match wrapper::strip(&reading.words, &reading.cwd) {
                Some(inner) => {
                    reading.words = inner.words;
                    reading.cwd = inner.cwd.unwrap_or(reading.cwd);
                    reading.args.extend(inner.args);
                }
                None => break,
            }
        }
        reading.finish(gpus)
    }
}

impl fmt::Display for Command {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.script)?;
        for arg in &self.args {
            write!(f, " {arg}")?;
        }
        Ok(())
    }
}

/// A submission being unwrapped.
struct Reading {
    words: Vec<String>,
    cwd: String,
    /// What the wrappers taken off so far add.
    args: Vec<Arg>,
}

/// `bash -lc TEXT NAME ARG…`.
struct ShellText {
    text: String,
    /// Words after the text.
    more: Vec<String>,
}

impl Reading {
    /// Goes on with the one command in a shell text; `false` if it is not that simple.
    fn enter(&mut self, shell: &ShellText, env: &[ByteString]) -> bool {
        if !shell.more.is_empty() {
            return false;
        }
        let Some(plain) = shell::read(&shell.text, &self.cwd, |name| lookup(env, name)) else {
            return false;
        };
        let set = plain.variables.iter();
        let set: Vec<String> = set.map(|(name, value)| format!("{name}={value}")).collect();
        self.args.extend(parse(&set, ""));
        self.words = plain.words;
        self.cwd = plain.cwd;
        true
    }

    /// A shell text as a whole: recognised, and similar to nothing else.
    fn opaque(mut self, shell: &ShellText, env: &[ByteString], gpus: u32) -> Command {
        let words: Vec<String> = shell
            .text
            .split_whitespace()
            .chain(shell.more.iter().map(String::as_str))
            .map(str::to_owned)
            .collect();
        let set = shell::mentions(&shell.text).into_iter();
        let set = set.filter_map(|name| lookup(env, &name).map(|value| format!("{name}={value}")));
        self.args.extend(parse(&set.collect::<Vec<_>>(), ""));
        let mut hash = Hash::new();
        hash.add(self.cwd.as_bytes());
        let inside = parse(&words, "");
        let shown: Vec<String> = inside.iter().map(ToString::to_string).collect();
        for arg in &shown {
            hash.add(arg.as_bytes());
        }
        let script = format!("sh -c {} #{}", bounded(&shown.join(" ")), hash.text());
        Command {
            script,
            gpus,
            args: canonical(self.args),
        }
    }

    fn finish(mut self, gpus: u32) -> Command {
        let (script, used) = self.program();
        let rest = self.words.get(used..).unwrap_or_default();
        self.args.extend(parse(rest, ""));
        Command {
            script: bounded(&script),
            gpus,
            args: canonical(self.args),
        }
    }

    /// What runs, and how many words say so.
    fn program(&self) -> (String, usize) {
        let Some(first) = self.words.first() else {
            return (String::new(), 0);
        };
        let name = base(first);
        let file = |path: &str| mask::path(&path::resolve(&self.cwd, path));
        if is_python(name) {
            return self.python();
        }
        if name.ends_with(".py") {
            return (format!("python {}", file(first)), 1);
        }
        if let Some(interpreter) = INTERPRETERS.iter().find(|known| known.0 == name) {
            let script = script_at(&self.words, interpreter.2);
            return match script.and_then(|at| Some((at, self.words.get(at)?))) {
                Some((at, path)) => (format!("{} {}", interpreter.1, file(path)), at + 1),
                None => (interpreter.1.to_owned(), 1),
            };
        }
        if first.contains('/') {
            (file(first), 1)
        } else {
            (first.clone(), 1)
        }
    }

    /// `python -u train.py`, `python -m package.module`, `python -c 'code'`.
    fn python(&self) -> (String, usize) {
        let mut at = 1;
        while let Some(word) = self.words.get(at).filter(|word| word.starts_with('-')) {
            // `-um module` ends as `-m module` does.
            let ends = |letter| !word.starts_with("--") && word.ends_with(letter);
            if ends('m') || ends('c') {
                let Some(what) = self.words.get(at + 1) else {
                    break;
                };
                let script = if ends('m') {
                    // A module is looked for in the directory first.
                    format!("python -m {what} in {}", mask::path(&self.cwd))
                } else {
                    format!("python -c {what}")
                };
                return (script, at + 2);
            }
            let valued = matches!(word.as_str(), "-W" | "-X" | "--check-hash-based-pycs");
            at += if valued { 2 } else { 1 };
        }
        match self.words.get(at) {
            Some(path) => {
                let path = mask::path(&path::resolve(&self.cwd, path));
                (format!("python {path}"), at + 1)
            }
            None => ("python".to_owned(), 1),
        }
    }
}

/// Interpreters besides Python: name, the name they are known by, options that take a word along.
const INTERPRETERS: [(&str, &str, &[&str]); 9] = [
    ("sh", "sh", &["-o", "-O"]),
    ("bash", "sh", &["-o", "-O", "--rcfile", "--init-file"]),
    ("dash", "sh", &["-o"]),
    ("zsh", "sh", &["-o"]),
    ("julia", "julia", &["-J", "-t", "-p", "-C"]),
    ("Rscript", "Rscript", &[]),
    ("node", "node", &["-r"]),
    ("perl", "perl", &[]),
    ("ruby", "ruby", &[]),
];

/// Where the script is among an interpreter's words.
fn script_at(words: &[String], valued: &[&str]) -> Option<usize> {
    let mut at = 1;
    while let Some(word) = words.get(at).filter(|word| word.starts_with('-')) {
        at += if valued.contains(&word.as_str()) {
            2
        } else {
            1
        };
    }
    words.get(at).map(|_| at)
}

/// The text of `sh -c`, however the option is bundled (`-lc`).
fn shell_text(words: &[String]) -> Option<ShellText> {
    let name = base(words.first()?);
    if !matches!(name, "sh" | "bash" | "dash" | "zsh") {
        return None;
    }
    let mut at = 1;
    while let Some(word) = words.get(at).filter(|word| word.starts_with('-')) {
        if !word.starts_with("--") && word.contains('c') {
            return Some(ShellText {
                text: words.get(at + 1)?.clone(),
                more: words.get(at + 2..).unwrap_or_default().to_vec(),
            });
        }
        at += if word == "-o" { 2 } else { 1 };
    }
    None
}

fn lookup(env: &[ByteString], name: &str) -> Option<String> {
    let value = |entry: &ByteString| {
        let value = entry.0.strip_prefix(name.as_bytes())?.strip_prefix(b"=")?;
        Some(text(&ByteString(value.to_vec())))
    };
    env.iter().find_map(value)
}

/// Bytes as text. What is no text gets a hash, so that it stays different.
fn text(bytes: &ByteString) -> String {
    match std::str::from_utf8(&bytes.0) {
        Ok(text) => text.to_owned(),
        Err(_) => {
            let mut hash = Hash::new();
            hash.add(&bytes.0);
            format!("{}#{}", bytes.lossy(), hash.text())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn bytes(words: &[&str]) -> Vec<ByteString> {
        words.iter().map(|word| (*word).into()).collect()
    }

    fn command(words: &[&str]) -> Command {
        let env = bytes(&["BS=64", "SEED=3"]);
        Command::of(&bytes(words), &"/home/ana/proj".into(), &env, 1)
    }

    fn shown(line: &str) -> String {
        command(&line.split(' ').collect::<Vec<_>>()).to_string()
    }

    #[test]
    fn the_same_training_is_recognised_however_it_is_started() {
        let expected = "python /home/ana/proj/train.py batch-size=32 model=vit";
        for line in [
            "python train.py --batch-size 32 --model vit",
            "python3 -u ./train.py --model=vit --batch_size=32 --seed 17",
            "/opt/conda/bin/python3.11 -W ignore /home/ana/proj/train.py --model vit --batch-size 32 \
             --output_dir /tmp/x --run-name run_2024-05-01",
            "nohup nice -n 5 python train.py --model vit --batch-size 32 --log-level debug",
            "./train.py --model vit --batch-size=32",
            "uv run train.py --model vit --batch-size=32",
            "env SEED=4 MASTER_PORT=29501 python train.py --model vit --batch-size=32",
        ] {
            assert_eq!(shown(line), expected, "{line}");
        }
        for text in [
            "cd /home/ana/proj && python train.py --model vit --batch-size 32 > log.txt 2>&1",
            "exec python train.py --seed $SEED --model 'vit' --batch-size 32 | tee log",
            "bash -c 'python train.py --model vit --batch-size 32'",
        ] {
            assert_eq!(
                command(&["bash", "-lc", text]).to_string(),
                expected,
                "{text}"
            );
        }
    }

    #[test]
    fn what_changes_the_need_changes_the_command() {
        for (line, expected) in [
            (
                "python -m pkg.train x",
                "python -m pkg.train in /home/ana/proj x",
            ),
            (
                "python -um pkg.train",
                "python -m pkg.train in /home/ana/proj",
            ),
            ("python", "python"),
            ("bash run.sh 3", "sh /home/ana/proj/run.sh 3"),
            ("./a.out -n 3", "/home/ana/proj/a.out n=3"),
            ("sleep 3", "sleep 3"),
            ("julia --project=. t.jl 3", "julia /home/ana/proj/t.jl 3"),
            (
                "torchrun --nproc_per_node 2 --master_port 5 train.py --bs 8",
                "python /home/ana/proj/train.py bs=8 launch.nproc-per-node=2",
            ),
            (
                "python /home/ana/runs/2024-05-01_10-11-12/train.py",
                "python /home/ana/runs/*/train.py",
            ),
            ("bash", "sh"),
            ("env", "env"),
        ] {
            assert_eq!(shown(line), expected, "{line}");
        }
        let bs = command(&["bash", "-c", "python train.py --bs $BS"]).to_string();
        assert_eq!(bs, "python /home/ana/proj/train.py bs=64");
        let two = Command::of(&bytes(&["a"]), &"/".into(), &[], 2);
        assert_ne!(
            two,
            Command {
                gpus: 1,
                ..two.clone()
            }
        );
        assert_eq!(Command::of(&[], &"".into(), &[], 1).script, "");
    }

    #[test]
    fn a_text_that_is_not_simple_is_recognised_whole() {
        let text = |size: &str, run: &str| {
            let text = format!("for i in 1 2; do python t.py --bs {size} --run-name {run}; done");
            command(&["sh", "-c", &text])
        };
        assert_eq!(text("8", "a"), text("8", "b"));
        assert_ne!(text("8", "a").script, text("16", "a").script);
        let env = |bs: &str| {
            let env = bytes(&[&format!("BS={bs}")]);
            let argv = bytes(&["sh", "-c", "python a.py $BS; python b.py"]);
            Command::of(&argv, &"/".into(), &env, 1)
        };
        assert_ne!(env("1"), env("2"));
    }

    proptest! {
        #[test]
        fn any_command_has_a_small_form_that_can_be_stored(
            argv in proptest::collection::vec(proptest::collection::vec(any::<u8>(), 0..200), 0..80),
            likely in proptest::collection::vec("(env|bash|-c|-m|--|python|A=1|x.py|-|run|uv|torchrun|cd a; b)", 0..9),
            cwd in "/[a-z/.]{0,20}"
        ) {
            for argv in [
                argv.into_iter().map(ByteString).collect::<Vec<_>>(),
                likely.iter().map(|word| word.as_str().into()).collect(),
            ] {
                let command = Command::of(&argv, &cwd.as_str().into(), &[], 1);
                prop_assert!(command.script.len() <= 512);
                let json = serde_json::to_string(&command).unwrap();
                prop_assert!(json.len() < 64 << 10);
                prop_assert_eq!(serde_json::from_str::<Command>(&json).unwrap(), command);
            }
        }

        #[test]
        fn seeds_and_directories_never_count(
            seed in "[0-9]{1,9}", out in "[a-z/]{1,9}", place in 0_usize..4
        ) {
            let mut words = vec!["python", "t.py", "--bs", "8", "data"];
            let plain = command(&words);
            let place = [2, 4, 5, 5][place];
            words.splice(place..place, ["--seed", &seed, "--output-dir", &out]);
            prop_assert_eq!(command(&words), plain);
        }
    }
}
