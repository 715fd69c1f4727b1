//! Which one command a shell text runs, if it is that simple.
//!
//! `cd /data && export A=1; python train.py --lr 0.1 2>&1 | tee log` runs one command. Texts with
//! loops, conditions, substitutions or several commands are not taken apart.

use std::collections::BTreeMap;
use std::iter::Peekable;
use std::str::Chars;

use super::path;

/// The one command of a text.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Plain {
    /// Program and arguments.
    pub(super) words: Vec<String>,
    /// Where it runs.
    pub(super) cwd: String,
    /// Variables the text sets before it, by name.
    pub(super) variables: BTreeMap<String, String>,
}

/// Commands that prepare and need nothing themselves.
const PREPARATIONS: [&str; 18] = [
    "source",
    ".",
    "set",
    "module",
    "ml",
    "ulimit",
    "umask",
    "conda",
    "mamba",
    "mkdir",
    "echo",
    "sleep",
    "unset",
    "shopt",
    "hostname",
    "date",
    "pwd",
    "nvidia-smi",
];
/// Words of the shell's grammar that begin something that is not simple.
const GRAMMAR: [&str; 13] = [
    "for", "while", "until", "if", "then", "do", "case", "select", "function", "test", "[", "[[",
    "!",
];

/// Reads a text. `environment` tells a variable's value. `None`: not that simple.
pub(super) fn read(
    text: &str,
    cwd: &str,
    environment: impl Fn(&str) -> Option<String>,
) -> Option<Plain> {
    let mut reader = Reader {
        chars: text.chars().peekable(),
        environment,
        word: None,
        stage: Vec::new(),
        stages: Vec::new(),
        skip_word: false,
        plain: Plain {
            cwd: cwd.to_owned(),
            ..Plain::default()
        },
    };
    reader.read()?;
    (!reader.plain.words.is_empty()).then_some(reader.plain)
}

/// Names of the variables a text mentions, in order, each once.
pub(super) fn mentions(text: &str) -> Vec<String> {
    let mut names = Vec::new();
    for part in text.split('$').skip(1) {
        let part = part.strip_prefix('{').unwrap_or(part);
        let name: String = part.chars().take_while(|c| is_name(*c)).collect();
        if !name.is_empty() && !names.contains(&name) {
            names.push(name);
        }
    }
    names
}

struct Reader<'a, F> {
    chars: Peekable<Chars<'a>>,
    environment: F,
    word: Option<String>,
    /// Words of the command being read.
    stage: Vec<String>,
    /// Commands of the pipeline before it.
    stages: Vec<Vec<String>>,
    /// The next word is the target of a redirection.
    skip_word: bool,
    plain: Plain,
}

impl<F: Fn(&str) -> Option<String>> Reader<'_, F> {
    fn read(&mut self) -> Option<()> {
        while let Some(c) = self.chars.next() {
            match c {
                ' ' | '\t' | '\r' => self.end_word(),
                '\n' | ';' => self.end_command()?,
                '&' => match self.chars.peek() {
                    Some('>') => self.end_word(),
                    Some('&') => {
                        self.chars.next();
                        self.end_command()?;
                    }
                    _ => self.end_command()?,
                },
                '|' => {
                    if self.chars.next_if_eq(&'|').is_some() {
                        return None;
                    }
                    self.chars.next_if_eq(&'&');
                    self.end_stage();
                }
                '<' | '>' => self.redirection()?,
                '\'' => self.single_quoted()?,
                '"' => self.double_quoted()?,
                '\\' => match self.chars.next() {
                    Some('\n') | None => {}
                    Some(c) => self.push(c),
                },
                '$' => self.variable(false)?,
                '`' | '(' | ')' | '{' | '}' => return None,
                '#' if self.word.is_none() => while self.chars.next_if(|c| *c != '\n').is_some() {},
                c => self.push(c),
            }
        }
        self.end_command()
    }

    fn push(&mut self, c: char) {
        self.word.get_or_insert_default().push(c);
    }

    /// `>`, `>>`, `2>&1`, `&>`; here-documents and process substitution are not simple.
    fn redirection(&mut self) -> Option<()> {
        // The digits before it name a descriptor.
        let descriptor = |word: &String| word.bytes().all(|byte| byte.is_ascii_digit());
        if self.word.as_ref().is_some_and(descriptor) {
            self.word = None;
        }
        self.end_word();
        while let Some(c) = self.chars.next_if(|c| "<>&|".contains(*c)) {
            if c == '<' {
                return None;
            }
        }
        self.skip_word = true;
        Some(())
    }

    fn single_quoted(&mut self) -> Option<()> {
        let word = self.word.get_or_insert_default();
        loop {
            match self.chars.next()? {
                '\'' => return Some(()),
                c => word.push(c),
            }
        }
    }

    fn double_quoted(&mut self) -> Option<()> {
        self.word.get_or_insert_default();
        loop {
            match self.chars.next()? {
                '"' => return Some(()),
                '`' => return None,
                '$' => self.variable(true)?,
                '\\' => match self.chars.next()? {
                    '\n' => {}
                    c if "\\\"$`".contains(c) => self.push(c),
                    c => {
                        self.push('\\');
                        self.push(c);
                    }
                },
                c => self.push(c),
            }
        }
    }

    /// After a `$`: the value of a plain variable; unquoted, it is split into words.
    fn variable(&mut self, quoted: bool) -> Option<()> {
        let braced = self.chars.next_if_eq(&'{').is_some();
        let mut name = String::new();
        while let Some(c) = self.chars.next_if(|c| is_name(*c)) {
            name.push(c);
        }
        if name.is_empty() || name.starts_with(|c: char| c.is_ascii_digit()) {
            return None;
        }
        if braced && self.chars.next() != Some('}') {
            return None;
        }
        let known = self.plain.variables.get(&name).cloned();
        let value = known.or_else(|| (self.environment)(&name))?;
        if quoted {
            self.word.get_or_insert_default().push_str(&value);
            return Some(());
        }
        for (place, part) in value.split_whitespace().enumerate() {
            if place > 0 {
                self.end_word();
            }
            self.word.get_or_insert_default().push_str(part);
        }
        Some(())
    }

    fn end_word(&mut self) {
        if let Some(word) = self.word.take()
            && !std::mem::take(&mut self.skip_word)
        {
            self.stage.push(word);
        }
    }

    fn end_stage(&mut self) {
        self.end_word();
        let stage = std::mem::take(&mut self.stage);
        self.stages.push(stage);
    }

    /// Takes up a whole command. `None` if it is one too many.
    fn end_command(&mut self) -> Option<()> {
        self.end_stage();
        let mut stages = std::mem::take(&mut self.stages).into_iter();
        let mut words = stages.next()?;
        let copies = |stage: Vec<String>| stage.first().is_some_and(|program| program == "tee");
        if !stages.all(copies) {
            return None;
        }
        let set = words.iter().take_while(|word| assignment(word).is_some());
        let set = set.count();
        let rest = words.split_off(set);
        self.set(&words);
        let Some(program) = rest.first() else {
            return Some(());
        };
        match program.as_str() {
            word if GRAMMAR.contains(&word) => None,
            word if PREPARATIONS.contains(&word) => Some(()),
            "export" => {
                self.set(&rest);
                Some(())
            }
            "cd" => {
                let to = rest
                    .get(1)
                    .filter(|to| *to != "-" && !to.starts_with('~'))?;
                self.plain.cwd = path::resolve(&self.plain.cwd, to);
                Some(())
            }
            _ if !self.plain.words.is_empty() => None,
            _ => {
                self.plain.words = rest;
                Some(())
            }
        }
    }

    fn set(&mut self, words: &[String]) {
        for (name, value) in words.iter().filter_map(|word| assignment(word)) {
            self.plain
                .variables
                .insert(name.to_owned(), value.to_owned());
        }
    }
}

/// `NAME=VALUE`.
pub(super) fn assignment(word: &str) -> Option<(&str, &str)> {
    let (name, value) = word.split_once('=')?;
    let begins = name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_');
    (begins && name.chars().all(is_name)).then_some((name, value))
}

const fn is_name(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == '_'
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn environment(name: &str) -> Option<String> {
        (name == "ARGS").then(|| "--bs 32  --amp".to_owned())
    }

    fn words(text: &str) -> Option<String> {
        let plain = read(text, "/home/ana", environment)?;
        Some(format!("{}: {}", plain.cwd, plain.words.join("|")))
    }

    #[test]
    fn one_command_among_preparations_is_found() {
        for (text, expected) in [
            ("python t.py --a 'b c'", "/home/ana: python|t.py|--a|b c"),
            ("cd x && exec python t.py", "/home/ana/x: exec|python|t.py"),
            (
                "source venv/bin/activate; python t.py > log 2>&1",
                "/home/ana: python|t.py",
            ),
            (
                "set -e\n# a comment\nBS=3\npython t.py --bs $BS \\\n  \"$BS x\"",
                "/home/ana: python|t.py|--bs|3|3 x",
            ),
            ("python t.py $ARGS", "/home/ana: python|t.py|--bs|32|--amp"),
            ("python t.py '$ARGS'", "/home/ana: python|t.py|$ARGS"),
            (
                "python t.py 2>&1 | tee -a log.txt",
                "/home/ana: python|t.py",
            ),
            ("A=1 python t.py &> x", "/home/ana: python|t.py"),
            (
                "python t.py 32>x \"a\\\"b\" a\\ b",
                "/home/ana: python|t.py|a\"b|a b",
            ),
        ] {
            assert_eq!(words(text).as_deref(), Some(expected), "{text}");
        }
        let plain = read("export A=1 B=2; C=3 python t.py", "/", environment).unwrap();
        let set: Vec<_> = plain.variables.into_iter().collect();
        let expected = [("A", "1"), ("B", "2"), ("C", "3")];
        assert_eq!(set, expected.map(|(a, b)| (a.to_owned(), b.to_owned())));
    }

    #[test]
    fn anything_else_is_left_alone() {
        for text in [
            "",
            "cd x",
            "python a.py; python b.py",
            "python a.py || true",
            "for i in 1 2; do python a.py; done",
            "python a.py $(date)",
            "python a.py `date`",
            "python a.py ${X:-3}",
            "python a.py $UNKNOWN",
            "python a.py $1",
            "python a.py <<EOF",
            "python a.py | sort",
            "(python a.py)",
            "python 'a.py",
            "cd ~/x; python a.py",
            "if true; then python a.py; fi",
        ] {
            assert_eq!(words(text), None, "{text}");
        }
        assert_eq!(
            mentions("$A ${B:-1} $$ \"$A\" $(x) $_c1-"),
            ["A", "B", "_c1"]
        );
    }

    proptest! {
        #[test]
        fn any_text_is_read_or_not(text in "\\PC*", odd in "[a-z$'\"\\\\ ;&|<>(){}=\n]{0,40}") {
            for text in [text, odd] {
                let _ = mentions(&text);
                if let Some(plain) = read(&text, "/", environment) {
                    prop_assert!(!plain.words.is_empty());
                }
            }
        }

        #[test]
        fn quoting_keeps_words(list in proptest::collection::vec("[^']{1,9}", 0..5)) {
            let quoted: Vec<String> = list.iter().map(|word| format!("'{word}'")).collect();
            let plain = read(&format!("prog {}", quoted.join(" ")), "/", environment).unwrap();
            prop_assert_eq!(&plain.words[1..], &list[..]);
        }
    }
}
