//! The environment a job gets: the submitter's, and what AEGIS adds to it.

use std::path::Path;

use aegis_common::abi::env;
use aegis_common::bytes::ByteString;
use aegis_common::id::JobId;

/// What AEGIS sets for one attempt.
#[derive(Debug)]
pub(crate) struct Additions<'a> {
    pub(crate) job: JobId,
    pub(crate) attempt: u32,
    /// An earlier attempt was asked to save its state.
    pub(crate) resumed: bool,
    pub(crate) token: &'a [u8; 32],
    pub(crate) gpu_uuids: &'a [String],
    pub(crate) shim_socket: &'a Path,
    /// `None`: there is no usable shim; the job runs uninstrumented.
    pub(crate) shim_library: Option<&'a Path>,
}

/// The submitted environment with the additions in place of variables of the same name. A job
/// submitted from within a job must not carry the outer one's identity.
pub(crate) fn environment(submitted: &[ByteString], add: &Additions<'_>) -> Vec<ByteString> {
    let mut set: Vec<(&str, Vec<u8>)> = vec![
        ("CUDA_VISIBLE_DEVICES", add.gpu_uuids.join(",").into_bytes()),
        (env::JOB_ID, add.job.to_string().into_bytes()),
        (env::ATTEMPT, add.attempt.to_string().into_bytes()),
        (env::JOB_TOKEN, add.token.to_vec()),
        (env::SHIM_SOCKET, bytes(add.shim_socket).to_vec()),
    ];
    if add.resumed {
        set.push((env::RESUMED, b"1".to_vec()));
    }
    if let Some(library) = add.shim_library {
        let users = submitted
            .iter()
            .find_map(|entry| value(entry, "LD_PRELOAD"));
        set.push((
            "LD_PRELOAD",
            preload(bytes(library), users.unwrap_or_default()),
        ));
    }
    let mut result: Vec<ByteString> = submitted
        .iter()
        .filter(|entry| set.iter().all(|(name, _)| value(entry, name).is_none()))
        .filter(|entry| value(entry, env::RESUMED).is_none())
        .cloned()
        .collect();
    result.extend(set.into_iter().map(|(name, value)| {
        let mut entry = name.as_bytes().to_vec();
        entry.push(b'=');
        entry.extend(value);
        ByteString(entry)
    }));
    result
}

/// The value of the entry if it is for this variable.
pub(crate) fn value<'a>(entry: &'a ByteString, name: &str) -> Option<&'a [u8]> {
    entry
        .0
        .strip_prefix(name.as_bytes())?
        .strip_prefix(b"=".as_slice())
}

/// The shim first, then the user's libraries. The loader splits at colons and spaces.
fn preload(shim: &[u8], users: &[u8]) -> Vec<u8> {
    let mut list = shim.to_vec();
    for library in users.split(|byte| matches!(byte, b':' | b' ')) {
        if !library.is_empty() && library != shim {
            list.push(b':');
            list.extend(library);
        }
    }
    list
}

fn bytes(path: &Path) -> &[u8] {
    use std::os::unix::ffi::OsStrExt;
    path.as_os_str().as_bytes()
}

#[cfg(test)]
mod tests {
    use super::{Additions, environment};
    use aegis_common::bytes::ByteString;
    use aegis_common::id::JobId;
    use std::path::Path;

    fn entries(submitted: &[&str]) -> Vec<String> {
        entries_of(submitted, false)
    }

    fn entries_of(submitted: &[&str], resumed: bool) -> Vec<String> {
        let submitted: Vec<ByteString> = submitted.iter().map(|entry| (*entry).into()).collect();
        let add = Additions {
            job: JobId(7),
            attempt: 2,
            resumed,
            token: b"0123456789abcdef0123456789abcdef",
            gpu_uuids: &["GPU-1".to_owned(), "GPU-2".to_owned()],
            shim_socket: Path::new("/run/aegis/shim.sock"),
            shim_library: Some(Path::new("/lib/libaegis_shim.so")),
        };
        let result = environment(&submitted, &add);
        result
            .iter()
            .map(|entry| entry.lossy().into_owned())
            .collect()
    }

    #[test]
    fn the_users_variables_stay_and_ours_replace() {
        let got = entries(&[
            "HOME=/h",
            "AEGIS_JOB_TOKEN=outer",
            "CUDA_VISIBLE_DEVICES=3",
            "CUDA_VISIBLE_DEVICES_X=kept",
            "no equals sign",
        ]);
        assert_eq!(
            got,
            [
                "HOME=/h",
                "CUDA_VISIBLE_DEVICES_X=kept",
                "no equals sign",
                "CUDA_VISIBLE_DEVICES=GPU-1,GPU-2",
                "AEGIS_JOB_ID=7",
                "AEGIS_ATTEMPT=2",
                "AEGIS_JOB_TOKEN=0123456789abcdef0123456789abcdef",
                "AEGIS_SHIM_SOCKET=/run/aegis/shim.sock",
                "LD_PRELOAD=/lib/libaegis_shim.so",
            ]
        );
    }

    #[test]
    fn a_resumed_attempt_is_told_and_no_other() {
        let outer = ["AEGIS_RESUMED=1"];
        let told = |entries: Vec<String>| entries.contains(&outer[0].to_owned());
        assert!(told(entries_of(&[], true)));
        assert!(!told(entries(&[])));
        // Submitted from within a resumed job.
        assert!(!told(entries(&outer)));
        assert!(told(entries_of(&outer, true)));
    }

    #[test]
    fn the_shim_goes_before_the_users_libraries_and_once() {
        let preload = |users: &str| entries(&[&format!("LD_PRELOAD={users}")]).pop().unwrap();
        assert_eq!(
            preload("a.so b.so"),
            "LD_PRELOAD=/lib/libaegis_shim.so:a.so:b.so"
        );
        assert_eq!(
            preload("/lib/libaegis_shim.so:a.so"),
            "LD_PRELOAD=/lib/libaegis_shim.so:a.so"
        );
    }
}
