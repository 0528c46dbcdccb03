#![cfg_attr(fuzzing, no_main)]

#[cfg(fuzzing)]
libfuzzer_sys::fuzz_target!(|bytes: &[u8]| onnxref_fuzz::text::run(bytes));

#[cfg(not(fuzzing))]
fn main() {
    eprintln!("run this by `cargo +nightly fuzz run text`, or the same without libFuzzer by `cargo run -- 20000 text`");
}
