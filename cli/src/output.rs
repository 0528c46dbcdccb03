//! Writes files, such as those of outputs.

use crate::failure::{Failure, RUN};
use crate::value::{Format, Named, split};
use crate::{interrupt, npy, print};
use onnxref::{Model, Outputs, Value, quote};
use std::io::{self, Write};
use std::path::Path;
use tempfile::NamedTempFile;

/// The files for outputs, each in a writable folder.
pub(crate) fn files<'a>(texts: &'a [String], model: &'a Model) -> Result<Vec<OutputFile<'a>>, Failure> {
    let files = texts.iter().map(|text| OutputFile::parse(text, model)).collect::<Result<Vec<_>, _>>()?;
    if let Some(path) = files.iter().enumerate().find_map(|(k, f)| files.iter().take(k).find(|g| g.path == f.path)) {
        return Err(Failure::usage(format!("two outputs go to {}", print::path(path.path))));
    }
    files.iter().try_for_each(OutputFile::check)?;
    Ok(files)
}

/// Where an output goes.
pub(crate) struct OutputFile<'a> {
    name: &'a str,
    path: &'a str,
    format: Format,
}

impl<'a> OutputFile<'a> {
    fn parse(text: &'a str, model: &'a Model) -> Result<OutputFile<'a>, Failure> {
        let wrong = |why: &str| {
            let names: Vec<String> = model.outputs().map(|info| quote(&info.name)).collect();
            Failure::usage(format!("-o {}: {why}; the model's outputs: {}", print::path(text), names.join(", ")))
        };
        let (name, path) = match split(text, model.outputs()) {
            Named::Declared(info, path) => (info.name.as_str(), path),
            Named::Other(..) => return Err(wrong("there is no output of this name")),
            Named::Not => return Err(wrong("NAME= is missing")),
        };
        let format = Format::of(path).ok_or_else(|| wrong("the file's name must end with .pb or .npy"))?;
        Ok(OutputFile { name, path, format })
    }

    /// Checks that the file's folder is writable.
    fn check(&self) -> Result<(), Failure> {
        let text = || print::path(&format!("{}={}", self.name, self.path));
        check_writable(Path::new(self.path))
            .map_err(|e| Failure::usage(format!("-o {}: the file can't be written: {e}", text())))
    }

    fn encode(&self, value: &Value) -> Result<Vec<u8>, Failure> {
        let npy = || npy::write(value.tensor().map_err(|e| format!("{e:#}: write a .pb file"))?);
        match self.format {
            Format::Pb => Ok(value.to_proto_bytes(self.name)),
            Format::Npy => npy().map_err(|why| {
                Failure::usage(format!("output {} to {}: {why}", quote(self.name), print::path(self.path)))
            }),
        }
    }
}

/// Writes the files. All are encoded before the first is written, and all are written to temporary files
/// (`.onnxref-*`) beside their places before the first is moved there. An interruption removes the temporary files.
pub(crate) fn write(files: &[OutputFile<'_>], outputs: &Outputs) -> Result<(), Failure> {
    let failed = |file: &OutputFile<'_>, e: io::Error| Failure::new(RUN, format!("{}: {e}", print::path(file.path)));
    let encode = |file: &OutputFile<'_>| {
        let value = outputs.get(file.name);
        file.encode(value.ok_or_else(|| Failure::new(RUN, format!("there is no output {}", quote(file.name))))?)
    };
    let contents = files.iter().map(encode).collect::<Result<Vec<_>, _>>()?;
    let mut written = Vec::new();
    for (file, bytes) in files.iter().zip(contents) {
        written.push((file, beside(Path::new(file.path), &bytes).map_err(|e| failed(file, e))?));
    }
    for (file, temporary) in written {
        temporary.persist(file.path).map_err(|e| failed(file, e.error))?;
    }
    Ok(())
}

/// Checks that a file can be written.
pub(crate) fn check_writable(path: &Path) -> io::Result<()> {
    match path.is_dir() {
        true => Err(io::ErrorKind::IsADirectory.into()),
        // The file is removed at once; where the system allows it, it never has a name.
        false => tempfile::tempfile_in(folder(path)).map(|_| ()),
    }
}

/// Writes a file whole or not at all.
pub(crate) fn write_whole(path: &Path, bytes: &[u8]) -> io::Result<()> {
    beside(path, bytes)?.persist(path).map(|_| ()).map_err(|e| e.error)
}

fn beside(path: &Path, bytes: &[u8]) -> io::Result<NamedTempFile> {
    let mut builder = tempfile::Builder::new();
    #[cfg(unix)]
    builder.permissions(std::os::unix::fs::PermissionsExt::from_mode(0o666)); // as for any new file, minus the umask
    // An interruption waits until the name is known.
    let mut names = interrupt::temporary();
    let mut file = builder.prefix(".onnxref-").tempfile_in(folder(path))?;
    names.push(file.path().to_path_buf());
    drop(names);
    file.write_all(bytes)?;
    file.flush()?;
    Ok(file)
}

/// The folder of a file.
fn folder(path: &Path) -> &Path {
    path.parent().filter(|folder| *folder != Path::new("")).unwrap_or(Path::new("."))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_interruption_leaves_no_file() {
        let folder = tempfile::tempdir().unwrap();
        let files = ["a.pb", "b.pb"].map(|name| beside(&folder.path().join(name), b"content").unwrap());
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 2);
        interrupt::clean();
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
        drop(files);
    }
}
