//! Where fields lie in the running kernel's structures, from its type information.
//!
//! The format is that of the kernel's `Documentation/bpf/btf.rst`: a header, types one after the
//! other with ids from 1, and strings they refer to.

/// First two bytes.
const MAGIC: u16 = 0xeb9f;
/// Kinds of types.
const STRUCT: u32 = 4;
const UNION: u32 = 5;
/// Bytes of a type before what its kind adds.
const TYPE: usize = 12;
/// Bytes of a member of a structure.
const MEMBER: usize = 12;
/// Structures inside each other; the kernel's own go four deep.
const MAX_DEPTH: u32 = 8;

/// The type information.
#[derive(Debug)]
pub(super) struct Types<'a> {
    types: &'a [u8],
    strings: &'a [u8],
    /// Where in `types` each type begins; that of id 1 first.
    places: Vec<usize>,
}

impl<'a> Types<'a> {
    /// Finds the types; `None` if the bytes are no type information.
    pub(super) fn parse(bytes: &'a [u8]) -> Option<Self> {
        if u16::from_ne_bytes(*bytes.first_chunk()?) != MAGIC {
            return None;
        }
        let header = size(word(bytes, 4)?);
        let section = |at: usize| {
            let begin = header.checked_add(size(word(bytes, at)?))?;
            bytes.get(begin..begin.checked_add(size(word(bytes, at + 4)?))?)
        };
        let (types, strings) = (section(8)?, section(16)?);
        let mut places = Vec::new();
        let mut at = 0;
        while at < types.len() {
            places.push(at);
            let info = word(types, at + 4)?;
            at = at.checked_add(TYPE + extra(info)?)?;
        }
        Some(Self {
            types,
            strings,
            places,
        })
    }

    /// Bytes from the structure's beginning to the field, which may be in a nameless part of it.
    pub(super) fn offset(&self, structure: &str, field: &str) -> Option<u32> {
        let place = self.places.iter().find(|place| {
            self.kind(**place) == Some(STRUCT) && self.name(**place) == Some(structure.as_bytes())
        })?;
        self.field(*place, field.as_bytes(), MAX_DEPTH)
    }

    fn field(&self, place: usize, wanted: &[u8], depth: u32) -> Option<u32> {
        let info = word(self.types, place + 4)?;
        let members = usize::try_from(info & 0xffff).ok()?;
        (0..members).find_map(|index| {
            let at = place.checked_add(TYPE + index * MEMBER)?;
            let bits = word(self.types, at + 8)?;
            // With the top bit of the info the upper byte is a bit field's size.
            let bits = if info >> 31 == 1 {
                bits & 0xff_ffff
            } else {
                bits
            };
            let name = self.string(word(self.types, at)?)?;
            if name == wanted {
                return Some(bits / 8);
            }
            let inner = size(word(self.types, at + 4)?).checked_sub(1)?;
            let inner = *self.places.get(inner)?;
            if !name.is_empty() || depth == 0 || !matches!(self.kind(inner), Some(STRUCT | UNION)) {
                return None;
            }
            self.field(inner, wanted, depth - 1)?.checked_add(bits / 8)
        })
    }

    fn kind(&self, place: usize) -> Option<u32> {
        Some(word(self.types, place + 4)? >> 24 & 0x1f)
    }

    fn name(&self, place: usize) -> Option<&'a [u8]> {
        self.string(word(self.types, place)?)
    }

    fn string(&self, at: u32) -> Option<&'a [u8]> {
        self.strings
            .get(size(at)..)?
            .split(|byte| *byte == 0)
            .next()
    }
}

/// Bytes that follow a type.
fn extra(info: u32) -> Option<usize> {
    let entries = size(info & 0xffff);
    Some(match info >> 24 & 0x1f {
        // Int, variable, declaration tag.
        1 | 14 | 17 => 4,
        // Pointer, forward, typedef, volatile, const, restrict, function, float, type tag.
        2 | 7..=12 | 16 | 18 => 0,
        // Array.
        3 => 12,
        // Structure, union, data section, 64-bit enumeration.
        STRUCT | UNION | 15 | 19 => entries * 12,
        // Enumeration, prototype.
        6 | 13 => entries * 8,
        _ => return None,
    })
}

fn word(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_ne_bytes(*bytes.get(at..)?.first_chunk()?))
}

/// 32 bits fit: the daemon is built for 64-bit machines.
fn size(number: u32) -> usize {
    usize::try_from(number).unwrap_or(usize::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// `struct outer { int a; struct { int b; }; }` with `a` at 0 and `b` at 8.
    fn sample() -> Vec<u8> {
        let strings = b"\0outer\0a\0b\0int\0";
        let types: [u32; 25] = [
            11,
            1 << 24,
            4,
            32, // 1: int
            0,
            4 << 24 | 1,
            4,
            9,
            1,
            0, // 2: struct { int b; }
            1,
            4 << 24 | 2,
            12,
            7,
            1,
            0,
            0,
            2,
            64, // 3: struct outer
            1,
            1 << 24,
            4,
            32, // 4: an int of the same name
            0,
            0, // cut off below
        ];
        let types: Vec<u8> = types[..23].iter().flat_map(|w| w.to_ne_bytes()).collect();
        let lengths = [types.len(), strings.len()].map(|n| u32::try_from(n).unwrap());
        let mut bytes = MAGIC.to_ne_bytes().to_vec();
        bytes.extend([1, 0]);
        for word in [24, 0, lengths[0], lengths[0], lengths[1]] {
            bytes.extend(word.to_ne_bytes());
        }
        bytes.extend(types);
        bytes.extend(strings);
        bytes
    }

    #[test]
    fn fields_are_found_in_nameless_parts_too() {
        let bytes = sample();
        let types = Types::parse(&bytes).unwrap();
        assert_eq!(types.offset("outer", "a"), Some(0));
        assert_eq!(types.offset("outer", "b"), Some(8));
        assert_eq!(types.offset("outer", "c"), None);
        assert_eq!(types.offset("int", "a"), None);
    }

    proptest! {
        #[test]
        fn damaged_type_information_is_read_or_not(
            at in 0_usize..140,
            byte in any::<u8>(),
            length in 0_usize..140,
        ) {
            let mut bytes = sample();
            if let Some(damaged) = bytes.get_mut(at) {
                *damaged = byte;
            }
            bytes.truncate(length);
            if let Some(types) = Types::parse(&bytes) {
                let _ = types.offset("outer", "b");
            }
        }
    }
}
