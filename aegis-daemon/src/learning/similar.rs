//! Which known commands are most like a new one.

use std::collections::BTreeMap;

use super::Command;
use super::argument::number;

/// Two commands this far apart or less are near: one argument that says something else, or a few
/// figures that differ a little. Thousandths of an argument.
const NEAR: u32 = 1_000;
/// Near commands that count, nearest first.
const NEAR_COUNT: usize = 4;
/// Commands of the same script that count where none is near, last used first.
const FAR_COUNT: usize = 8;

/// Parts of names of figures that decide how much memory a step takes.
const BATCH_LIKE: [&str; 22] = [
    "batch",
    "bs",
    "size",
    "len",
    "length",
    "seq",
    "dim",
    "layers",
    "hidden",
    "heads",
    "tokens",
    "width",
    "depth",
    "res",
    "resolution",
    "crop",
    "img",
    "image",
    "frames",
    "ctx",
    "context",
    "gpus",
];
/// Parts of names that say what is trained.
const MODEL_LIKE: [&str; 8] = [
    "model", "arch", "backbone", "net", "config", "cfg", "dataset", "data",
];

/// How near the chosen commands are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Near {
    /// Most arguments are equal.
    Arguments,
    /// Only the script is the same.
    Script,
}

/// The places in `known` (last used first) of the commands to learn from, nearest first; empty if
/// none is of the same script.
#[must_use]
pub fn choose(command: &Command, known: &[Command]) -> (Near, Vec<usize>) {
    let distances = known.iter().enumerate();
    let distances = distances.filter_map(|(at, other)| Some((distance(command, other)?, at)));
    let mut all: Vec<(u32, usize)> = distances.collect();
    let mut near = all.clone();
    near.retain(|(distance, _)| *distance <= NEAR);
    near.sort_unstable();
    let (how, chosen) = if near.is_empty() {
        all.truncate(FAR_COUNT);
        all.sort_unstable();
        (Near::Script, all)
    } else {
        near.truncate(NEAR_COUNT);
        (Near::Arguments, near)
    };
    (how, chosen.into_iter().map(|(_, at)| at).collect())
}

/// How different two commands of one script are, thousandths of an argument; `None`: they are of
/// different scripts.
#[must_use]
pub fn distance(a: &Command, b: &Command) -> Option<u32> {
    if a.script != b.script {
        return None;
    }
    let (a, b) = (by_name(a), by_name(b));
    let mut sum = 0_u32;
    for (name, value) in &a {
        sum = sum.saturating_add(match b.get(name) {
            Some(other) => difference(name, value, other),
            None => alone(name),
        });
    }
    for name in b.keys().filter(|name| !a.contains_key(*name)) {
        sum = sum.saturating_add(alone(name));
    }
    Some(sum)
}

/// The values by name; words without one, and repeated ones, by their place.
fn by_name(command: &Command) -> BTreeMap<(String, usize), Option<String>> {
    let mut named = BTreeMap::new();
    named.insert(("gpus".to_owned(), 0), Some(command.gpus.to_string()));
    for arg in &command.args {
        let place = (0..)
            .find(|place| !named.contains_key(&(arg.name.clone(), *place)))
            .unwrap_or(0);
        named.insert((arg.name.clone(), place), arg.value.clone());
    }
    named
}

fn difference(name: &(String, usize), a: &Option<String>, b: &Option<String>) -> u32 {
    if a == b {
        return 0;
    }
    let numbers = a
        .as_deref()
        .and_then(number)
        .zip(b.as_deref().and_then(number));
    match numbers {
        // A learning rate changes nothing, a batch size in proportion: 8 times as much is another
        // command.
        Some((a, b)) if is_like(&name.0, &BATCH_LIKE) || name.0.len() == 1 => ratio(a, b),
        Some(_) => 50,
        None => alone(name),
    }
}

/// An option that only one of two commands has.
fn alone(name: &(String, usize)) -> u32 {
    if is_like(&name.0, &MODEL_LIKE) {
        2_000
    } else {
        1_000
    }
}

/// Thousandths: 0 for equal numbers, 1000 from a factor of 8 on.
fn ratio(a: f64, b: f64) -> u32 {
    let (low, high) = (a.abs().min(b.abs()), a.abs().max(b.abs()));
    if low <= 0.0 || a.signum() != b.signum() {
        return 1_000;
    }
    let share = ((high / low).log2() / 3.0).clamp(0.0, 1.0) * 1_000.0;
    // In 0..=1000 and not NaN: both are finite and positive.
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "clamped above"
    )]
    let thousandths = share.round() as u32;
    thousandths.max(1)
}

fn is_like(name: &str, parts: &[&str]) -> bool {
    name.split(['-', '.', '/']).any(|part| {
        parts.contains(&part)
            || part
                .strip_suffix('s')
                .is_some_and(|one| parts.contains(&one))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::learning::argument::{canonical, parse};
    use proptest::prelude::*;

    fn command(line: &str) -> Command {
        let mut words = line.split_whitespace().map(str::to_owned);
        let script = words.next().unwrap_or_default();
        let words: Vec<String> = words.collect();
        Command {
            script,
            gpus: 1,
            args: canonical(parse(&words, "")),
        }
    }

    #[test]
    fn the_nearest_come_first_and_other_scripts_never() {
        let known: Vec<Command> = [
            "t.py --model vit --batch-size 512",
            "u.py --model vit --batch-size 32",
            "t.py --model vit --batch-size 64 --lr 3",
            "t.py --model vit --batch-size 16",
            "t.py --model bert --batch-size 32",
        ]
        .map(command)
        .to_vec();
        let like = command("t.py --model vit --batch-size 32 --lr 1");
        // Adding --lr costs a whole argument, so the one that has it wins.
        assert_eq!(choose(&like, &known), (Near::Arguments, vec![2]));
        let like = command("t.py --model vit --batch-size 32");
        assert_eq!(choose(&like, &known).1, [3, 0]);
        let like = command("t.py --model gpt --amp");
        let (how, chosen) = choose(&like, &known);
        assert_eq!((how, chosen.len()), (Near::Script, 4));
        assert_eq!(choose(&command("x.py"), &known).1, [0; 0]);
        let other_gpus = Command {
            gpus: 2,
            ..command("t.py")
        };
        assert_eq!(distance(&command("t.py"), &other_gpus), Some(333));
    }

    #[test]
    fn figures_count_by_what_they_are() {
        let apart = |a: &str, b: &str| distance(&command(a), &command(b)).unwrap();
        assert_eq!(apart("t --lr 0.1", "t --lr 100"), 50);
        assert_eq!(apart("t --bs 1", "t --bs 8"), 1000);
        assert_eq!(apart("t --bs 1", "t --bs 64"), 1000);
        assert_eq!(apart("t -b 32", "t -b 64"), 333);
        assert_eq!(apart("t --num-layers 12", "t --num-layers 24"), 333);
        assert_eq!(apart("t --bs 0", "t --bs 1"), 1000);
        assert_eq!(apart("t --model a", "t --model b"), 2000);
        assert_eq!(apart("t a b", "t a c"), 1000);
        assert_eq!(apart("t --amp", "t"), 1000);
    }

    proptest! {
        #[test]
        fn distance_is_symmetric_and_zero_only_for_equal_ones(
            a in "t( --(bs|lr|model|amp)( [0-9a]{1,2})?){0,3}",
            b in "t( --(bs|lr|model|amp)( [0-9a]{1,2})?){0,3}"
        ) {
            let (a, b) = (command(&a), command(&b));
            prop_assert_eq!(distance(&a, &b), distance(&b, &a));
            prop_assert_eq!(distance(&a, &b) == Some(0), a == b);
        }
    }
}
