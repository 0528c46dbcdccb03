//! Where cases come from: folders, archives, standard input.

use crate::failure::Failure;
use crate::options::is_standard_input;
use crate::{archive, print};
use onnxref::conformance::Case;
use std::fmt::{self, Display};
use std::io;
use std::path::{Path, PathBuf};

pub(crate) enum CaseSource {
    Folder(PathBuf),
    Archive(PathBuf),
    StandardInput,
}

/// The folders and archives of the command line, and the archives below the folders.
pub(crate) fn sources(paths: &[PathBuf]) -> Result<Vec<CaseSource>, Failure> {
    let mut sources = Vec::new();
    for path in paths {
        let shown = print::path(&path.to_string_lossy());
        if is_standard_input(path) {
            sources.push(CaseSource::StandardInput);
            continue;
        }
        let kind = std::fs::metadata(path).map_err(|e| Failure::usage(format!("{shown}: {e}")))?;
        if kind.is_dir() {
            let below = archives(path).map_err(|e| Failure::unreadable(format!("{shown}: {e}")))?;
            sources.push(CaseSource::Folder(path.clone()));
            sources.extend(below.into_iter().map(CaseSource::Archive));
        } else if archive::looks_like_archive(path) {
            sources.push(CaseSource::Archive(path.clone()));
        } else {
            let known = ".zip, .whl, .tar, .tar.gz or .tar.xz file";
            return Err(Failure::usage(format!("{shown} is neither a folder nor a {known}")));
        }
    }
    if let Some(extra) = sources.iter().filter(|source| matches!(source, CaseSource::StandardInput)).nth(1) {
        return Err(Failure::usage(format!("{extra} can be read only once")));
    }
    Ok(sources)
}

/// The archives below a folder, by name. Links are not followed.
fn archives(folder: &Path) -> io::Result<Vec<PathBuf>> {
    let (mut found, mut open) = (Vec::new(), vec![folder.to_path_buf()]);
    while let Some(folder) = open.pop() {
        for entry in std::fs::read_dir(folder)? {
            let entry = entry?;
            let (kind, path) = (entry.file_type()?, entry.path());
            if kind.is_dir() {
                open.push(path);
            } else if kind.is_file() && archive::is_archive(&path) {
                found.push(path);
            }
        }
    }
    found.sort();
    Ok(found)
}

impl CaseSource {
    /// The cases, each named by its whole path.
    pub(crate) fn cases(&self) -> Result<Vec<Case>, Failure> {
        let unreadable = |e: io::Error| Failure::unreadable(format!("{self}: {e}"));
        match self {
            CaseSource::Folder(path) => {
                let cases = Case::find(path).map_err(Failure::load)?;
                Ok(named(path, cases))
            }
            CaseSource::Archive(path) => Ok(named(path, archive::cases(path).map_err(unreadable)?)),
            CaseSource::StandardInput => archive::cases_of(io::stdin().lock()).map_err(unreadable),
        }
    }
}

fn named(root: &Path, mut cases: Vec<Case>) -> Vec<Case> {
    // A case that is the folder itself has the folder's name.
    let itself = ["model.onnx", "model.xml"].iter().any(|model| root.join(model).is_file());
    for case in &mut cases {
        let itself = itself && root.file_name().is_some_and(|name| name.to_string_lossy() == case.name);
        let path = if itself { root.to_path_buf() } else { root.join(&case.name) };
        case.name = path.to_string_lossy().into_owned();
    }
    cases
}

impl Display for CaseSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            CaseSource::Folder(path) | CaseSource::Archive(path) => f.write_str(&print::path(&path.to_string_lossy())),
            CaseSource::StandardInput => f.write_str("standard input"),
        }
    }
}
