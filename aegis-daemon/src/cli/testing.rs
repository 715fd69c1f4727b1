//! A daemon for tests: real socket, scripted answers.
#![cfg(test)]

use std::os::unix::net::{UnixListener, UnixStream};
use std::path::PathBuf;

use aegis_common::wire::{PROTOCOL, Request, Response};

use super::frame;

/// A listening socket that serves until the test ends.
pub(super) struct Daemon {
    /// Where it listens.
    pub socket: PathBuf,
    _dir: tempfile::TempDir,
}

impl Daemon {
    /// Serves each connection by `script`, one after another.
    pub(super) fn scripted(script: impl Fn(&mut UnixStream) + Send + 'static) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let socket = dir.path().join("aegis.sock");
        let listener = UnixListener::bind(&socket).unwrap();
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                script(&mut stream.unwrap());
            }
        });
        Self { socket, _dir: dir }
    }

    /// Greets, then answers each request; a thread per connection.
    pub(super) fn answering(answer: impl Fn(Request) -> Response + Send + Sync + 'static) -> Self {
        let answer = std::sync::Arc::new(answer);
        Self::scripted(move |stream| {
            let mut stream = stream.try_clone().unwrap();
            let answer = answer.clone();
            std::thread::spawn(move || {
                while let Ok(request) = frame::read(&mut stream) {
                    let response = match request {
                        Request::Hello { .. } => Response::Hello {
                            protocol: PROTOCOL,
                            version: "test".into(),
                        },
                        request => answer(request),
                    };
                    if frame::write(&mut stream, &response).is_err() {
                        break;
                    }
                }
            });
        })
    }
}
