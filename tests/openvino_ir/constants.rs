//! The `.bin` file.

use crate::common::differences::{assert_as_expected, difference, difference_at};
use crate::text::{Change, FED, changed, folder, load, load_with};
use ndarray::array;
use onnxref::{DType, Error, Kind, Limits, LoadOptions, Model, Place, Tensor, inputs};
use std::fs;
use std::path::Path;

/// Instead of the axis that is fed.
const AXIS: Change<'_> = (
    "type=\"Parameter\" version=\"opset1\">\n\t\t\t<data shape=\"\" element_type=\"i64\" />",
    "type=\"Const\" version=\"opset1\">\n\t\t\t<data element_type=\"i64\" shape=\"\" offset=\"4\" size=\"8\" />",
);

/// [`FED`] with the axis as a constant that lies behind 4 other bytes.
fn constant() -> String {
    changed(FED, &[AXIS])
}

/// What belongs to [`constant`]: axis 0, and two more bytes.
const BIN: &[u8] = &[7, 7, 7, 7, 0, 0, 0, 0, 0, 0, 0, 0, 7, 7];

fn at_axis() -> Place {
    let mut place = Place::default();
    place.value_name = Some("axis".into());
    place
}

fn run(model: &Model) -> Result<Tensor, Error> {
    let data = array![[0f32, 1.0], [2.0, 3.0], [4.0, 5.0]];
    Ok(model.run(inputs! { "data" => data, "indices" => array![2i64, 0] })?["output"].clone())
}

fn picked() -> Tensor {
    array![[4f32, 5.0], [0.0, 1.0]].into()
}

#[test]
fn good_constants() {
    let good: [(&str, &[Change<'_>]); 6] = [
        ("as it is", &[]),
        ("at the end", &[("offset=\"4\"", "offset=\"6\"")]),
        ("of shape 1", &[("shape=\"\" offset", "shape=\"1\" offset")]),
        ("with space", &[("offset=\"4\"", "offset=\" 4\""), ("shape=\"\" offset", "shape=\" \" offset")]),
        ("of another type", &[("\"i64\" shape=\"\"", "\"u8\" shape=\"\""), ("size=\"8\"", "size=\"1\"")]),
        ("of packed elements", &[("size=\"8\"", "size=\"8\" a=\"\"")]),
    ];
    let bin = [BIN[..12].to_vec(), vec![0; 2]].concat();
    for (name, changes) in good {
        let model = load(&changed(&constant(), changes), Some(&bin)).unwrap_or_else(|error| panic!("{name}: {error}"));
        assert_eq!(run(&model).unwrap(), picked(), "{name}");
        assert_eq!(model.inputs().len(), 2);
    }
}

#[test]
fn good_constants_from_memory() {
    let bytes = |options: LoadOptions| options.from_bytes(constant());
    // A network from bytes has no name: the only such file is its own.
    let model = bytes(Model::options().external_data("any.bin", BIN.to_vec()).external_data("more", b"abc")).unwrap();
    assert_eq!(run(&model).unwrap(), picked());
    for options in [
        Model::options(),
        Model::options().external_data("any", BIN.to_vec()),
        Model::options().external_data("a.bin", BIN.to_vec()).external_data("b.bin", BIN.to_vec()),
    ] {
        let error = bytes(options).unwrap_err();
        assert!(error.to_string().contains("its data is in a .bin file"), "{error}");
        assert_eq!((error.kind(), error.place()), (Kind::Input, &at_axis()), "{error}");
    }
    let error = bytes(Model::options().external_data("any.bin", BIN[..8].to_vec())).unwrap_err();
    assert!(error.to_string().contains("reach beyond \"any.bin\", which has 8 bytes"), "{error}");
    assert_eq!((error.kind(), error.place()), (Kind::Model, &at_axis()), "{error}");
    // One from a file has the file of its name, which comes from memory where it is there.
    let folder = folder(constant().as_bytes(), None);
    let path = folder.path().join("model.xml");
    let model = Model::options().external_data("model.bin", BIN.to_vec()).load(&path).unwrap();
    assert_eq!(run(&model).unwrap(), picked());
    assert!(Model::options().external_data("any.bin", BIN.to_vec()).load(&path).is_err());
}

#[test]
#[allow(unsafe_code)]
fn good_constants_mapped() {
    let folder = folder(constant().as_bytes(), Some(BIN));
    // SAFETY: nothing changes the files of this folder but its removal at the end, after the model's.
    let model = unsafe { Model::options().mmap() }.load(folder.path().join("model.xml")).unwrap();
    assert_eq!(run(&model).unwrap(), picked());
}

/// The name of the `.bin` file is that of the `.xml` file, whatever that ends with.
#[test]
fn the_name_of_the_file() {
    let folder = tempfile::tempdir().unwrap();
    for (xml, bin) in [("a.xml", "a.bin"), ("b.c.xml", "b.c.bin"), ("d", "d.bin"), ("é ü.txt", "é ü.bin")] {
        fs::write(folder.path().join(xml), constant()).unwrap();
        fs::write(folder.path().join(bin), BIN).unwrap();
        let model = Model::load(folder.path().join(xml)).unwrap_or_else(|error| panic!("{xml}: {error}"));
        assert_eq!(run(&model).unwrap(), picked(), "{xml}");
    }
}

#[cfg(target_os = "linux")]
#[test]
fn a_name_that_is_not_unicode() {
    use std::ffi::OsStr;
    use std::os::unix::ffi::OsStrExt;
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join(OsStr::from_bytes(b"m\xff.xml")), constant()).unwrap();
    fs::write(folder.path().join(OsStr::from_bytes(b"m\xff.bin")), BIN).unwrap();
    let model = Model::load(folder.path().join(OsStr::from_bytes(b"m\xff.xml"))).unwrap();
    assert_eq!(run(&model).unwrap(), picked());
}

/// Changes to the axis in [`constant`], and what is said of it.
fn check(cases: &[(&[Change<'_>], Kind, &str)]) {
    assert_as_expected(cases.iter().map(|(changes, kind, text)| {
        let text = format!("\"Const\" \"axis\": {text}");
        let result = load(&changed(&constant(), changes), Some(BIN));
        let mut place = at_axis();
        if let Err(error) = &result {
            (place.value, place.size, place.position) =
                (error.place().value, error.place().size, error.place().position.clone());
            place.limit = error.place().limit;
        }
        difference_at(&text, result, *kind, &text, &place)
    }));
}

#[test]
fn where_a_constant_is() {
    check(&[
        (
            &[("offset=\"4\"", "offset=\"7\"")],
            Kind::Model,
            "its offset 7 and size 8 reach beyond \"model.bin\", which has 14 bytes",
        ),
        (
            &[("offset=\"4\"", "offset=\"14\"")],
            Kind::Model,
            "its offset 14 and size 8 reach beyond \"model.bin\", which has 14 bytes",
        ),
        (
            &[("offset=\"4\"", "offset=\"18446744073709551615\"")],
            Kind::Model,
            "its offset 18446744073709551615 and size 8 reach beyond \"model.bin\", which has 14 bytes",
        ),
        (
            &[("offset=\"4\"", "offset=\"18446744073709551608\"")],
            Kind::Model,
            "its offset 18446744073709551608 and size 8 reach beyond \"model.bin\", which has 14 bytes",
        ),
        (
            &[("size=\"8\"", "size=\"18446744073709551615\"")],
            Kind::Model,
            "its offset 4 and size 18446744073709551615 reach beyond \"model.bin\", which has 14 bytes",
        ),
        (
            &[("offset=\"4\"", "offset=\"18446744073709551616\"")],
            Kind::Model,
            "its offset is \"18446744073709551616\": a number is needed",
        ),
        (&[("offset=\"4\"", "offset=\"-4\"")], Kind::Model, "its offset is \"-4\": a number is needed"),
        (&[("offset=\"4\"", "offset=\"\"")], Kind::Model, "its offset is \"\": a number is needed"),
        (&[("size=\"8\"", "size=\"0x8\"")], Kind::Model, "its size is \"0x8\": a number is needed"),
        (&[("offset=\"4\" ", "")], Kind::Model, "it has no offset"),
        (&[("size=\"8\" ", "")], Kind::Model, "it has no size"),
        (&[("size=\"8\"", "size=\"7\"")], Kind::Model, "its raw data has 7 bytes: int64 of shape [] takes 8"),
        (&[("size=\"8\"", "size=\"9\"")], Kind::Model, "its raw data has 9 bytes: int64 of shape [] takes 8"),
        (&[("size=\"8\"", "size=\"0\"")], Kind::Model, "its raw data has 0 bytes: int64 of shape [] takes 8"),
    ]);
}

#[test]
fn types_and_shapes() {
    let (shape, kind) = ("shape=\"\" offset", "element_type=\"i64\" shape");
    check(&[
        (&[(shape, "shape=\"2\" offset")], Kind::Model, "its raw data has 8 bytes: int64 of shape [2] takes 16"),
        (&[(shape, "shape=\"0\" offset")], Kind::Model, "its raw data has 8 bytes: int64 of shape [0] takes 0"),
        (&[(shape, "offset")], Kind::Model, "it has no shape"),
        (&[(shape, "shape=\"?\" offset")], Kind::Model, "its shape has the invalid dimension \"?\""),
        (&[(shape, "shape=\"-1\" offset")], Kind::Model, "its shape has the invalid dimension \"-1\""),
        (&[(shape, "shape=\"1..2\" offset")], Kind::Model, "its shape has the invalid dimension \"1..2\""),
        (&[(shape, "shape=\"...\" offset")], Kind::Model, "its shape has the invalid dimension \"...\""),
        (&[(shape, "shape=\"1,,1\" offset")], Kind::Model, "its shape has the invalid dimension \"\""),
        (
            &[(shape, "shape=\"18446744073709551616\" offset")],
            Kind::Model,
            "its shape has the invalid dimension \"18446744073709551616\"",
        ),
        (
            &[(shape, "shape=\"1073741824,1073741824,8\" offset")],
            Kind::Model,
            "a tensor of int64 of shape [1073741824, 1073741824, 8] has more bytes than can be counted",
        ),
        (
            &[(shape, &format!("shape=\"{}1\" offset", "1,".repeat(64)))],
            Kind::Limit,
            "a shape has 65 dimensions: the limit is 64 (Limits::rank, which LoadOptions::limits can raise)",
        ),
        (&[(kind, "shape")], Kind::Model, "it has no element_type"),
        (&[(kind, "element_type=\"nf4\" shape")], Kind::Unsupported, "the element type \"nf4\" is not supported"),
        (&[(kind, "element_type=\"u1\" shape")], Kind::Unsupported, "the element type \"u1\" is not supported"),
        (&[(kind, "element_type=\"i32\" shape")], Kind::Model, "its raw data has 8 bytes: int32 of shape [] takes 4"),
        (
            &[(kind, "element_type=\"boolean\" shape"), ("offset=\"4\" size=\"8\"", "offset=\"0\" size=\"1\"")],
            Kind::Model,
            "element [] is the byte 7, which is not a valid bool",
        ),
        (
            &[(kind, "element_type=\"u4\" shape"), ("offset=\"4\" size=\"8\"", "offset=\"0\" size=\"2\"")],
            Kind::Model,
            "its raw data has 2 bytes: uint4 of shape [] takes 1",
        ),
    ]);
}

/// A constant that is broken is the only fault, though a node uses it.
#[test]
fn several_broken_constants() {
    let other = r#"<layer id="8" name="other" type="Const"><data element_type="nf4" shape="1" offset="0" size="1"/><output><port id="0"/></output></layer></layers>"#;
    let text = changed(&constant(), &[("</layers>", other), ("size=\"8\"", "size=\"7\"")]);
    let error = load(&text, Some(BIN)).map(drop).unwrap_err();
    let texts: Vec<String> = error.causes().iter().map(Error::to_string).collect();
    assert_eq!(
        texts,
        [
            "\"Const\" \"axis\": its raw data has 7 bytes: int64 of shape [] takes 8",
            "\"Const\" \"other\": the element type \"nf4\" is not supported",
        ]
    );
    assert_eq!(error.kind(), Kind::Model);
    assert_eq!(error.to_string(), format!("{}\n(and 1 more)", texts[0]));
}

/// OpenVINO writes one byte for a constant without elements.
#[test]
fn constants_without_elements() {
    let indices: Change<'_> = (
        "type=\"Parameter\" version=\"opset1\">\n\t\t\t<data shape=\"2\" element_type=\"i64\" />",
        "type=\"Const\" version=\"opset1\">\n\t\t\t<data shape=\"0\" element_type=\"i64\" offset=\"0\" size=\"SIZE\" />",
    );
    for size in ["0", "1"] {
        let model = load(&changed(&constant(), &[indices, ("SIZE", size)]), Some(BIN)).unwrap();
        let output = model.run(inputs! { "data" => array![[0f32, 1.0], [2.0, 3.0], [4.0, 5.0]] }).unwrap();
        assert_eq!(output["output"].shape(), [0, 2]);
    }
    // It needs no file.
    let text = changed(FED, &[indices, ("SIZE", "0")]);
    assert!(load(&text, None).is_ok() && Model::from_bytes(text).is_ok());
}

#[test]
fn the_file() {
    let load_in = |make: fn(&Path)| {
        let folder = folder(constant().as_bytes(), None);
        make(folder.path());
        Model::load(folder.path().join("model.xml"))
    };
    let by = |kind, name: &str, make: fn(&Path), text: &str| {
        difference_at(name, load_in(make), kind, &format!("\"Const\" \"axis\": {text}"), &at_axis())
    };
    let at = |name: &str, make: fn(&Path), text: &str| by(Kind::Model, name, make, text);
    let mut cases = vec![
        at("a folder", |f| fs::create_dir(f.join("model.bin")).unwrap(), "file \"model.bin\" is not a regular file"),
        at(
            "an empty file",
            |f| fs::write(f.join("model.bin"), "").unwrap(),
            "its offset 4 and size 8 reach beyond \"model.bin\", which has 0 bytes",
        ),
    ];
    if cfg!(unix) {
        cases.extend([
            at("a FIFO", fifo, "file \"model.bin\" is not a regular file"),
            by(
                Kind::Input,
                "a hard link",
                |f| {
                    fs::write(f.join("other"), BIN).unwrap();
                    fs::hard_link(f.join("other"), f.join("model.bin")).unwrap();
                },
                "file \"model.bin\" has more than one hard link: it may be a file from elsewhere \
                 (LoadOptions::hard_links accepts it)",
            ),
            by(
                Kind::Input,
                "a link",
                |f| {
                    fs::write(f.join("other"), BIN).unwrap();
                    link(f, "other");
                },
                "file \"model.bin\" is behind a link: links are not followed (LoadOptions::external_root allows \
                 links into a folder)",
            ),
            by(
                Kind::Input,
                "a link to a device",
                |f| link(f, "/dev/zero"),
                "file \"model.bin\" is behind a link: links are not followed (LoadOptions::external_root allows \
                 links into a folder)",
            ),
        ]);
    }
    assert_as_expected(cases);

    let error = load_in(|_| {}).unwrap_err();
    assert_eq!((error.kind(), error.place()), (Kind::Io, &at_axis()));
    assert!(error.to_string().starts_with("\"Const\" \"axis\": file \"model.bin\" in the folder \""), "{error}");
    let source = std::error::Error::source(&error).and_then(|e| e.downcast_ref::<std::io::Error>());
    assert_eq!(source.map(std::io::Error::kind), Some(std::io::ErrorKind::NotFound));
}

/// A missing `.bin` file is one fault, however many constants are in it.
#[test]
fn a_missing_file_is_said_once() {
    let network = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/openvino/shared_bytes/model.xml");
    let text = fs::read_to_string(network).unwrap();
    assert!(text.matches("type=\"Const\"").count() > 2);
    let folder = folder(text.as_bytes(), None);
    let error = Model::load(folder.path().join("model.xml")).unwrap_err();
    assert_eq!((error.kind(), error.fault_count()), (Kind::Io, 1), "{:?}", error.causes());
}

#[cfg(unix)]
fn fifo(folder: &Path) {
    use rustix::fs::{CWD, FileType, Mode, mknodat};
    mknodat(CWD, folder.join("model.bin"), FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).unwrap();
}

#[cfg(not(unix))]
fn fifo(_: &Path) {}

#[cfg(unix)]
fn link(folder: &Path, target: &str) {
    std::os::unix::fs::symlink(target, folder.join("model.bin")).unwrap();
}

#[cfg(not(unix))]
fn link(_: &Path, _: &str) {}

/// A link into a folder that the caller names is followed.
#[cfg(unix)]
#[test]
fn a_root_for_links() {
    let elsewhere = tempfile::tempdir().unwrap();
    fs::write(elsewhere.path().join("blob"), BIN).unwrap();
    let folder = folder(constant().as_bytes(), None);
    link(folder.path(), elsewhere.path().join("blob").to_str().unwrap());
    let model = Model::options().external_root(elsewhere.path()).load(folder.path().join("model.xml")).unwrap();
    assert_eq!(run(&model).unwrap(), picked());
}

#[test]
fn a_file_beyond_the_limit() {
    let size = constant().len() + BIN.len();
    let with = |bytes: usize| {
        let mut limits = Limits::default();
        limits.file_bytes = bytes as u64;
        load_with(&Model::options().limits(limits), &constant(), Some(BIN))
    };
    assert!(with(size).is_ok());
    let text = format!(
        "\"Const\" \"axis\": with file \"model.bin\" the model has {size} bytes: the limit is {} (Limits::file_bytes, \
         which LoadOptions::limits can raise)",
        size - 1
    );
    assert_as_expected([difference("too large", with(size - 1), Kind::Limit, &text)]);
    assert_eq!(with(size - 1).unwrap_err().place().limit, Some("file_bytes"));
}

#[test]
fn from_bytes_there_is_no_file() {
    let text = "\"Const\" \"axis\": its data is in a .bin file, but the model was loaded from bytes (use Model::load, or LoadOptions::external_data)";
    assert_as_expected([difference_at("bytes", Model::from_bytes(constant()), Kind::Input, text, &at_axis())]);
}

/// Each start of the `.bin` file that lacks a byte of the axis is an error.
#[test]
fn cut_short() {
    for end in 0..BIN.len() {
        let result = load(&constant(), Some(&BIN[..end]));
        let text =
            format!("\"Const\" \"axis\": its offset 4 and size 8 reach beyond \"model.bin\", which has {end} bytes");
        if end < 12 {
            assert_as_expected([difference("cut", result, Kind::Model, &text)]);
        } else {
            assert_eq!(run(&result.unwrap()).unwrap(), picked());
        }
    }
}

/// Each element type by its name in these files; those of fewer than 8 bits are packed, the first lowest.
#[test]
fn element_types() {
    let types = [
        ("f32", DType::Float),
        ("f64", DType::Double),
        ("f16", DType::Float16),
        ("bf16", DType::Bfloat16),
        ("boolean", DType::Bool),
        ("i2", DType::Int2),
        ("i4", DType::Int4),
        ("i8", DType::Int8),
        ("i16", DType::Int16),
        ("i32", DType::Int32),
        ("i64", DType::Int64),
        ("u2", DType::Uint2),
        ("u4", DType::Uint4),
        ("u8", DType::Uint8),
        ("u16", DType::Uint16),
        ("u32", DType::Uint32),
        ("u64", DType::Uint64),
        ("f8e4m3", DType::Float8e4m3fn),
        ("f8e5m2", DType::Float8e5m2),
        ("f8e8m0", DType::Float8e8m0),
        ("f4e2m1", DType::Float4e2m1),
    ];
    for (name, dtype) in types {
        let size = (3 * dtype.bits()).div_ceil(8);
        let data: Change<'_> = (
            "type=\"Parameter\" version=\"opset1\">\n\t\t\t<data shape=\"3,2\" element_type=\"f32\" />",
            &format!("type=\"Const\"><data shape=\"3\" element_type=\"{name}\" offset=\"3\" size=\"{size}\" />"),
        );
        // Elements 1, 1 and 0.
        let one = 1u128 | 1 << dtype.bits();
        let bin = [vec![9; 3], one.to_le_bytes()[..16.min(size)].to_vec(), vec![0; size.saturating_sub(16)]].concat();
        let model = load(&changed(FED, &[data]), Some(&bin)).unwrap_or_else(|error| panic!("{name}: {error}"));
        let output = model.run(inputs! { "indices" => array![1i64, 2], "axis" => Tensor::scalar(0i64) }).unwrap();
        let mut bytes = vec![0; 2 * dtype.size()];
        bytes[0] = 1;
        assert_eq!(output["output"], Tensor::new(dtype, &[2], bytes).unwrap(), "{name}");
    }
}
