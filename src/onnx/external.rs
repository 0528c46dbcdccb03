//! External data: a tensor's bytes in a file beside the model.

use crate::error::{Error, Kind, Result, quote};
use bytes::Bytes;
use std::collections::HashMap;
use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::path::{Component, Path, PathBuf};
use std::sync::Mutex;

/// What a tensor says about where its data is.
#[derive(Debug, PartialEq)]
pub(super) struct External {
    location: String,
    offset: u64,
    length: Option<u64>,
}

impl External {
    pub(super) fn parse(pairs: &[(&str, &str)]) -> Result<External> {
        let mut seen: Vec<&str> = Vec::new();
        let (mut location, mut offset, mut length) = (None, 0, None);
        for (key, value) in pairs {
            if seen.contains(key) {
                return Err(Error::model(format!("its external data has two entries {}", quote(key))));
            }
            seen.push(key);
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

/// The folder that external data is read from: the model's own, and nothing outside of it.
#[derive(Debug)]
pub(crate) struct Folder {
    /// `None` for a model that came as bytes.
    path: Option<PathBuf>,
    /// Files are mapped instead of read.
    mmap: bool,
    /// Mapped files by location: tensors share a file's map.
    maps: Mutex<HashMap<String, Bytes>>,
}

impl Folder {
    /// The folder of a model file.
    pub(crate) fn of(model: &Path, mmap: bool) -> Folder {
        let parent = model.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new("."));
        Folder { path: Some(parent.to_path_buf()), mmap, maps: Mutex::default() }
    }

    /// No folder: external data is an error.
    pub(crate) fn none() -> Folder {
        Folder { path: None, mmap: false, maps: Mutex::default() }
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
            return Err(Error::model(format!("its external data has length {length}: its type and shape take {need}"))
                .at(|place| {
                    place.value = Some(length.into());
                    place.size = usize::try_from(need).ok();
                }));
        }
        let relative = inside(location)?;
        let file = open(folder, relative, location)?;
        let size = file.metadata().map_err(|e| Error::io(format!("external data {}", quote(location)), e))?.len();
        if need > size || *offset > size - need {
            let place = format!("external data {}", quote(location));
            return Err(Error::model(format!(
                "{place} has {size} bytes: offset {offset} and {need} bytes reach beyond"
            )));
        }
        if self.mmap {
            return self.map(&file, location, *offset, need);
        }
        read(file, *offset, need).map_err(|e| Error::io(format!("external data {}", quote(location)), e))
    }

    fn map(&self, file: &File, location: &str, offset: u64, need: u64) -> Result<Bytes> {
        let failed = |e| Error::io(format!("external data {}", quote(location)), e);
        let mut maps = self.maps.lock().map_err(|_| Error::new(Kind::Io, "another thread failed while loading"))?;
        let map = match maps.get(location) {
            Some(map) => map.clone(),
            None => {
                let map = map(file).map_err(failed)?;
                maps.insert(location.to_string(), map.clone());
                map
            }
        };
        let range = usize::try_from(offset).ok().zip(usize::try_from(offset + need).ok());
        match range.filter(|(_, to)| *to <= map.len()) {
            Some((from, to)) => Ok(map.slice(from..to)),
            None => Err(Error::new(Kind::Io, format!("external data {} shrank while it was read", quote(location)))),
        }
    }
}

fn read(mut file: File, offset: u64, need: u64) -> std::io::Result<Bytes> {
    let mut bytes = Vec::new();
    let len = usize::try_from(need).map_err(std::io::Error::other)?;
    bytes.try_reserve_exact(len).map_err(std::io::Error::other)?;
    file.seek(SeekFrom::Start(offset))?;
    file.take(need).read_to_end(&mut bytes)?;
    if bytes.len() != len {
        return Err(std::io::ErrorKind::UnexpectedEof.into());
    }
    Ok(bytes.into())
}

/// A file's content, mapped. Only for callers of `LoadOptions::mmap`, who vouch that the file doesn't change.
#[allow(unsafe_code)]
pub(crate) fn map(file: &File) -> std::io::Result<Bytes> {
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
    if location.is_empty() || location.contains('\0') || !plain {
        return Err(Error::model(format!(
            "its external data is at {}: a path relative to the model's folder, and inside of it, is needed",
            quote(location)
        )));
    }
    Ok(path)
}

/// Opens a regular file inside of a folder; links are not followed.
fn open(folder: &Path, relative: &Path, location: &str) -> Result<File> {
    let failed = |e| Error::io(format!("external data {}", quote(location)), e);
    let mut path = folder.to_path_buf();
    for part in relative.components() {
        path.push(part);
        if path.symlink_metadata().map_err(failed)?.is_symlink() {
            return Err(Error::model(format!(
                "external data {} is behind a link: these are not followed",
                quote(location)
            )));
        }
    }
    let metadata = path.metadata().map_err(failed)?;
    if !metadata.is_file() {
        return Err(Error::model(format!("external data {} is not a regular file", quote(location))));
    }
    File::open(&path).map_err(failed)
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

    #[test]
    fn only_paths_inside() {
        for bad in ["", "/etc/passwd", "..", "../a", "a/../b", "a\0b"] {
            assert!(inside(bad).is_err(), "{bad}");
        }
        for good in ["a", "a/b.bin", "./a"] {
            assert!(inside(good).is_ok(), "{good}");
        }
    }
}
