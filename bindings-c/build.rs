//! Gives the shared object its soname: the number changes only when the ABI breaks.

fn main() {
    println!("cargo:rustc-cdylib-link-arg=-Wl,-soname,libmirab.so.0");
    println!("cargo:rerun-if-changed=build.rs");
}
