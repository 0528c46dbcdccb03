//! Memory: the allocator of names and lists that the program frees, descriptions of memory, and the elements of tensors.
#![allow(unsafe_code)]

use crate::crossing::{Allocator, Handle, In, Out, Result, Space, Text, entries, other_entries, releases};
use crate::failure::Failure;
use onnxref::quote;
use ort_sys::{
    OrtAllocator, OrtAllocatorType, OrtDeviceMemoryType, OrtMemType, OrtMemoryInfo, OrtMemoryInfoDeviceType,
};
use std::alloc::Layout;
use std::any::Any;
use std::ffi::{CStr, CString, c_char, c_void};
use std::ptr::NonNull;
use std::sync::OnceLock;

/// What an allocator looks like to C, up to the functions that came with version 23, which a program may only use if the
/// version says so.
#[repr(C)]
struct Functions {
    version: u32,
    allocate: unsafe extern "system" fn(*mut OrtAllocator, usize) -> *mut c_void,
    free: unsafe extern "system" fn(*mut OrtAllocator, *mut c_void),
    info: unsafe extern "system" fn(*const OrtAllocator) -> *const OrtMemoryInfo,
    reserve: unsafe extern "system" fn(*const OrtAllocator, usize) -> *mut c_void,
    later: [usize; 8],
}

static FUNCTIONS: Functions = Functions { version: 22, allocate, free, info, reserve, later: [0; 8] };

/// The alignment of what is allocated. As many bytes before it hold its length.
const ALIGN: usize = 64;

/// The allocator. Nobody writes to it, though C asks for a pointer to what it may change.
pub(crate) fn allocator() -> *mut OrtAllocator {
    std::ptr::from_ref(&FUNCTIONS).cast_mut().cast()
}

unsafe extern "system" fn allocate(_: *mut OrtAllocator, bytes: usize) -> *mut c_void {
    let layout = bytes.checked_add(ALIGN).and_then(|bytes| Layout::from_size_align(bytes, ALIGN).ok());
    let Some(layout) = layout else { return std::ptr::null_mut() };
    // SAFETY: the layout has bytes. The length is in the first of them.
    unsafe {
        let place = std::alloc::alloc(layout);
        if place.is_null() {
            return std::ptr::null_mut();
        }
        place.cast::<usize>().write(layout.size());
        place.add(ALIGN).cast()
    }
}

unsafe extern "system" fn reserve(_: *const OrtAllocator, bytes: usize) -> *mut c_void {
    // SAFETY: it takes any number of bytes.
    unsafe { allocate(allocator(), bytes) }
}

unsafe extern "system" fn free(_: *mut OrtAllocator, place: *mut c_void) {
    if place.is_null() {
        return;
    }
    // SAFETY: the program hands over what `allocate` gave, once.
    unsafe {
        let place = place.cast::<u8>().sub(ALIGN);
        let bytes = place.cast::<usize>().read();
        std::alloc::dealloc(place, Layout::from_size_align_unchecked(bytes, ALIGN));
    }
}

unsafe extern "system" fn info(_: *const OrtAllocator) -> *const OrtMemoryInfo {
    MemoryInfo::shown()
}

/// What a program says or asks about memory. There is that of the processor only.
#[derive(PartialEq)]
pub(crate) struct MemoryInfo {
    name: CString,
    kind: OrtAllocatorType,
    id: i32,
    use_of_it: OrtMemType,
}

impl MemoryInfo {
    pub(crate) fn cpu() -> &'static MemoryInfo {
        static CPU: OnceLock<MemoryInfo> = OnceLock::new();
        CPU.get_or_init(|| MemoryInfo {
            name: c"Cpu".to_owned(),
            kind: OrtAllocatorType::OrtDeviceAllocator,
            id: 0,
            use_of_it: OrtMemType::OrtMemTypeDefault,
        })
    }

    /// A handle on that of the processor, which stays.
    pub(crate) fn shown() -> *const OrtMemoryInfo {
        std::ptr::from_ref(MemoryInfo::cpu()).cast()
    }

    /// Memory of a device that is the CPU.
    pub(crate) fn of_device(name: &str, kind: i32, id: i32) -> Result<MemoryInfo> {
        let info = MemoryInfo::new(&MemoryInfo::cpu().name, kind, id, OrtMemType::OrtMemTypeDefault as i32)?;
        Ok(MemoryInfo { name: CString::new(name).unwrap_or_default(), ..info })
    }

    fn new(name: &CStr, kind: i32, id: i32, use_of_it: i32) -> Result<MemoryInfo> {
        use OrtAllocatorType::*;
        use OrtMemType::*;
        if name != MemoryInfo::cpu().name.as_c_str() {
            let name = quote(&name.to_string_lossy());
            return Err(Failure::missing(format!(
                "there is no memory {name}: onnxref computes on the CPU, in \"Cpu\""
            )));
        }
        let kinds = [OrtInvalidAllocator, OrtDeviceAllocator, OrtArenaAllocator];
        let kind = kinds.into_iter().find(|known| *known as i32 == kind);
        let kind = kind.ok_or_else(|| Failure::argument("unknown OrtAllocatorType"))?;
        let uses = [OrtMemTypeCPUInput, OrtMemTypeCPUOutput, OrtMemTypeDefault];
        let use_of_it = uses.into_iter().find(|known| *known as i32 == use_of_it);
        let use_of_it = use_of_it.ok_or_else(|| Failure::argument("unknown OrtMemType"))?;
        Ok(MemoryInfo { name: name.to_owned(), kind, id, use_of_it })
    }
}

impl Handle for OrtMemoryInfo {
    type Value = MemoryInfo;
}

releases!(ReleaseMemoryInfo: OrtMemoryInfo);

entries! {
    fn CreateMemoryInfo(name: Text, kind: i32, id: i32, use_of_it: i32, out: Out<*mut OrtMemoryInfo>) {
        let name = CString::new(name).unwrap_or_default();
        out.give(MemoryInfo::new(&name, kind, id, use_of_it)?);
        Ok(())
    }

    fn CreateCpuMemoryInfo(kind: i32, use_of_it: i32, out: Out<*mut OrtMemoryInfo>) {
        out.give(MemoryInfo::new(&MemoryInfo::cpu().name, kind, 0, use_of_it)?);
        Ok(())
    }

    fn CompareMemoryInfo(info1: In<OrtMemoryInfo>, info2: In<OrtMemoryInfo>, out: Out<i32>) {
        out.set(if *info1 == *info2 { 0 } else { -1 });
        Ok(())
    }

    fn MemoryInfoGetName(info: In<OrtMemoryInfo>, out: Out<*const c_char>) {
        out.set(info.name.as_ptr());
        Ok(())
    }

    fn MemoryInfoGetId(info: In<OrtMemoryInfo>, out: Out<i32>) {
        out.set(info.id);
        Ok(())
    }

    fn MemoryInfoGetMemType(info: In<OrtMemoryInfo>, out: Out<OrtMemType>) {
        out.set(info.use_of_it);
        Ok(())
    }

    fn MemoryInfoGetType(info: In<OrtMemoryInfo>, out: Out<OrtAllocatorType>) {
        out.set(info.kind);
        Ok(())
    }

    fn GetAllocatorWithDefaultOptions(out: Out<*mut OrtAllocator>) {
        out.set(allocator());
        Ok(())
    }

    fn CreateAllocator(session: In<ort_sys::OrtSession>, info: In<OrtMemoryInfo>, out: Out<*mut OrtAllocator>) {
        out.set(allocator());
        Ok(())
    }

    fn AllocatorAlloc(allocator: Allocator, bytes: usize, out: Out<*mut c_void>) {
        out.set(allocator.allocate(bytes)?.as_ptr());
        Ok(())
    }

    fn AllocatorFree(allocator: Allocator, place: Space) {
        allocator.free(place.cast());
        Ok(())
    }

    fn AllocatorGetInfo(allocator: crate::crossing::Raw<*const OrtAllocator>, out: Out<*const OrtMemoryInfo>) {
        out.show(Some(MemoryInfo::cpu()));
        Ok(())
    }
}

other_entries! {
    fn MemoryInfoGetDeviceType(info: In<OrtMemoryInfo>, out: Out<OrtMemoryInfoDeviceType>) -> (), (), {
        out.set(OrtMemoryInfoDeviceType::OrtMemoryInfoDeviceType_CPU);
    }

    fn MemoryInfoGetDeviceMemType(info: In<OrtMemoryInfo>) -> OrtDeviceMemoryType,
        OrtDeviceMemoryType::OrtDeviceMemoryType_DEFAULT, { OrtDeviceMemoryType::OrtDeviceMemoryType_DEFAULT }

    fn MemoryInfoGetVendorId(info: In<OrtMemoryInfo>) -> u32, 0, { 0 }

    /// There is one allocator, which stays.
    fn ReleaseAllocator(allocator: Allocator) -> (), (), {}
}

/// The elements of a tensor, where a program may read and write them.
pub(crate) struct Memory {
    at: NonNull<u8>,
    bytes: usize,
    /// Who frees it; `None` if the program does.
    _owner: Option<Box<dyn Any + Send + Sync>>,
}

// SAFETY: bytes that have an owner or are the program's. The API leaves it to the program that nobody writes to them while
// somebody else uses them.
unsafe impl Send for Memory {}
// SAFETY: the same.
unsafe impl Sync for Memory {}

impl Memory {
    /// The program's own memory, which lives longer than what is made here.
    pub(crate) fn of_program(at: NonNull<u8>, bytes: usize) -> Memory {
        Memory { at, bytes, _owner: None }
    }

    /// Memory that a function of the program frees.
    pub(crate) fn freed_by(allocator: Allocator, at: NonNull<u8>, bytes: usize) -> Memory {
        struct Freed(Allocator, NonNull<u8>);
        // SAFETY: the API has the program keep the allocator until then, and any thread may free a value.
        unsafe impl Send for Freed {}
        // SAFETY: the same.
        unsafe impl Sync for Freed {}
        impl Drop for Freed {
            fn drop(&mut self) {
                self.0.free(self.1.as_ptr().cast());
            }
        }
        Memory { at, bytes, _owner: Some(Box::new(Freed(allocator, at))) }
    }

    pub(crate) fn own<T: Send + Sync + 'static>(mut elements: Vec<T>) -> Memory {
        let at = NonNull::new(elements.as_mut_ptr().cast()).unwrap_or(NonNull::dangling());
        Memory { at, bytes: size_of_val(elements.as_slice()), _owner: Some(Box::new(elements)) }
    }

    /// Zeros, aligned for every element type.
    pub(crate) fn zeros(bytes: usize) -> Result<Memory> {
        let (words, mut elements) = (bytes.div_ceil(16), Vec::<u128>::new());
        elements
            .try_reserve_exact(words)
            .map_err(|_| Failure::other(format!("there is no memory for {bytes} bytes")))?;
        elements.resize(words, 0);
        Ok(Memory { bytes, ..Memory::own(elements) })
    }

    pub(crate) fn address(&self) -> *mut u8 {
        self.at.as_ptr()
    }

    pub(crate) fn len(&self) -> usize {
        self.bytes
    }

    pub(crate) fn copied(&self) -> Vec<u8> {
        // SAFETY: as many bytes are there, initialized by whoever made them.
        unsafe { std::slice::from_raw_parts(self.at.as_ptr(), self.bytes) }.to_vec()
    }

    /// Writes bytes over those that are there.
    pub(crate) fn write(&self, bytes: &[u8]) {
        // SAFETY: as many bytes are there at least.
        unsafe { self.at.as_ptr().copy_from(bytes.as_ptr(), bytes.len().min(self.bytes)) }
    }
}
