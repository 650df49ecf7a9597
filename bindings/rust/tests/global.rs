//! A program whose global allocator is numalloc.
use std::alloc::{alloc, alloc_zeroed, dealloc, realloc, Layout};
use std::collections::HashMap;

#[global_allocator]
static GLOBAL: numalloc::Numalloc = numalloc::Numalloc;

// Ours alone knows the node of a block that was never written.
fn is_ours(p: *const u8) -> bool {
    extern "C" {
        fn numalloc_pages_of_block(p: *const u8, on_node: *mut usize, nodes: i32) -> i64;
    }
    unsafe { numalloc_pages_of_block(p, std::ptr::null_mut(), 0) >= 0 }
}

#[test]
fn collections_lie_in_it() {
    let map: HashMap<u32, String> = (0..10_000).map(|i| (i, format!("value {i}"))).collect();
    assert!(is_ours(map[&77].as_ptr()));
    assert!(numalloc::nodes().contains(&numalloc::node_of(map[&77].as_bytes()).unwrap()));
    std::thread::spawn(move || assert_eq!(map[&9_999], "value 9999")).join().unwrap();
}

#[test]
fn every_alignment_is_kept_by_realloc() {
    for shift in 0..16 {
        let layout = Layout::from_size_align(1000, 1 << shift).unwrap();
        unsafe {
            let p = alloc(layout);
            assert_eq!(p as usize % layout.align(), 0);
            p.write_bytes(7, 1000);
            let q = realloc(p, layout, 700_000);
            assert_eq!(q as usize % layout.align(), 0);
            assert!((0..1000).all(|i| *q.add(i) == 7));
            dealloc(q, Layout::from_size_align(700_000, 1 << shift).unwrap());
            let z = alloc_zeroed(layout);
            assert!((0..1000).all(|i| *z.add(i) == 0));
            dealloc(z, layout);
        }
    }
}

#[test]
fn memory_on_a_node() {
    for node in numalloc::nodes() {
        let mut block = numalloc::OnNode::new(100_000, node).unwrap();
        assert!(block.iter().all(|&byte| byte == 0));
        block[99_999] = 1;
        assert_eq!(numalloc::node_of(&block[..]).unwrap(), node);
    }
    assert_eq!(numalloc::OnNode::new(10, -1).err().unwrap().raw_os_error(), Some(22));
    assert!(numalloc::OnNode::new(0, numalloc::nodes()[0]).unwrap().is_empty());
    assert!(numalloc::version() >= 100);
    assert!(numalloc::current_node() >= 0);
}
