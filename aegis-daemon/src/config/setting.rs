//! Kinds of values a key can have: how each is read, checked and shown.

use std::ops::RangeInclusive;
use std::path::PathBuf;
use std::time::Duration;

use toml::de::DeValue;

use super::quantity;

/// A field of the configuration behind a key.
pub(super) trait Setting {
    /// Checks the value and stores it; else says what is wrong and what is allowed.
    fn read(&mut self, value: &DeValue<'_>) -> Result<(), String>;
    /// The field as TOML.
    fn show(&self) -> String;
    /// What is allowed, for the documentation.
    fn allowed(&self) -> String;
}

fn string<'a>(value: &'a DeValue<'_>, example: &str) -> Result<&'a str, String> {
    value
        .as_str()
        .ok_or_else(|| format!("must be a string like \"{example}\", not {}", a(value)))
}

/// A value's type with its article.
fn a(value: &DeValue<'_>) -> String {
    let name = value.type_str();
    let article = if name.starts_with(['a', 'i']) {
        "an"
    } else {
        "a"
    };
    format!("{article} {name}")
}

/// TOML's basic string.
pub(super) fn quoted(text: &str) -> String {
    toml::Value::String(text.to_owned()).to_string()
}

/// Bytes.
pub(super) struct Size<'a>(pub &'a mut u64, pub RangeInclusive<u64>);

impl Setting for Size<'_> {
    fn read(&mut self, value: &DeValue<'_>) -> Result<(), String> {
        let bytes = quantity::size(string(value, "5GiB")?)?;
        if !self.1.contains(&bytes) {
            return Err(format!("must be {}", self.allowed()));
        }
        *self.0 = bytes;
        Ok(())
    }

    fn show(&self) -> String {
        quoted(&quantity::show_size(*self.0))
    }

    fn allowed(&self) -> String {
        let (min, max) = (self.1.start(), self.1.end());
        format!(
            "between {} and {}",
            quantity::show_size(*min),
            quantity::show_size(*max)
        )
    }
}

/// A field that holds a time.
pub(super) trait Time {
    /// Stores it; false if the field cannot hold it.
    fn store(&mut self, time: Duration) -> bool;
    /// The stored time; `None`: without limit.
    fn get(&self) -> Option<Duration>;
    /// The field may be without limit: `"none"`.
    const OPTIONAL: bool = false;
    /// Removes the limit.
    fn clear(&mut self) {}
}

impl Time for Duration {
    fn store(&mut self, time: Duration) -> bool {
        *self = time;
        true
    }

    fn get(&self) -> Option<Duration> {
        Some(*self)
    }
}

impl Time for Option<Duration> {
    const OPTIONAL: bool = true;

    fn store(&mut self, time: Duration) -> bool {
        *self = Some(time);
        true
    }

    fn get(&self) -> Option<Duration> {
        *self
    }

    fn clear(&mut self) {
        *self = None;
    }
}

/// Milliseconds in an integer.
macro_rules! millis {
    ($type:ty) => {
        impl Time for $type {
            fn store(&mut self, time: Duration) -> bool {
                <$type>::try_from(time.as_millis())
                    .map(|millis| *self = millis)
                    .is_ok()
            }

            fn get(&self) -> Option<Duration> {
                Some(Duration::from_millis(u64::from(*self)))
            }
        }
    };
}
millis!(u64);
millis!(u32);

/// A duration.
pub(super) struct Span<'a, T>(pub &'a mut T, pub RangeInclusive<Duration>);

impl<T: Time> Setting for Span<'_, T> {
    fn read(&mut self, value: &DeValue<'_>) -> Result<(), String> {
        let text = string(value, "10s")?;
        if T::OPTIONAL && text.trim() == "none" {
            self.0.clear();
            return Ok(());
        }
        let time = quantity::duration(text)?;
        if !self.1.contains(&time) || !self.0.store(time) {
            return Err(format!("must be {}", self.allowed()));
        }
        Ok(())
    }

    fn show(&self) -> String {
        quoted(
            &self
                .0
                .get()
                .map_or_else(|| "none".to_owned(), quantity::show_duration),
        )
    }

    fn allowed(&self) -> String {
        let (min, max) = (self.1.start(), self.1.end());
        format!(
            "{}between {} and {}",
            if T::OPTIONAL { "\"none\" or " } else { "" },
            quantity::show_duration(*min),
            quantity::show_duration(*max)
        )
    }
}

/// Thousandths.
pub(super) struct Share<'a>(pub &'a mut u16, pub RangeInclusive<u16>);

impl Setting for Share<'_> {
    fn read(&mut self, value: &DeValue<'_>) -> Result<(), String> {
        let share = quantity::share(string(value, "55%")?)?;
        if !self.1.contains(&share) {
            return Err(format!("must be {}", self.allowed()));
        }
        *self.0 = share;
        Ok(())
    }

    fn show(&self) -> String {
        quoted(&quantity::show_share(*self.0))
    }

    fn allowed(&self) -> String {
        let (min, max) = (self.1.start(), self.1.end());
        format!(
            "between {} and {}",
            quantity::show_share(*min),
            quantity::show_share(*max)
        )
    }
}

/// A number of things.
pub(super) struct Count<'a, T>(pub &'a mut T, pub RangeInclusive<u32>);

impl<T: TryFrom<u32> + Copy + Into<u64>> Setting for Count<'_, T> {
    fn read(&mut self, value: &DeValue<'_>) -> Result<(), String> {
        let wrong = || format!("must be a whole number {}", self.allowed());
        let integer = value
            .as_integer()
            .ok_or_else(|| format!("{}, not {}", wrong(), a(value)))?;
        let number = u32::from_str_radix(integer.as_str(), integer.radix()).map_err(|_| wrong())?;
        if !self.1.contains(&number) {
            return Err(wrong());
        }
        *self.0 = T::try_from(number).map_err(|_| wrong())?;
        Ok(())
    }

    fn show(&self) -> String {
        let number: u64 = (*self.0).into();
        number.to_string()
    }

    fn allowed(&self) -> String {
        format!("between {} and {}", self.1.start(), self.1.end())
    }
}

/// Yes or no.
pub(super) struct Flag<'a>(pub &'a mut bool);

impl Setting for Flag<'_> {
    fn read(&mut self, value: &DeValue<'_>) -> Result<(), String> {
        *self.0 = value
            .as_bool()
            .ok_or_else(|| format!("must be true or false, not {}", a(value)))?;
        Ok(())
    }

    fn show(&self) -> String {
        self.0.to_string()
    }

    fn allowed(&self) -> String {
        "true or false".to_owned()
    }
}

/// One of a few words.
pub(super) struct Choice<'a, T: 'static>(pub &'a mut T, pub &'static [(&'static str, T)]);

impl<T: Copy + PartialEq> Setting for Choice<'_, T> {
    fn read(&mut self, value: &DeValue<'_>) -> Result<(), String> {
        let text = string(value, self.1.first().map_or("", |(name, _)| name))?;
        match self.1.iter().find(|(name, _)| *name == text) {
            Some((_, choice)) => *self.0 = *choice,
            None => return Err(format!("must be {}", self.allowed())),
        }
        Ok(())
    }

    fn show(&self) -> String {
        let name = self.1.iter().find(|(_, choice)| choice == self.0);
        quoted(name.map_or("", |(name, _)| name))
    }

    fn allowed(&self) -> String {
        let names: Vec<String> = self.1.iter().map(|(name, _)| quoted(name)).collect();
        format!("one of {}", names.join(", "))
    }
}

/// A path; empty stands for "derived from others" while reading.
pub(super) struct AbsolutePath<'a>(pub &'a mut PathBuf);

impl Setting for AbsolutePath<'_> {
    fn read(&mut self, value: &DeValue<'_>) -> Result<(), String> {
        let text = string(value, "/run/aegis")?;
        if !text.starts_with('/') || text.contains('\0') {
            return Err("must be an absolute path".to_owned());
        }
        *self.0 = PathBuf::from(text);
        Ok(())
    }

    fn show(&self) -> String {
        quoted(&self.0.to_string_lossy())
    }

    fn allowed(&self) -> String {
        "an absolute path".to_owned()
    }
}

/// A library, or `"auto"` for a search.
pub(super) struct Library<'a>(pub &'a mut Option<PathBuf>);

impl Setting for Library<'_> {
    fn read(&mut self, value: &DeValue<'_>) -> Result<(), String> {
        let text = string(value, "auto")?;
        if text == "auto" {
            *self.0 = None;
        } else if !text.starts_with('/') || text.contains('\0') {
            return Err(format!("must be {}", self.allowed()));
        } else {
            *self.0 = Some(PathBuf::from(text));
        }
        Ok(())
    }

    fn show(&self) -> String {
        quoted(
            &self
                .0
                .as_ref()
                .map_or("auto".into(), |p| p.to_string_lossy()),
        )
    }

    fn allowed(&self) -> String {
        "\"auto\" or an absolute path".to_owned()
    }
}

/// A list of names that its owner resolves.
pub(super) struct Names<'a> {
    /// The names now.
    pub shown: Vec<String>,
    /// Takes new ones or says which is unknown.
    pub store: &'a mut dyn FnMut(Vec<String>) -> Result<(), String>,
}

impl Setting for Names<'_> {
    fn read(&mut self, value: &DeValue<'_>) -> Result<(), String> {
        let wrong = || "must be a list of strings like [\"ana\", \"1001\"]".to_owned();
        let array = value
            .as_array()
            .ok_or_else(|| format!("{}, not {}", wrong(), a(value)))?;
        let names: Option<Vec<String>> = array
            .iter()
            .map(|name| name.get_ref().as_str().map(str::to_owned))
            .collect();
        (self.store)(names.ok_or_else(wrong)?)
    }

    fn show(&self) -> String {
        let names: Vec<String> = self.shown.iter().map(|name| quoted(name)).collect();
        format!("[{}]", names.join(", "))
    }

    fn allowed(&self) -> String {
        "names or numeric ids known on this machine".to_owned()
    }
}
