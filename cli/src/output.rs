//! Writes files, such as those of outputs.

use crate::failure::{Failure, RUN};
use crate::print::Stdout;
use crate::value::{Named, split};
use crate::{interrupt, npy, npz, print};
use onnxref::{Model, Outputs, Tensor, Value, quote};
use onnxref_view::json::Described;
use std::borrow::Cow;
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

/// Where an output goes, or all of them.
pub(crate) struct OutputFile<'a> {
    /// `None` for all.
    name: Option<&'a str>,
    path: &'a str,
    form: Form,
}

/// What is written.
#[derive(Clone, Copy, PartialEq)]
enum Form {
    Pb,
    Npy,
    Npz,
    Json,
}

impl Form {
    /// By the name of the file; standard output gets a .npy file.
    fn of(path: &str) -> Option<Form> {
        let ending = Path::new(path).extension().unwrap_or_default();
        let forms = [("pb", Form::Pb), ("npy", Form::Npy), ("npz", Form::Npz), ("json", Form::Json)];
        let named = forms.into_iter().find(|(name, _)| ending.eq_ignore_ascii_case(name)).map(|(_, form)| form);
        named.or((path == STDOUT).then_some(Form::Npy))
    }

    /// Whether a file holds all outputs.
    fn holds_all(path: &str) -> bool {
        Path::new(path).extension().is_some_and(|ending| ending.eq_ignore_ascii_case("npz"))
    }
}

/// What stands for standard output.
pub(crate) const STDOUT: &str = "-";

impl<'a> OutputFile<'a> {
    fn parse(text: &'a str, model: &'a Model) -> Result<OutputFile<'a>, Failure> {
        let wrong = |why: &str| {
            let names: Vec<String> = model.outputs().map(|info| quote(&info.name)).collect();
            Failure::usage(format!("-o {}: {why}; the model's outputs: {}", print::path(text), names.join(", ")))
        };
        let (name, path) = match split(text, model.outputs()) {
            Named::Declared(info, path) => (Some(info.name.as_str()), path),
            _ if Form::holds_all(text) => (None, text),
            Named::Other(..) => return Err(wrong("there is no output of this name")),
            Named::Not => return Err(wrong("NAME= is missing")),
        };
        let form = Form::of(path).ok_or_else(|| wrong("the file's name must end with .pb, .npy, .npz or .json"))?;
        Ok(OutputFile { name: name.filter(|_| form != Form::Npz || text != path), path, form })
    }

    /// Checks that the file's folder is writable.
    fn check(&self) -> Result<(), Failure> {
        let name = self.name.map(|name| format!("{name}=")).unwrap_or_default();
        let text = || print::path(&format!("{name}{}", self.path));
        let writable = if self.path == STDOUT { Ok(()) } else { check_writable(Path::new(self.path)) };
        writable.map_err(|e| Failure::usage(format!("-o {}: the file can't be written: {e}", text())))
    }

    fn encode<'v>(&self, outputs: &'v Outputs) -> Result<Content<'v>, Failure> {
        let chosen = outputs.iter().filter(|(name, _)| self.name.is_none_or(|own| own == *name));
        let chosen: Vec<(&str, &Value)> = chosen.collect();
        let tensors = || chosen.iter().map(|(name, value)| Ok((*name, tensor(value)?))).collect::<Result<Vec<_>, _>>();
        let written = match (self.form, chosen.as_slice()) {
            (Form::Npz, _) => tensors().and_then(npz::write).map(whole),
            (Form::Pb, [(name, value)]) => Ok(whole(value.to_proto_bytes(name))),
            (Form::Npy, [(_, value)]) => {
                tensor(value).and_then(npy::parts).map(|(header, elements)| [header.into(), elements])
            }
            (Form::Json, [(_, value)]) => serde_json::to_vec(&Described(value)).map(whole).map_err(|e| e.to_string()),
            _ => Err("there is no such output".to_string()),
        };
        let what = self.name.map_or("the outputs".to_string(), |name| format!("output {}", quote(name)));
        written.map_err(|why| Failure::usage(format!("{what} to {}: {why}", print::path(self.path))))
    }
}

/// The parts of a file, one after the other.
type Content<'a> = [Cow<'a, [u8]>; 2];

fn whole<'a>(bytes: impl Into<Cow<'a, [u8]>>) -> Content<'a> {
    [bytes.into(), Cow::Borrowed(&[])]
}

fn tensor(value: &Value) -> Result<&Tensor, String> {
    value.tensor().map_err(|e| format!("{e:#}: write a .pb or .json file"))
}

/// Writes the files: see [`save`]. All are encoded before the first is written.
pub(crate) fn write(files: &[OutputFile<'_>], outputs: &Outputs) -> Result<(), Failure> {
    let contents = files.iter().map(|file| Ok((file.path, file.encode(outputs)?))).collect::<Result<Vec<_>, _>>()?;
    save_parts(&contents)
}

/// Writes files, each completely or not at all: all are written to temporary files (`.onnxref-*`) beside their places
/// before the first is moved there. An interruption removes the temporary files. `-` is standard output.
pub(crate) fn save(files: &[(&str, Vec<u8>)]) -> Result<(), Failure> {
    save_parts(&files.iter().map(|(path, bytes)| (*path, whole(bytes.as_slice()))).collect::<Vec<_>>())
}

fn save_parts(files: &[(&str, Content<'_>)]) -> Result<(), Failure> {
    let failed = |path: &str, e: io::Error| Failure::new(RUN, format!("{}: {e}", print::path(path)));
    let mut written = Vec::new();
    for (path, content) in files {
        match *path {
            STDOUT => in_pieces(&mut Stdout, content).map_err(|e| failed("standard output", e))?,
            path => written.push((path, beside(Path::new(path), content).map_err(|e| failed(path, e))?)),
        }
    }
    for (path, temporary) in written {
        interrupt::commit(|| temporary.persist(path)).map_err(|e| failed(path, e.error))?;
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

/// Writes piece by piece. The system removes a file only when no write to it is under way, so an interruption would wait
/// for all of a large one.
fn in_pieces(to: &mut impl Write, content: &Content<'_>) -> io::Result<()> {
    for piece in content.iter().flat_map(|part| part.chunks(PIECE)) {
        interrupt::point();
        to.write_all(piece)?;
    }
    to.flush()
}

/// The size of a piece.
const PIECE: usize = 1 << 20;

fn beside(path: &Path, content: &Content<'_>) -> io::Result<NamedTempFile> {
    let mut builder = tempfile::Builder::new();
    #[cfg(unix)]
    builder.permissions(std::os::unix::fs::PermissionsExt::from_mode(0o666)); // as for any new file, minus the umask
    // An interruption waits until the name is known.
    let mut names = interrupt::temporary();
    let mut file = builder.prefix(".onnxref-").tempfile_in(folder(path))?;
    names.push(file.path().to_path_buf());
    drop(names);
    in_pieces(&mut file, content)?;
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
        let files = ["a.pb", "b.pb"].map(|name| beside(&folder.path().join(name), &whole(&b"content"[..])).unwrap());
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 2);
        interrupt::clean();
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
        drop(files);
    }

    #[test]
    fn files_are_written_in_pieces() {
        struct Sizes(Vec<usize>);
        impl Write for Sizes {
            fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
                self.0.push(bytes.len());
                Ok(bytes.len())
            }
            fn flush(&mut self) -> io::Result<()> {
                Ok(())
            }
        }
        let mut sizes = Sizes(Vec::new());
        in_pieces(&mut sizes, &[vec![1; 80].into(), vec![2; 2 * PIECE + 5].into()]).unwrap();
        assert_eq!(sizes.0, [80, PIECE, PIECE, 5]);
        // The elements of a tensor are not copied.
        let tensor = Tensor::from(vec![1i64, 2]);
        assert!(matches!(npy::parts(&tensor).unwrap().1, Cow::Borrowed(_)));
    }
}
