//! NumPy's .npz files: zip archives of .npy files.

use crate::{archive, npy, print};
use onnxref::Tensor;
use std::io::{Cursor, Read, Write};
use zip::write::SimpleFileOptions;
use zip::{CompressionMethod, ZipWriter};

/// Maximum size of an unpacked archive.
const MAX_BYTES: u64 = 16 << 30;

/// The tensors in an archive, by name.
pub(crate) fn read(bytes: &[u8]) -> Result<Vec<(String, Tensor)>, String> {
    if !bytes.starts_with(b"PK") {
        return Err("it is not a .npz file, which is a zip archive".to_string());
    }
    let mut archive = archive::open_zip(Cursor::new(bytes)).map_err(|e| e.to_string())?;
    let (mut tensors, mut left) = (Vec::new(), MAX_BYTES);
    for k in 0..archive.len() {
        let mut entry = archive.by_index(k).map_err(|e| e.to_string())?;
        let name = String::from_utf8_lossy(entry.name_raw()).into_owned();
        let Some(name) = name.strip_suffix(".npy").map(str::to_string) else { continue };
        let mut bytes = Vec::new();
        entry.by_ref().take(left).read_to_end(&mut bytes).map_err(|e| format!("{}: {e}", print::path(&name)))?;
        left -= bytes.len() as u64;
        if left == 0 {
            return Err(format!("it unpacks to more than {MAX_BYTES} bytes"));
        }
        let tensor = npy::read(&bytes).map_err(|why| format!("{}: {why}", print::path(&name)))?;
        tensors.push((name, tensor));
    }
    Ok(tensors)
}

/// An archive of tensors, not compressed, as `numpy.savez` writes it.
pub(crate) fn write<'a>(tensors: impl IntoIterator<Item = (&'a str, &'a Tensor)>) -> Result<Vec<u8>, String> {
    let mut archive = ZipWriter::new(Cursor::new(Vec::new()));
    let options = SimpleFileOptions::default().compression_method(CompressionMethod::Stored).large_file(true);
    for (name, tensor) in tensors {
        let bytes = npy::write(tensor).map_err(|why| format!("{name}: {why}"))?;
        archive.start_file(format!("{name}.npy"), options).map_err(|e| e.to_string())?;
        archive.write_all(&bytes).map_err(|e| e.to_string())?;
    }
    archive.finish().map(Cursor::into_inner).map_err(|e| e.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn archives_read_back() {
        let [x, y] = [Tensor::scalar(1f32), Tensor::from(vec![1i64, 2])];
        let bytes = write([("x/1", &x), ("y", &y)]).unwrap();
        assert_eq!(read(&bytes).unwrap(), [("x/1".to_string(), x), ("y".to_string(), y)]);
        assert_eq!(read(&bytes[..bytes.len() / 2]).unwrap_err(), "the archive is cut short");
        assert_eq!(read(b"\x1b[31m").unwrap_err(), "it is not a .npz file, which is a zip archive");
    }
}
