//! Writes files, such as those of outputs.

use crate::bounded::{self, Bounded, Unwritten};
use crate::failure::Failure;
use crate::value::{Named, split};
use crate::{interrupt, npy, npz, print};
use onnxref::{Cancel, Model, Outputs, Tensor, Value, quote};
use onnxref_view::json::Described;
use std::io::{self, BufWriter, Seek, Write};
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

    /// Writes the content of the file.
    fn write(&self, outputs: &Outputs, to: &mut dyn Target, cancel: &Cancel) -> Result<(), Unwritten> {
        let chosen = outputs.iter().filter(|(name, _)| self.name.is_none_or(|own| own == *name));
        let chosen: Vec<(&str, &Value)> = chosen.collect();
        let tensors = || chosen.iter().map(|(name, value)| Ok((*name, tensor(value)?))).collect::<Result<Vec<_>, _>>();
        let written = match (self.form, chosen.as_slice()) {
            (Form::Npz, _) => tensors().map_err(Unwritten::Unfit).and_then(|tensors| npz::write(&tensors, to, cancel)),
            (Form::Pb, [(name, value)]) => write_proto(name, value, to)
                .map_err(|why| why.if_unfit(|why| format!("{why}: write a {} file", instead_of_proto(value)))),
            (Form::Npy, [(_, value)]) => {
                let npy = tensor(value).map_err(Unwritten::Unfit).and_then(|tensor| npy::Outgoing::new(tensor, cancel));
                npy.and_then(|npy| Ok(npy.write(to)?))
            }
            (Form::Json, [(_, value)]) => {
                serde_json::to_writer(to, &Described(value)).map_err(|e| Unwritten::Failed(e.into()))
            }
            _ => Err(Unwritten::Unfit("there is no such output".to_string())),
        };
        let what = self.name.map_or("the outputs".to_string(), |name| format!("output {}", quote(name)));
        written.map_err(|why| why.if_unfit(|why| format!("{what} to {}: {why}", print::path(self.path))))
    }
}

fn tensor(value: &Value) -> Result<&Tensor, String> {
    value.tensor().map_err(|e| format!("{e:#}: write a .pb or .json file"))
}

/// Writes a .pb file.
pub(crate) fn write_proto(name: &str, value: &Value, to: impl Write) -> Result<(), Unwritten> {
    value.write_proto(name, to).map_err(Unwritten::of)
}

/// The formats of files for a value that is too large for a .pb file.
fn instead_of_proto(value: &Value) -> &'static str {
    if value.tensor().is_ok_and(|tensor| npy::Outgoing::new(tensor, &Cancel::new()).is_ok()) {
        ".npy or .npz"
    } else {
        ".json"
    }
}

/// Where a file is written.
pub(crate) trait Target: Write + Seek {}

impl<T: Write + Seek> Target for T {}

/// Writes the files, as [`save`] does, until the time is up.
pub(crate) fn write(files: &[OutputFile<'_>], outputs: &Outputs, cancel: &Cancel) -> Result<(), Failure> {
    let content = |file: &OutputFile<'_>, to: &mut dyn Target| file.write(outputs, to, cancel);
    write_all(files.iter().map(|file| (file.path, file)), cancel, content)
}

/// Writes files, each completely or not at all: all are written to temporary files (`.onnxref-*`) beside their places
/// before the first is moved there. An interruption removes the temporary files. `-` is standard output.
pub(crate) fn save(files: &[(&str, Vec<u8>)]) -> Result<(), Failure> {
    let content = |bytes: &Vec<u8>, to: &mut dyn Target| Ok(to.write_all(bytes)?);
    write_all(files.iter().map(|(path, bytes)| (*path, bytes)), &Cancel::new(), content)
}

/// As [`save`], of what `content` writes.
pub(crate) fn write_all<'a, F: 'a>(
    files: impl Iterator<Item = (&'a str, &'a F)> + Clone,
    cancel: &Cancel,
    content: impl Fn(&F, &mut dyn Target) -> Result<(), Unwritten>,
) -> Result<(), Failure> {
    let failed = |path: &str, why| match why {
        Unwritten::Unfit(why) => Failure::usage(why),
        Unwritten::Failed(error) => Failure::run(bounded::error(path, error)),
    };
    let mut written = Vec::new();
    for (path, file) in files.clone().filter(|(path, _)| *path != STDOUT) {
        let temporary = beside(Path::new(path), cancel, |to| content(file, to)).map_err(|why| failed(path, why))?;
        written.push((path, temporary));
    }
    // What was written to standard output stays there, so it comes after all that may fail.
    for (_, file) in files.filter(|(path, _)| *path == STDOUT) {
        print::document(cancel, |to| content(file, to)).map_err(|why| failed("standard output", why))?;
    }
    written.into_iter().try_for_each(|(path, temporary)| {
        persist(temporary, Path::new(path)).map_err(|error| failed(path, Unwritten::Failed(error)))
    })
}

/// Writes a file, completely or not at all, until the time is up.
pub(crate) fn file(
    path: &Path,
    cancel: &Cancel,
    content: impl FnOnce(&mut dyn Target) -> Result<(), Unwritten>,
) -> Result<(), Unwritten> {
    Ok(persist(beside(path, cancel, content)?, path)?)
}

/// Checks that a file can be written.
pub(crate) fn check_writable(path: &Path) -> io::Result<()> {
    match path.is_dir() {
        true => Err(io::ErrorKind::IsADirectory.into()),
        // The file is removed at once; where the system allows it, it never has a name.
        false => tempfile::tempfile_in(folder(path)).map(|_| ()),
    }
}

/// Writes a temporary file beside the place of a file.
fn beside(
    path: &Path,
    cancel: &Cancel,
    content: impl FnOnce(&mut dyn Target) -> Result<(), Unwritten>,
) -> Result<NamedTempFile, Unwritten> {
    let mut builder = tempfile::Builder::new();
    #[cfg(unix)]
    builder.permissions(std::os::unix::fs::PermissionsExt::from_mode(0o666)); // as for any new file, minus the umask
    // An interruption waits until the name is known.
    let mut names = interrupt::temporary();
    let file = builder.prefix(".onnxref-").tempfile_in(folder(path))?;
    names.push(file.path().to_path_buf());
    drop(names);
    let mut to = BufWriter::with_capacity(BUFFER, Bounded::new(file.as_file(), cancel));
    content(&mut to)?;
    to.flush()?;
    drop(to);
    Ok(file)
}

/// Bytes of small pieces that are written at once.
const BUFFER: usize = 64 << 10;

/// Moves a temporary file to its place.
fn persist(file: NamedTempFile, path: &Path) -> io::Result<()> {
    interrupt::commit(|names| {
        names.retain(|name| name != file.path());
        file.persist(path).map(drop).map_err(|error| error.error)
    })
}

/// The folder of a file.
fn folder(path: &Path) -> &Path {
    path.parent().filter(|folder| *folder != Path::new("")).unwrap_or(Path::new("."))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[cfg(target_pointer_width = "64")]
    fn a_tensor_beyond_protobuf_has_another_format() {
        for (dtype, instead) in [(onnxref::DType::Uint8, ".npy or .npz"), (onnxref::DType::Float8e5m2, ".json")] {
            // Memory that nobody touches.
            let large = Value::from(Tensor::new(dtype, &[1 << 31], vec![0; 1 << 31]).unwrap());
            let Err(Unwritten::Unfit(why)) = write_proto("x", &large, io::sink()) else { panic!() };
            assert_eq!(why, "it takes more than 2147483647 bytes, which protobuf can't hold");
            assert_eq!(instead_of_proto(&large), instead);
        }
    }
}
