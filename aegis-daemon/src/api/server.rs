//! The client socket.

use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use aegis_common::wire::{ErrorCode, Failure, MAX_FRAME, PROTOCOL, Request, Response};
use bytes::Bytes;
use futures_util::SinkExt;
use tokio::net::unix::UCred;
use tokio::net::{UnixListener, UnixStream};
use tokio::sync::{mpsc, oneshot};
use tokio_util::codec::{Framed, LengthDelimitedCodec};
use tracing::{debug, warn};

use super::caps::{Clients, OPEN_PER_UID};
use crate::owner::{ClientCall, Peer};
use crate::sys::peer::peer_groups;

/// Why the socket cannot be served.
#[derive(Debug, thiserror::Error)]
pub enum BindError {
    /// Another daemon answers there.
    #[error("another daemon is serving {0}; stop it first, or give this one its own daemon.socket")]
    InUse(PathBuf),
    /// The operating system refused.
    #[error("cannot listen on {path}: {error}")]
    Io {
        /// The socket.
        path: PathBuf,
        /// Why.
        error: io::Error,
    },
}

/// The listening socket.
#[derive(Debug)]
pub struct Server {
    listener: UnixListener,
}

impl Server {
    /// Listens on `path`; a file left by a dead daemon is replaced.
    ///
    /// # Errors
    /// If a live daemon answers there or the path cannot be bound.
    pub fn bind(path: &Path, mode: u32) -> Result<Self, BindError> {
        let refused = |error| BindError::Io {
            path: path.to_owned(),
            error,
        };
        match std::os::unix::net::UnixStream::connect(path) {
            Ok(_) => return Err(BindError::InUse(path.to_owned())),
            Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => {
                std::fs::remove_file(path).map_err(refused)?;
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(refused(error)),
        }
        let listener = UnixListener::bind(path).map_err(refused)?;
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).map_err(refused)?;
        Ok(Self { listener })
    }

    /// Accepts clients for ever; each has a task of its own.
    pub async fn serve(self, calls: mpsc::UnboundedSender<ClientCall>) {
        let clients = Clients::default();
        loop {
            match self.listener.accept().await {
                Ok((stream, _)) => {
                    let (clients, calls) = (clients.clone(), calls.clone());
                    tokio::spawn(async move {
                        if let Err(error) = receive(stream, &clients, calls).await {
                            debug!(%error, "client");
                        }
                    });
                }
                Err(error) => {
                    // Out of descriptors: those in use come back; spinning would not help.
                    warn!(%error, "accept");
                    tokio::time::sleep(Duration::from_millis(100)).await;
                }
            }
        }
    }
}

/// Lets a client in, or tells it that its user has too many.
async fn receive(
    stream: UnixStream,
    clients: &Clients,
    calls: mpsc::UnboundedSender<ClientCall>,
) -> io::Result<()> {
    let credentials = stream.peer_cred()?;
    if let Some(_seat) = clients.admit(credentials.uid()) {
        return converse(stream, credentials, calls).await;
    }
    let refusal = Response::Failed(Failure {
        hint: Some("end some of your `aegis wait` or `aegis log -f` and try again".to_owned()),
        ..Failure::new(
            ErrorCode::Unreachable,
            format!("you have {OPEN_PER_UID} connections to the daemon, and may not have more"),
        )
    });
    let json = serde_json::to_vec(&refusal).map_err(io::Error::other)?;
    // Fits the socket's empty buffer: it does not wait for the client.
    frames(stream).send(Bytes::from(json)).await
}

fn frames(stream: UnixStream) -> Framed<UnixStream, LengthDelimitedCodec> {
    let codec = LengthDelimitedCodec::builder()
        .max_frame_length(MAX_FRAME)
        .new_codec();
    Framed::new(stream, codec)
}

/// One client: a hello, then requests answered in order.
async fn converse(
    stream: UnixStream,
    credentials: UCred,
    calls: mpsc::UnboundedSender<ClientCall>,
) -> io::Result<()> {
    let peer = Peer {
        uid: credentials.uid(),
        gid: credentials.gid(),
        groups: peer_groups(&stream).unwrap_or_default(),
        pid: credentials.pid().and_then(|pid| u32::try_from(pid).ok()),
    };
    let mut frames = frames(stream);
    let mut greeted = false;
    while let Some(frame) = next(&mut frames).await {
        let response = match frame.and_then(|frame| parse(&frame)) {
            Ok(Request::Hello { protocol, .. }) if !greeted => {
                greeted = protocol == PROTOCOL;
                hello(protocol)
            }
            Ok(_) if !greeted => Response::Failed(Failure {
                hint: Some(
                    "the first frame must be {\"request\":\"hello\",\"protocol\":1,…}".to_owned(),
                ),
                ..Failure::new(ErrorCode::BadRequest, "no hello was sent")
            }),
            Ok(request) => {
                let deferred = matches!(
                    request,
                    Request::Wait { .. } | Request::WaitAttempt { .. } | Request::Cancel { .. }
                );
                let (reply, answer) = oneshot::channel();
                let call = ClientCall {
                    peer: peer.clone(),
                    request,
                    reply,
                };
                if calls.send(call).is_err() {
                    return Ok(());
                }
                tokio::select! {
                    answer = answer => answer.unwrap_or_else(|_| {
                        Response::Failed(Failure::new(ErrorCode::Internal, "the daemon is stopping"))
                    }),
                    // A waiting client that hangs up must not leave its waiter behind.
                    () = hung_up(frames.get_ref()), if deferred => return Ok(()),
                }
            }
            Err(message) => Response::Failed(Failure::new(ErrorCode::BadRequest, &message)),
        };
        let last = !greeted;
        let json = serde_json::to_vec(&response).map_err(io::Error::other)?;
        frames.send(Bytes::from(json)).await?;
        if last {
            break;
        }
    }
    Ok(())
}

/// The next frame; `Err` for one that breaks the framing (the connection ends after the answer).
async fn next(
    frames: &mut Framed<UnixStream, LengthDelimitedCodec>,
) -> Option<Result<bytes::BytesMut, String>> {
    use futures_util::StreamExt;
    let frame = frames.next().await?;
    Some(frame.map_err(|error| format!("a frame must be at most {MAX_FRAME} bytes: {error}")))
}

fn parse(frame: &[u8]) -> Result<Request, String> {
    serde_json::from_slice(frame).map_err(|error| format!("cannot read the request: {error}"))
}

fn hello(protocol: u32) -> Response {
    let version = env!("CARGO_PKG_VERSION").to_owned();
    if protocol == PROTOCOL {
        return Response::Hello {
            protocol: PROTOCOL,
            version,
        };
    }
    Response::Failed(Failure {
        hint: Some("use the aegis of the same installation as the daemon".to_owned()),
        ..Failure::new(
            ErrorCode::Incompatible,
            format!("the daemon {version} speaks protocol {PROTOCOL}, the client {protocol}"),
        )
    })
}

/// Resolves when the peer has closed its end without sending anything more.
async fn hung_up(stream: &UnixStream) {
    loop {
        let ready = stream
            .ready(tokio::io::Interest::READABLE | tokio::io::Interest::ERROR)
            .await;
        match ready {
            Ok(ready) if ready.is_read_closed() || ready.is_write_closed() => return,
            // A pipelined request: it is read after this answer; only the end is of interest.
            Ok(_) => tokio::time::sleep(Duration::from_millis(200)).await,
            Err(_) => return,
        }
    }
}
