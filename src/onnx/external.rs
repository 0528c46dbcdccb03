//! External data: a tensor's bytes in a file beside the model.

use crate::error::{Error, Kind, Result, quote};
use crate::limits::{Limits, exceeded};
use bytes::Bytes;
use std::cell::{Cell, RefCell};
use std::collections::{HashMap, HashSet};
use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::path::{Component, Path, PathBuf};

/// What a tensor says about where its data is.
#[derive(Debug, PartialEq)]
pub(super) struct External {
    location: String,
    offset: u64,
    length: Option<u64>,
}

impl External {
    pub(super) fn parse(pairs: &[(&str, &str)]) -> Result<External> {
        let mut seen: HashSet<&str> = HashSet::new();
        let (mut location, mut offset, mut length) = (None, 0, None);
        for (key, value) in pairs {
            if !seen.insert(key) {
                return Err(Error::model(format!("its external data has two entries {}", quote(key))));
            }
            match *key {
                "location" => location = Some(value.to_string()),
                "offset" => offset = decimal(key, value)?,
                "length" => length = Some(decimal(key, value)?),
                // `checksum`, and what writers add for themselves.
                _ => {}
            }
        }
        let location = location.ok_or_else(|| Error::model("its external data has no location"))?;
        Ok(External { location, offset, length })
    }
}

fn decimal(key: &str, value: &str) -> Result<u64> {
    let digits = !value.is_empty() && value.bytes().all(|b| b.is_ascii_digit());
    let parsed = if digits { value.parse().ok() } else { None };
    parsed.ok_or_else(|| {
        Error::model(format!("its external data's {key} is {}: a decimal number is needed", quote(value)))
    })
}

/// Where the files of a model are: in the model's own folder, and nothing outside of it.
#[derive(Debug)]
pub(crate) struct Folder {
    /// `None` for a model that came as bytes.
    path: Option<PathBuf>,
    /// Folders in which the target of a link may be.
    roots: Vec<PathBuf>,
    /// Files are mapped instead of read.
    mmap: bool,
    pub(crate) limits: Limits,
    /// Bytes read so far.
    read: Cell<u64>,
    /// Bytes of memory that loading may still take, and those that it takes.
    allowed: Cell<u64>,
    spent: Cell<u64>,
    /// Mapped files by location: tensors share a file's map.
    maps: RefCell<HashMap<String, Bytes>>,
}

impl Folder {
    /// The folder of a model file.
    pub(crate) fn of(model: &Path, roots: Vec<PathBuf>, mmap: bool, limits: &Limits) -> Folder {
        let parent = model.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new("."));
        Folder { path: Some(parent.to_path_buf()), roots, mmap, ..Folder::none().with_limits(limits) }
    }

    /// No folder: external data is an error.
    pub(crate) fn none() -> Folder {
        Folder {
            path: None,
            roots: Vec::new(),
            mmap: false,
            limits: Limits::default(),
            read: Cell::new(0),
            allowed: Cell::new(Limits::default().load_bytes),
            spent: Cell::new(0),
            maps: RefCell::default(),
        }
    }

    pub(crate) fn with_limits(mut self, limits: &Limits) -> Folder {
        self.limits = limits.clone();
        self.allowed.set(limits.load_bytes);
        self
    }

    /// Loading takes `cost` more bytes of memory, having read `read` more bytes.
    pub(crate) fn spend(&self, cost: u64, read: u64) -> Result<()> {
        let more = self.limits.load_bytes_per_byte.saturating_mul(read);
        self.allowed.set(self.allowed.get().saturating_add(more));
        self.spent.set(self.spent.get().saturating_add(cost));
        let (spent, allowed) = (self.spent.get(), self.allowed.get());
        if spent > allowed {
            return Err(exceeded("load_bytes", "loading the model takes", spent.into(), "bytes", allowed));
        }
        Ok(())
    }

    /// The content of the model file, which may be behind links.
    pub(crate) fn model(&self, path: &Path) -> Result<Bytes> {
        let what = format!("model {}", quote(&path.to_string_lossy()));
        let file = beneath::open_any(path).map_err(|e| Error::io(&*what, e))?;
        let metadata = file.metadata().map_err(|e| Error::io(&*what, e))?;
        if !metadata.is_file() {
            return Err(Error::new(Kind::Io, format!("{what} is not a regular file")));
        }
        let (size, allowed) = (metadata.len(), self.limits.load_bytes);
        let allowed = allowed.saturating_add(self.limits.load_bytes_per_byte.saturating_mul(size));
        if !self.mmap && size > allowed {
            return Err(exceeded("load_bytes", &format!("{what} has"), size.into(), "bytes", allowed));
        }
        if self.mmap {
            return map(&file).map_err(|e| Error::io(&*what, e));
        }
        self.content(file, 0, metadata.len(), &what)
    }

    /// The whole content of a file in the folder.
    pub(crate) fn beside(&self, name: &Path) -> Result<Bytes> {
        let location = name.to_string_lossy();
        let what = format!("file {}", quote(&location));
        let Some(folder) = &self.path else { return Err(Error::model("the model was not loaded from a file")) };
        let file = self.open(folder, name, &what)?;
        let size = self.check_file(&file, &what)?;
        self.spend(if self.mmap { 0 } else { size }, size)?;
        if self.mmap { self.mapped(&file, &location, 0, size, &what) } else { self.content(file, 0, size, &what) }
    }

    /// The size of an open file, which is a regular one that has no other name.
    fn check_file(&self, file: &File, what: &str) -> Result<u64> {
        let metadata = file.metadata().map_err(|e| Error::io(what, e))?;
        if !metadata.is_file() {
            return Err(Error::model(format!("{what} is not a regular file")));
        }
        if beneath::links(&metadata) > 1 {
            return Err(Error::model(format!("{what} has more than one hard link: it may be a file from elsewhere")));
        }
        Ok(metadata.len())
    }

    /// The `need` bytes that a tensor takes.
    pub(super) fn read(&self, external: &External, need: u64) -> Result<Bytes> {
        let External { location, offset, length } = external;
        let Some(folder) = &self.path else {
            return Err(Error::model(
                "its data is external, and the model was not loaded from a file: use Model::load",
            ));
        };
        if let Some(length) = length.filter(|length| *length != need) {
            let text = format!("its external data has length {length}: its type and shape take {need}");
            return Err(Error::model(text).at(|place| {
                place.value = Some(length.into());
                place.size = usize::try_from(need).ok();
            }));
        }
        let what = format!("external data {}", quote(location));
        let file = self.open(folder, inside(location)?, &what)?;
        let size = self.check_file(&file, &what)?;
        if need > size || *offset > size - need {
            return Err(Error::model(format!(
                "{what} has {size} bytes: offset {offset} and {need} bytes reach beyond"
            )));
        }
        if self.mmap {
            self.mapped(&file, location, *offset, need, &what)
        } else {
            self.spend(need, need)?;
            self.content(file, *offset, need, &what)
        }
    }

    /// Opens a file in the folder, with no link on the way; or, where a link is, in one of the roots.
    fn open(&self, folder: &Path, relative: &Path, what: &str) -> Result<File> {
        let error = match beneath::open(folder, relative) {
            Ok(file) => return Ok(file),
            Err(error) => error,
        };
        if !is_link(folder, relative) {
            return Err(Error::io(what, error));
        }
        let target = folder.join(relative).canonicalize().map_err(|e| Error::io(what, e))?;
        for root in &self.roots {
            let root = root.canonicalize().map_err(|e| Error::io(what, e))?;
            if let Ok(relative) = target.strip_prefix(&root) {
                return beneath::open(&root, relative).map_err(|e| Error::io(what, e));
            }
        }
        let how = "LoadOptions::external_root names folders in which the target may be";
        Err(Error::model(format!("{what} is behind a link: these are not followed ({how})")))
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

    /// Reads a part of a file, within what may be read in all.
    fn content(&self, mut file: File, offset: u64, need: u64, what: &str) -> Result<Bytes> {
        let total = self.read.get().saturating_add(need);
        if total > self.limits.file_bytes {
            let text = format!("with {what} the model has");
            return Err(exceeded("file_bytes", &text, total.into(), "bytes", self.limits.file_bytes));
        }
        self.read.set(total);
        let mut bytes = Vec::new();
        let mut read = || {
            let len = usize::try_from(need).map_err(std::io::Error::other)?;
            bytes.try_reserve_exact(len).map_err(std::io::Error::other)?;
            file.seek(SeekFrom::Start(offset))?;
            (&mut file).take(need).read_to_end(&mut bytes)?;
            if bytes.len() == len { Ok(()) } else { Err(std::io::ErrorKind::UnexpectedEof.into()) }
        };
        read().map_err(|e| Error::io(what, e))?;
        Ok(bytes.into())
    }
}

/// A file's content, mapped. Only for callers of `LoadOptions::mmap`, who vouch that the file doesn't change.
#[allow(unsafe_code)]
fn map(file: &File) -> std::io::Result<Bytes> {
    if file.metadata()?.len() == 0 {
        return Ok(Bytes::new());
    }
    // SAFETY: whoever set `LoadOptions::mmap` promised that no file of the model changes while the map is alive.
    let map = unsafe { memmap2::Mmap::map(file)? };
    Ok(Bytes::from_owner(map))
}

/// The location as a path that stays inside of any folder.
fn inside(location: &str) -> Result<&Path> {
    let path = Path::new(location);
    let plain = path.components().all(|c| matches!(c, Component::Normal(_) | Component::CurDir));
    let folder = location.ends_with('/') || location.ends_with("/.");
    if location.is_empty() || location.contains('\0') || folder || !plain {
        return Err(Error::model(format!(
            "its external data is at {}: a path relative to the model's folder, and inside of it, is needed",
            quote(location)
        )));
    }
    Ok(path)
}

/// Paths of more bytes are not opened: looking at each part of one would take too long.
const LONGEST: usize = 4096;

/// Whether a part of the path is a link. Where there is Unix this says why a file was not opened, and decides nothing.
fn is_link(folder: &Path, relative: &Path) -> bool {
    let mut path = folder.to_path_buf();
    relative.as_os_str().len() <= LONGEST
        && relative.components().any(|part| {
            path.push(part);
            path.symlink_metadata().is_ok_and(|metadata| metadata.is_symlink())
        })
}

/// Opening files: a FIFO or a device doesn't block, and nothing is outside of a folder.
#[cfg(unix)]
mod beneath {
    use rustix::fs::{CWD, Mode, OFlags, open as open_at_once, openat};
    use std::fs::{File, Metadata};
    use std::io;
    use std::os::unix::fs::MetadataExt;
    use std::path::{Component, Path};

    const FLAGS: OFlags = OFlags::RDONLY.union(OFlags::NONBLOCK).union(OFlags::NOCTTY).union(OFlags::CLOEXEC);

    /// Opens what is at a path that the caller gave.
    pub(super) fn open_any(path: &Path) -> io::Result<File> {
        Ok(File::from(open_at_once(path, FLAGS, Mode::empty())?))
    }

    /// Opens a file beneath a folder, without following links below it.
    pub(super) fn open(folder: &Path, relative: &Path) -> io::Result<File> {
        let folder = openat(CWD, folder, OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())?;
        #[cfg(target_os = "linux")]
        {
            use rustix::fs::{ResolveFlags, openat2};
            use rustix::io::Errno;
            let how = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS;
            match openat2(&folder, relative, FLAGS, Mode::empty(), how) {
                Ok(file) => return Ok(File::from(file)),
                // Old kernels don't have it, and some sandboxes forbid it.
                Err(Errno::NOSYS | Errno::PERM | Errno::INVAL) => {}
                Err(error) => return Err(error.into()),
            }
        }
        part_by_part(folder, relative)
    }

    /// Opens one folder after the other, none of which is a link.
    pub(super) fn part_by_part(mut folder: rustix::fd::OwnedFd, relative: &Path) -> io::Result<File> {
        let mut parts = relative.components().filter(|part| *part != Component::CurDir).peekable();
        while let Some(part) = parts.next() {
            let Component::Normal(name) = part else { return Err(io::ErrorKind::InvalidInput.into()) };
            let flags = FLAGS | OFlags::NOFOLLOW;
            if parts.peek().is_none() {
                return Ok(File::from(openat(&folder, name, flags, Mode::empty())?));
            }
            folder = openat(&folder, name, flags | OFlags::DIRECTORY, Mode::empty())?;
        }
        Err(io::ErrorKind::InvalidInput.into())
    }

    pub(super) fn links(metadata: &Metadata) -> u64 {
        metadata.nlink()
    }
}

/// Without handles to folders: looks at each part of the path first.
#[cfg(not(unix))]
mod beneath {
    use std::fs::{File, Metadata};
    use std::io;
    use std::path::Path;

    pub(super) fn open_any(path: &Path) -> io::Result<File> {
        File::open(path)
    }

    pub(super) fn open(folder: &Path, relative: &Path) -> io::Result<File> {
        if relative.as_os_str().len() > super::LONGEST || super::is_link(folder, relative) {
            return Err(io::Error::other("it is behind a link, or its path is too long"));
        }
        File::open(folder.join(relative))
    }

    pub(super) fn links(_: &Metadata) -> u64 {
        1
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys() {
        let parse = |pairs: &[(&str, &str)]| External::parse(pairs).map_err(|e| e.to_string());
        let full = parse(&[("location", "a.bin"), ("offset", "8"), ("length", "4"), ("checksum", "x")]);
        assert_eq!(full, Ok(External { location: "a.bin".into(), offset: 8, length: Some(4) }));
        assert_eq!(parse(&[]), Err("its external data has no location".into()));
        assert_eq!(
            parse(&[("location", "a"), ("location", "b")]),
            Err("its external data has two entries \"location\"".into())
        );
        for bad in ["-1", "+1", "", " 1", "1e3", "18446744073709551616"] {
            assert!(parse(&[("location", "a"), ("offset", bad)]).is_err(), "{bad}");
        }
    }

    #[cfg(unix)]
    #[test]
    fn part_by_part_as_at_once() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir(folder.path().join("in")).unwrap();
        std::fs::write(folder.path().join("in/a"), "x").unwrap();
        std::os::unix::fs::symlink("in", folder.path().join("link")).unwrap();
        std::os::unix::fs::symlink("a", folder.path().join("in/link")).unwrap();
        let by_parts = |path: &str| {
            let handle = rustix::fs::open(folder.path(), rustix::fs::OFlags::DIRECTORY, rustix::fs::Mode::empty());
            beneath::part_by_part(handle.unwrap(), Path::new(path)).is_ok()
        };
        for (path, good) in
            [("in/a", true), ("./in/./a", true), ("link/a", false), ("in/link", false), ("no", false), ("../x", false)]
        {
            assert_eq!(by_parts(path), good, "{path}");
            assert_eq!(beneath::open(folder.path(), Path::new(path)).is_ok(), good, "{path}");
        }
    }

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
