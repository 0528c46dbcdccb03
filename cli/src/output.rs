//! Writes files, such as those of outputs.

use crate::bounded::{Bounded, Unwritten};
use crate::failure::Failure;
use crate::value::{Named, split};
use crate::{Global, interrupt, npy, npz, print};
use onnxref::{Cancel, Model, Outputs, Tensor, Value, quote};
use onnxref_view::json::Described;
use std::collections::HashSet;
use std::fs::{self, File, OpenOptions};
use std::io::{self, BufWriter, Seek, Write};
use std::path::{Path, PathBuf};
use tempfile::NamedTempFile;

/// The files for outputs, each in a writable folder.
pub(crate) fn files<'a>(
    texts: &'a [String],
    model: &'a Model,
    global: &Global,
) -> Result<Vec<OutputFile<'a>>, Failure> {
    let files = texts.iter().map(|text| OutputFile::parse(text, model)).collect::<Result<Vec<_>, _>>()?;
    files.iter().try_for_each(|file| beside_json("-o", file.path(), global))?;
    files.iter().try_for_each(OutputFile::check)?;
    let places: Vec<PathBuf> = files.iter().map(|file| unique(file.path())).collect();
    let twice = places.iter().enumerate().find(|(k, place)| places.iter().take(*k).any(|other| other == *place));
    if let Some(file) = twice.and_then(|(k, _)| files.get(k)) {
        return Err(Failure::usage(format!("two outputs go to {}", print::path(file.path))));
    }
    Ok(files)
}

/// Refuses a file on standard output, which gets the JSON of `--json`.
pub(crate) fn beside_json(flag: &str, path: &Path, global: &Global) -> Result<(), Failure> {
    if is_stdout(path) && global.json {
        return Err(Failure::usage(format!("{flag} -: a file is needed: with --json standard output gets JSON")));
    }
    Ok(())
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

/// Whether a path means standard output.
pub(crate) fn is_stdout(path: &Path) -> bool {
    path == Path::new(STDOUT)
}

impl<'a> OutputFile<'a> {
    fn parse(text: &'a str, model: &'a Model) -> Result<OutputFile<'a>, Failure> {
        let wrong = |why: &str| {
            let names: Vec<String> = model.outputs().map(|info| quote(&info.name)).collect();
            Failure::usage(format!(
                "-o {}: {why}; the model's outputs: {}",
                print::path(text),
                print::listed(&names, ", ")
            ))
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

    /// Where it goes.
    pub(crate) fn path(&self) -> &'a Path {
        Path::new(self.path)
    }

    /// Checks that the file's folder is writable.
    fn check(&self) -> Result<(), Failure> {
        let name = self.name.map(|name| format!("{name}=")).unwrap_or_default();
        let text = || print::path(&format!("{name}{}", self.path));
        let writable = if self.path == STDOUT { Ok(()) } else { check_writable(self.path()) };
        writable.map_err(|e| Failure::usage(format!("-o {}: the file can't be written: {e}", text())))
    }

    /// Writes the content of the file.
    fn write(&self, outputs: &Outputs, to: &mut dyn Target, cancel: &Cancel) -> Result<(), Unwritten> {
        let chosen = once(outputs.iter()).filter(|(name, _)| self.name.is_none_or(|own| own == *name));
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

/// Each output once: a graph may list one twice.
pub(crate) fn once<'a>(
    outputs: impl Iterator<Item = (&'a str, &'a Value)>,
) -> impl Iterator<Item = (&'a str, &'a Value)> {
    let mut seen = HashSet::new();
    outputs.filter(move |(name, _)| seen.insert(*name))
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
    write_all(files.iter().map(|file| (file.path(), file)), cancel, content)
}

/// Writes files, each completely or not at all: all are written to temporary files (`.onnxref-*`) beside their places
/// before the first is moved there. An interruption removes the temporary files. `-` is standard output. What is there and
/// is no file, such as a pipe, is written to as it is.
pub(crate) fn save<P: AsRef<Path>>(files: &[(P, Vec<u8>)]) -> Result<(), Failure> {
    let content = |bytes: &Vec<u8>, to: &mut dyn Target| Ok(to.write_all(bytes)?);
    write_all(files.iter().map(|(path, bytes)| (path.as_ref(), bytes)), &Cancel::new(), content)
}

/// As [`save`], of what `content` writes.
pub(crate) fn write_all<'a, F: 'a>(
    files: impl Iterator<Item = (&'a Path, &'a F)>,
    cancel: &Cancel,
    content: impl Fn(&F, &mut dyn Target) -> Result<(), Unwritten>,
) -> Result<(), Failure> {
    let failed = |path: &Path, why: Unwritten| why.failure(&path.to_string_lossy(), |why| why);
    let (mut written, mut streams) = (Vec::new(), Vec::new());
    for (path, file) in files {
        let place = if is_stdout(path) { Ok(Place::Stream) } else { Place::of(path) };
        match place.map_err(|error| failed(path, Unwritten::Failed(error)))? {
            Place::Stream => streams.push((path, file)),
            Place::File(place) => {
                let temporary = beside(&place, cancel, |to| content(file, to)).map_err(|why| failed(path, why))?;
                written.push((path, temporary, place));
            }
        }
    }
    // What was written there stays there, so it comes after all that may fail.
    for (path, file) in streams {
        if is_stdout(path) {
            let written = print::document(cancel, |to| content(file, to));
            written.map_err(|why| failed(Path::new("standard output"), why))?;
        } else {
            stream(path, cancel, |to| content(file, to)).map_err(|why| failed(path, why))?;
        }
    }
    written.into_iter().try_for_each(|(path, temporary, place)| {
        persist(temporary, &place).map_err(|error| failed(path, Unwritten::Failed(error)))
    })
}

/// Writes a file, completely or not at all, until the time is up.
pub(crate) fn file(
    path: &Path,
    cancel: &Cancel,
    content: impl FnOnce(&mut dyn Target) -> Result<(), Unwritten>,
) -> Result<(), Unwritten> {
    match Place::of(path)? {
        Place::Stream => stream(path, cancel, content),
        Place::File(place) => Ok(persist(beside(&place, cancel, content)?, &place)?),
    }
}

/// Checks that a file can be written.
pub(crate) fn check_writable(path: &Path) -> io::Result<()> {
    match Place::of(path)? {
        // A pipe may have no reader yet.
        Place::Stream => Ok(()),
        // The file is removed at once; where the system allows it, it never has a name.
        Place::File(place) => tempfile::tempfile_in(folder(&place)).map(|_| ()),
    }
}

/// What a path leads to.
enum Place {
    /// A device or a pipe, which is written to as it is.
    Stream,
    /// A file that is made or replaced, where links lead.
    File(PathBuf),
}

impl Place {
    fn of(path: &Path) -> io::Result<Place> {
        match fs::metadata(path) {
            Ok(found) if found.is_dir() => return Err(io::ErrorKind::IsADirectory.into()),
            Ok(found) if !found.is_file() => return Ok(Place::Stream),
            Ok(_) => {}
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(error),
        }
        let mut place = path.to_path_buf();
        while let Ok(to) = fs::read_link(&place) {
            place = folder(&place).join(to);
        }
        Ok(Place::File(place))
    }
}

/// Where a file is written: where links lead.
pub(crate) fn followed(path: &Path) -> PathBuf {
    if let Ok(Place::File(place)) = Place::of(path) { place } else { path.to_path_buf() }
}

/// The same for all paths that lead to a file or a folder, which may not be there yet.
pub(crate) fn unique(path: &Path) -> PathBuf {
    let place = match Place::of(path) {
        Ok(Place::Stream) => return path.to_path_buf(),
        Ok(Place::File(_)) if is_stdout(path) => return path.to_path_buf(),
        Ok(Place::File(place)) => place,
        // Such as that of a folder.
        Err(_) => path.to_path_buf(),
    };
    match (place.canonicalize(), place.file_name()) {
        (Ok(place), _) => place,
        (Err(_), Some(name)) => unique(folder(&place)).join(name),
        (Err(_), None) => place,
    }
}

/// Refuses to write to a file that is read, or written already.
pub(crate) fn spare<'a>(flag: &str, path: &Path, used: impl IntoIterator<Item = &'a Path>) -> Result<(), Failure> {
    let place = unique(path);
    match !is_stdout(path) && used.into_iter().any(|used| unique(used) == place) {
        true => Err(Failure::usage(format!(
            "{flag} {}: it would replace a file that the command reads or writes: name another one",
            print::path(&path.to_string_lossy())
        ))),
        false => Ok(()),
    }
}

/// Writes to what is no file.
fn stream(
    path: &Path,
    cancel: &Cancel,
    content: impl FnOnce(&mut dyn Target) -> Result<(), Unwritten>,
) -> Result<(), Unwritten> {
    let opened = OpenOptions::new().write(true).open(path)?;
    let mut to = BufWriter::with_capacity(BUFFER, Bounded::new(Forward(opened), cancel));
    content(&mut to)?;
    Ok(to.flush()?)
}

/// A file that can only be written forward, such as a pipe.
struct Forward(File);

impl Write for Forward {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}

impl Seek for Forward {
    fn seek(&mut self, _: io::SeekFrom) -> io::Result<u64> {
        Err(io::ErrorKind::NotSeekable.into())
    }
}

/// Writes a temporary file beside the place of a file. It gets the permissions of a file that is there.
fn beside(
    place: &Path,
    cancel: &Cancel,
    content: impl FnOnce(&mut dyn Target) -> Result<(), Unwritten>,
) -> Result<NamedTempFile, Unwritten> {
    let mut builder = tempfile::Builder::new();
    #[cfg(unix)]
    let known = fs::metadata(place).ok().map(|found| found.permissions());
    #[cfg(unix)]
    builder.permissions(known.clone().unwrap_or_else(|| {
        std::os::unix::fs::PermissionsExt::from_mode(0o666) // as for any new file, minus the umask
    }));
    // An interruption waits until the name is known.
    let mut names = interrupt::temporary();
    let file = builder.prefix(".onnxref-").tempfile_in(folder(place))?;
    names.push(file.path().to_path_buf());
    drop(names);
    #[cfg(unix)]
    known.map_or(Ok(()), |known| file.as_file().set_permissions(known))?; // the umask took some
    let mut to = BufWriter::with_capacity(BUFFER, Bounded::new(file.as_file(), cancel));
    content(&mut to)?;
    to.flush()?;
    drop(to);
    Ok(file)
}

/// Bytes of small pieces that are written at once.
const BUFFER: usize = 64 << 10;

/// Moves a temporary file to its place.
fn persist(file: NamedTempFile, place: &Path) -> io::Result<()> {
    interrupt::commit(|names| {
        names.retain(|name| name != file.path());
        file.persist(place).map(drop).map_err(|error| error.error)
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
