//! The committed `src/onnx/proto.rs` is the generator's output for `proto/onnx.proto`.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::fs;
use std::path::Path;

#[path = "../proto/generate.rs"]
mod generate;

use generate::{INCLUDE, OUTPUT, PROTO, config};

const COMMITTED: &str = "src/onnx/proto.rs";

#[test]
fn committed_types_are_up_to_date() {
    let files = protox::compile([PROTO], [INCLUDE]).expect("onnx.proto compiles");
    let dir = Path::new(env!("CARGO_TARGET_TMPDIR"));
    config().out_dir(dir).compile_fds(files).expect("types are generated");
    let generated = fs::read_to_string(dir.join(OUTPUT)).unwrap();

    if std::env::var_os("UPDATE").is_some() {
        fs::write(COMMITTED, &generated).unwrap();
    }
    assert_committed(&generated);
}

#[cfg(feature = "protoc")]
#[test]
fn protoc_makes_the_same_types() {
    assert_committed(&fs::read_to_string(env!("ONNX_PROTOC_OUTPUT")).unwrap());
}

/// Compares without `assert_eq`, which would print both files whole.
fn assert_committed(generated: &str) {
    let committed = fs::read_to_string(COMMITTED).unwrap_or_default();
    if committed == generated {
        return;
    }
    let line = 1 + generated.lines().zip(committed.lines()).take_while(|(a, b)| a == b).count();
    panic!(
        "{COMMITTED} differs from what {PROTO} generates, from line {line} on; \
         rewrite it with `UPDATE=1 cargo test --test proto`"
    );
}
