//! Parallel allocation by rayon, and trees of JSON.
use rayon::prelude::*;

fn main() {
    let sum: usize = (0..20_000usize)
        .into_par_iter()
        .map(|i| {
            let text = format!("{{\"k{}\": [{}, \"{}\"]}}", i, i, "x".repeat(i * 7919 % 500));
            let value: serde_json::Value = serde_json::from_str(&text).unwrap();
            value.to_string().len()
        })
        .sum();
    let found = regex::Regex::new(r"(\d+)7").unwrap().find_iter(&(0..20_000).map(|i| i.to_string()).collect::<Vec<_>>().join(" ")).count();
    println!("{sum} {found}");
}
