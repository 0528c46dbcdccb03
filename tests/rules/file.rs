//! Files that are not a model, only a part of one, or more than one.

use crate::common::differences::{assert_as_expected, difference_at};
use crate::common::proto::GraphProto;
use crate::{at_node, first_node, good, good_feeds, good_output, load};
use onnxref::{Kind, Model, Place};
use prost::Message;

#[test]
fn no_model() {
    let graphless = crate::common::proto::ModelProto { graph: None, ..good() };
    let cases: [(&str, Vec<u8>, &str); 3] = [
        ("empty", vec![], "the model file is empty"),
        ("no graph", graphless.encode_to_vec(), "the model has no graph"),
        ("only an IR version", vec![0x08, 0x08], "opset_import is missing: IR version 8 needs it"),
    ];
    assert_as_expected(cases.map(|(name, bytes, text)| {
        difference_at(name, Model::from_bytes(bytes), Kind::Model, text, &Place::default())
    }));
    for bytes in [&b"\xff\xff\xff"[..], b"no model at all", b"\x3a\xff\xff\xff\xff\x0f", &[0x0a; 100]] {
        let error = Model::from_bytes(bytes).unwrap_err();
        assert_eq!(error.kind(), Kind::Model);
        let start = "the file is not an ONNX model, or is cut short: ";
        assert!(error.to_string().starts_with(start), "{error}");
    }
}

const TEXT: &[u8] = b"<ir_version: 8, opset_import: [\"\" : 13]>";

/// The same from a path and from bytes.
#[test]
fn other_formats() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("model.onnx");
    for (bytes, what) in [
        (
            &b"version https://git-lfs.github.com/spec/v1\noid sha256:4d7a\nsize 12345\n"[..],
            "a Git LFS pointer: `git lfs pull` fetches the file itself",
        ),
        (b"\x1f\x8b\x08\0\0\0\0\0", "gzip data: unpack it first"),
        (
            b"PK\x03\x04\0\0\x08\x08",
            "a zip archive, as PyTorch and NumPy write them: unpack it, or export the model to ONNX",
        ),
        (b"<!DOCTYPE html><html><body>Not found</body></html>", "an HTML page: the download may have failed"),
        (TEXT, "the text form of one: give it a name that ends in .onnxtxt"),
        (b"ir_version: 8\nproducer_name: \"a\"\n", "the text form of one: save it in the binary form"),
    ] {
        std::fs::write(&path, bytes).unwrap();
        for error in [Model::load(&path).unwrap_err(), Model::options().inspect(&path).unwrap_err()] {
            assert_eq!(error.kind(), Kind::Model);
            assert_eq!(error.to_string(), format!("the file is not an ONNX model, but {what}"));
        }
        // Without a name, the text form is known by its content.
        let text = if bytes == TEXT {
            "line 1, column 41: expected the name of a graph, found the end".to_string()
        } else {
            format!("the file is not an ONNX model, but {what}")
        };
        for error in [Model::from_bytes(bytes).unwrap_err(), Model::options().inspect_bytes(bytes).unwrap_err()] {
            assert_eq!((error.kind(), error.to_string()), (Kind::Model, text.clone()));
        }
    }
}

/// Fields of later versions of the format, of each wire type.
#[test]
fn fields_that_are_not_known() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("model.onnx");
    let unknown = [
        &[0xa0, 0x1f, 7][..],
        &[0xaa, 0x1f, 2, 1, 2],
        &[0xb5, 0x1f, 0, 0, 0, 0],
        &[0xb9, 0x1f, 0, 0, 0, 0, 0, 0, 0, 0],
    ];
    let model = good().encode_to_vec();
    for bytes in [[&model, &unknown.concat()[..]].concat(), [&unknown.concat()[..], &model].concat()] {
        std::fs::write(&path, &bytes).unwrap();
        for model in [Model::load(&path).unwrap(), Model::from_bytes(bytes).unwrap()] {
            assert_eq!(model.run(good_feeds()).unwrap()["output"], good_output());
        }
    }
}

#[test]
fn no_file() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("gone.onnx");
    let error = Model::load(&path).unwrap_err();
    assert_eq!(error.kind(), Kind::Io);
    let start = format!("model {}: ", onnxref::quote(&path.to_string_lossy()));
    assert!(error.to_string().starts_with(&start), "{error}");
    assert!(std::error::Error::source(&error).is_some());
    assert_eq!(Model::load(folder.path()).unwrap_err().kind(), Kind::Io);
    std::fs::write(&path, "").unwrap();
    assert_eq!(Model::load(&path).unwrap_err().to_string(), "the model file is empty");
}

#[test]
fn a_graph_without_nodes_is_a_model() {
    let mut model = good();
    model.graph = Some(GraphProto::default());
    let outputs = load(&model).unwrap().run(onnxref::inputs! {}).unwrap();
    assert_eq!(outputs.iter().count(), 0);
}

#[test]
fn every_prefix_is_an_error() {
    let bytes = good().encode_to_vec();
    for len in 0..bytes.len() {
        let error = Model::from_bytes(bytes[..len].to_vec()).unwrap_err();
        assert_eq!(error.kind(), Kind::Model, "{len}: {error}");
    }
    let outputs = Model::from_bytes(bytes).unwrap().run(good_feeds()).unwrap();
    assert_eq!(outputs["output"], good_output());
}

#[test]
fn a_changed_byte_is_an_error_or_another_model() {
    let bytes = good().encode_to_vec();
    for at in 0..bytes.len() {
        for change in [1, 2, 0x10, 0x80, 0xff] {
            let mut changed = bytes.clone();
            changed[at] ^= change;
            if let Ok(model) = Model::from_bytes(changed) {
                let _ = model.run(good_feeds());
            }
        }
    }
}

#[test]
fn unknown_fields_are_ignored() {
    // Field 1000 as a number, field 1001 as bytes.
    let unknown = [0xc0, 0x3e, 5, 0xca, 0x3e, 2, b'h', b'i'];
    let mut model = good();
    let mut graph = model.graph.take().unwrap();
    let node = [graph.node.remove(0).encode_to_vec(), unknown.to_vec()].concat();
    let graph = [graph.encode_to_vec(), message(1, &node), unknown.to_vec()].concat();
    let bytes = [model.encode_to_vec(), unknown.to_vec(), message(7, &graph)].concat();
    let outputs = Model::from_bytes(bytes).unwrap().run(good_feeds()).unwrap();
    assert_eq!(outputs["output"], good_output());
}

/// A field that holds a message of fewer than 16,384 bytes.
fn message(field: u8, bytes: &[u8]) -> Vec<u8> {
    let len = u16::try_from(bytes.len()).unwrap();
    let head = [field << 3 | 2, (len & 0x7f) as u8 | 0x80, (len >> 7) as u8];
    [&head, bytes].concat()
}

#[test]
fn names_can_not_change_how_an_error_reads() {
    let mut model = good();
    first_node(&mut model).name = Some("a\n\u{202e}\"\u{1b}[1m".into());
    first_node(&mut model).op_type = Some("No\nsense".into());
    let place = {
        let mut place = at_node("No\nsense", None);
        place.node = Some("a\n\u{202e}\"\u{1b}[1m".into());
        place
    };
    let text = r#"node "a\n\u{202e}\"\u{1b}[1m" (No\nsense): No\nsense is not an ONNX operator"#;
    assert_as_expected([difference_at("names", load(&model), Kind::Model, text, &place)]);
}
