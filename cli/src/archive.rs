//! Test cases in archives: `.tar`, `.tar.gz`, `.tar.xz`.

use onnxref::conformance::Case;
use std::fs::File;
use std::io::{self, BufReader, Read};
use std::path::Path;

/// Maximum size of an unpacked archive.
const MAX_BYTES: u64 = 4 << 30;

/// Maximum memory of the unpacker; xz at its strongest setting takes 65 MiB.
const MAX_XZ_KIB: u32 = 1 << 20;

/// Whether a file is an archive, by its name.
pub(crate) fn is_archive(path: &Path) -> bool {
    let name = path.file_name().unwrap_or_default().to_string_lossy().to_lowercase();
    [".tar", ".tar.gz", ".tgz", ".tar.xz", ".txz"].iter().any(|ending| name.ends_with(ending))
}

/// The cases in an archive.
pub(crate) fn cases(path: &Path) -> io::Result<Vec<Case>> {
    let file = BufReader::new(File::open(path)?);
    let name = path.to_string_lossy().to_lowercase();
    let tar: Box<dyn Read> = if name.ends_with("gz") {
        Box::new(flate2::bufread::MultiGzDecoder::new(file))
    } else if name.ends_with("xz") {
        Box::new(lzma_rust2::XzReader::new_mem_limit(file, true, MAX_XZ_KIB))
    } else {
        Box::new(file)
    };
    read(tar, MAX_BYTES)
}

fn read(tar: impl Read, limit: u64) -> io::Result<Vec<Case>> {
    let mut archive = tar::Archive::new(Bounded { inner: tar, left: limit, limit });
    let (mut files, mut left) = (Vec::new(), limit);
    for entry in archive.entries()? {
        let mut entry = entry?;
        let path = String::from_utf8_lossy(&entry.path_bytes()).into_owned();
        if !entry.header().entry_type().is_file() || !(path.ends_with(".onnx") || path.ends_with(".pb")) {
            continue;
        }
        // A sparse file is larger than its data in the archive.
        let mut bytes = Vec::new();
        Bounded { inner: &mut entry, left, limit }.read_to_end(&mut bytes)?;
        left -= bytes.len() as u64;
        files.push((path.trim_start_matches("./").to_string(), bytes.into()));
    }
    // The checksums come last.
    io::copy(&mut archive.into_inner(), &mut io::sink())?;
    Ok(Case::from_files(files))
}

/// A reader that fails after a number of bytes.
struct Bounded<R> {
    inner: R,
    left: u64,
    limit: u64,
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

    #[test]
    fn unpacking_is_bounded() {
        let mut tar = tar::Builder::new(Vec::new());
        let mut header = tar::Header::new_gnu();
        header.set_size(5000);
        tar.append_data(&mut header, "case/model.onnx", io::repeat(0).take(5000)).unwrap();
        let tar = tar.into_inner().unwrap();
        assert_eq!(read(tar.as_slice(), tar.len() as u64).unwrap().len(), 1);
        let error = read(tar.as_slice(), 4000).unwrap_err();
        assert_eq!(error.to_string(), "it unpacks to more than 4000 bytes");
    }
}
