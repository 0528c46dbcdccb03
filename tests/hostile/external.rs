//! Model files and external data that are not what they seem.

#![cfg(unix)]

use crate::case::{At, Case, check, report};
use crate::common::proto::{StringStringEntryProto, TensorProto};
use crate::graphs::{changed, good_bytes, graph_of};
use onnxref::{DType, Kind, Model};
use std::fs::{self, File};
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use tempfile::TempDir;

/// An initializer "w" whose bytes are elsewhere, as these entries say.
fn elsewhere(name: &str, dtype: DType, dims: &[i64], entries: &[(&str, &str)]) -> TensorProto {
    let entry =
        |&(key, value): &(&str, &str)| StringStringEntryProto { key: Some(key.into()), value: Some(value.into()) };
    TensorProto {
        name: Some(name.into()),
        data_type: Some(dtype.code()),
        dims: dims.to_vec(),
        data_location: Some(1),
        external_data: entries.iter().map(entry).collect(),
        ..TensorProto::default()
    }
}

/// The folder of the models, and beside it what they should not reach.
struct Place {
    all: TempDir,
    count: usize,
}

const GIB: u64 = 1 << 30;

impl Place {
    fn new() -> Place {
        let all = tempfile::tempdir().unwrap();
        let inside = all.path().join("models");
        fs::create_dir_all(inside.join("folder/deep")).unwrap();
        fs::create_dir(all.path().join("secrets")).unwrap();
        for file in ["models/w", "models/folder/w", "models/folder/deep/w", "secrets/w", "secrets/key"] {
            fs::write(all.path().join(file), [7; 24]).unwrap();
        }
        fs::write(inside.join("empty"), []).unwrap();
        File::create(inside.join("huge")).unwrap().set_len(1024 * GIB).unwrap();
        File::create(inside.join("large")).unwrap().set_len(100 << 20).unwrap();
        for fifo in ["models/fifo", "models/folder/fifo", "models/model.fifo"] {
            let mode = rustix::fs::Mode::RUSR | rustix::fs::Mode::WUSR;
            let path = all.path().join(fifo);
            rustix::fs::mknodat(rustix::fs::CWD, &path, rustix::fs::FileType::Fifo, mode, 0).unwrap();
        }
        let _socket = std::os::unix::net::UnixListener::bind(inside.join("socket")).unwrap();
        for (link, to) in [
            ("to w", "w"),
            ("to secrets", "../secrets/w"),
            ("up", ".."),
            ("to folder", "folder"),
            ("to itself", "to itself"),
            ("to zeros", "/dev/zero"),
            ("to the root", "/"),
            ("to nothing", "no such file"),
            ("to fifo", "fifo"),
            ("to passwd", "/etc/passwd"),
            ("to proc", "/proc/self/environ"),
            ("folder/to w", "../w"),
        ] {
            symlink(to, inside.join(link)).unwrap();
        }
        fs::hard_link(all.path().join("secrets/key"), inside.join("hard")).unwrap();
        fs::hard_link(inside.join("folder/deep/w"), inside.join("hard inside")).unwrap();
        Place { all, count: 0 }
    }

    fn inside(&self) -> PathBuf {
        self.all.path().join("models")
    }

    /// A model file with these initializers.
    fn model(&mut self, tensors: Vec<TensorProto>) -> PathBuf {
        self.count += 1;
        let path = self.inside().join(format!("{}.onnx", self.count));
        fs::write(&path, changed(|m| graph_of(m).initializer.extend(tensors))).unwrap();
        path
    }

    fn case(&mut self, name: &str, entries: &[(&str, &str)], kind: Kind, text: &str) -> Case {
        let path = self.model(vec![elsewhere("w", DType::Float, &[3, 2], entries)]);
        Case::new("external", name, path.as_path(), kind, text).at([At::Name("w".into())])
    }
}

#[test]
fn locations() {
    let mut place = Place::new();
    let mut cases = Vec::new();
    let absolute = place.all.path().join("secrets/w").to_string_lossy().into_owned();
    let within = place.inside().join("w").to_string_lossy().into_owned();
    let outside = "a path relative to the model's folder and inside it is needed";
    for location in [
        "",
        "/",
        "..",
        "../secrets/w",
        "./../secrets/w",
        "folder/../../secrets/w",
        "folder/deep/../../../secrets/w",
        "folder/../w",
        "w/..",
        "//etc/passwd",
        "/etc/passwd",
        "/dev/zero",
        "/dev/stdin",
        "/dev/fd/0",
        "/proc/self/environ",
        "/proc/self/fd/0",
        "w\0",
        "w\0../../secrets/w",
        "\0",
        absolute.as_str(),
        within.as_str(),
    ] {
        cases.push(place.case(&format!("{location:?}"), &[("location", location)], Kind::Model, outside));
    }
    let link = "is behind a link: links are not followed";
    for location in [
        "to w",
        "to secrets",
        "up/secrets/w",
        "to folder/w",
        "to folder/deep/w",
        "to zeros",
        "to the root/etc/passwd",
        "to the root/dev/zero",
        "to fifo",
        "to passwd",
        "to proc",
        "folder/to w",
        "to folder/to w",
    ] {
        cases.push(place.case(&format!("{location:?}"), &[("location", location)], Kind::Input, link));
    }
    for location in ["./", "folder/", "w/", "w/."] {
        let text = "a path relative to the model's folder and inside it is needed";
        cases.push(place.case(&format!("{location:?}"), &[("location", location)], Kind::Model, text));
    }
    for location in ["folder", "folder/deep", ".", "fifo", "folder/fifo"] {
        let text = "is not a regular file";
        cases.push(place.case(&format!("{location:?}"), &[("location", location)], Kind::Model, text));
    }
    for location in ["hard", "hard inside"] {
        let text = "has more than one hard link";
        cases.push(place.case(&format!("{location:?}"), &[("location", location)], Kind::Input, text));
    }
    for location in [
        "no such file",
        "folder/no/w",
        "w/w",
        "socket",
        "to itself",
        "to nothing",
        "~/w",
        "~",
        "$HOME/w",
        "file:///etc/passwd",
    ] {
        cases.push(place.case(&format!("{location:?}"), &[("location", location)], Kind::Io, "external data"));
    }
    for (name, location) in [("a name of 300 bytes", "n".repeat(300)), ("dots", "./".repeat(50_000) + "x")] {
        cases.push(place.case(name, &[("location", &location)], Kind::Io, "external data"));
    }
    // What is needed and can't be fed: the good model without a file.
    let alone = changed(|m| graph_of(m).initializer.push(elsewhere("w", DType::Float, &[3, 2], &[("location", "w")])));
    let case = Case::new("external", "a model of bytes", alone, Kind::Input, "use Model::load");
    cases.push(case.at([At::Name("w".into())]));
    check(cases);
    report("external");
}

#[test]
fn entries() {
    let mut place = Place::new();
    let mut cases = Vec::new();
    for number in
        ["", " ", "-1", "+1", " 1", "1 ", "1.0", "1e3", "0x10", "１", "18446744073709551616", "99999999999999999999999"]
    {
        for key in ["offset", "length"] {
            let text = format!("its external data's {key} is ");
            let entries = [("location", "w"), (key, number)];
            cases.push(place.case(&format!("{key} {number:?}"), &entries, Kind::Model, &text));
        }
    }
    for offset in ["1", "24", "25", "4294967296", "9223372036854775807", "9223372036854775808", "18446744073709551615"]
    {
        let text = format!("has 24 bytes: 24 bytes from offset {offset} reach beyond its end");
        cases.push(place.case(
            &format!("offset {offset}"),
            &[("location", "w"), ("offset", offset)],
            Kind::Model,
            &text,
        ));
    }
    for length in ["0", "23", "25", "4294967320", "18446744073709551615"] {
        let text = format!("its external data has length {length}: its type and shape take 24");
        let case =
            place.case(&format!("length {length}"), &[("location", "w"), ("length", length)], Kind::Model, &text);
        cases.push(case.at([At::Value(length.parse().unwrap()), At::Size(24)]));
    }
    let wrong: [(&[(&str, &str)], &str); 5] = [
        (&[], "its external data has no location"),
        (&[("offset", "0")], "its external data has no location"),
        (&[("Location", "w")], "its external data has no location"),
        (&[("location", "w"), ("location", "w")], "two entries \"location\""),
        (&[("location", "w"), ("offset", "0"), ("offset", "0")], "two entries \"offset\""),
    ];
    for (entries, text) in wrong {
        cases.push(place.case(&format!("{entries:?}"), entries, Kind::Model, text));
    }
    cases.push(place.case(
        "an empty file",
        &[("location", "empty")],
        Kind::Model,
        "has 0 bytes: 24 bytes from offset 0",
    ));
    for (name, change) in [
        ("raw data too", (|t| t.raw_data = Some(vec![0; 24].into())) as fn(&mut TensorProto)),
        ("numbers too", |t| t.float_data = vec![0.0; 6]),
        ("numbers of another type too", |t| t.int32_data = vec![0; 6]),
    ] {
        let mut tensor = elsewhere("w", DType::Float, &[3, 2], &[("location", "w")]);
        change(&mut tensor);
        let path = place.model(vec![tensor]);
        cases.push(Case::new("external", name, path.as_path(), Kind::Model, "its data is external, but it also has"));
    }
    // Keys that nobody knows are passed over, each once: so many of them are no reason to wait.
    let keys: Vec<String> = (0..100_000).map(|k| format!("key{k:06}")).collect();
    let mut entries: Vec<(&str, &str)> = keys.iter().map(|key| (key.as_str(), "")).collect();
    entries.push(("key000000", ""));
    cases.push(place.case("100,000 keys", &entries, Kind::Model, "two entries \"key000000\""));
    check(cases);
    report("external");
}

/// Files that are larger than what is there to hold them.
#[test]
fn sizes() {
    let mut place = Place::new();
    let mut cases = Vec::new();
    let countable = if usize::BITS == 64 { 1 << 40 } else { 1 << 30 };
    let whole = elsewhere("w", DType::Uint8, &[countable], &[("location", "huge")]);
    let path = place.model(vec![whole]);
    let at = [At::Limit("file_bytes"), At::Name("w".into())];
    let case = Case::new("external", "more than is allowed", path.as_path(), Kind::Limit, "Limits::file_bytes");
    cases.push(case.at(at.clone()).limits(|limits| limits.file_bytes = 1 << 29));
    let double = elsewhere("w", DType::Double, &[1 << 60], &[("location", "huge")]);
    let path = place.model(vec![double]);
    cases.push(Case::new("external", "an exabyte", path.as_path(), Kind::Model, "than can be counted"));
    let offset = ((1u64 << 40) - 1).to_string();
    let more = elsewhere("w", DType::Uint8, &[countable], &[("location", "huge"), ("offset", &offset)]);
    let path = place.model(vec![more]);
    cases.push(Case::new("external", "more than is there", path.as_path(), Kind::Model, "reach beyond"));
    // The same bytes again and again: each reading counts.
    let part = |k: usize| {
        let offset = (k << 20).to_string();
        elsewhere(&format!("w{k}"), DType::Uint8, &[16 << 20], &[("location", "large"), ("offset", &offset)])
    };
    let path = place.model((0..80).map(part).collect());
    let size = path.metadata().unwrap().len();
    let case = Case::new("external", "overlapping parts", path.as_path(), Kind::Limit, "Limits::file_bytes");
    let case = case.at([At::Limit("file_bytes"), At::Name("w3".into())]).reads(48 << 20);
    cases.push(case.limits(|limits| limits.file_bytes = size + (63 << 20)));
    // Types of less than a byte take more in memory than in the file, and it is said how much.
    let path = place.model(vec![elsewhere("w", DType::Uint2, &[16 << 20, 5], &[("location", "large")])]);
    let case = Case::new("external", "more bytes than the file", path.as_path(), Kind::Limit, "Limits::file_bytes");
    cases.push(case.limits(|limits| limits.file_bytes = 10 << 20));
    check(cases);
    report("external");
}

#[test]
fn model_files() {
    let place = Place::new();
    let inside = place.inside();
    fs::write(inside.join("good.onnx"), good_bytes()).unwrap();
    symlink("good.onnx", inside.join("link.onnx")).unwrap();
    Model::load(inside.join("link.onnx")).unwrap();
    let mut cases = Vec::new();
    for (path, text) in [
        (inside.join("model.fifo"), "is not a regular file"),
        (inside.join("to fifo"), "is not a regular file"),
        (inside.join("folder"), "is not a regular file"),
        (inside.clone(), "is not a regular file"),
        (PathBuf::from("/"), "is not a regular file"),
        (PathBuf::from("/dev/zero"), "is not a regular file"),
        (PathBuf::from("/dev/null"), "is not a regular file"),
        (inside.join("to zeros"), "is not a regular file"),
        (inside.join("socket"), "model "),
        (inside.join("to itself"), "model "),
        (inside.join("to nothing"), "model "),
        (inside.join("gone.onnx"), "model "),
        (inside.join("w/good.onnx"), "model "),
        (PathBuf::new(), "model "),
        (PathBuf::from("a\0b"), "model "),
        (PathBuf::from("n".repeat(5000)), "model "),
    ] {
        cases.push(Case::new("external", format!("model {path:?}"), path.as_path(), Kind::Io, text));
    }
    let case = |name: &str, file: &str, kind, text: &str| {
        Case::new("external", format!("model: {name}"), inside.join(file).as_path(), kind, text)
    };
    cases.push(case("a terabyte of zeros", "huge", Kind::Model, "it begins with the bytes 00 00"));
    cases.push(case("nothing", "empty", Kind::Model, "the model file is empty"));
    cases.push(case("zeros", "w", Kind::Model, "the file is not an ONNX model"));
    let by_a_byte = case("a byte too many", "good.onnx", Kind::Limit, "Limits::file_bytes");
    cases.push(by_a_byte.limits(|limits| limits.file_bytes = good_bytes().len() as u64 - 1));
    check(cases);
    report("external");
}

/// A folder that the caller names for targets of links opens that folder, and nothing else.
#[test]
fn roots() {
    let mut place = Place::new();
    let root = place.all.path().join("secrets");
    fs::create_dir(root.join("inner")).unwrap();
    fs::write(root.join("inner/w"), [7; 24]).unwrap();
    symlink("/etc/passwd", root.join("out")).unwrap();
    symlink("inner", root.join("in")).unwrap();
    for (link, to) in
        [("r1", "../secrets/inner/w"), ("r2", "../secrets/in/w"), ("r3", "../secrets/out"), ("r4", "../secrets/key")]
    {
        symlink(to, place.inside().join(link)).unwrap();
    }
    let options = || Model::options().external_root(&root);
    for good in ["r1", "r2"] {
        let path = place.model(vec![elsewhere("w", DType::Float, &[3, 2], &[("location", good)])]);
        options().load(path).unwrap_or_else(|error| panic!("{good}: {error}"));
    }
    let link = "is behind a link: links are not followed";
    let mut cases: Vec<Case> = ["r3", "to w", "to zeros", "to passwd", "to the root/etc/passwd", "to folder/w"]
        .map(|location| place.case(&format!("root and {location:?}"), &[("location", location)], Kind::Input, link))
        .into();
    cases.push(place.case("root and a hard link", &[("location", "r4")], Kind::Input, "more than one hard link"));
    let cases = cases.into_iter().map(|case| case.options(options()));
    let device = place.case("a root of devices", &[("location", "to zeros")], Kind::Model, "is not a regular file");
    let device = device.options(Model::options().external_root("/dev"));
    let gone = place.case("a root that is not there", &[("location", "to w")], Kind::Io, "external data");
    let gone = gone.options(Model::options().external_root(Path::new("no such folder")));
    check(cases.chain([device, gone]).collect::<Vec<_>>());
    report("external");
}
