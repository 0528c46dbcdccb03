//! A folder that appears whole or not at all.

use crate::bounded::{self, Bounded};
use crate::failure::Failure;
use crate::{interrupt, output, print};
use onnxref::Cancel;
use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use tempfile::TempDir;

/// A folder being written: a temporary one (`.onnxref-*`) beside its place until it is finished.
pub(crate) struct NewFolder<'a> {
    flag: &'static str,
    path: &'a Path,
    /// Where links lead.
    place: PathBuf,
    cancel: &'a Cancel,
    /// `None` once it is at its place.
    temporary: Option<TempDir>,
}

impl<'a> NewFolder<'a> {
    /// Begins a folder that a flag asks for. The place may have an empty folder already, and nothing else.
    pub(crate) fn new(flag: &'static str, path: &'a Path, cancel: &'a Cancel) -> Result<NewFolder<'a>, Failure> {
        let wrong = |why: &str| Failure::usage(format!("{flag} {}: {why}", print::path(&path.to_string_lossy())));
        let unmade = |e| Failure::unmade(&format!("{flag} {}", path.to_string_lossy()), e);
        let place = output::unique(path);
        match fs::read_dir(&place) {
            Ok(mut entries) => {
                if entries.next().is_some() {
                    return Err(wrong("the folder is not empty"));
                }
            }
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(wrong(&error.to_string())),
            Err(_) => {}
        }
        if std::env::current_dir().is_ok_and(|current| output::unique(&current) == place) {
            return Err(wrong("it is the current folder: name another one"));
        }
        let Some(parent) = place.parent().filter(|_| path.file_name().is_some()) else {
            return Err(wrong("a folder's name is needed"));
        };
        fs::create_dir_all(parent).map_err(unmade)?;
        let mut builder = tempfile::Builder::new();
        #[cfg(unix)]
        builder.permissions(std::os::unix::fs::PermissionsExt::from_mode(0o777)); // as for any new folder, minus the umask
        // An interruption waits until the name is known.
        let mut names = interrupt::temporary();
        let temporary = builder.prefix(".onnxref-").tempdir_in(parent).map_err(unmade)?;
        names.push(temporary.path().to_path_buf());
        drop(names);
        Ok(NewFolder { flag, path, place, cancel, temporary: Some(temporary) })
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
            // On Windows a folder doesn't take the place of an empty one.
            if cfg!(windows) && self.place.is_dir() {
                fs::remove_dir(&self.place)?;
            }
            let moved = fs::rename(temporary.path(), &self.place);
            moved.map(|()| names.retain(|name| name != temporary.path()))
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
        print::path(&self.path.to_string_lossy())
    }
}

impl Drop for NewFolder<'_> {
    fn drop(&mut self) {
        if let Some(temporary) = self.temporary.take() {
            interrupt::temporary().retain(|name| name != temporary.path());
        }
    }
}
