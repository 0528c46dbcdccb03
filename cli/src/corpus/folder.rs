//! A folder that appears whole or not at all.

use crate::bounded::{self, Bounded};
use crate::failure::Failure;
use crate::{interrupt, print};
use onnxref::Cancel;
use std::fs::{self, File};
use std::io::{self, Write};
use std::path::Path;
use tempfile::TempDir;

/// A folder being written: a temporary one (`.onnxref-*`) beside its place until it is finished.
pub(crate) struct NewFolder<'a> {
    flag: &'static str,
    place: &'a Path,
    cancel: &'a Cancel,
    /// `None` once it is at its place.
    temporary: Option<TempDir>,
}

impl<'a> NewFolder<'a> {
    /// Begins a folder that a flag asks for. The place may have an empty folder already, and nothing else.
    pub(crate) fn new(flag: &'static str, place: &'a Path, cancel: &'a Cancel) -> Result<NewFolder<'a>, Failure> {
        let wrong = |why: &str| Failure::usage(format!("{flag} {}: {why}", print::path(&place.to_string_lossy())));
        match fs::read_dir(place) {
            Ok(mut entries) => {
                if entries.next().is_some() {
                    return Err(wrong("the folder is not empty"));
                }
            }
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(wrong(&error.to_string())),
            Err(_) => {}
        }
        if place.file_name().is_none() {
            return Err(wrong("a folder's name is needed"));
        }
        let parent = place.parent().filter(|parent| *parent != Path::new("")).unwrap_or(Path::new("."));
        fs::create_dir_all(parent).map_err(|e| wrong(&e.to_string()))?;
        let mut builder = tempfile::Builder::new();
        #[cfg(unix)]
        builder.permissions(std::os::unix::fs::PermissionsExt::from_mode(0o777)); // as for any new folder, minus the umask
        // An interruption waits until the name is known.
        let mut names = interrupt::temporary();
        let temporary = builder.prefix(".onnxref-").tempdir_in(parent).map_err(|e| wrong(&e.to_string()))?;
        names.push(temporary.path().to_path_buf());
        drop(names);
        Ok(NewFolder { flag, place, cancel, temporary: Some(temporary) })
    }

    /// Writes a file; `/` is between the parts of its path.
    pub(crate) fn file(&self, path: &str, bytes: &[u8]) -> Result<(), Failure> {
        self.write(path, bytes).map_err(|e| Failure::run(bounded::error(&format!("{}/{path}", self.shown()), e)))
    }

    fn write(&self, path: &str, bytes: &[u8]) -> io::Result<()> {
        let Some(temporary) = &self.temporary else { return Ok(()) };
        let path = path.split('/').fold(temporary.path().to_path_buf(), |path, part| path.join(part));
        let file = interrupt::commit(|_| {
            path.parent().map_or(Ok(()), fs::create_dir_all)?;
            File::create_new(&path)
        })?;
        Bounded::new(&file, self.cancel).write_all(bytes)
    }

    /// Moves the folder to its place.
    pub(crate) fn finish(mut self) -> Result<(), Failure> {
        let Some(temporary) = self.temporary.take() else { return Ok(()) };
        let moved = interrupt::commit(|names| {
            // Not everywhere does a folder take the place of an empty one.
            match fs::remove_dir(self.place) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
                _ => fs::rename(temporary.path(), self.place)?,
            }
            names.retain(|name| name != temporary.path());
            Ok(())
        });
        match moved {
            Ok(()) => {
                let _ = temporary.keep();
                Ok(())
            }
            Err(error) => {
                self.temporary = Some(temporary);
                Err(Failure::usage(format!("{} {}: {error}", self.flag, self.shown())))
            }
        }
    }

    fn shown(&self) -> String {
        print::path(&self.place.to_string_lossy())
    }
}

impl Drop for NewFolder<'_> {
    fn drop(&mut self) {
        if let Some(temporary) = self.temporary.take() {
            interrupt::temporary().retain(|name| name != temporary.path());
        }
    }
}
