//! Parallel allocation by rayon: what one thread makes, another drops.
use rayon::prelude::*;

fn main() {
    let texts: Vec<String> = (0..40_000usize).into_par_iter().map(|i| format!("{i} {}", "x".repeat(i * 7919 % 500))).collect();
    let length: usize = texts.par_iter().map(String::len).sum();
    let found: usize = texts.into_par_iter().rev().map(|text| memchr::memchr_iter(b'7', text.as_bytes()).count()).sum();
    println!("{length} {found}");
}
