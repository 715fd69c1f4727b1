//! Frames: a big-endian `u32` length and that many bytes of JSON.

use std::io::{self, Read, Write};

use aegis_common::wire::MAX_FRAME;
use serde::Serialize;
use serde::de::DeserializeOwned;

/// Why a frame could not be exchanged.
#[derive(Debug, thiserror::Error)]
pub(super) enum FrameError {
    /// The peer closed the connection between frames.
    #[error("the connection was closed")]
    Closed,
    /// The peer closed the connection within a frame.
    #[error("the connection was closed in the middle of a message")]
    Cut,
    /// More than a frame may have.
    #[error("a message of {0} bytes exceeds the limit of {MAX_FRAME}")]
    TooLong(usize),
    /// Not the JSON that was expected.
    #[error("the message cannot be understood: {0}")]
    Garbage(serde_json::Error),
    /// The system said no.
    #[error(transparent)]
    Io(#[from] io::Error),
}

/// Writes one frame.
pub(super) fn write(stream: &mut impl Write, message: &impl Serialize) -> Result<(), FrameError> {
    let json = serde_json::to_vec(message).map_err(FrameError::Garbage)?;
    let length = u32::try_from(json.len())
        .ok()
        .filter(|_| json.len() <= MAX_FRAME)
        .ok_or(FrameError::TooLong(json.len()))?;
    stream.write_all(&length.to_be_bytes())?;
    stream.write_all(&json)?;
    Ok(stream.flush()?)
}

/// Reads one frame.
pub(super) fn read<T: DeserializeOwned>(stream: &mut impl Read) -> Result<T, FrameError> {
    let mut length = [0; 4];
    fill(stream, &mut length)?;
    let length = u32::from_be_bytes(length);
    if length as usize > MAX_FRAME {
        return Err(FrameError::TooLong(length as usize));
    }
    // Grows with what really arrives: a length alone costs no memory.
    let mut json = Vec::new();
    stream.take(u64::from(length)).read_to_end(&mut json)?;
    if json.len() < length as usize {
        return Err(FrameError::Cut);
    }
    serde_json::from_slice(&json).map_err(FrameError::Garbage)
}

fn fill(stream: &mut impl Read, mut rest: &mut [u8]) -> Result<(), FrameError> {
    let wanted = rest.len();
    while !rest.is_empty() {
        match stream.read(rest) {
            Ok(0) if rest.len() == wanted => return Err(FrameError::Closed),
            Ok(0) => return Err(FrameError::Cut),
            Ok(count) => rest = rest.get_mut(count..).unwrap_or_default(),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use aegis_common::wire::{Request, Response};
    use proptest::prelude::*;

    #[test]
    fn a_message_survives() {
        let mut bytes = Vec::new();
        write(&mut bytes, &Request::Gpus).unwrap();
        write(&mut bytes, &Request::Doctor).unwrap();
        let mut stream = &bytes[..];
        assert_eq!(read::<Request>(&mut stream).unwrap(), Request::Gpus);
        assert_eq!(read::<Request>(&mut stream).unwrap(), Request::Doctor);
        assert!(matches!(
            read::<Request>(&mut stream),
            Err(FrameError::Closed)
        ));
    }

    #[test]
    fn too_long_is_refused_both_ways() {
        let mut stream = &[0xff, 0xff, 0xff, 0xff, b'{'][..];
        assert!(matches!(
            read::<Request>(&mut stream),
            Err(FrameError::TooLong(_))
        ));
        let long = "x".repeat(MAX_FRAME);
        assert!(matches!(
            write(&mut Vec::new(), &long),
            Err(FrameError::TooLong(_))
        ));
    }

    proptest! {
        #[test]
        fn no_bytes_panic(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            let _ = read::<Response>(&mut &bytes[..]);
        }

        #[test]
        fn no_framed_bytes_panic(body in proptest::collection::vec(any::<u8>(), 0..200)) {
            let mut bytes = (body.len() as u32).to_be_bytes().to_vec();
            bytes.extend_from_slice(&body);
            let _ = read::<Response>(&mut &bytes[..]);
        }

        #[test]
        fn a_cut_frame_is_an_error(cut in 0_usize..24) {
            let mut bytes = Vec::new();
            write(&mut bytes, &Request::Gpus).unwrap();
            let cut = cut.min(bytes.len() - 1);
            prop_assert!(read::<Request>(&mut &bytes[..cut]).is_err());
        }
    }
}
