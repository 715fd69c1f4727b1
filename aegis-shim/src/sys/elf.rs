//! Symbols of loaded objects, read from their dynamic sections.
//!
//! `dlsym` is what the library hooks, and linking `dlvsym` would bind GLIBC_2.34, fatal in older
//! containers; so the loader's list is walked with `dl_iterate_phdr` (GLIBC_2.2.5).

use core::ffi::{CStr, c_char, c_int, c_void};

const PT_LOAD: u32 = 1;
const PT_DYNAMIC: u32 = 2;
const DT_HASH: i64 = 4;
const DT_STRTAB: i64 = 5;
const DT_SYMTAB: i64 = 6;
const DT_SONAME: i64 = 14;
const DT_VERSYM: i64 = 0x6fff_fff0;
const DT_GNU_HASH: i64 = 0x6fff_fef5;
/// Symbol types that name a function's own address (an IFUNC would have to be called first).
const STT_NOTYPE: u8 = 0;
const STT_FUNC: u8 = 2;
/// Set in a version index: not the default version of the name.
const VERSYM_HIDDEN: u16 = 0x8000;

#[repr(C)]
struct ProgramHeader {
    kind: u32,
    flags: u32,
    offset: u64,
    address: u64,
    physical: u64,
    file_bytes: u64,
    bytes: u64,
    align: u64,
}

#[repr(C)]
struct ObjectInfo {
    base: usize,
    name: *const c_char,
    headers: *const ProgramHeader,
    header_count: u16,
}

#[repr(C)]
struct Dynamic {
    tag: i64,
    value: u64,
}

#[repr(C)]
struct Symbol {
    name: u32,
    info: u8,
    other: u8,
    section: u16,
    value: u64,
    size: u64,
}

#[link(name = "c")]
unsafe extern "C" {
    fn dl_iterate_phdr(
        callback: unsafe extern "C" fn(*const ObjectInfo, usize, *mut c_void) -> c_int,
        data: *mut c_void,
    ) -> c_int;
}

/// A loaded shared object.
#[derive(Clone, Copy)]
pub(crate) struct Object {
    base: usize,
    start: usize,
    end: usize,
    strings: *const c_char,
    symbols: *const Symbol,
    versions: *const u16,
    hash: *const u32,
    gnu_hash: *const u32,
    soname: *const c_char,
}

/// Calls `see` for each loaded object in link order until it returns `true`.
pub(crate) fn each_object(mut see: impl FnMut(&Object) -> bool) {
    unsafe extern "C" fn callback<F: FnMut(&Object) -> bool>(
        info: *const ObjectInfo,
        _size: usize,
        data: *mut c_void,
    ) -> c_int {
        // SAFETY: the loader passes a valid structure for the length of the call.
        let info = unsafe { &*info };
        // SAFETY: `data` is the closure below, which outlives the walk and is used by it alone.
        let see = unsafe { &mut *data.cast::<F>() };
        // SAFETY: the loader keeps the object mapped while it is walked.
        let object = unsafe { Object::read(info) };
        c_int::from(object.is_some_and(|object| see(&object)))
    }
    fn walk<F: FnMut(&Object) -> bool>(see: &mut F) {
        // SAFETY: the callback matches the closure's type.
        unsafe { dl_iterate_phdr(callback::<F>, core::ptr::from_mut(see).cast()) };
    }
    walk(&mut see);
}

/// The loaded object with that SONAME, the first in link order.
pub(crate) fn object_named(soname: &CStr) -> Option<Object> {
    let mut found = None;
    each_object(|object| {
        let same = object.soname() == Some(soname);
        if same {
            found = Some(*object);
        }
        same
    });
    found
}

impl Object {
    /// # Safety
    /// `info` describes an object that stays mapped.
    unsafe fn read(info: &ObjectInfo) -> Option<Self> {
        let mut start = usize::MAX;
        let mut end = 0;
        let mut dynamic: *const Dynamic = core::ptr::null();
        for index in 0..usize::from(info.header_count) {
            // SAFETY: the loader vouches for `header_count` headers.
            let header = unsafe { item(info.headers, index) };
            let address = info.base.wrapping_add(header.address as usize);
            match header.kind {
                PT_LOAD => {
                    start = start.min(address);
                    end = end.max(address.wrapping_add(header.bytes as usize));
                }
                PT_DYNAMIC => dynamic = address as *const Dynamic,
                _ => {}
            }
        }
        if dynamic.is_null() {
            return None;
        }
        // glibc relocates these addresses in place, musl and the vdso leave offsets.
        let locate = |value: u64| {
            let value = value as usize;
            if value < info.base {
                info.base.wrapping_add(value)
            } else {
                value
            }
        };
        let mut object = Self {
            base: info.base,
            start,
            end,
            strings: core::ptr::null(),
            symbols: core::ptr::null(),
            versions: core::ptr::null(),
            hash: core::ptr::null(),
            gnu_hash: core::ptr::null(),
            soname: core::ptr::null(),
        };
        let mut soname = None;
        loop {
            // SAFETY: the section ends with a tag 0, at which the loop stops.
            let entry = unsafe { &*dynamic };
            match entry.tag {
                0 => break,
                DT_STRTAB => object.strings = locate(entry.value) as *const c_char,
                DT_SYMTAB => object.symbols = locate(entry.value) as *const Symbol,
                DT_VERSYM => object.versions = locate(entry.value) as *const u16,
                DT_HASH => object.hash = locate(entry.value) as *const u32,
                DT_GNU_HASH => object.gnu_hash = locate(entry.value) as *const u32,
                DT_SONAME => soname = Some(entry.value as usize),
                _ => {}
            }
            // SAFETY: not past the terminating entry.
            dynamic = unsafe { dynamic.add(1) };
        }
        if object.strings.is_null() || object.symbols.is_null() {
            return None;
        }
        if let Some(offset) = soname {
            // SAFETY: an offset into the object's own string table.
            object.soname = unsafe { object.strings.add(offset) };
        }
        Some(object)
    }

    /// The object's SONAME, if it has one.
    pub(crate) fn soname(&self) -> Option<&CStr> {
        if self.soname.is_null() {
            return None;
        }
        // SAFETY: a NUL-terminated string of the mapped string table.
        Some(unsafe { CStr::from_ptr(self.soname) })
    }

    /// First and one-past-last address of the object's segments.
    pub(crate) const fn range(&self) -> (usize, usize) {
        (self.start, self.end)
    }

    /// Address of the function `name`, its default version first.
    pub(crate) fn function(&self, name: &CStr) -> Option<usize> {
        let mut other = None;
        let mut found = None;
        self.each_candidate(name, |index| {
            // SAFETY: the hash table names existing symbols.
            let symbol = unsafe { item(self.symbols, index) };
            if !self.defines(symbol, name) {
                return false;
            }
            let address = self.base.wrapping_add(symbol.value as usize);
            let hidden = !self.versions.is_null() && {
                // SAFETY: there is one version per symbol.
                let version = unsafe { item(self.versions, index) };
                version & VERSYM_HIDDEN != 0
            };
            if hidden {
                other = Some(address);
                return false;
            }
            found = Some(address);
            true
        });
        found.or(other)
    }

    /// Whether some exported function of the object starts at `address`.
    pub(crate) fn exports(&self, address: usize) -> bool {
        (0..self.symbol_count()).any(|index| {
            // SAFETY: below the number of symbols.
            let symbol = unsafe { item(self.symbols, index) };
            symbol.section != 0 && self.base.wrapping_add(symbol.value as usize) == address
        })
    }

    fn defines(&self, symbol: &Symbol, name: &CStr) -> bool {
        let kind = symbol.info & 0xf;
        if symbol.section == 0 || (kind != STT_FUNC && kind != STT_NOTYPE) {
            return false;
        }
        // SAFETY: an offset into the object's own string table.
        let own = unsafe { self.strings.add(symbol.name as usize) };
        // SAFETY: a NUL-terminated string there.
        unsafe { CStr::from_ptr(own) == name }
    }

    /// Calls `see` with each symbol index that the hash table lists for `name`, until it returns
    /// `true`.
    fn each_candidate(&self, name: &CStr, mut see: impl FnMut(usize) -> bool) {
        if !self.gnu_hash.is_null() {
            let wanted = gnu_hash(name);
            let (buckets, bucket_count, chain, first) = self.gnu_tables();
            if bucket_count == 0 {
                return;
            }
            // SAFETY: the index is below the number of buckets.
            let mut index = *unsafe { item(buckets, wanted as usize % bucket_count) } as usize;
            while index >= first {
                // SAFETY: a chain has an entry for each hashed symbol and ends with a set low bit.
                let hash = *unsafe { item(chain, index - first) };
                if (hash | 1 == wanted | 1 && see(index)) || hash & 1 == 1 {
                    return;
                }
                index += 1;
            }
        } else if !self.hash.is_null() {
            let bucket_count = self.word(self.hash, 0);
            if bucket_count == 0 {
                return;
            }
            let mut index = self.word(self.hash, 2 + sysv_hash(name) as usize % bucket_count);
            while index != 0 {
                if see(index) {
                    return;
                }
                index = self.word(self.hash, 2 + bucket_count + index);
            }
        }
    }

    /// Buckets, their number, the chain, and the first hashed symbol.
    fn gnu_tables(&self) -> (*const u32, usize, *const u32, usize) {
        let bucket_count = self.word(self.gnu_hash, 0);
        let first = self.word(self.gnu_hash, 1);
        let bloom_words = self.word(self.gnu_hash, 2);
        // SAFETY: four header words and 64-bit bloom words precede the buckets.
        let buckets = unsafe { self.gnu_hash.add(4 + bloom_words * 2) };
        // SAFETY: the chain follows the buckets.
        let chain = unsafe { buckets.add(bucket_count) };
        (buckets, bucket_count, chain, first)
    }

    fn symbol_count(&self) -> usize {
        if !self.hash.is_null() {
            return self.word(self.hash, 1);
        }
        if self.gnu_hash.is_null() {
            return 0;
        }
        let (buckets, bucket_count, chain, first) = self.gnu_tables();
        let mut last = 0;
        for bucket in 0..bucket_count {
            // SAFETY: below the number of buckets.
            last = last.max(*unsafe { item(buckets, bucket) } as usize);
        }
        if last < first {
            return first;
        }
        // SAFETY: as in `each_candidate`: the chain of the last bucket ends with a set low bit.
        while *unsafe { item(chain, last - first) } & 1 == 0 {
            last += 1;
        }
        last + 1
    }

    fn word(&self, table: *const u32, index: usize) -> usize {
        // SAFETY: the callers index within the table's own counts.
        *unsafe { item(table, index) } as usize
    }
}

/// An entry of a loaded table.
///
/// # Safety
/// The table has that entry, and the object stays mapped while the entry is used.
unsafe fn item<'a, T>(table: *const T, index: usize) -> &'a T {
    // SAFETY: within the table.
    let item = unsafe { table.add(index) };
    // SAFETY: as above; tables are initialised by the linker and read-only afterwards.
    unsafe { &*item }
}

fn gnu_hash(name: &CStr) -> u32 {
    name.to_bytes().iter().fold(5381u32, |hash, byte| {
        hash.wrapping_mul(33).wrapping_add(u32::from(*byte))
    })
}

fn sysv_hash(name: &CStr) -> u32 {
    name.to_bytes().iter().fold(0u32, |hash, byte| {
        let hash = (hash << 4).wrapping_add(u32::from(*byte));
        let high = hash & 0xf000_0000;
        (hash ^ (high >> 24)) & !high
    })
}
