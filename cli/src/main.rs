//! The program `onnxref`.

use std::process::ExitCode;

fn main() -> ExitCode {
    let arguments: Vec<_> = std::env::args_os().collect();
    ExitCode::from(onnxref_cli::run(&arguments))
}
