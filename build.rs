//! Makes the ONNX types anew with `protoc` if the feature `protoc` asks for it;
//! otherwise the committed `src/onnx/proto.rs` is used and nothing happens here.

#[cfg(feature = "protoc")]
#[path = "proto/generate.rs"]
mod generate;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    println!("cargo:rerun-if-changed=build.rs");

    #[cfg(feature = "protoc")]
    {
        use generate::{INCLUDE, OUTPUT, PROTO, config};

        println!("cargo:rerun-if-changed=proto");
        config().protoc_executable(protobuf_src::protoc()).compile_protos(&[PROTO], &[INCLUDE])?;

        // Tells tests/proto.rs what to compare with the committed file.
        let out = std::env::var("OUT_DIR")?;
        println!("cargo:rustc-env=ONNX_PROTOC_OUTPUT={out}/{OUTPUT}");
    }
    Ok(())
}
