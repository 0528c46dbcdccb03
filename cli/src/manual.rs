//! `onnxref completions` and `onnxref man`: made from the same definitions as the help.

use crate::Cli;
use crate::failure::Failure;
use crate::output;
use crate::print::Stdout;
use clap::{Args, Command, CommandFactory};
use clap_complete::Shell;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

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
        Some(folder) => {
            std::fs::create_dir_all(folder).map_err(|e| Failure::unmade(&folder.to_string_lossy(), e))?;
            let mut command = Cli::command().disable_help_subcommand(true);
            command.build();
            let mut pages = Vec::new();
            add(&command, folder, &mut pages).map_err(Failure::stdout)?;
            output::save(&pages)?;
        }
        None => clap_mangen::Man::new(Cli::command()).render(&mut Stdout).map_err(Failure::stdout)?,
    }
    Ok(0)
}

/// Adds the pages of a command and of those below it.
fn add(command: &Command, folder: &Path, pages: &mut Vec<(PathBuf, Vec<u8>)>) -> io::Result<()> {
    command.get_subcommands().filter(|below| !below.is_hide_set()).try_for_each(|below| add(below, folder, pages))?;
    let (page, mut text) = (clap_mangen::Man::new(command.clone()), Vec::new());
    page.render(&mut text)?;
    pages.push((folder.join(page.get_filename()), text));
    Ok(())
}
