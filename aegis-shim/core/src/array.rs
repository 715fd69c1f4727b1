//! Sizes of arrays, from their descriptors.
//!
//! The driver tells an array's size only for sparse and deferred ones, so it is computed: elements
//! times their bytes. Padding that the driver adds shows in NVML and not here.
#![forbid(unsafe_code)]

/// What an array consists of. A dimension of 0 is absent.
#[derive(Clone, Copy, Debug)]
pub struct Shape {
    /// Elements in a row.
    pub width: u64,
    /// Rows.
    pub height: u64,
    /// Planes, layers or cube faces.
    pub depth: u64,
    /// `CUarray_format`.
    pub format: u32,
    /// Channels of an element.
    pub channels: u32,
    /// `CUDA_ARRAY3D_*`.
    pub flags: u32,
}

/// Layers are not halved from level to level of a mipmap.
const LAYERED: u32 = 0x01;
/// Six faces, not halved either.
const CUBEMAP: u32 = 0x04;
/// Memory is bound later, by `cuMemMapArrayAsync`.
const SPARSE: u32 = 0x40;
/// Memory is bound later.
const DEFERRED_MAPPING: u32 = 0x80;

/// Bytes of one channel in a `CUarray_format`; `None` for planar and block-compressed formats.
const fn channel_bytes(format: u32) -> Option<u64> {
    Some(match format {
        // UNSIGNED_INT8, SIGNED_INT8.
        0x01 | 0x08 => 1,
        // UNSIGNED_INT16, SIGNED_INT16, HALF.
        0x02 | 0x09 | 0x10 => 2,
        // UNSIGNED_INT32, SIGNED_INT32, FLOAT.
        0x03 | 0x0a | 0x20 => 4,
        _ => return None,
    })
}

/// Bytes of an array. `None`: it holds no memory of its own, or its format is not a plain one.
#[must_use]
pub fn array_bytes(shape: &Shape) -> Option<u64> {
    level_bytes(shape, 0)
}

/// Bytes of a mipmapped array. `None` as for [`array_bytes`].
#[must_use]
pub fn mipmapped_bytes(shape: &Shape, levels: u32) -> Option<u64> {
    let largest = shape.width.max(shape.height).max(1);
    // More levels than halvings are not made.
    let levels = levels.clamp(1, largest.ilog2() + 1);
    (0..levels).try_fold(0u64, |sum, level| {
        sum.checked_add(level_bytes(shape, level)?)
    })
}

fn level_bytes(shape: &Shape, level: u32) -> Option<u64> {
    if shape.flags & (SPARSE | DEFERRED_MAPPING) != 0 {
        return None;
    }
    let halve = |extent: u64| (extent >> level).max(1);
    let depth = if shape.flags & (LAYERED | CUBEMAP) != 0 {
        shape.depth.max(1)
    } else {
        halve(shape.depth)
    };
    halve(shape.width)
        .checked_mul(halve(shape.height))?
        .checked_mul(depth)?
        .checked_mul(u64::from(shape.channels))?
        .checked_mul(channel_bytes(shape.format)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    const FLOAT: u32 = 0x20;

    const fn shape(width: u64, height: u64, depth: u64, flags: u32) -> Shape {
        Shape {
            width,
            height,
            depth,
            format: FLOAT,
            channels: 4,
            flags,
        }
    }

    #[test]
    fn absent_dimensions_count_as_one() {
        assert_eq!(array_bytes(&shape(256, 0, 0, 0)), Some(256 * 16));
        assert_eq!(array_bytes(&shape(256, 64, 0, 0)), Some(256 * 64 * 16));
        assert_eq!(array_bytes(&shape(256, 64, 3, 0)), Some(256 * 64 * 3 * 16));
    }

    #[test]
    fn bytes_not_bits() {
        let bytes = Shape {
            format: 0x01,
            channels: 1,
            ..shape(1 << 15, 1 << 15, 0, 0)
        };
        assert_eq!(array_bytes(&bytes), Some(1 << 30));
    }

    #[test]
    fn levels_are_halved_and_layers_are_not() {
        let square = shape(8, 8, 0, 0);
        assert_eq!(mipmapped_bytes(&square, 4), Some((64 + 16 + 4 + 1) * 16));
        assert_eq!(mipmapped_bytes(&square, 99), Some((64 + 16 + 4 + 1) * 16));
        assert_eq!(mipmapped_bytes(&square, 0), Some(64 * 16));
        let layered = shape(8, 8, 5, LAYERED);
        assert_eq!(mipmapped_bytes(&layered, 2), Some((64 + 16) * 5 * 16));
        let solid = shape(8, 8, 8, 0);
        assert_eq!(mipmapped_bytes(&solid, 2), Some((512 + 64) * 16));
    }

    #[test]
    fn unknown_sizes_are_not_guessed() {
        assert_eq!(array_bytes(&shape(8, 8, 0, SPARSE)), None);
        assert_eq!(array_bytes(&shape(8, 8, 0, DEFERRED_MAPPING)), None);
        assert_eq!(
            array_bytes(&Shape {
                format: 0xb0,
                ..shape(8, 8, 0, 0)
            }),
            None
        );
        assert_eq!(array_bytes(&shape(u64::MAX, 2, 0, 0)), None);
    }
}
