//! The complete commented file.

use super::Config;
use super::schema::{Visit, walk};
use super::setting::Setting;

pub(super) fn document(config: &Config) -> String {
    let mut printer = Printer(
        "# Configuration of aegisd. Sizes, durations and shares are strings with their unit:\n\
         # \"5GiB\", \"10s\", \"55%\". Check a changed file with `aegisd --check-config`.\n"
            .to_owned(),
    );
    // The walk needs a configuration it could write to; this one only lends its values.
    walk(&mut config.clone(), &mut printer);
    printer.0
}

struct Printer(String);

impl Visit for Printer {
    fn table(&mut self, name: &'static str, doc: &'static str) {
        self.0.push_str(&format!("\n# {doc}\n[{name}]\n"));
    }

    fn key(&mut self, name: &'static str, doc: &'static str, setting: &mut dyn Setting) {
        for line in doc.lines() {
            self.0.push_str(&format!("# {line}\n"));
        }
        self.0.push_str(&format!(
            "# Allowed: {}.\n#{name} = {}\n",
            setting.allowed(),
            setting.show()
        ));
    }
}
