//! Byte strings that survive JSON: arguments, paths and environment are bytes on Linux, not text.

use std::borrow::Cow;
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde::de::{Error, MapAccess, Visitor};
use serde::ser::SerializeMap;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// A byte string. In JSON it is a plain string where it is UTF-8, else `{"base64": "…"}`.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ByteString(pub Vec<u8>);

impl ByteString {
    /// As text, with what is not UTF-8 replaced. For display only.
    #[must_use]
    pub fn lossy(&self) -> Cow<'_, str> {
        String::from_utf8_lossy(&self.0)
    }

    /// As the operating system's string, byte-exact.
    #[must_use]
    pub fn as_os_str(&self) -> &OsStr {
        OsStr::from_bytes(&self.0)
    }
}

impl From<OsString> for ByteString {
    fn from(value: OsString) -> Self {
        Self(value.into_vec())
    }
}

impl From<&str> for ByteString {
    fn from(value: &str) -> Self {
        Self(value.as_bytes().to_vec())
    }
}

impl Serialize for ByteString {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match std::str::from_utf8(&self.0) {
            Ok(text) => serializer.serialize_str(text),
            Err(_) => {
                let mut map = serializer.serialize_map(Some(1))?;
                map.serialize_entry("base64", &STANDARD.encode(&self.0))?;
                map.end()
            }
        }
    }
}

impl<'de> Deserialize<'de> for ByteString {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Either;
        impl<'de> Visitor<'de> for Either {
            type Value = ByteString;

            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("a string or {\"base64\": \"…\"}")
            }

            fn visit_str<E: Error>(self, text: &str) -> Result<ByteString, E> {
                Ok(ByteString(text.as_bytes().to_vec()))
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<ByteString, A::Error> {
                let Some((key, text)) = map.next_entry::<String, String>()? else {
                    return Err(A::Error::custom("an empty object is not a byte string"));
                };
                if key != "base64" {
                    return Err(A::Error::unknown_field(&key, &["base64"]));
                }
                STANDARD
                    .decode(text)
                    .map(ByteString)
                    .map_err(|error| A::Error::custom(format!("base64: {error}")))
            }
        }
        deserializer.deserialize_any(Either)
    }
}

#[cfg(test)]
mod tests {
    use super::ByteString;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn any_bytes_survive_json(bytes in proptest::collection::vec(any::<u8>(), 0..64)) {
            let text = serde_json::to_string(&ByteString(bytes.clone())).unwrap();
            let back: ByteString = serde_json::from_str(&text).unwrap();
            prop_assert_eq!(back.0, bytes);
        }
    }

    #[test]
    fn text_stays_readable() {
        assert_eq!(
            serde_json::to_string(&ByteString::from("a b")).unwrap(),
            "\"a b\""
        );
        assert!(serde_json::from_str::<ByteString>("{\"hex\":\"00\"}").is_err());
        assert!(serde_json::from_str::<ByteString>("{\"base64\":\"*\"}").is_err());
    }
}
