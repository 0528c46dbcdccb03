//! NumPy's .npz files: zip archives of .npy files.

use crate::bounded::Unwritten;
use crate::failure::exceeded;
use crate::{archive, file_name, npy, print};
use onnxref::{Cancel, Limits, Tensor, quote};
use onnxref_view::plain;
use std::io::{self, Cursor, Read, Seek, Write};
use zip::result::ZipError;
use zip::write::SimpleFileOptions;
use zip::{CompressionMethod, ZipWriter};

/// Maximum length of an entry's name in a zip archive.
const MAX_NAME: usize = u16::MAX as usize;

/// The tensors in an archive, by name. Each takes at most as many bytes as a tensor of a run may have, and all together
/// take at most as many as a run may hold.
pub(crate) fn read(bytes: &[u8], limits: &Limits) -> Result<Vec<(String, Tensor)>, String> {
    if !bytes.starts_with(b"PK") {
        return Err("it is not a .npz file, which is a zip archive".to_string());
    }
    let mut archive = archive::open_zip(Cursor::new(bytes)).map_err(|e| e.to_string())?;
    let (mut tensors, mut all) = (Vec::new(), 0);
    for k in 0..archive.len() {
        let entry = archive.by_index(k).map_err(|e| print::text(&e.to_string()))?;
        let name = String::from_utf8_lossy(entry.name_raw()).into_owned();
        let Some(name) = name.strip_suffix(".npy").map(file_name::unescaped) else { continue };
        let tensor = unpacked(entry, limits, &mut all).map_err(|why| format!("{}: {why}", plain(&name)))?;
        tensors.push((name, tensor));
    }
    Ok(tensors)
}

/// The tensor of an entry. Its header says what it takes before it is unpacked; `all` is what those before it take.
fn unpacked(mut entry: impl Read, limits: &Limits, all: &mut u64) -> Result<Tensor, String> {
    let failed = |error: io::Error| print::text(&error.to_string());
    let mut bytes = Vec::new();
    entry.by_ref().take(npy::MAX_START as u64).read_to_end(&mut bytes).map_err(failed)?;
    let array = npy::Array::open(&bytes)?;
    let need = array.tensor_bytes();
    if need > limits.tensor_bytes {
        return Err(exceeded("it takes", need, "tensor_bytes", limits.tensor_bytes));
    }
    *all = all.saturating_add(need);
    if *all > limits.run_bytes {
        return Err(exceeded("with it, all arrays take", *all, "run_bytes", limits.run_bytes));
    }
    let rest = array.file_bytes().saturating_sub(bytes.len() as u64);
    let reserved = usize::try_from(rest).is_ok_and(|rest| bytes.try_reserve_exact(rest).is_ok());
    if !reserved {
        return Err(format!("its elements: the system has no {rest} bytes of memory left"));
    }
    entry.by_ref().take(rest).read_to_end(&mut bytes).map_err(failed)?;
    // To the end of the entry, as its sum is checked there.
    let surplus = io::copy(&mut entry.take(limits.run_bytes.saturating_add(1)), &mut io::sink()).map_err(failed)?;
    if surplus > limits.run_bytes {
        return Err(format!("it has more than {} bytes after its elements", limits.run_bytes));
    }
    array.fits((bytes.len() as u64).saturating_add(surplus))?;
    array.tensor(&bytes.into())
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
        assert_eq!(within(&bytes, 1 << 30, 1 << 30).unwrap(), [("/x/1".to_string(), x), ("y".to_string(), y)]);
        let error = |bytes: &[u8]| read(bytes, &Limits::default()).unwrap_err();
        assert_eq!(error(&bytes[..bytes.len() / 2]), "the archive is cut short");
        assert_eq!(error(b"\x1b[31m"), "it is not a .npz file, which is a zip archive");
    }

    fn within(bytes: &[u8], tensor_bytes: u64, run_bytes: u64) -> Result<Vec<(String, Tensor)>, String> {
        let mut limits = Limits::default();
        (limits.tensor_bytes, limits.run_bytes) = (tensor_bytes, run_bytes);
        read(bytes, &limits)
    }

    /// An archive of files.
    fn packed(files: &[(&str, &[u8])]) -> Vec<u8> {
        let mut archive = ZipWriter::new(Cursor::new(Vec::new()));
        for (name, content) in files {
            archive.start_file(*name, SimpleFileOptions::default()).unwrap();
            archive.write_all(content).unwrap();
        }
        archive.finish().unwrap().into_inner()
    }

    /// A file of zeros, of `count` bytes.
    fn zeros(kind: &str, shape: &[usize], count: usize) -> Vec<u8> {
        let start = onnxref_view::npy::start(kind, shape).unwrap();
        [start, vec![0; count]].concat()
    }

    #[test]
    fn arrays_count_before_they_are_unpacked() {
        let (x, y) = (zeros("<f4", &[1 << 20], 4 << 20), zeros("|u1", &[100], 100));
        let bytes = packed(&[("x.npy", &x), ("y.npy", &y), ("about.txt", b"x")]);
        assert!(bytes.len() < 1 << 14);
        assert_eq!(within(&bytes, 4 << 20, (4 << 20) + 100).unwrap().len(), 2);
        assert_eq!(
            within(&bytes, (4 << 20) - 1, 1 << 30).unwrap_err(),
            "x: it takes 4,194,304 bytes: the limit is 4,194,303 (--limit tensor_bytes=N raises it)"
        );
        assert_eq!(
            within(&bytes, 1 << 30, (4 << 20) + 99).unwrap_err(),
            "y: with it, all arrays take 4,194,404 bytes: the limit is 4,194,403 (--limit run_bytes=N raises it)"
        );
        // A string takes 16 bytes beside its text.
        let bytes = packed(&[("s.npy", &zeros("<U1", &[10], 40))]);
        assert!(within(&bytes, 200, 200).is_ok() && within(&bytes, 199, 200).is_err());
        // What a header says need not be there.
        let more = packed(&[("x.npy", &zeros("|u1", &[2], 50_000))]);
        assert_eq!(within(&more, 100, 100).unwrap_err(), "x: it has more than 100 bytes after its elements");
        assert_eq!(
            within(&more, 1 << 20, 1 << 20).unwrap_err(),
            "x: it has 49998 bytes after its elements: '|u1' of shape [2] takes 2"
        );
        let less = packed(&[("x.npy", &zeros("|u1", &[1 << 29], 2))]);
        assert_eq!(
            within(&less, 1 << 29, 1 << 30).unwrap_err(),
            "x: it is cut short: it ends after 130 of 536871040 bytes ('|u1' of shape [536870912])"
        );
        let names = packed(&[(&format!("{}.npy", "%1B".repeat(1000)), b"")]);
        let why = format!("\"{}…(1000 bytes)\": it is not a .npy file", "\\u{1b}".repeat(100));
        assert_eq!(within(&names, 100, 100).unwrap_err(), why);
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
