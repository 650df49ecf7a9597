//! NUMALLOC_LIB_DIR: the folder of libnumalloc.so, where it is not among the system's.
fn main() {
    println!("cargo:rerun-if-env-changed=NUMALLOC_LIB_DIR");
    if let Ok(folder) = std::env::var("NUMALLOC_LIB_DIR") {
        println!("cargo:rustc-link-search=native={folder}");
    }
    println!("cargo:rustc-link-lib=dylib=numalloc");
}
