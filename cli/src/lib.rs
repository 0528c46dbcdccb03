//! The program `onnxref`: runs, tests, compares, inspects, checks and times ONNX models.
#![cfg_attr(test, allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing))]

mod archive;
mod bench;
mod bounded;
mod check;
mod compare;
mod convert;
mod corpus;
mod diff;
mod dump;
mod edit;
mod expect;
mod extract;
mod failure;
mod feeds;
mod file_name;
mod floats;
mod generate;
mod hash;
mod image;
mod inspect;
mod interrupt;
mod json;
mod lineage;
mod manual;
mod messages;
mod npy;
mod npz;
mod ops;
mod options;
mod output;
mod path;
mod print;
mod progress;
#[allow(missing_docs, dead_code, unreachable_pub, clippy::all)]
#[rustfmt::skip] // as the generator writes it
mod proto;
mod prove;
mod random;
mod record;
mod recorded;
mod reduce;
mod repeat;
mod report;
mod resize;
mod run;
mod set;
mod simplify;
mod stats;
mod system;
mod test;
mod value;
mod watch;

use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{Args, CommandFactory, Parser, Subcommand};
use failure::{Failure, USAGE};
use print::Stdout;
use std::ffi::OsString;
use std::io::Write;

/// A reference runtime for ONNX: runs a model exactly as the standard says, or says precisely why it can't
#[derive(Debug, Parser)]
#[command(
    name = "onnxref",
    version,
    arg_required_else_help = true,
    after_help = "\
Example, from the root of the repository:
  onnxref run onnx-test-data/gather/onnx-1.1.2/pytorch-converted/test_Embedding/model.onnx -i '[[1, 0, 3, 3]]'

Exit status:
  0  success
  1  a case failed, values differ, a model has findings, or runs are slower than allowed
  2  wrong usage: a flag, an input of the wrong name, type or shape, a file that can't be used
  3  a model or an archive can't be read or loaded
  4  a run failed, or the system failed to write its output
  5  nothing, or not enough, was tested or compared
  130  interrupted"
)]
struct Cli {
    #[command(flatten)]
    global: Global,

    #[command(subcommand)]
    command: Command,
}

/// The flags that every verb has.
#[derive(Debug, Args)]
pub(crate) struct Global {
    /// Print results and errors as JSON on standard output
    #[arg(long, global = true)]
    pub(crate) json: bool,

    /// Print no notes and no progress
    #[arg(short, long, global = true, conflicts_with = "verbose")]
    quiet: bool,

    /// Print more
    #[arg(short, long, global = true)]
    pub(crate) verbose: bool,
}

#[derive(Debug, Subcommand)]
enum Command {
    Run(run::Arguments),
    Test(test::Arguments),
    Compare(compare::Arguments),
    Diff(diff::Arguments),
    Corpus(corpus::Arguments),
    Generate(generate::Arguments),
    Hash(hash::Arguments),
    Check(check::Arguments),
    Bench(bench::Arguments),
    Inspect(inspect::Arguments),
    Reduce(reduce::Arguments),
    Extract(extract::Arguments),
    Set(set::Arguments),
    Simplify(simplify::Arguments),
    Convert(convert::Arguments),
    Ops(ops::Arguments),
    Completions(manual::Completions),
    Man(manual::Man),
}

/// Runs the program: `arguments` begin with its name. Returns the exit status. An interruption ends the process.
pub fn run(arguments: &[OsString]) -> u8 {
    system::ignore_file_size_signal();
    match Cli::try_parse_from(arguments) {
        Ok(cli) => {
            interrupt::handle();
            cli.run()
        }
        Err(error) => misused(&suggested(error), arguments),
    }
}

/// Runs a verb with `--json` for a program that this is part of. Returns the exit status, and the documents that the verb
/// prints, one a line. Nothing else is printed, and interruptions are left to the caller.
pub fn answer(arguments: &[OsString]) -> (u8, String) {
    let arguments: Vec<OsString> = arguments.iter().cloned().chain(["--json".into()]).collect();
    print::captured(|| match Cli::try_parse_from(&arguments) {
        Ok(cli) => cli.run(),
        Err(error) => misused(&error, &arguments),
    })
}

impl Cli {
    fn run(self) -> u8 {
        let Cli { global, command } = self;
        print::set_quiet(global.quiet);
        bounded::start();
        let ended = match &command {
            Command::Run(arguments) => run::run(arguments, &global),
            Command::Test(arguments) => test::test(arguments, &global),
            Command::Check(arguments) => check::check(arguments, &global),
            Command::Corpus(arguments) => corpus::corpus(arguments, &global),
            Command::Generate(arguments) => generate::generate(arguments, &global),
            Command::Hash(arguments) => hash::print(arguments, &global),
            Command::Compare(arguments) => compare::compare(arguments, &global),
            Command::Diff(arguments) => diff::diff(arguments, &global),
            Command::Bench(arguments) => bench::bench(arguments, &global),
            Command::Inspect(arguments) => inspect::inspect(arguments, &global),
            Command::Reduce(arguments) => reduce::reduce(arguments, &global),
            Command::Extract(arguments) => extract::extract(arguments, &global),
            Command::Set(arguments) => set::set(arguments, &global),
            Command::Simplify(arguments) => simplify::simplify(arguments, &global),
            Command::Convert(arguments) => convert::convert(arguments, &global),
            Command::Ops(arguments) => ops::ops(arguments, &global),
            Command::Completions(arguments) => manual::completions(arguments),
            Command::Man(arguments) => manual::man(arguments),
        };
        // What is still in the buffer of standard output.
        let ended = ended.and_then(|code| Stdout.flush().map(|()| code).map_err(Failure::stdout));
        ended.unwrap_or_else(|failure| {
            print::error(&failure.text());
            if global.json {
                // Standard error has it anyway.
                let _ = json::error(&failure);
            }
            failure.code
        })
    }
}

/// Suggests a verb for one that is a letter off. clap compares in a way that finds nothing alike in short words.
fn suggested(mut error: clap::Error) -> clap::Error {
    if let (Some(ContextValue::String(given)), None) =
        (error.get(ContextKind::InvalidSubcommand), error.get(ContextKind::SuggestedSubcommand))
    {
        let command = Cli::command();
        let near =
            command.get_subcommands().map(|verb| verb.get_name()).find(|name| strsim::osa_distance(given, name) < 2);
        if let Some(name) = near.map(str::to_string) {
            error.insert(ContextKind::SuggestedSubcommand, ContextValue::Strings(vec![name]));
        }
    }
    error
}

/// Says what is wrong with the arguments, or shows the help that was asked for.
fn misused(error: &clap::Error, arguments: &[OsString]) -> u8 {
    let printed = if print::is_captured() { Ok(()) } else { error.print() };
    if !error.use_stderr() {
        let failed = print::help(printed).err().map(Failure::stdout);
        return failed.map_or(0, |failure| {
            print::error(&failure.text());
            failure.code
        });
    }
    let code = u8::try_from(error.exit_code()).unwrap_or(USAGE);
    if code == USAGE && arguments.iter().any(|argument| argument == "--json") {
        let _ = json::error(&Failure::usage(said(error)));
    }
    code
}

/// What is wrong with the arguments, without the usage and the way to the help.
fn said(error: &clap::Error) -> String {
    if error.kind() == ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand {
        return "arguments are missing: --help lists them".to_string();
    }
    let text = error.render().to_string();
    let is_said = |line: &&str| !line.starts_with("Usage:") && !line.starts_with("For more information");
    let is_news = |line: &&str| !line.is_empty() && !line.starts_with("  tip: to pass ");
    let lines: Vec<&str> = text.lines().take_while(is_said).filter(is_news).collect();
    let text = lines.join("\n");
    text.strip_prefix("error: ").unwrap_or(&text).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_arguments_are_consistent() {
        Cli::command().debug_assert();
    }

    #[test]
    fn answers_are_documents() {
        let ask = |arguments: &[&str]| answer(&arguments.iter().map(OsString::from).collect::<Vec<_>>());
        let (status, text) = ask(&["onnxref", "ops", "Gather"]);
        assert_eq!((status, text.lines().count()), (0, 1));
        assert!(text.starts_with("{\"operators\":[{\"domain\":\"\",\"name\":\"Gather\""), "{text}");
        for more in ["--verbose", "--quiet"] {
            assert_eq!(ask(&["onnxref", "ops", "Gather", more]).0, 0, "{more}");
        }
        let (status, text) = ask(&["onnxref", "check", "no.onnx"]);
        assert_eq!(status, 3);
        assert!(text.starts_with("{\"error\":{\"kind\":\"io\""), "{text}");
        let (status, text) = ask(&["onnxref", "check"]);
        assert_eq!(status, 2);
        assert!(text.starts_with("{\"error\":{\"kind\":\"usage\""), "{text}");
    }

    #[test]
    fn help_fits_a_screen_and_has_an_example() {
        for command in Cli::command().get_subcommands_mut() {
            let help = command.clone().bin_name(format!("onnxref {}", command.get_name())).term_width(100);
            let text = help.clone().render_help().to_string();
            assert!(text.lines().count() <= 50, "{text}");
            assert!(text.contains("onnxref ") && text.contains("Example"), "{text}");
        }
    }
}
