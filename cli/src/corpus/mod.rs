//! `onnxref corpus`: test cases as files, with a manifest.

pub(crate) mod folder;
pub(crate) mod manifest;

use crate::failure::Failure;
use crate::print::Stdout;
use crate::progress::Progress;
use crate::test::select::Selection;
use crate::test::source::{self, CaseSource};
use crate::{Global, archive, file_name, json, print};
use clap::{Args, Subcommand};
use folder::NewFolder;
use manifest::{About, Corpus, OperatorVersion, Written};
use onnxref::bytes::Bytes;
use onnxref::{Cancel, LoadOptions, Model};
use onnxref_view::counted;
use std::collections::BTreeSet;
use std::io::Write;
use std::path::{Component, Path, PathBuf};

/// Write test cases as files, with a manifest of their hashes
#[derive(Debug, Args)]
#[command(after_help = "\
Example, from the root of the repository:
  onnxref corpus export -o cases -k gather
  onnxref test cases")]
pub(crate) struct Arguments {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Debug, Subcommand)]
enum Verb {
    Export(Export),
}

/// Write the cases of folders and archives to a new folder
#[derive(Debug, Args)]
#[command(after_help = "\
A case is a folder: NAME/model.onnx, NAME/test_data_set_0/input_0.pb, .., output_0.pb, .. NAME
is the case's path in its archive, after the archive's own name. The files are those of the
archive, byte by byte; of a case in a folder also those beside the model, such as external data.
Light models get the inputs that the official runner makes.

DIR/manifest.json has a line for each case: what it is about, its operators with their versions,
the SHA-256 of each file. The hash of the whole is SHA-256 of what `sha256sum` prints for the
files of all cases, sorted by path. It is printed too, and is the same on every machine.

DIR appears whole or not at all. It must be new or empty.

Example, from the root of the repository:
  onnxref corpus export -o cases -k gather
  onnxref test cases

Exit status:
  0  success
  2  wrong usage: also a folder or archive that isn't there
  3  a folder or archive can't be read
  4  a file can't be written
  5  there are no cases")]
pub(crate) struct Export {
    /// Folders, .zip, .whl, .tar, .tar.gz and .tar.xz files of cases; - is standard input
    #[arg(default_value = ARCHIVES)]
    path: Vec<PathBuf>,

    /// The folder to write
    #[arg(short, long, value_name = "DIR")]
    output: PathBuf,

    #[command(flatten)]
    selection: Selection,
}

/// The folder of the official cases, in the repository.
const ARCHIVES: &str = "onnx-test-data";

pub(crate) fn corpus(arguments: &Arguments, global: &Global) -> Result<u8, Failure> {
    match &arguments.verb {
        Verb::Export(arguments) => export(arguments, global),
    }
}

fn export(arguments: &Export, global: &Global) -> Result<u8, Failure> {
    let (cancel, options, progress) = (Cancel::new(), Model::options().optimize(false), Progress::new());
    // A wrong source is told before anything is written.
    if arguments.path == [Path::new(ARCHIVES)] && !Path::new(ARCHIVES).exists() {
        return Err(Failure::usage(format!("there is no folder {ARCHIVES} here: name folders or archives of cases")));
    }
    source::sources(&arguments.path)?;
    let mut corpus = Corpus::new(NewFolder::new("-o", &arguments.output, &cancel)?);
    let mut count = 0;
    for path in &arguments.path {
        for source in source::sources(std::slice::from_ref(path))? {
            progress.message(&format!("reading {source}"));
            let mut cases = source.cases()?;
            cases.retain(|case| arguments.selection.has_name(&case.name));
            progress.expect(cases.len());
            progress.message(&source.to_string());
            for case in &cases {
                if arguments.selection.has_operators(case, &options) {
                    let files = case.files().map_err(Failure::load)?;
                    let name = name(path, &source, &case.name);
                    corpus.add(
                        &name,
                        About { about: words(&name), operators: operators(&files, &options), ..About::default() },
                        &files,
                    )?;
                    count += 1;
                }
                progress.step();
            }
        }
    }
    if count == 0 {
        return Err(Failure::new(crate::failure::NOTHING, "there are no cases"));
    }
    report(&corpus.finish()?, global)
}

/// Prints the hash of the whole, and the number of cases.
pub(crate) fn report(written: &Written, global: &Global) -> Result<u8, Failure> {
    if global.json {
        json::line(written)?;
    } else {
        writeln!(Stdout, "{}", written.sha256).map_err(Failure::stdout)?;
        print::note(&format!("{}, {}", counted(written.cases, "case"), counted(written.files, "file")));
    }
    Ok(0)
}

/// The name of a case below the folder that is written: its path below the argument, without an archive's ending.
fn name(argument: &Path, source: &CaseSource, case: &str) -> String {
    let base = if argument.is_dir() { Some(argument) } else { argument.parent() };
    let below = |path: &Path| base.and_then(|base| path.strip_prefix(base).ok()).unwrap_or(path).to_path_buf();
    let mut parts: Vec<String> = Vec::new();
    let mut rest = PathBuf::from(case);
    if let CaseSource::Archive(archive) = source {
        let mut own = names(&below(archive));
        own.last_mut().into_iter().for_each(|name| *name = archive::stem(name).to_string());
        parts.append(&mut own);
        rest = rest.strip_prefix(archive).map_or(rest.clone(), Path::to_path_buf);
    } else {
        rest = below(&rest);
    }
    parts.append(&mut names(&rest));
    if parts.is_empty() {
        // The argument is a case.
        parts.extend(argument.file_name().map(|name| name.to_string_lossy().into_owned()));
    }
    let parts: Vec<String> = parts.iter().map(|part| file_name::escaped(part)).collect();
    if parts.is_empty() { "case".to_string() } else { parts.join("/") }
}

/// The names in a path; those in an archive may be `..`.
fn names(path: &Path) -> Vec<String> {
    let named = |part: &Component<'_>| matches!(part, Component::Normal(_) | Component::ParentDir);
    path.components().filter(named).map(|part| part.as_os_str().to_string_lossy().into_owned()).collect()
}

/// What a case is about, by its name.
fn words(name: &str) -> String {
    let last = name.rsplit('/').next().unwrap_or(name);
    last.strip_prefix("test_").unwrap_or(last).replace('_', " ")
}

/// The operators of a case's model; none of one that can't be read.
pub(crate) fn operators(files: &[(String, Bytes)], options: &LoadOptions) -> Vec<OperatorVersion> {
    let model = files.iter().find(|(path, _)| path == "model.onnx");
    let Some(Ok(found)) = model.map(|(_, bytes)| options.inspect_bytes(bytes.clone())) else { return Vec::new() };
    let operators = found.graph.all_nodes().map(|node| OperatorVersion {
        domain: node.domain.clone(),
        name: node.operator.clone(),
        version: node.version,
    });
    operators.collect::<BTreeSet<_>>().into_iter().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_below_the_argument() {
        let archive = |path: &str| CaseSource::Archive(path.into());
        let named = |argument: &str, source, case: &str| name(Path::new(argument), &source, case);
        let from = named("../Cargo.toml", archive("../a.tar.xz"), "../a.tar.xz/node/test_abs");
        assert_eq!(from, "a/node/test_abs");
        // src is a folder.
        assert_eq!(named("src", archive("src/b/a-1.2.zip"), "src/b/a-1.2.zip/x"), "b/a-1.2/x");
        assert_eq!(named("src", CaseSource::Folder("src".into()), "src/x/y"), "x/y");
        assert_eq!(named("src", CaseSource::Folder("src".into()), "src"), "src");
        assert_eq!(named("-", CaseSource::StandardInput, "node/test_abs"), "node/test_abs");
        assert_eq!(named("x.zip", archive("x.zip"), "x.zip/../../evil/a b"), "x/%2E./%2E./evil/a%20b");
        assert_eq!(named("x.zip", archive("x.zip"), "/etc"), "x/etc");
    }

    #[test]
    fn words_of_names() {
        assert_eq!(words("a/node/test_gather_2d_indices"), "gather 2d indices");
        assert_eq!(words("network"), "network");
    }
}
