//! Tensors whose data is in another file.

use crate::common::differences::{assert_as_expected, difference_at};
use crate::common::proto::{ModelProto, StringStringEntryProto, TensorProto};
use crate::{With, at_value, data, good, good_output, graph_of, indices, load};
use onnxref::{DType, Error, Kind, Model, Place, Remedy, inputs};
use prost::Message;
use std::fs;
use std::path::Path;
use tempfile::TempDir;

/// [`good`] with `data` as an initializer whose 24 bytes are elsewhere, as these entries say.
fn external(entries: &[(&str, &str)]) -> ModelProto {
    let mut model = good();
    let graph = graph_of(&mut model);
    graph.input.remove(0);
    graph.initializer.push(TensorProto {
        name: Some("data".into()),
        data_type: Some(DType::Float.code()),
        dims: vec![3, 2],
        data_location: Some(1),
        external_data: entries
            .iter()
            .map(|(key, value)| StringStringEntryProto { key: Some((*key).into()), value: Some((*value).into()) })
            .collect(),
        ..TensorProto::default()
    });
    model
}

/// A folder with the data at the start of `data.bin` and after 8 other bytes in `more/late.bin`, which has 3 bytes after it.
fn folder() -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    let bytes = data().bytes().to_vec();
    fs::create_dir(folder.path().join("more")).unwrap();
    fs::write(folder.path().join("data.bin"), &bytes).unwrap();
    fs::write(folder.path().join("more/late.bin"), [&[7; 8], bytes.as_slice(), &[7; 3]].concat()).unwrap();
    fs::write(folder.path().join("short.bin"), &bytes[..23]).unwrap();
    folder
}

fn load_in(folder: &Path, model: &ModelProto) -> Result<Model, Error> {
    let path = folder.join("model.onnx");
    fs::write(&path, model.encode_to_vec()).unwrap();
    Model::load(path)
}

/// The entries, what is said of them, and the place of that apart from the name.
type Case = (&'static [(&'static str, &'static str)], &'static str, fn(&mut Place));

fn check(cases: &[Case]) {
    let folder = folder();
    assert_as_expected(cases.iter().map(|(entries, text, fill)| {
        let full = format!("initializer: tensor \"data\": {text}");
        let result = load_in(folder.path(), &external(entries));
        difference_at(text, result, Kind::Model, &full, &at_value("data").with(fill))
    }));
}

#[test]
fn good_external_data() {
    let folder = folder();
    let right: [&[(&str, &str)]; 7] = [
        &[("location", "data.bin")],
        &[("location", "./data.bin"), ("offset", "0")],
        &[("location", "data.bin"), ("length", "24"), ("checksum", "not looked at")],
        &[("location", "more/late.bin"), ("offset", "8")],
        &[("location", "more/late.bin"), ("offset", "8"), ("length", "24")],
        &[("length", "024"), ("offset", "08"), ("location", "more/late.bin")],
        &[("location", "data.bin"), ("written by", "someone")],
    ];
    for entries in right {
        let model = load_in(folder.path(), &external(entries)).unwrap_or_else(|error| panic!("{entries:?}: {error}"));
        assert_eq!(model.run(inputs! { "indices" => indices() }).unwrap()["output"], good_output(), "{entries:?}");
        let (_, location) = entries.iter().find(|(key, _)| *key == "location").unwrap();
        assert_eq!(model.external_files(), [Path::new(location)]);
    }
}

#[test]
#[allow(unsafe_code)]
fn good_external_data_mapped() {
    let folder = folder();
    let model = external(&[("location", "more/late.bin"), ("offset", "8")]);
    load_in(folder.path(), &model).unwrap();
    // SAFETY: nothing changes the files of this folder but its removal at the end, after the model's.
    let model = unsafe { Model::options().mmap() }.load(folder.path().join("model.onnx")).unwrap();
    assert_eq!(model.run(inputs! { "indices" => indices() }).unwrap()["output"], good_output());
}

#[test]
fn a_location_inside_the_folder_of_the_model() {
    check(&[
        (&[], "its external data has no location", |_| {}),
        (&[("offset", "0"), ("length", "24")], "its external data has no location", |_| {}),
        (
            &[("location", "")],
            "its external data is at \"\": a path relative to the model's folder and inside it is needed",
            |_| {},
        ),
        (
            &[("location", "/etc/hostname")],
            "its external data is at \"/etc/hostname\": a path relative to the model's folder and inside it is needed",
            |_| {},
        ),
        (
            &[("location", "../data.bin")],
            "its external data is at \"../data.bin\": a path relative to the model's folder and inside it is needed",
            |_| {},
        ),
        (
            &[("location", "more/../data.bin")],
            "its external data is at \"more/../data.bin\": a path relative to the model's folder and inside it is needed",
            |_| {},
        ),
        (&[("location", "more")], "external data \"more\" is not a regular file", |_| {}),
        (&[("location", ".")], "external data \".\" is not a regular file", |_| {}),
        (
            &[("location", "data.bin"), ("location", "data.bin")],
            "its external data has two entries \"location\"",
            |_| {},
        ),
    ]);
}

#[cfg(unix)]
#[test]
fn hard_links_are_accepted_on_request() {
    let folder = folder();
    fs::hard_link(folder.path().join("data.bin"), folder.path().join("hard.bin")).unwrap();
    let error = load_in(folder.path(), &external(&[("location", "hard.bin")])).unwrap_err();
    assert_eq!((error.kind(), error.remedy()), (Kind::Input, Some(Remedy::HardLinks)), "{error}");
    let model = Model::options().hard_links(true).load(folder.path().join("model.onnx")).unwrap();
    assert_eq!(model.run(inputs! { "indices" => indices() }).unwrap()["output"], good_output());
}

#[cfg(unix)]
#[test]
fn links_are_not_followed() {
    let folder = folder();
    std::os::unix::fs::symlink("data.bin", folder.path().join("link.bin")).unwrap();
    std::os::unix::fs::symlink("more", folder.path().join("link")).unwrap();
    assert_as_expected(
        [
            (
                "link.bin",
                "initializer: tensor \"data\": external data \"link.bin\" is behind a link: links are not followed \
                 (LoadOptions::external_root allows links into a folder)",
            ),
            (
                "link/late.bin",
                "initializer: tensor \"data\": external data \"link/late.bin\" is behind a link: links are not followed \
                 (LoadOptions::external_root allows links into a folder)",
            ),
        ]
        .map(|(location, text)| {
            let result = load_in(folder.path(), &external(&[("location", location)]));
            difference_at(location, result, Kind::Input, text, &at_value("data"))
        }),
    );
    // Folders that are given don't have it, or don't exist.
    fs::create_dir(folder.path().join("other")).unwrap();
    let elsewhere = |root: &str| {
        let options = Model::options().external_root(folder.path().join(root));
        let error = options.load(folder.path().join("model.onnx")).unwrap_err();
        (error.kind(), format!("{error:#}"))
    };
    load_in(folder.path(), &external(&[("location", "link.bin")])).unwrap_err();
    let what = "initializer: tensor \"data\": external data \"link.bin\"";
    let none =
        format!("{what} is behind a link: links are not followed except into the given folders, and it is in none");
    assert_eq!(elsewhere("other"), (Kind::Input, none));
    let (kind, text) = elsewhere("missing");
    assert_eq!(kind, Kind::Io);
    assert!(text.starts_with(&format!("{what}: the folder \"")) && text.contains("missing\": No such file"), "{text}");
}

#[test]
fn an_offset_and_a_length_that_fit() {
    check(&[
        (
            &[("location", "short.bin")],
            "external data \"short.bin\" has 23 bytes: 24 bytes from offset 0 reach beyond its end",
            |_| {},
        ),
        (
            &[("location", "data.bin"), ("offset", "1")],
            "external data \"data.bin\" has 24 bytes: 24 bytes from offset 1 reach beyond its end",
            |_| {},
        ),
        (
            &[("location", "data.bin"), ("offset", "18446744073709551615")],
            "external data \"data.bin\" has 24 bytes: 24 bytes from offset 18446744073709551615 reach beyond its end",
            |_| {},
        ),
        (
            &[("location", "data.bin"), ("offset", "-8")],
            "its external data's offset is \"-8\": a decimal number is needed",
            |_| {},
        ),
        (
            &[("location", "data.bin"), ("offset", "")],
            "its external data's offset is \"\": a decimal number is needed",
            |_| {},
        ),
        (
            &[("location", "data.bin"), ("length", "0x18")],
            "its external data's length is \"0x18\": a decimal number is needed",
            |_| {},
        ),
        (
            &[("location", "data.bin"), ("length", "18446744073709551616")],
            "its external data's length is \"18446744073709551616\": a decimal number is needed",
            |_| {},
        ),
        (
            &[("location", "data.bin"), ("length", "20")],
            "its external data has length 20: its type and shape take 24",
            |p| (p.value, p.size) = (Some(20), Some(24)),
        ),
        (
            &[("location", "more/late.bin"), ("length", "35")],
            "its external data has length 35: its type and shape take 24",
            |p| (p.value, p.size) = (Some(35), Some(24)),
        ),
    ]);
}

#[test]
fn external_data_alone_and_not_for_strings() {
    type Change = fn(&mut TensorProto);
    let folder = folder();
    let changed = |change: Change| {
        let mut model = external(&[("location", "data.bin")]);
        change(&mut graph_of(&mut model).initializer[0]);
        load_in(folder.path(), &model)
    };
    let cases: [(Change, &str); 4] = [
        (
            |t| t.raw_data = Some(vec![0; 24].into()),
            "initializer: tensor \"data\": its data is external, but it also has raw_data",
        ),
        (
            |t| t.raw_data = Some(vec![].into()),
            "initializer: tensor \"data\": its data is external, but it also has raw_data",
        ),
        (
            |t| t.float_data = vec![0.0; 6],
            "initializer: tensor \"data\": its data is external, but it also has float_data",
        ),
        (|t| t.data_type = Some(DType::String.code()), "initializer: tensor \"data\": strings can't be external data"),
    ];
    assert_as_expected(
        cases.map(|(change, text)| difference_at(text, changed(change), Kind::Model, text, &at_value("data"))),
    );
}

#[test]
fn a_model_from_bytes_has_no_folder() {
    let text = "initializer: tensor \"data\": its data is in the file \"data.bin\", but the model was loaded from bytes \
                (use Model::load, or LoadOptions::external_data)";
    let result = load(&external(&[("location", "data.bin")]));
    assert_as_expected([difference_at("from bytes", result, Kind::Input, text, &at_value("data"))]);
}

#[test]
fn a_file_that_is_not_there_is_no_fault_of_the_model() {
    let folder = folder();
    let error = load_in(folder.path(), &external(&[("location", "gone.bin")])).unwrap_err();
    assert_eq!((error.kind(), error.place()), (Kind::Io, &at_value("data")));
    let start = "initializer: tensor \"data\": external data \"gone.bin\" in the folder \"";
    assert!(error.to_string().starts_with(start), "{error}");
    assert_eq!(error.causes().len(), 1);
    let source = std::error::Error::source(&error).and_then(|e| e.downcast_ref::<std::io::Error>());
    assert_eq!(source.map(std::io::Error::kind), Some(std::io::ErrorKind::NotFound));
}
