//! Paths as text, without looking at the disk.

/// The last component.
pub(super) fn base(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}

/// `path` seen from `directory`, absolute, without `.` and `..`.
pub(super) fn resolve(directory: &str, path: &str) -> String {
    let whole = if path.starts_with('/') {
        path.to_owned()
    } else {
        format!("{directory}/{path}")
    };
    let mut parts: Vec<&str> = Vec::new();
    for part in whole.split('/') {
        match part {
            "" | "." => {}
            ".." => drop(parts.pop()),
            part => parts.push(part),
        }
    }
    format!("/{}", parts.join("/"))
}

#[cfg(test)]
mod tests {
    use super::{base, resolve};
    use proptest::prelude::*;

    #[test]
    fn relative_paths_are_seen_from_the_directory() {
        assert_eq!(resolve("/home/ana", "train.py"), "/home/ana/train.py");
        assert_eq!(resolve("/home/ana/", "./a/../b.py"), "/home/ana/b.py");
        assert_eq!(resolve("/home/ana", "/opt//x"), "/opt/x");
        assert_eq!(resolve("/", "../../x"), "/x");
        assert_eq!(base("/opt/bin/python3"), "python3");
    }

    proptest! {
        #[test]
        fn a_resolved_path_stays_as_it_is(directory in "(/[a.]{0,3}){0,4}", path in "[/a.]{0,12}") {
            let once = resolve(&directory, &path);
            prop_assert_eq!(resolve("/elsewhere", &once), once);
        }
    }
}
