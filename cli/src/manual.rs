//! `onnxref completions` and `onnxref man`: made from the same definitions as the help.

use crate::Cli;
use crate::failure::Failure;
use crate::print::Stdout;
use clap::{Args, CommandFactory};
use clap_complete::Shell;
use std::io::Write;
use std::path::PathBuf;

/// Print completions for a shell
#[derive(Debug, Args)]
#[command(after_help = "\
Example:
  onnxref completions bash > ~/.local/share/bash-completion/completions/onnxref")]
pub(crate) struct Completions {
    /// The shell
    shell: Shell,
}

/// Print the man page, or write one for each verb to a folder
#[derive(Debug, Args)]
#[command(after_help = "\
Example:
  onnxref man ~/.local/share/man/man1")]
pub(crate) struct Man {
    /// The folder for onnxref.1, onnxref-run.1, ..
    folder: Option<PathBuf>,
}

pub(crate) fn completions(arguments: &Completions) -> Result<u8, Failure> {
    let mut text = Vec::new();
    clap_complete::generate(arguments.shell, &mut Cli::command(), "onnxref", &mut text);
    Stdout.write_all(&text).map_err(Failure::stdout)?;
    Ok(0)
}

pub(crate) fn man(arguments: &Man) -> Result<u8, Failure> {
    match &arguments.folder {
        Some(folder) => std::fs::create_dir_all(folder)
            .and_then(|()| clap_mangen::generate_to(Cli::command(), folder))
            .map_err(|e| Failure::usage(format!("{}: {e}", crate::print::path(&folder.to_string_lossy()))))?,
        None => clap_mangen::Man::new(Cli::command()).render(&mut Stdout).map_err(Failure::stdout)?,
    }
    Ok(0)
}
