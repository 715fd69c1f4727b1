//! What had to be assumed, over all seeds.

/// An assumption.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Note {
    /// The fewest jobs of a seed that it concerns.
    least: usize,
    /// The most.
    most: usize,
    /// Whether the number of jobs is told.
    counted: bool,
    text: String,
}

impl Note {
    /// Concerns so many jobs; `text` goes on after the number.
    pub(super) fn jobs(count: usize, text: impl Into<String>) -> Self {
        Self {
            least: count,
            most: count,
            counted: true,
            text: text.into(),
        }
    }

    /// Concerns the trace as a whole, or does not.
    pub(super) fn sentence(holds: bool, text: &str) -> Self {
        Self {
            counted: false,
            ..Self::jobs(usize::from(holds), text)
        }
    }
}

/// Takes up what was assumed for one more seed, in the same order as for the first.
pub(super) fn merge(notes: &mut Vec<Note>, seed: Vec<Note>) {
    if notes.is_empty() {
        *notes = seed;
        return;
    }
    for (note, one) in notes.iter_mut().zip(seed) {
        note.least = note.least.min(one.least);
        note.most = note.most.max(one.most);
    }
}

/// Those that concern any seed, as sentences.
pub(super) fn text(notes: &[Note]) -> Vec<String> {
    let held = notes.iter().filter(|note| note.most > 0);
    let each = held.map(|note| {
        let Note {
            least, most, text, ..
        } = note;
        match (note.counted, least == most) {
            (false, _) => text.clone(),
            (true, true) => format!("{most} {text}"),
            (true, false) => format!("{least} to {most} {text}"),
        }
    });
    each.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_note_covers_every_seed() {
        let seed = |drawn| {
            vec![
                Note::jobs(60, "of 90 jobs are replayed"),
                Note::jobs(drawn, "jobs run a drawn program"),
                Note::jobs(0, "jobs are too wide"),
                Note::sentence(drawn > 0, "submissions are Poisson"),
            ]
        };
        let mut notes = Vec::new();
        merge(&mut notes, seed(0));
        assert_eq!(text(&notes), ["60 of 90 jobs are replayed"]);
        merge(&mut notes, seed(7));
        merge(&mut notes, seed(3));
        assert_eq!(
            text(&notes),
            [
                "60 of 90 jobs are replayed",
                "0 to 7 jobs run a drawn program",
                "submissions are Poisson",
            ]
        );
    }
}
