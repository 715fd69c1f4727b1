//! The linker of the driver: inputs are put together as they are.

use std::collections::BTreeMap;
use std::ffi::c_void;
use std::sync::Mutex;

use crate::code::{Code, Result};
use crate::driver::{self, lock};
use crate::ffi::pointers::{In, Out, Text};

static LINKS: Mutex<BTreeMap<u64, Vec<u8>>> = Mutex::new(BTreeMap::new());
const FIRST: u64 = 0xd000_0000;

fn append(link: u64, data: &[u8]) -> Result<()> {
    let mut links = lock(&LINKS);
    let image = links.get_mut(&link).ok_or(Code::INVALID_HANDLE)?;
    image.extend(
        data.iter()
            .take_while(|b| **b != 0 || data.starts_with(b"\x7fELF")),
    );
    image.push(b'\n');
    Ok(())
}

export! {
    journalled fn cuLinkCreate_v2(_count: u32, _options: In<i32>, _values: In<c_void>, result: Out<u64>) |_call| {
        driver::get()?;
        let mut links = lock(&LINKS);
        let link = links.last_key_value().map_or(FIRST, |(last, _)| last + 1);
        links.insert(link, Vec::new());
        result.set(link)
    }

    journalled fn cuLinkAddData_v2(link: u64, _kind: i32, data: In<u8>, bytes: usize, _name: Text, _count: u32, _options: In<i32>, _values: In<c_void>) |_call| {
        append(link, &data.all(bytes)?)
    }

    journalled fn cuLinkAddFile_v2(link: u64, _kind: i32, path: Text, _count: u32, _options: In<i32>, _values: In<c_void>) |_call| {
        append(link, &std::fs::read(path.text()?).map_err(|_| Code::FILE_NOT_FOUND)?)
    }

    journalled fn cuLinkComplete(link: u64, image: Out<*const u8>, bytes: Out<usize>) |_call| {
        let mut links = lock(&LINKS);
        let found = links.get_mut(&link).ok_or(Code::INVALID_HANDLE)?;
        found.push(0);
        bytes.set_if_wanted(found.len() - 1);
        // Valid until cuLinkDestroy: nothing is added to a complete link.
        image.set(found.as_ptr())
    }

    journalled fn cuLinkDestroy(link: u64) |_call| {
        lock(&LINKS).remove(&link).map(drop).ok_or(Code::INVALID_HANDLE)
    }
}
