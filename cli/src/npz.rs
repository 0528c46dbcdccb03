//! NumPy's .npz files: zip archives of .npy files.

use crate::bounded::Unwritten;
use crate::{archive, file_name, npy, print};
use onnxref::{Cancel, Tensor, quote};
use std::io::{Cursor, Read, Seek, Write};
use zip::result::ZipError;
use zip::write::SimpleFileOptions;
use zip::{CompressionMethod, ZipWriter};

/// Maximum size of an unpacked archive.
const MAX_BYTES: u64 = 16 << 30;

/// Maximum length of an entry's name in a zip archive.
const MAX_NAME: usize = u16::MAX as usize;

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
        let Some(name) = name.strip_suffix(".npy").map(file_name::unescaped) else { continue };
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

/// Writes an archive of tensors, not compressed, as `numpy.savez` does. Its entries have the names of [`file_name`].
pub(crate) fn write(tensors: &[(&str, &Tensor)], mut to: impl Write + Seek, cancel: &Cancel) -> Result<(), Unwritten> {
    match to.stream_position() {
        Ok(_) => fill(ZipWriter::new(to), tensors, cancel),
        // A pipe: sizes and sums stand behind the entries.
        Err(_) => fill(ZipWriter::new_stream(to), tensors, cancel),
    }
}

/// Writes the entries of an archive, and its end.
fn fill(
    mut archive: ZipWriter<impl Write + Seek>,
    tensors: &[(&str, &Tensor)],
    cancel: &Cancel,
) -> Result<(), Unwritten> {
    let written = tensors.iter().try_for_each(|(name, tensor)| add(&mut archive, name, tensor, cancel));
    if let Err(why) = written {
        // Dropping it would write its end, and complain.
        std::mem::forget(archive);
        return Err(why);
    }
    archive.finish().map(drop).map_err(failed)
}

fn failed(error: ZipError) -> Unwritten {
    Unwritten::Failed(if let ZipError::Io(error) = error { error } else { error.into() })
}

fn add(
    archive: &mut ZipWriter<impl Write + Seek>,
    name: &str,
    tensor: &Tensor,
    cancel: &Cancel,
) -> Result<(), Unwritten> {
    let named = |why: String| format!("{}: {why}", quote(name));
    let tensor = npy::Outgoing::new(tensor, cancel).map_err(|why| why.if_unfit(named))?;
    let entry = format!("{}.npy", file_name::escaped(name));
    if entry.len() > MAX_NAME {
        let why = "the name is too long for an archive: write a .pb or .npy file".to_string();
        return Err(Unwritten::Unfit(named(why)));
    }
    let options = SimpleFileOptions::default().compression_method(CompressionMethod::Stored).large_file(true);
    archive.start_file(entry, options).map_err(failed)?;
    Ok(tensor.write(archive)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn archives_read_back() {
        let [x, y] = [Tensor::scalar(1f32), Tensor::from(vec![1i64, 2])];
        let mut file = Cursor::new(Vec::new());
        write(&[("/x/1", &x), ("y", &y)], &mut file, &Cancel::new()).unwrap();
        let bytes = file.into_inner();
        let entries = archive::open_zip(Cursor::new(&bytes)).unwrap();
        assert_eq!(
            entries.file_names().map(|name| name.unwrap().into_owned()).collect::<Vec<_>>(),
            ["%2Fx%2F1.npy", "y.npy"]
        );
        assert_eq!(read(&bytes).unwrap(), [("/x/1".to_string(), x), ("y".to_string(), y)]);
        assert_eq!(read(&bytes[..bytes.len() / 2]).unwrap_err(), "the archive is cut short");
        assert_eq!(read(b"\x1b[31m").unwrap_err(), "it is not a .npz file, which is a zip archive");
    }

    #[test]
    fn an_archive_without_room_fails() {
        let x = Tensor::scalar(1f32);
        let mut room = [0; 100];
        assert!(matches!(write(&[("x", &x)], Cursor::new(&mut room[..]), &Cancel::new()), Err(Unwritten::Failed(_))));
        let long = "/".repeat(30_000);
        let Err(Unwritten::Unfit(why)) = write(&[(&long, &x)], Cursor::new(Vec::new()), &Cancel::new()) else {
            panic!()
        };
        assert!(why.ends_with("the name is too long for an archive: write a .pb or .npy file"), "{why}");
    }
}
