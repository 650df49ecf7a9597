//! numalloc for Rust programs: the global allocator, and memory on a node of the machine.
//!
//! ```no_run
//! #[global_allocator]
//! static GLOBAL: numalloc::Numalloc = numalloc::Numalloc;
//! ```
//!
//! Linking the library replaces the C program's malloc, too. Nodes are the kernel's numbers. All of it is thread-safe.

use std::alloc::{GlobalAlloc, Layout};
use std::io::Error;
use std::os::raw::{c_int, c_void};

extern "C" {
    fn malloc(size: usize) -> *mut c_void;
    fn calloc(count: usize, size: usize) -> *mut c_void;
    fn aligned_alloc(alignment: usize, size: usize) -> *mut c_void;
    fn realloc(p: *mut c_void, size: usize) -> *mut c_void;
    fn free(p: *mut c_void);
    fn psm_free(p: *mut c_void);
    fn numalloc_version() -> c_int;
    fn numalloc_nodes(nodes: *mut c_int, capacity: c_int) -> c_int;
    fn numalloc_node_of(p: *const c_void) -> c_int;
    fn numalloc_current_node() -> c_int;
    fn numalloc_aligned_alloc_on_node(alignment: usize, size: usize, node: c_int) -> *mut c_void;
}

/// malloc aligns by this without being asked.
const ORDINARY: usize = 16;

/// The calling thread's node, as malloc; a block that grows stays on its node.
#[derive(Clone, Copy, Debug, Default)]
pub struct Numalloc;

// SAFETY: the functions are malloc's family, of one library; sizes and alignments are the layout's.
unsafe impl GlobalAlloc for Numalloc {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        if layout.align() <= ORDINARY {
            malloc(layout.size()).cast()
        } else {
            aligned_alloc(layout.align(), layout.size()).cast()
        }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        if layout.align() <= ORDINARY {
            return calloc(1, layout.size()).cast();
        }
        let p = self.alloc(layout);
        if !p.is_null() {
            p.write_bytes(0, layout.size());
        }
        p
    }

    unsafe fn dealloc(&self, p: *mut u8, _: Layout) {
        free(p.cast());
    }

    unsafe fn realloc(&self, p: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        if layout.align() <= ORDINARY {
            return realloc(p.cast(), size).cast();
        }
        let new = self.alloc(Layout::from_size_align_unchecked(size, layout.align()));
        if !new.is_null() {
            p.copy_to_nonoverlapping(new, layout.size().min(size));
            self.dealloc(p, layout);
        }
        new
    }
}

/// The library's version: 10000 times the major, 100 times the minor, and the patch number.
pub fn version() -> i32 {
    unsafe { numalloc_version() }
}

/// The nodes whose memory this process may use, ascending; at least one.
pub fn nodes() -> Vec<i32> {
    let count = unsafe { numalloc_nodes(std::ptr::null_mut(), 0) };
    let mut nodes = vec![0; count as usize];
    unsafe { numalloc_nodes(nodes.as_mut_ptr(), count) };
    nodes
}

/// The node of the CPU on which the calling thread runs.
pub fn current_node() -> i32 {
    unsafe { numalloc_current_node() }
}

/// The node where the memory of a value lies. An error of the kernel's where it does not tell.
pub fn node_of<T: ?Sized>(value: &T) -> Result<i32, Error> {
    let node = unsafe { numalloc_node_of((value as *const T).cast()) };
    if node < 0 { Err(Error::last_os_error()) } else { Ok(node) }
}

/// Memory on a node, freed when it goes; zeroed. Any length, also 0.
pub struct OnNode {
    start: std::ptr::NonNull<u8>,
    bytes: usize,
}

// SAFETY: plain memory that it owns; any thread may free it.
unsafe impl Send for OnNode {}
unsafe impl Sync for OnNode {}

impl OnNode {
    /// EINVAL for a node that the machine does not have, ENXIO for one that this process may not use, ENOMEM.
    pub fn new(bytes: usize, node: i32) -> Result<Self, Error> {
        let p: *mut u8 = unsafe { numalloc_aligned_alloc_on_node(ORDINARY, bytes, node) }.cast();
        let start = std::ptr::NonNull::new(p).ok_or_else(Error::last_os_error)?;
        unsafe { p.write_bytes(0, bytes) };
        Ok(OnNode { start, bytes })
    }
}

impl std::ops::Deref for OnNode {
    type Target = [u8];
    fn deref(&self) -> &[u8] {
        unsafe { std::slice::from_raw_parts(self.start.as_ptr(), self.bytes) }
    }
}

impl std::ops::DerefMut for OnNode {
    fn deref_mut(&mut self) -> &mut [u8] {
        unsafe { std::slice::from_raw_parts_mut(self.start.as_ptr(), self.bytes) }
    }
}

impl Drop for OnNode {
    fn drop(&mut self) {
        unsafe { psm_free(self.start.as_ptr().cast()) }
    }
}
