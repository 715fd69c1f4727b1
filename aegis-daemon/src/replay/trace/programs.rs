//! Which program of the catalogue a job of a trace runs.

use std::collections::BTreeMap;

use crate::replay::catalogue;
use crate::replay::random;
use crate::replay::workload::Workload;

/// Names under which other traces know families of the catalogue.
const ALIASES: [(&str, &str); 3] = [
    ("recommendation", "dlrm"),
    ("transformer", "bert"),
    ("lm", "llama3"),
];
/// Kept for contexts, the driver and a scheduler's guard when a program is said to fit, bytes: a
/// stand-in that fills a GPU to the brim would say more about these than about the trace.
const RESERVE: u64 = 2 << 30;

/// What a job was given.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Given {
    /// Its place among the trace's workloads.
    pub place: usize,
    /// Seconds to its first launch.
    pub startup_s: f64,
    /// Nothing was known of its program.
    pub drawn: bool,
}

/// The programs of a trace.
pub(super) struct Programs {
    catalogue: Vec<Workload>,
    seed: u64,
    given: Vec<Workload>,
    /// By name and GPUs.
    places: BTreeMap<(String, u32), usize>,
}

impl Programs {
    /// Those of the catalogue that fit on a GPU of that memory; all, if none does.
    pub(super) fn new(gpu_memory: u64, seed: u64) -> Self {
        let all = catalogue::workloads();
        let fits = |one: &&Workload| one.peak().saturating_add(RESERVE) <= gpu_memory;
        let fitting: Vec<Workload> = all.iter().filter(fits).cloned().collect();
        Self {
            catalogue: if fitting.is_empty() { all } else { fitting },
            seed,
            given: Vec::new(),
            places: BTreeMap::new(),
        }
    }

    /// A program for a job on that many GPUs: of the family its name tells, else one that was
    /// measured with as many GPUs. Jobs of one name run one program; of the others `key` chooses.
    pub(super) fn give(&mut self, name: Option<&str>, gpus: u32, key: u64) -> Given {
        let relative = name.and_then(|name| self.relative(name));
        let drawn = relative.is_none();
        let Some(source) = relative.or_else(|| self.draw(name, gpus, key)) else {
            return Given {
                place: 0,
                startup_s: 0.0,
                drawn,
            };
        };
        let startup_s = source.startup_s;
        let name = name.unwrap_or(&source.name).to_owned();
        let workload = Workload {
            name: name.clone(),
            gpus,
            unused_gpus: source.unused_gpus.min(gpus.saturating_sub(1)),
            ..source.clone()
        };
        let next = self.given.len();
        let place = *self.places.entry((name, gpus)).or_insert(next);
        if place == next {
            self.given.push(workload);
        }
        Given {
            place,
            startup_s,
            drawn,
        }
    }

    /// A program for a command of which something may be known already.
    pub(super) fn stand_in(&mut self, command: &str, gpus: u32) -> Option<Workload> {
        let given = self.give(Some(command), gpus, 0);
        self.given.get(given.place).cloned()
    }

    /// All that were given.
    pub(super) fn into_workloads(self) -> Vec<Workload> {
        self.given
    }

    /// The program of the same family whose batch is nearest.
    fn relative(&self, name: &str) -> Option<&Workload> {
        let family = family(name);
        let alias = ALIASES.iter().find(|(theirs, _)| *theirs == family);
        let family = alias.map_or(family.as_str(), |(_, ours)| ours);
        let batch = batch(name);
        let distance = |one: &&Workload| match (batch, self::batch(&one.name)) {
            (Some(mine), Some(other)) => mine.abs_diff(other),
            _ => 0,
        };
        let stem = family.trim_end_matches(|c: char| c.is_ascii_digit());
        let same = |exact: bool| {
            self.catalogue.iter().filter(move |one| {
                let other = self::family(&one.name);
                let other_stem = other.trim_end_matches(|c: char| c.is_ascii_digit());
                if exact {
                    other == family
                } else {
                    !stem.is_empty() && other_stem == stem
                }
            })
        };
        same(true)
            .min_by_key(distance)
            .or_else(|| same(false).min_by_key(distance))
    }

    fn draw(&self, name: Option<&str>, gpus: u32, key: u64) -> Option<&Workload> {
        // One name is one program: its letters are the key.
        let key = name.map_or(key, |name| {
            name.bytes()
                .fold(0, |key: u64, byte| key.wrapping_mul(257) + u64::from(byte))
        });
        let wide = gpus > 1;
        let measured: Vec<&Workload> = self
            .catalogue
            .iter()
            .filter(|one| (one.gpus > 1) == wide)
            .collect();
        let measured = if measured.is_empty() {
            self.catalogue.iter().collect()
        } else {
            measured
        };
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "between 0 and the number of programs"
        )]
        let place =
            (random::even(self.seed, key.wrapping_add(1 << 32)) * measured.len() as f64) as usize;
        measured.get(place).or(measured.last()).copied()
    }
}

/// The model's name in small letters and digits: `resnet50` of `ResNet-50 (batch size 64)` and of
/// `resnet50_imagenet_bs64_1gpu`.
fn family(name: &str) -> String {
    let word = name.split([' ', '(', '_']).next().unwrap_or_default();
    word.chars()
        .filter(char::is_ascii_alphanumeric)
        .map(|c| c.to_ascii_lowercase())
        .collect()
}

/// The batch size in a name.
fn batch(name: &str) -> Option<u32> {
    let rest = name
        .split_once("batch size ")
        .or_else(|| name.split_once("_bs"))?
        .1;
    let digits: String = rest.chars().take_while(char::is_ascii_digit).collect();
    digits.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_models_get_their_family_and_nearest_batch() {
        let mut programs = Programs::new(40 << 30, 1);
        for name in [
            "ResNet-50 (batch size 64)",
            "vgg19 (batch size 16)",
            "Recommendation (batch size 8192)",
            "resnet152",
            "inception4",
        ] {
            let given = programs.give(Some(name), 1, 0);
            assert!(!given.drawn, "{name}");
        }
        let named = |wanted: &str| {
            let all = catalogue::workloads();
            all.into_iter().find(|one| one.name == wanted).unwrap()
        };
        let given = programs.into_workloads();
        assert_eq!(given[0].name, "ResNet-50 (batch size 64)");
        assert_eq!(given[0].peaks, named("resnet50_imagenet_bs64_1gpu").peaks);
        assert_eq!(given[1].peaks, named("vgg16_imagenet_bs32_1gpu").peaks);
    }

    #[test]
    fn one_name_is_one_program_and_others_are_drawn_by_demand() {
        let mut programs = Programs::new(40 << 30, 1);
        let first = programs.give(Some("dqn (batch size 128)"), 1, 0);
        let again = programs.give(Some("dqn (batch size 128)"), 1, 9);
        assert!(first.drawn && first.place == again.place);
        let wide = programs.give(None, 4, 3);
        let many: std::collections::BTreeSet<usize> = (0..200)
            .map(|key| programs.give(None, 1, key).place)
            .collect();
        assert!(many.len() > 30, "{}", many.len());
        let given = programs.into_workloads();
        assert_eq!(given[wide.place].gpus, 4);
        assert!(given[wide.place].name.ends_with("2gpu"));
    }

    #[test]
    fn small_gpus_get_small_programs() {
        let mut programs = Programs::new(8 << 30, 1);
        for key in 0..200 {
            programs.give(None, 1, key);
        }
        let given = programs.into_workloads();
        assert!(given.iter().all(|one| one.peak() + RESERVE <= 8 << 30));
    }
}
