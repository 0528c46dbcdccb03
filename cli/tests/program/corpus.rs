//! `onnxref corpus`: cases as files.

use crate::common::{Ran, data, onnxref};
use serde_json::Value;
use sha2::{Digest, Sha256};
use std::fs;
use std::io::Write;
use std::path::Path;
use tempfile::TempDir;

fn manifest(folder: &Path) -> Value {
    serde_json::from_slice(&fs::read(folder.join("manifest.json")).unwrap()).unwrap()
}

fn export(path: &Path, to: &Path, more: &[&str]) -> Ran {
    onnxref([&["corpus", "export", path.to_str().unwrap(), "-o", to.to_str().unwrap()], more].concat())
}

/// A tar file with the cases of `gather` that have a name.
fn archive(at: &Path, case: &str, names: &[&str]) {
    let mut tar = tar::Builder::new(fs::File::create(at).unwrap());
    for name in names {
        for file in
            ["model.onnx", "test_data_set_0/input_0.pb", "test_data_set_0/input_1.pb", "test_data_set_0/output_0.pb"]
        {
            let bytes = fs::read(data(case).join(file)).unwrap();
            let mut header = tar::Header::new_gnu();
            header.set_size(bytes.len() as u64);
            header.set_mode(0o644);
            let path = format!("{name}/{file}");
            header.as_gnu_mut().unwrap().name[..path.len()].copy_from_slice(path.as_bytes());
            header.set_cksum();
            tar.append(&header, bytes.as_slice()).unwrap();
        }
    }
    tar.finish().unwrap();
}

const CASE: &str = "gather/onnx-1.12.0/node/test_gather_2d_indices";

/// The hash of the 28 cases. It is the same on every machine.
const GATHER: &str = "1e18bf60b54c4e0b450e77b86ef2628bd733056b375549876390c7e2a6d5b7ed";

#[test]
fn cases_are_written_with_their_hashes() {
    let (folder, source) = (TempDir::new().unwrap(), data("gather"));
    let to = folder.path().join("a/b");
    let ran = export(&source, &to, &["--json"]);
    assert_eq!((ran.code, ran.err.as_str()), (Some(0), ""));
    let printed: Value = serde_json::from_str(&ran.out).unwrap();
    assert_eq!((&printed["cases"], &printed["sha256"]), (&28.into(), &GATHER.into()));
    let manifest = manifest(&to);
    let cases = manifest["cases"].as_array().unwrap();
    assert_eq!((cases.len(), &manifest["sha256"], &manifest["format"]), (28, &GATHER.into(), &1.into()));
    let names: Vec<&str> = cases.iter().map(|case| case["name"].as_str().unwrap()).collect();
    assert!(names.is_sorted());
    let at = names.iter().position(|name| Path::new("gather").join(name) == Path::new(CASE)).unwrap();
    assert_eq!(cases[at]["about"], "gather 2d indices");
    assert_eq!(cases[at]["operators"].to_string(), r#"[{"domain":"","name":"Gather","version":13}]"#);
    // Every file is that of the source, and its hash what sha256sum prints.
    let mut lines = Vec::new();
    for (name, case) in names.iter().zip(cases) {
        for (path, hash) in case["files"].as_object().unwrap() {
            let bytes = fs::read(to.join(name).join(path)).unwrap();
            assert_eq!(bytes, fs::read(source.join(name).join(path)).unwrap());
            let digits: String = Sha256::digest(&bytes).iter().map(|byte| format!("{byte:02x}")).collect();
            assert_eq!(hash, &digits);
            lines.push((format!("{name}/{path}"), digits));
        }
    }
    lines.sort();
    let lines: String = lines.iter().map(|(path, hash)| format!("{hash}  {path}\n")).collect();
    let whole: String = Sha256::digest(lines).iter().map(|byte| format!("{byte:02x}")).collect();
    assert_eq!(whole, GATHER);
    // What is written passes, and nothing else was written.
    let ran = onnxref(["test", to.to_str().unwrap(), "--min-cases", "28"]);
    assert_eq!((ran.code, ran.last()), (Some(0), "28 passed (28 bit by bit), 0 failed, 0 unsupported"));
    assert_eq!(fs::read_dir(folder.path().join("a")).unwrap().count(), 1);
}

#[test]
fn archives_give_the_same_files() {
    let folder = TempDir::new().unwrap();
    let at = |name: &str| folder.path().join(name);
    fs::create_dir(at("in")).unwrap();
    archive(&at("in/old-1.0.TAR"), CASE, &["node/test_b", "../../evil", "node/test_a"]);
    let ran = export(&at("in"), &at("out"), &[]);
    assert_eq!((ran.code, ran.err.as_str()), (Some(0), "note: 3 cases, 12 files\n"));
    let cases = manifest(&at("out"))["cases"].clone();
    let names: Vec<&str> = cases.as_array().unwrap().iter().map(|case| case["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["old-1.0/%2E./%2E./evil", "old-1.0/node/test_a", "old-1.0/node/test_b"]);
    let files = |folder: std::path::PathBuf| fs::read(folder.join("test_data_set_0/input_1.pb")).unwrap();
    assert_eq!(files(at("out/old-1.0/node/test_b")), files(data(CASE)));
    // The archive by itself gives the same hash, and so does one in another order.
    let hash = ran.out;
    assert_eq!(export(&at("in/old-1.0.TAR"), &at("again"), &["-q"]).out, hash);
    archive(&at("in/old-1.0.TAR"), CASE, &["node/test_a", "node/test_b", "../../evil"]);
    assert_eq!(export(&at("in"), &at("third"), &["-q"]).out, hash);
    let one = export(&at("in"), &at("one"), &["-k", "test_a$"]);
    assert_eq!(one.err, "note: 1 case, 4 files\n");
    assert_ne!(one.out, hash);
}

#[test]
fn it_appears_whole_or_not_at_all() {
    let folder = TempDir::new().unwrap();
    let at = |name: &str| folder.path().join(name);
    let entries = || fs::read_dir(folder.path()).unwrap().count();
    // Nothing is overwritten.
    fs::create_dir(at("full")).unwrap();
    fs::File::create(at("full/x")).unwrap().write_all(b"mine").unwrap();
    let ran = export(&data(CASE), &at("full"), &[]);
    let text = format!("error: -o {}: the folder is not empty\n", at("full").display());
    assert_eq!((ran.code, ran.err), (Some(2), text));
    assert_eq!(fs::read_dir(at("full")).unwrap().count(), 1);
    // An empty folder is taken.
    fs::create_dir(at("empty")).unwrap();
    assert_eq!(export(&data(CASE), &at("empty"), &["-q"]).code, Some(0));
    assert!(at("empty/test_gather_2d_indices/model.onnx").is_file());
    assert_eq!(entries(), 2);
    // Without cases, with a broken archive, and with two cases of one name nothing is written.
    let none = export(&data(CASE), &at("none"), &["-k", "nothing"]);
    assert_eq!((none.code, none.err.as_str()), (Some(5), "error: there are no cases\n"));
    let none = export(&data(CASE), &at("none"), &["-k", "nothing", "--json"]);
    assert!(none.out.starts_with("{\"error\":{\"kind\":\"nothing\",\"message\":\"there are no cases\""), "{none:?}");
    fs::write(at("x.zip"), "nonsense").unwrap();
    let broken = export(&at("x.zip"), &at("broken"), &[]);
    assert_eq!(broken.code, Some(3), "{broken:?}");
    let case = data(CASE);
    let ran = export(&case, &at("twice"), &[case.to_str().unwrap()]);
    assert_eq!((ran.code, ran.err.as_str()), (Some(2), "error: two cases have the name test_gather_2d_indices\n"));
    assert_eq!(entries(), 3);
}
