//! Test cases in archives: zip, and tar with or without gzip or xz. Nothing is unpacked to disk.

use crate::print;
use onnxref::conformance::Case;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Cursor, Read, Seek};
use std::path::Path;
use zip::ZipArchive;

/// Maximum size of an unpacked archive.
const MAX_BYTES: u64 = 4 << 30;

/// Maximum memory of the unpacker; xz at its strongest setting takes 65 MiB.
const MAX_XZ_KIB: u32 = 1 << 20;

/// The number of bytes that tell the format.
const HEAD: u64 = 512;

/// How the name of an archive may end. A Python wheel is a zip file.
const ENDINGS: [&str; 7] = [".tar", ".tar.gz", ".tgz", ".tar.xz", ".txz", ".zip", ".whl"];

/// Whether a file is an archive, by its name.
pub(crate) fn is_archive(path: &Path) -> bool {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    stem(&name) != name
}

/// The name of an archive without its ending.
pub(crate) fn stem(name: &str) -> &str {
    let lower = name.to_ascii_lowercase();
    let ending = ENDINGS.iter().find(|ending| lower.ends_with(*ending));
    ending.and_then(|ending| name.get(..name.len() - ending.len())).unwrap_or(name)
}

/// Whether a file is an archive, by its name or its first bytes.
pub(crate) fn looks_like_archive(path: &Path) -> bool {
    let format = || File::open(path).and_then(head).is_ok_and(|(head, _)| Format::of(&head).is_some());
    is_archive(path) || format()
}

/// The cases in an archive.
pub(crate) fn cases(path: &Path) -> io::Result<Vec<Case>> {
    let (head, mut file) = head(BufReader::new(File::open(path)?))?;
    if Format::of(&head) == Some(Format::Zip) {
        file.rewind()?;
        return unzip(file, MAX_BYTES);
    }
    untar(&head, file)
}

/// The cases in an archive that can be read only once.
pub(crate) fn cases_of(stream: impl BufRead) -> io::Result<Vec<Case>> {
    let (head, stream) = head(stream)?;
    if Format::of(&head) == Some(Format::Zip) {
        let mut bytes = head;
        bounded(stream, MAX_BYTES, MAX_BYTES).read_to_end(&mut bytes)?;
        return unzip(Cursor::new(bytes), MAX_BYTES);
    }
    untar(&head, stream)
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum Format {
    Zip,
    Gzip,
    Xz,
    Tar,
}

impl Format {
    /// The format of a file, by its first bytes. Very old tar files can't be told.
    fn of(head: &[u8]) -> Option<Format> {
        match head {
            [b'P', b'K', 3, 4, ..] | [b'P', b'K', 5, 6, ..] => Some(Format::Zip),
            [0x1f, 0x8b, ..] => Some(Format::Gzip),
            [0xfd, b'7', b'z', b'X', b'Z', 0, ..] => Some(Format::Xz),
            _ => head.get(257..262).filter(|magic| *magic == b"ustar").map(|_| Format::Tar),
        }
    }
}

/// The first bytes, and the rest.
fn head<R: Read>(mut file: R) -> io::Result<(Vec<u8>, R)> {
    let mut head = Vec::new();
    file.by_ref().take(HEAD).read_to_end(&mut head)?;
    Ok((head, file))
}

fn untar(head: &[u8], rest: impl BufRead) -> io::Result<Vec<Case>> {
    let (whole, format) = (head.chain(rest), Format::of(head));
    // Not even the first header fits.
    if format.is_none() && (head.len() as u64) < HEAD {
        return Err(io::Error::other(NO_ARCHIVE));
    }
    let cases = match format {
        Some(Format::Gzip) => read_tar(flate2::bufread::MultiGzDecoder::new(whole), MAX_BYTES),
        Some(Format::Xz) => read_tar(lzma_rust2::XzReader::new_mem_limit(whole, true, MAX_XZ_KIB), MAX_BYTES),
        _ => read_tar(whole, MAX_BYTES),
    };
    cases.map_err(|error| explained(&error, format))
}

const NO_ARCHIVE: &str = "it is not a .zip, .tar, .tar.gz or .tar.xz file";
const CUT: &str = "the archive is cut short";

/// What an error means. The texts of `tar` may quote any bytes of the file.
fn explained(error: &io::Error, format: Option<Format>) -> io::Error {
    let text = error.to_string();
    let says = |what: &str| text.contains(what);
    let no_header = says("numeric field was not a number") || says("checksum mismatch");
    let cut = error.kind() == io::ErrorKind::UnexpectedEof || says("unexpected EOF") || says("entire block");
    io::Error::other(match format {
        None if no_header => NO_ARCHIVE.to_string(),
        Some(Format::Gzip | Format::Xz) if no_header => "what is compressed is not a .tar file".to_string(),
        _ if no_header => "the archive is damaged: the header of a file in it can't be read".to_string(),
        _ if cut => CUT.to_string(),
        _ => print::text(&text),
    })
}

/// Opens a zip file, whose directory is at its end.
pub(crate) fn open_zip<R: Read + Seek>(mut zip: R) -> io::Result<ZipArchive<R>> {
    /// The end of a directory, and the longest comment after it.
    const MAX_END: u64 = 22 + 65_535;
    let len = zip.seek(io::SeekFrom::End(0))?;
    zip.seek(io::SeekFrom::Start(len.saturating_sub(MAX_END)))?;
    let mut end = Vec::new();
    zip.by_ref().take(MAX_END).read_to_end(&mut end)?;
    if !end.windows(4).any(|bytes| bytes == b"PK\x05\x06") {
        return Err(io::Error::other(CUT));
    }
    zip.rewind()?;
    ZipArchive::new(zip).map_err(|error| io::Error::other(print::text(&error.to_string())))
}

fn read_tar(tar: impl Read, limit: u64) -> io::Result<Vec<Case>> {
    let (mut archive, mut files) = (tar::Archive::new(bounded(tar, limit, limit)), Files::new(limit));
    for entry in archive.entries()? {
        let entry = entry?;
        let path = String::from_utf8_lossy(&entry.path_bytes()).into_owned();
        if entry.header().entry_type().is_file() && is_part(&path) {
            // A sparse file is larger than its data in the archive.
            files.add(path, entry)?;
        }
    }
    // The checksums come last.
    io::copy(&mut archive.into_inner(), &mut io::sink())?;
    Ok(files.cases())
}

fn unzip(zip: impl Read + Seek, limit: u64) -> io::Result<Vec<Case>> {
    let (mut archive, mut files) = (open_zip(zip)?, Files::new(limit));
    for k in 0..archive.len() {
        // Other files may be compressed or encrypted in any way.
        let entry = archive.by_index_raw(k)?;
        let path = String::from_utf8_lossy(entry.name_raw()).into_owned();
        let wanted = entry.is_file() && is_part(&path);
        drop(entry);
        if wanted {
            files.add(path, archive.by_index(k)?)?;
        }
    }
    Ok(files.cases())
}

/// The unpacked files that cases are made of.
struct Files {
    list: Vec<(String, Vec<u8>)>,
    left: u64,
    limit: u64,
}

impl Files {
    fn new(limit: u64) -> Files {
        Files { list: Vec::new(), left: limit, limit }
    }

    fn cases(self) -> Vec<Case> {
        Case::from_files(self.list.into_iter().map(|(path, bytes)| (path, bytes.into())))
    }

    fn add(&mut self, path: String, content: impl Read) -> io::Result<()> {
        let mut bytes = Vec::new();
        bounded(content, self.left, self.limit).read_to_end(&mut bytes)?;
        self.left -= bytes.len() as u64;
        self.list.push((path.trim_start_matches("./").to_string(), bytes));
        Ok(())
    }
}

/// Whether a file may be part of a case, by its name.
fn is_part(path: &str) -> bool {
    path.ends_with(".onnx") || path.ends_with(".pb") || path.ends_with("/expected_error.json")
}

/// A reader that fails after a number of bytes.
struct Bounded<R> {
    inner: R,
    left: u64,
    limit: u64,
}

fn bounded<R: Read>(inner: R, left: u64, limit: u64) -> Bounded<R> {
    Bounded { inner, left, limit }
}

impl<R: Read> Read for Bounded<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.inner.read(buffer)?;
        let left = self.left.checked_sub(count as u64);
        self.left = left.ok_or_else(|| io::Error::other(format!("it unpacks to more than {} bytes", self.limit)))?;
        Ok(count)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    #[test]
    fn unpacking_is_bounded() {
        let mut tar = tar::Builder::new(Vec::new());
        let mut header = tar::Header::new_gnu();
        header.set_size(5000);
        tar.append_data(&mut header, "case/model.onnx", io::repeat(0).take(5000)).unwrap();
        let tar = tar.into_inner().unwrap();
        assert_eq!(read_tar(tar.as_slice(), tar.len() as u64).unwrap().len(), 1);
        let error = read_tar(tar.as_slice(), 4000).unwrap_err();
        assert_eq!(error.to_string(), "it unpacks to more than 4000 bytes");

        let mut zip = zip::ZipWriter::new(Cursor::new(Vec::new()));
        for name in ["a/model.onnx", "b/model.onnx"] {
            zip.start_file(name, zip::write::SimpleFileOptions::default()).unwrap();
            zip.write_all(&[0; 5000]).unwrap();
        }
        let zip = zip.finish().unwrap();
        assert!(zip.get_ref().len() < 1000);
        assert_eq!(unzip(zip.clone(), 10_000).unwrap().len(), 2);
        let error = unzip(zip, 9_999).err().unwrap();
        assert_eq!(error.to_string(), "it unpacks to more than 9999 bytes");
    }
}
