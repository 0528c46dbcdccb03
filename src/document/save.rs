//! Files that appear whole or not at all.

use super::Document;
use crate::error::{Error, Result, quote};
use std::fs::{self, File};
use std::io::{BufWriter, ErrorKind, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

impl Document {
    /// Writes the model file to a path, whole or not at all: the text form if its name ends in `.onnxtxt`. A link is followed
    /// first; what is there and is no file, such as a pipe, is written to as it is. External data stays where it is if the path is
    /// in the folder of the file that was read; else it is copied beside the new file: see [`Document::relocate`].
    ///
    /// # Errors
    /// As [`Document::write`] and [`DataFile::place`](super::DataFile::place); the path is that of external data of the
    /// document, a file can't be written, or external data can't be read.
    pub fn save(&self, path: impl AsRef<Path>) -> Result<()> {
        let path = path.as_ref();
        let refuse = |place: &Path, text: &str| match self.has_data_in(place)? {
            true => Err(Error::input(format!("file {}: {text}", quote(&place.to_string_lossy())))),
            false => Ok(()),
        };
        refuse(path, "the model can't take the place of its own external data")?;
        let (mut own, place) = (self.clone(), followed(path)?);
        let data = own.relocate(&place)?.map(|data| {
            let own = place.with_file_name(&data.location);
            refuse(&own, "new external data can't take the place of that of the model")?;
            Temporary::write(&data.place(&place)?, |to| data.write(to))
        });
        let data = data.transpose()?.flatten();
        let model = Temporary::write(path, |to| own.write_as(path, to))?;
        data.map_or(Ok(()), Temporary::persist)?;
        model.map_or(Ok(()), Temporary::persist)
    }
}

/// Where links lead.
fn followed(path: &Path) -> Result<PathBuf> {
    // Such as that of a link that leads to itself.
    known(path)?;
    let mut place = path.to_path_buf();
    while let Ok(to) = fs::read_link(&place) {
        place.pop();
        place.push(to);
    }
    Ok(place)
}

/// What is there already.
fn known(path: &Path) -> Result<Option<fs::Metadata>> {
    match fs::metadata(path) {
        Ok(known) => Ok(Some(known)),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(error) => Err(failed(path, error)),
    }
}

fn failed(path: &Path, error: std::io::Error) -> Error {
    Error::io(format!("file {}", quote(&path.to_string_lossy())), error)
}

/// A file beside its place, which is removed unless it gets there.
struct Temporary {
    path: PathBuf,
    place: PathBuf,
}

impl Temporary {
    /// Writes a file, or to what is no file: then nothing is left to move.
    fn write(place: &Path, content: impl FnOnce(&mut dyn Write) -> Result<()>) -> Result<Option<Temporary>> {
        static COUNT: AtomicU64 = AtomicU64::new(0);
        let known = known(place)?;
        let failed = |error| failed(place, error);
        let (file, temporary) = if known.as_ref().is_some_and(|known| !known.is_file() && !known.is_dir()) {
            (File::options().write(true).open(place).map_err(failed)?, None)
        } else {
            let place = followed(place)?;
            let (process, count) = (std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed));
            let path = place.with_file_name(format!(".onnxref-{process}-{count}"));
            let file = File::create_new(&path).map_err(failed)?;
            (file, Some(Temporary { path, place }))
        };
        #[cfg(unix)]
        if let (Some(_), Some(known)) = (&temporary, known) {
            file.set_permissions(known.permissions()).map_err(failed)?;
        }
        let mut to = BufWriter::new(file);
        content(&mut to)?;
        to.flush().map_err(failed)?;
        Ok(temporary)
    }

    fn persist(self) -> Result<()> {
        fs::rename(&self.path, &self.place).map_err(|error| failed(&self.place, error))
    }
}

impl Drop for Temporary {
    fn drop(&mut self) {
        // It is gone already if it was moved to its place.
        let _ = fs::remove_file(&self.path);
    }
}
