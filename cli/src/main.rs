//! The program `onnxref`: runs ONNX models and the official test cases.
#![cfg_attr(test, allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing))]

mod archive;
mod failure;
mod feeds;
mod json;
mod json_error;
mod literal;
mod npy;
mod options;
mod output;
mod print;
mod report;
mod run;
mod test;
mod value;

use clap::{Parser, Subcommand};
use std::process::ExitCode;

/// A reference runtime for ONNX: runs a model exactly as the standard says, or says precisely why it can't
///
/// A model that needs operators which are not implemented yet is refused at load, with the names of all of them.
#[derive(Debug, Parser)]
#[command(name = "onnxref", version, arg_required_else_help = true)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    Run(run::Arguments),
    Test(test::Arguments),
}

fn main() -> ExitCode {
    let (ended, json) = match Cli::parse().command {
        Command::Run(arguments) => (run::run(&arguments).map(|()| 0), arguments.json),
        Command::Test(arguments) => (test::test(&arguments), false),
    };
    ExitCode::from(ended.unwrap_or_else(|failure| {
        print::error(&failure.text());
        if json {
            // Standard error has it anyway.
            let _ = json_error::print(&failure);
        }
        failure.code
    }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn the_arguments_are_consistent() {
        Cli::command().debug_assert();
    }
}
