//! External data: any entries, a fixed folder with files, folders, links and a FIFO. Only the right
//! slice of the right file is read, and nothing blocks.

use crate::proto::{
    GraphProto, ModelProto, OperatorSetIdProto, StringStringEntryProto, TensorProto, TypeProto, ValueInfoProto,
    type_proto,
};
use crate::source::Source;
use onnxref::{DType, Error, Model, Tensor};
use prost::Message;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

/// Parts of paths: existing names, missing ones, and invalid ones.
const PARTS: [&str; 24] = [
    "a.bin",
    "b.bin",
    "empty.bin",
    "sub",
    "c.bin",
    "deep",
    "d.bin",
    "ünï.bin",
    ".",
    "..",
    "",
    "model",
    "outside.bin",
    "link.bin",
    "out",
    "dir",
    "up",
    "fifo",
    "hard.bin",
    "loop",
    "none",
    "inside",
    "e.bin",
    MODEL,
];

const MODEL: &str = "model.onnx";

/// The plain files of the folder, by path.
const FILES: [(&str, usize); 6] =
    [("a.bin", 64), ("b.bin", 33), ("empty.bin", 0), ("sub/c.bin", 100), ("sub/deep/d.bin", 7), ("ünï.bin", 16)];

struct Folder {
    model: PathBuf,
    root: PathBuf,
}

/// What files outside of the folder are full of.
const SECRET: u8 = 0xee;

/// The byte at a place of a file, by the file's number.
fn byte_at(file: usize, at: usize) -> u8 {
    (file * 37 + at * 5) as u8 % 200
}

fn folder() -> &'static Folder {
    static FOLDER: OnceLock<Folder> = OnceLock::new();
    FOLDER.get_or_init(|| {
        let base = std::env::temp_dir().join(format!("onnxref-fuzz-{}", std::process::id()));
        let (model, root) = (base.join("model"), base.join("root"));
        let _ = fs::remove_dir_all(&base);
        fs::create_dir_all(model.join("sub/deep")).expect("a temporary folder");
        fs::create_dir_all(root.join("inside")).expect("a temporary folder");
        for (k, (path, len)) in FILES.iter().enumerate() {
            let bytes: Vec<u8> = (0..*len).map(|at| byte_at(k, at)).collect();
            fs::write(model.join(path), bytes).expect("a file");
        }
        fs::write(base.join("outside.bin"), [SECRET; 64]).expect("a file");
        let blob: Vec<u8> = (0..64).map(|at| byte_at(FILES.len(), at)).collect();
        fs::write(root.join("inside/e.bin"), blob).expect("a file");
        #[cfg(unix)]
        {
            use std::os::unix::fs::symlink;
            for (target, link) in [
                ("a.bin", "link.bin"),
                ("../outside.bin", "out"),
                ("sub", "dir"),
                ("..", "up"),
                ("loop", "loop"),
                ("../root/inside", "inside"),
                ("../root/inside/e.bin", "e.bin"),
            ] {
                symlink(target, model.join(link)).expect("a link");
            }
            fs::hard_link(base.join("outside.bin"), model.join("hard.bin")).expect("a hard link");
            let mode = rustix::fs::Mode::from_raw_mode(0o600);
            rustix::fs::mknodat(rustix::fs::CWD, model.join("fifo"), rustix::fs::FileType::Fifo, mode, 0)
                .expect("a FIFO");
        }
        Folder { model, root }
    })
}

/// Takes the folder away again.
pub fn clean() {
    if let Some(base) = folder().model.parent() {
        let _ = fs::remove_dir_all(base);
    }
}

pub fn run(bytes: &[u8]) {
    let mut source = Source::new(bytes);
    let entries = draw_entries(&mut source);
    let dtype = source.pick(&[DType::Uint8, DType::Int16, DType::Int4, DType::Uint2, DType::Complex128, DType::Float]);
    let dims = if source.once_in(64) {
        vec![source.word() as usize >> 1, source.axis() as usize]
    } else {
        let end = if source.once_in(4) { 64 } else { 9 };
        vec![source.below(end)]
    };
    let with_root = source.once_in(4);
    let mapped = source.once_in(4);

    let tensor = TensorProto {
        name: Some("data".into()),
        data_type: Some(dtype.code()),
        dims: dims.iter().map(|&dim| dim as i64).collect(),
        data_location: Some(1),
        external_data: entries
            .iter()
            .map(|(key, value)| StringStringEntryProto { key: Some(key.clone()), value: Some(value.clone()) })
            .collect(),
        ..TensorProto::default()
    };
    let got = load(&tensor, with_root, mapped);
    let expected = expected(&entries, dtype, &dims, with_root);
    match (got, expected) {
        (Ok(got), Expected::Bytes(want)) => {
            let proto =
                TensorProto { data_location: None, external_data: vec![], raw_data: Some(want.into()), ..tensor };
            let want = Tensor::from_proto_bytes(proto.encode_to_vec()).expect("the slice is a tensor");
            assert_eq!(got, want, "{entries:?}");
        }
        (Err(error), Expected::Error) => crate::check_error(&error),
        (Err(error), Expected::Either(_)) => crate::check_error(&error),
        // The bits after the last of packed elements.
        (Err(error), Expected::Bytes(_)) if error.to_string().contains("bits after the last") => {}
        (Ok(got), Expected::Either(want)) => {
            let proto =
                TensorProto { data_location: None, external_data: vec![], raw_data: Some(want.into()), ..tensor };
            assert_eq!(Tensor::from_proto_bytes(proto.encode_to_vec()).ok(), Some(got), "{entries:?}");
        }
        (got, expected) => panic!("{entries:?} of {dtype}{dims:?} give {got:?}, and should give {expected:?}"),
    }
}

fn draw_entries(source: &mut Source<'_>) -> Vec<(String, String)> {
    let location = match source.below(8) {
        7 => source.text(),
        6 => {
            let end = if source.once_in(2) { source.text() } else { String::new() };
            format!(
                "{}{end}",
                source.pick(&["/etc/hostname", "/dev/zero", "/", "C:\\a", "..\\a.bin", "a.bin\0", "//a.bin"])
            )
        }
        n @ 3..=5 => {
            let parts: Vec<&str> = (0..n - 1).map(|_| source.pick(&PARTS)).collect();
            parts.join("/")
        }
        2 => source.pick(&PARTS).to_string(),
        _ => source.pick(&FILES).0.to_string(),
    };
    let mut entries = vec![("location".to_string(), location)];
    for key in ["offset", "length"] {
        if source.once_in(2) {
            let value = match source.below(16) {
                15 => source.text(),
                14 => source.word().to_string(),
                13 => (source.word() as u64).to_string(),
                12 => format!("{}{}", source.pick(&["+", "-", " ", "0", "00", "0x", "1e", "٣"]), source.below(64)),
                11 => source.pick(&["18446744073709551615", "18446744073709551616", "9223372036854775808"]).to_string(),
                _ => source.below(72).to_string(),
            };
            entries.push((key.to_string(), value));
        }
    }
    if source.once_in(8) {
        let key = source.pick(&["location", "offset", "length", "checksum", "", "Location", "basepath"]);
        entries.push((key.to_string(), source.text()));
    }
    if source.once_in(8) {
        entries.rotate_left(1);
    }
    if source.once_in(64) {
        entries.pop();
    }
    entries
}

#[derive(Debug)]
enum Expected {
    Bytes(Vec<u8>),
    /// These bytes, or an error: a path that systems read one way or the other.
    Either(Vec<u8>),
    Error,
}

fn expected(entries: &[(String, String)], dtype: DType, dims: &[usize], with_root: bool) -> Expected {
    let value = |key: &str| entries.iter().find(|(k, _)| k == key).map(|(_, value)| value.as_str());
    let twice = (0..entries.len()).any(|k| entries[..k].iter().any(|(key, _)| *key == entries[k].0));
    let number = |key: &str| match value(key) {
        None => Ok(None),
        Some(text) if !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit()) => {
            text.parse::<u64>().map(Some).map_err(|_| ())
        }
        Some(_) => Err(()),
    };
    let (Some(location), Ok(offset), Ok(length), false) =
        (value("location"), number("offset"), number("length"), twice)
    else {
        return Expected::Error;
    };
    let count = dims.iter().try_fold(1u128, |n, &dim| n.checked_mul(dim as u128));
    let need = count.and_then(|count| count.checked_mul(dtype.bits() as u128)).map(|bits| bits.div_ceil(8));
    let Some(need) = need.filter(|need| *need < 1 << 20) else { return Expected::Error };
    if dims.iter().any(|&dim| dim > i64::MAX as usize) {
        return Expected::Error;
    }
    // Beside a dimension of size 0 there may be one that can't be counted.
    let odd = dims.iter().any(|&dim| dim > 1 << 20);
    let parts: Vec<&str> = location.split('/').collect();
    if location.starts_with('/') || location.contains('\0') || parts.contains(&"..") {
        return Expected::Error;
    }
    let plain: Vec<&str> = parts.iter().copied().filter(|part| !matches!(*part, "" | ".")).collect();
    let path = plain.join("/");
    let linked = with_root && matches!(path.as_str(), "inside/e.bin" | "e.bin");
    let found = if linked { Some((FILES.len(), 64)) } else { None };
    // The model file is in the folder too.
    let own = if path == MODEL { fs::read(folder().model.join(MODEL)).ok() } else { None };
    let found = found.or(own.as_ref().map(|own| (FILES.len(), own.len())));
    let found = found.or_else(|| FILES.iter().position(|(name, _)| *name == path).map(|k| (k, FILES[k].1)));
    let Some((file, size)) = found else { return Expected::Error };
    let from = u128::from(offset.unwrap_or(0));
    if length.is_some_and(|length| u128::from(length) != need) || from + need > size as u128 {
        return Expected::Error;
    }
    let range = from as usize..(from + need) as usize;
    let bytes = match own {
        Some(own) => own[range].to_vec(),
        None => range.map(|at| byte_at(file, at)).collect(),
    };
    // A file's name with a slash or a dot after it.
    let trailing = matches!(parts.last(), Some(&("" | ".")));
    if trailing || odd { Expected::Either(bytes) } else { Expected::Bytes(bytes) }
}

/// The tensor as a model of one initializer gives it.
fn load(tensor: &TensorProto, with_root: bool, mapped: bool) -> Result<Tensor, Error> {
    let code = tensor.data_type;
    let declared = type_proto::Tensor { elem_type: code, shape: None };
    let r#type = TypeProto { value: Some(type_proto::Value::TensorType(declared)), denotation: None };
    let model = ModelProto {
        ir_version: Some(8),
        opset_import: vec![OperatorSetIdProto { domain: None, version: Some(13) }],
        graph: Some(GraphProto {
            name: Some("graph".into()),
            initializer: vec![tensor.clone()],
            output: vec![ValueInfoProto { name: Some("data".into()), r#type: Some(r#type), ..Default::default() }],
            ..GraphProto::default()
        }),
        ..ModelProto::default()
    };
    let folder = folder();
    let path = write(&folder.model, &model.encode_to_vec());
    let mut options = Model::options().limits(crate::small_limits());
    if with_root {
        options = options.external_root(&folder.root);
    }
    if mapped {
        // SAFETY: the folder is this process's own; its model file is a new one each time, its other files stay.
        options = unsafe { options.mmap() };
    }
    let outputs = crate::run_model(&options.load(path)?, &[])?;
    assert_eq!(outputs.len(), 1);
    // A copy: what is mapped may go.
    let tensor = outputs[0].1.tensor()?;
    Ok(Tensor::from_proto_bytes(tensor.to_proto_bytes("copy")).expect("what was written"))
}

fn write(folder: &Path, model: &[u8]) -> PathBuf {
    let path = folder.join(MODEL);
    // Not written over, as a map of the one before may be alive.
    let _ = fs::remove_file(&path);
    fs::write(&path, model).expect("the model file");
    path
}
