//! A model's files: where they are, and limits on reading them. Shared by the formats.

mod beneath;
mod formats;

pub(crate) use beneath::is_link;
pub(crate) use formats::check_format;

use crate::dtype::{DType, ShapeText, byte_count};
use crate::error::{Error, Kind, Remedy, Result, quote};
use crate::graph::Draft;
use crate::limits::{Budget, Limits, exceeded};
use crate::tensor::{Mapped, Tensor, packed_size, unpack};
use bytes::Bytes;
use std::cell::{Cell, RefCell};
use std::collections::{BTreeSet, HashMap};
use std::fs::File;
use std::io::{Read, Seek, SeekFrom, Write};
use std::path::{Component, Path, PathBuf};

/// Number of bytes of a model file that are checked before the rest is read.
const HEAD: usize = 256;

/// What a format's reader returns for a model's files.
pub(crate) struct LoadedModel {
    pub(crate) draft: Draft,
    pub(crate) ir_version: i64,
    pub(crate) opsets: Vec<(String, i64)>,
    pub(crate) metadata: Vec<(String, String)>,
    /// How many of them the format has fields for. They come first.
    pub(crate) fields: usize,
    /// The name and the description of the graph.
    pub(crate) graph: [String; 2],
    /// For an inspection.
    pub(crate) functions: Vec<FunctionInfo>,
}

/// A function of a model.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct FunctionInfo {
    /// Its domain.
    pub domain: String,
    /// Its name.
    pub name: String,
    /// Its overload; usually empty.
    pub overload: String,
    /// The number of nodes that a call of it becomes.
    pub nodes: u64,
}

/// Where the files of a model may be.
#[derive(Debug, Clone, Default)]
pub(crate) struct Places {
    /// Files that the caller has in memory, by location.
    pub(crate) memory: HashMap<String, Bytes>,
    /// Folders that links may lead to.
    pub(crate) roots: Vec<PathBuf>,
    /// Files may have more than one hard link.
    pub(crate) hard_links: bool,
    /// Files are mapped instead of read.
    pub(crate) mmap: bool,
}

/// The files of a model: in memory, or in the model's folder and never outside it.
#[derive(Debug)]
pub(crate) struct ModelFiles {
    /// The model's folder; `None` for a model loaded from bytes.
    folder: Option<PathBuf>,
    /// These are the files of a model, not of a value.
    is_model: bool,
    places: Places,
    pub(crate) limits: Limits,
    pub(crate) budget: Budget,
    /// Bytes read so far.
    read: Cell<u64>,
    /// Bytes copied so far, by location.
    copied: RefCell<HashMap<String, u64>>,
    /// Mapped files by location: tensors share a file's map.
    maps: RefCell<HashMap<String, Bytes>>,
    /// Files beside the model file that were opened, relative to its folder.
    opened: RefCell<BTreeSet<PathBuf>>,
}

impl ModelFiles {
    /// The files of a model at a path, or of one loaded from bytes if there is no path.
    pub(crate) fn new(model: Option<&Path>, places: Places, limits: Limits) -> ModelFiles {
        let folder = model.map(|path| {
            let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty());
            parent.unwrap_or(Path::new(".")).to_path_buf()
        });
        let budget = Budget::new(&limits);
        places.memory.values().for_each(|bytes| budget.allow_for(bytes.len() as u64));
        let (copied, maps, opened) = Default::default();
        ModelFiles { folder, is_model: true, places, limits, budget, read: Cell::new(0), copied, maps, opened }
    }

    /// No files: all data is in the message itself.
    pub(crate) fn none() -> ModelFiles {
        ModelFiles { is_model: false, ..ModelFiles::new(None, Places::default(), Limits::default()) }
    }

    /// The content of the model file, which may be behind links. `check` may refuse it by its first bytes and its size.
    pub(crate) fn model(&self, path: &Path, check: impl FnOnce(&[u8], u64) -> Result<()>) -> Result<Bytes> {
        let what = format!("model {}", quote(&path.to_string_lossy()));
        let mut file = beneath::open_any(path).map_err(|e| Error::io(&*what, e))?;
        let metadata = file.metadata().map_err(|e| Error::io(&*what, e))?;
        if !metadata.is_file() {
            return Err(Error::new(Kind::Io, format!("{what} is not a regular file")));
        }
        let size = metadata.len();
        if self.places.mmap {
            let map = map(&file).map_err(|e| Error::io(&*what, e))?;
            check(map.get(..HEAD).unwrap_or(&map), size)?;
            return Ok(map);
        }
        let mut head = Vec::new();
        let read = (&mut file).take(HEAD as u64).read_to_end(&mut head);
        read.map_err(|e| Error::io(&*what, e))?;
        check(&head, size)?;
        let allowed = self.limits.load_bytes_per_byte.saturating_mul(size).saturating_add(self.limits.load_bytes);
        if size > allowed {
            return Err(exceeded("load_bytes", &format!("{what} has"), size.into(), "bytes", allowed));
        }
        self.content(file, 0, size, &what)
    }

    /// The whole content of a file in the folder; `None` for a model loaded from bytes.
    pub(crate) fn beside(&self, name: &Path) -> Result<Option<Bytes>> {
        let location = name.to_string_lossy();
        let what = format!("file {}", quote(&location));
        if let Some(bytes) = self.places.memory.get(&*location) {
            return Ok(Some(bytes.clone()));
        }
        let Some(folder) = &self.folder else { return Ok(None) };
        let file = self.open(folder, name, &what)?;
        let size = self.check_file(&file, &what)?;
        self.pay(size)?;
        if self.places.mmap {
            self.mapped(&file, &location, 0, size, &what)
        } else {
            self.content(file, 0, size, &what)
        }
        .map(Some)
    }

    /// The files beside the model file that were opened.
    pub(crate) fn opened(&self) -> Vec<PathBuf> {
        self.opened.borrow().iter().cloned().collect()
    }

    /// The name of the only file in memory with an extension.
    pub(crate) fn only_in_memory(&self, extension: &str) -> Option<PathBuf> {
        let mut found =
            self.places.memory.keys().map(Path::new).filter(|name| name.extension() == Some(extension.as_ref()));
        found.next().filter(|_| found.next().is_none()).map(Path::to_path_buf)
    }

    /// The size of an open file. Fails unless it is a regular file with one name.
    fn check_file(&self, file: &File, what: &str) -> Result<u64> {
        let metadata = file.metadata().map_err(|e| Error::io(what, e))?;
        if !metadata.is_file() {
            return Err(Error::model(format!("{what} is not a regular file")));
        }
        if beneath::links(&metadata) > 1 && !self.places.hard_links {
            let text = format!("{what} has more than one hard link: it may be a file from elsewhere");
            return Err(Error::input(text).with_remedy(Remedy::HardLinks));
        }
        Ok(metadata.len())
    }

    /// `need` bytes from `offset` on of the file at a location.
    pub(crate) fn part(&self, location: &str, offset: u64, need: u64) -> Result<Bytes> {
        let what = format!("external data {}", quote(location));
        let fits = |size| fits(&what, size, offset, need);
        if let Some(bytes) = self.places.memory.get(location) {
            fits(bytes.len() as u64)?;
            // Both are within a length in memory.
            return Ok(bytes.slice(offset as usize..(offset + need) as usize));
        }
        let Some(folder) = &self.folder else {
            if !self.is_model {
                return Err(Error::input("its data is external: only a model can have external data"));
            }
            let text = format!("its data is in the file {}, but the model was loaded from bytes", quote(location));
            return Err(Error::input(text).with_remedy(Remedy::ExternalData));
        };
        let file = self.open(folder, inside(location)?, &what)?;
        fits(self.check_file(&file, &what)?)?;
        if self.places.mmap {
            self.mapped(&file, location, offset, need, &what)
        } else {
            self.pay(need)?;
            self.content(file, offset, need, &what)
        }
    }

    /// Copies `need` bytes from `offset` on of the file at a location, piece by piece. Parts of a file may overlap, but not
    /// become many times as large.
    pub(crate) fn copy(&self, location: &str, offset: u64, need: u64, to: &mut dyn Write) -> Result<()> {
        let what = format!("external data {}", quote(location));
        let failed = |error| Error::io(&*what, error);
        let uncopied = |error| Error::io(format!("{what} can't be copied"), error);
        let folder = self.folder.as_ref().filter(|_| !self.places.memory.contains_key(location));
        let Some(folder) = folder else {
            return to.write_all(&self.part(location, offset, need)?).map_err(uncopied);
        };
        let mut file = self.open(folder, inside(location)?, &what)?;
        let size = self.check_file(&file, &what)?;
        fits(&what, size, offset, need)?;
        let copied = self.copied.borrow().get(location).map_or(need, |copied| copied.saturating_add(need));
        let allowed = size.saturating_mul(self.limits.load_bytes_per_byte.max(1));
        if copied > allowed {
            let text = format!("tensors take of {what}");
            return Err(exceeded("load_bytes_per_byte", &text, copied.into(), "bytes", allowed));
        }
        self.copied.borrow_mut().insert(location.to_string(), copied);
        file.seek(SeekFrom::Start(offset)).map_err(failed)?;
        let (mut piece, mut left) = (vec![0; 1 << 20], need);
        while left > 0 {
            let len = usize::try_from(left).unwrap_or(usize::MAX).min(piece.len());
            let Some(piece) = piece.get_mut(..len) else { break };
            file.read_exact(piece).map_err(failed)?;
            to.write_all(piece).map_err(uncopied)?;
            left -= len as u64;
        }
        Ok(())
    }

    /// A tensor from bytes of a file; elements of fewer than 8 bits are packed there.
    pub(crate) fn tensor(&self, dtype: DType, shape: &[usize], raw: Bytes) -> Result<Tensor> {
        let bytes = byte_count(dtype, shape).map_err(|e| e.with_kind(Kind::Model))?;
        let count = bytes / dtype.size();
        let need = packed_size(dtype, count);
        if raw.len() as u64 != need {
            let (shape, got) = (ShapeText(shape), raw.len());
            return Err(Error::model(format!("its raw data has {got} bytes: {dtype} of shape {shape} takes {need}"))
                .at(|place| {
                    place.value = Some(got as i128);
                    place.size = usize::try_from(need).ok();
                }));
        }
        let bytes = if dtype.bits() < 8 {
            self.budget.take(count as u64)?;
            unpack(dtype, count, &raw)?.into()
        } else {
            raw
        };
        Tensor::new(dtype, shape, bytes).map_err(|e| e.with_kind(Kind::Model))
    }

    /// Charges bytes of a file to the budget, unless they are mapped.
    fn pay(&self, bytes: u64) -> Result<()> {
        self.budget.allow_for(bytes);
        if self.places.mmap { Ok(()) } else { self.budget.take(bytes) }
    }

    /// Opens a file in the folder without following links; if there is a link, its target must be in one of the roots.
    fn open(&self, folder: &Path, relative: &Path, what: &str) -> Result<File> {
        if !self.opened.borrow().contains(relative) {
            self.opened.borrow_mut().insert(relative.to_path_buf());
        }
        let error = match beneath::open(folder, relative) {
            Ok(file) => return Ok(file),
            Err(error) => error,
        };
        if !beneath::is_link(folder, relative) {
            return Err(Error::io(format!("{what} in the folder {}", quote(&folder.to_string_lossy())), error));
        }
        let target = folder.join(relative).canonicalize().map_err(|e| Error::io(what, e))?;
        for root in &self.places.roots {
            let missing = |e| Error::io(format!("{what}: the folder {}", quote(&root.to_string_lossy())), e);
            let root = root.canonicalize().map_err(missing)?;
            if let Ok(relative) = target.strip_prefix(&root) {
                return beneath::open(&root, relative).map_err(|e| Error::io(what, e));
            }
        }
        let more = if self.places.roots.is_empty() { "" } else { " except into the given folders, and it is in none" };
        let text = format!("{what} is behind a link: links are not followed{more}");
        Err(Error::input(text).with_remedy(Remedy::ExternalRoot))
    }

    fn mapped(&self, file: &File, location: &str, offset: u64, need: u64, what: &str) -> Result<Bytes> {
        let known = self.maps.borrow().get(location).cloned();
        let map = match known {
            Some(map) => map,
            None => {
                let map = map(file).map_err(|e| Error::io(what, e))?;
                self.maps.borrow_mut().insert(location.to_string(), map.clone());
                map
            }
        };
        let range = usize::try_from(offset).ok().zip(usize::try_from(offset + need).ok());
        match range.filter(|(_, to)| *to <= map.len()) {
            Some((from, to)) => Ok(map.slice(from..to)),
            None => Err(Error::new(Kind::Io, format!("{what} shrank while it was read"))),
        }
    }

    /// Reads a part of a file, within the limit on all reads.
    fn content(&self, mut file: File, offset: u64, need: u64, what: &str) -> Result<Bytes> {
        let total = self.read.get().saturating_add(need);
        if total > self.limits.file_bytes {
            let text = format!("with {what} the model has");
            return Err(exceeded("file_bytes", &text, total.into(), "bytes", self.limits.file_bytes));
        }
        self.read.set(total);
        let mut bytes = Vec::new();
        let len = usize::try_from(need).ok().filter(|len| bytes.try_reserve_exact(*len).is_ok());
        let len = len.ok_or_else(|| Error::out_of_memory(what, need))?;
        let mut read = || {
            file.seek(SeekFrom::Start(offset))?;
            (&mut file).take(need).read_to_end(&mut bytes)?;
            if bytes.len() == len { Ok(()) } else { Err(std::io::ErrorKind::UnexpectedEof.into()) }
        };
        read().map_err(|e| Error::io(what, e))?;
        Ok(bytes.into())
    }
}

/// Fails unless a part of a file ends within its size.
fn fits(what: &str, size: u64, offset: u64, need: u64) -> Result<()> {
    if need <= size && offset <= size - need {
        return Ok(());
    }
    Err(Error::model(format!("{what} has {size} bytes: {need} bytes from offset {offset} reach beyond its end")))
}

/// Maps a file. Only for callers of `LoadOptions::mmap`, who guarantee that the file doesn't change.
#[allow(unsafe_code)]
fn map(file: &File) -> std::io::Result<Bytes> {
    if file.metadata()?.len() == 0 {
        return Ok(Bytes::new());
    }
    // SAFETY: whoever set `LoadOptions::mmap` promised that no file of the model changes while the map is alive.
    let map = unsafe { memmap2::Mmap::map(file)? };
    Ok(Bytes::from_owner(Mapped::new(map)))
}

/// The location as a relative path that doesn't leave its folder.
pub(crate) fn inside(location: &str) -> Result<&Path> {
    let path = Path::new(location);
    let plain = path.components().all(|c| matches!(c, Component::Normal(_) | Component::CurDir));
    let folder = location.ends_with('/') || location.ends_with("/.");
    if location.is_empty() || location.contains('\0') || folder || !plain {
        return Err(Error::model(format!(
            "its external data is at {}: a path relative to the model's folder and inside it is needed",
            quote(location)
        )));
    }
    Ok(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_paths_inside() {
        for bad in ["", "/etc/passwd", "..", "../a", "a/../b", "a\0b", "a/", "a/."] {
            assert!(inside(bad).is_err(), "{bad}");
        }
        for good in ["a", "a/b.bin", "./a"] {
            assert!(inside(good).is_ok(), "{good}");
        }
    }
}
