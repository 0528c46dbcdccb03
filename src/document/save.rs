//! Files that appear whole or not at all.

use super::Document;
use crate::error::{Error, Result, quote};
use std::fs::{self, File};
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

impl Document {
    /// Writes the model file to a path, whole or not at all: the text form if its name ends in `.onnxtxt`. External data stays where it is if the path is in the folder
    /// of the file that was read; else it is copied beside the new file: see [`Document::relocate`].
    ///
    /// # Errors
    /// As [`Document::write`]; a file can't be written, or external data can't be read.
    pub fn save(&self, path: impl AsRef<Path>) -> Result<()> {
        let path = path.as_ref();
        let mut own = self.clone();
        let data = own.relocate(path)?.map(|data| {
            let place = path.with_file_name(&data.location);
            Temporary::write(&place, |to| data.write(to)).map(|temporary| (temporary, place))
        });
        let data = data.transpose()?;
        let model = Temporary::write(path, |to| own.write_as(path, to))?;
        if let Some((data, place)) = data {
            data.persist(&place)?;
        }
        model.persist(path)
    }
}

/// A file beside its place, which is removed unless it gets there.
struct Temporary(PathBuf);

impl Temporary {
    fn write(place: &Path, content: impl FnOnce(&mut dyn Write) -> Result<()>) -> Result<Temporary> {
        static COUNT: AtomicU64 = AtomicU64::new(0);
        let failed = |error| Error::io(format!("file {}", quote(&place.to_string_lossy())), error);
        let (process, count) = (std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed));
        let path = place.with_file_name(format!(".onnxref-{process}-{count}"));
        let file = File::create_new(&path).map_err(failed)?;
        let temporary = Temporary(path);
        let mut to = BufWriter::new(file);
        content(&mut to)?;
        to.flush().map_err(failed)?;
        Ok(temporary)
    }

    fn persist(self, place: &Path) -> Result<()> {
        let moved = fs::rename(&self.0, place);
        moved.map_err(|error| Error::io(format!("file {}", quote(&place.to_string_lossy())), error))
    }
}

impl Drop for Temporary {
    fn drop(&mut self) {
        // It is gone already if it was moved to its place.
        let _ = fs::remove_file(&self.0);
    }
}
