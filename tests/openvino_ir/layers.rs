//! Each way in which layers, ports and edges can be wrong.

use crate::DOMAIN;
use crate::common::differences::{assert_as_expected, difference_at};
use crate::text::{Case, Change, FED, changed, check};
use onnxref::{Error, Kind, Model, Place};

/// As [`check`], of one cause, which is about a layer: the last of each case.
fn check_layers(cases: &[(&str, &[Change<'_>], Kind, &str, &str)]) {
    assert_as_expected(cases.iter().map(|(name, changes, kind, text, layer)| {
        let mut place = Place::default();
        place.value_name = Some(layer.to_string());
        difference_at(name, Model::from_bytes(changed(FED, changes)), *kind, text, &place)
    }));
}

/// As [`check`], of one cause, which is about the only node.
fn check_node(cases: &[Case<'_>]) {
    assert_as_expected(cases.iter().map(|(name, changes, kind, text)| {
        let result = Model::from_bytes(changed(FED, changes));
        let mut place = result.as_ref().err().map(|error| error.place().clone()).unwrap_or_default();
        (place.node_index, place.node, place.domain) = (Some(0), Some("node".into()), Some(DOMAIN.into()));
        difference_at(name, result, *kind, text, &place)
    }));
}

#[test]
fn layers_and_edges() {
    check(&[
        (
            "one id",
            &[("layer id=\"1\"", "layer id=\"0\"")],
            Kind::Model,
            "the layer id 0 is given twice: to \"data\" and to \"indices\"",
        ),
        (
            "a port twice",
            &[("port id=\"1\" precision", "port id=\"0\" precision")],
            Kind::Model,
            "layer \"node\" has the port 0 twice",
        ),
        (
            "an edge from another layer",
            &[("from-layer=\"0\"", "from-layer=\"9\"")],
            Kind::Model,
            "an edge names layer 9, port 0, which doesn't exist",
        ),
        (
            "an edge from another port",
            &[("from-port=\"0\"", "from-port=\"7\"")],
            Kind::Model,
            "an edge names layer 0, port 7, which doesn't exist",
        ),
        (
            "an edge to another layer",
            &[("to-layer=\"3\"", "to-layer=\"10\"")],
            Kind::Model,
            "an edge names layer 10, port 0, which doesn't exist",
        ),
        (
            "an edge to another port",
            &[("to-port=\"0\"", "to-port=\"8\"")],
            Kind::Model,
            "an edge names layer 3, port 8, which doesn't exist",
        ),
        (
            "from an input port",
            &[("from-layer=\"0\"", "from-layer=\"4\"")],
            Kind::Model,
            "an edge names layer 4, port 0, which doesn't exist",
        ),
        (
            "to an output port",
            &[("to-port=\"0\"", "to-port=\"3\"")],
            Kind::Model,
            "an edge names layer 3, port 3, which doesn't exist",
        ),
        (
            "two edges to a port",
            &[("to-port=\"1\"", "to-port=\"0\"")],
            Kind::Model,
            "two edges lead to layer 3, port 0",
        ),
        (
            "an edge twice",
            &[("<edges>", "<edges><edge from-layer=\"0\" from-port=\"0\" to-layer=\"3\" to-port=\"0\"/>")],
            Kind::Model,
            "two edges lead to layer 3, port 0",
        ),
        (
            "a cycle of one",
            &[("from-layer=\"0\" from-port=\"0\"", "from-layer=\"3\" from-port=\"3\"")],
            Kind::Model,
            "node \"node\" (org.openvinotoolkit::Gather-8): input \"layer 3, port 3\" is produced by the node itself: a cycle",
        ),
        (
            "a cycle of two",
            &[
                (
                    "\t</layers>",
                    "<layer id=\"5\" name=\"other\" type=\"Gather\" version=\"opset8\"><input><port id=\"0\"/></input><output><port id=\"1\"/></output></layer></layers>",
                ),
                ("from-layer=\"0\" from-port=\"0\"", "from-layer=\"5\" from-port=\"1\""),
                ("\t</edges>", "<edge from-layer=\"3\" from-port=\"3\" to-layer=\"5\" to-port=\"0\"/></edges>"),
            ],
            Kind::Model,
            "node \"node\" (org.openvinotoolkit::Gather-8): 2 nodes form a cycle: \"node\" -> \"other\" -> \"node\"\n(and 1 more)",
        ),
    ]);
    check_layers(&[
        (
            "no edge to the result",
            &[("\t\t<edge from-layer=\"3\" from-port=\"3\" to-layer=\"4\" to-port=\"0\" />\n", "")],
            Kind::Model,
            "\"Result\" \"result\": no edge leads to it",
            "result",
        ),
        (
            "a result with an output",
            &[("</input>\n\t\t</layer>\n\t</layers>", "</input><output><port id=\"1\"/></output></layer></layers>")],
            Kind::Model,
            "\"Result\" \"result\": it has 1 output ports",
            "result",
        ),
        (
            "a result with two inputs",
            &[(
                "<port id=\"0\" precision=\"FP32\"><dim>2</dim><dim>2</dim></port>\n\t\t\t</input>\n\t\t</layer>\n\t</layers>",
                "<port id=\"0\"/><port id=\"1\"/></input></layer></layers>",
            )],
            Kind::Model,
            "\"Result\" \"result\": it has 2 input ports",
            "result",
        ),
        (
            "a parameter of no output",
            &[(
                "\t</layers>",
                "<layer id=\"5\" name=\"none\" type=\"Parameter\"><data shape=\"\" element_type=\"f32\"/></layer></layers>",
            )],
            Kind::Model,
            "\"Parameter\" \"none\": it has 0 output ports",
            "none",
        ),
        (
            "a parameter of two outputs",
            &[("</port>\n\t\t\t</output>", "</port><port id=\"1\"/></output>")],
            Kind::Model,
            "\"Parameter\" \"data\": it has 2 output ports",
            "data",
        ),
    ]);
}

#[test]
fn declared_types_and_shapes() {
    let at_data = |name: &str, changes: &[Change<'_>], kind, text: &str| {
        let mut place = Place::default();
        place.value_name = Some("data".into());
        difference_at(
            name,
            Model::from_bytes(changed(FED, changes)),
            kind,
            &format!("\"Parameter\" \"data\": {text}"),
            &place,
        )
    };
    let unsupported = ["nf4", "u1", "u3", "u6", "dynamic", "undefined", "float32", "F32", " f32", ""];
    assert_as_expected(unsupported.map(|name| {
        let change = format!("element_type=\"{name}\"");
        let text = format!("the element type \"{name}\" is not supported");
        at_data(name, &[("element_type=\"f32\"", &change)], Kind::Unsupported, &text)
    }));
    let shapes = [
        ("3,x", "x"),
        ("-2", "-2"),
        ("3,-2", "-2"),
        ("3,,2", ""),
        (",", ""),
        ("18446744073709551616", "18446744073709551616"),
        ("1.5", "1.5"),
        ("0x3", "0x3"),
        ("..x", "..x"),
        ("4.. 5", "4.. 5"),
        ("1,...", "..."),
    ];
    assert_as_expected(shapes.map(|(shape, dim)| {
        let change = format!("shape=\"{shape}\"");
        let text = format!("its shape has the invalid dimension \"{dim}\"");
        at_data(shape, &[("shape=\"3,2\"", &change)], Kind::Model, &text)
    }));
    check_layers(&[
        (
            "no element type",
            &[("element_type=\"f32\"", "")],
            Kind::Model,
            "\"Parameter\" \"data\": it has no element_type",
            "data",
        ),
        ("no shape", &[("shape=\"3,2\" ", "")], Kind::Model, "\"Parameter\" \"data\": it has no shape", "data"),
        (
            "no data",
            &[("<data shape=\"3,2\" element_type=\"f32\" />", "")],
            Kind::Model,
            "\"Parameter\" \"data\": it has no element_type",
            "data",
        ),
    ]);
}

#[test]
fn operators() {
    let node = format!("node \"node\" ({DOMAIN}::Gather");
    let text = |version: &str, text: &str| format!("{node}{version}): {text}");
    check_node(&[
        (
            "another operator",
            &[("type=\"Gather\"", "type=\"Convolution\"")],
            Kind::Unsupported,
            &format!(
                "node \"node\" ({DOMAIN}::Convolution): the operator is not implemented (operator set \"opset8\")"
            ),
        ),
        (
            "an extension",
            &[("opset8", "extension")],
            Kind::Unsupported,
            &text("", "the operator set \"extension\" is not supported"),
        ),
        (
            "no operator set",
            &[("version=\"opset8\"", "")],
            Kind::Unsupported,
            &text("", "the operator set \"\" is not supported"),
        ),
        (
            "operator set 0",
            &[("opset8", "opset0")],
            Kind::Unsupported,
            &text("", "the operator set \"opset0\" is not supported"),
        ),
        (
            "operator set 17",
            &[("opset8", "opset17")],
            Kind::Unsupported,
            &text("", "the operator set \"opset17\" is not supported"),
        ),
        (
            "operator set -8",
            &[("opset8", "opset-8")],
            Kind::Unsupported,
            &text("", "the operator set \"opset-8\" is not supported"),
        ),
        (
            "operator set +8",
            &[("opset8", "opset+8")],
            Kind::Unsupported,
            &text("", "the operator set \"opset+8\" is not supported"),
        ),
        (
            "batch_dims before version 7",
            &[("opset8", "opset1")],
            Kind::Model,
            &text("-1", "attribute \"batch_dims\" is not one of the operator's: it has none"),
        ),
        (
            "axis as an attribute",
            &[("batch_dims=", "axis=")],
            Kind::Model,
            &text("-8", "attribute \"axis\" is not one of the operator's: it has batch_dims"),
        ),
        (
            "batch_dims in words",
            &[("batch_dims=\"0\"", "batch_dims=\"one\"")],
            Kind::Model,
            &text("-8", "attribute \"batch_dims\" is \"one\": INT is needed"),
        ),
        (
            "batch_dims beyond numbers",
            &[("batch_dims=\"0\"", "batch_dims=\"9223372036854775808\"")],
            Kind::Model,
            &text("-8", "attribute \"batch_dims\" is \"9223372036854775808\": INT is needed"),
        ),
        (
            "no edge to an input",
            &[("\t\t<edge from-layer=\"1\" from-port=\"0\" to-layer=\"3\" to-port=\"1\" />\n", "")],
            Kind::Model,
            &text("-8", "input 1, \"indices\", is left out, but required"),
        ),
        (
            "two inputs",
            &[
                ("\t\t\t\t<port id=\"2\" precision=\"I64\" />\n", ""),
                ("\t\t<edge from-layer=\"2\" from-port=\"0\" to-layer=\"3\" to-port=\"2\" />\n", ""),
            ],
            Kind::Model,
            &text("-8", "2 inputs given: the operator has (data, indices, axis)"),
        ),
        (
            "four inputs",
            &[("\t\t\t\t<port id=\"2\" precision=\"I64\" />", "<port id=\"2\"/><port id=\"9\"/>")],
            Kind::Model,
            &text("-8", "4 inputs given: the operator has (data, indices, axis)"),
        ),
        (
            "two outputs",
            &[("<port id=\"3\"", "<port id=\"9\"/><port id=\"3\"")],
            Kind::Model,
            &text("-8", "2 outputs given: the operator has (output)"),
        ),
        (
            "float indices",
            &[("element_type=\"i64\"", "element_type=\"f16\"")],
            Kind::Model,
            &text(
                "-8",
                "\"indices\" has element type float16: allowed uint8, int8, uint16, int16, int32, int64, uint32, uint64",
            ),
        ),
    ]);
    // Without an output it has no edge to the result either.
    let changes = [
        ("<port id=\"3\" precision=\"FP32\" names=\"output\"><dim>2</dim><dim>2</dim></port>", ""),
        ("from-layer=\"3\" from-port=\"3\"", "from-layer=\"0\" from-port=\"0\""),
    ];
    check_node(&[("no outputs", &changes, Kind::Model, &text("-8", "0 outputs given: the operator has (output)"))]);
}

/// All layers that have no operator here are reported at once, and nothing else is.
#[test]
fn several_unknown_operators() {
    let more = r#"<layer id="5" name="a" type="ReLU" version="opset1"><input><port id="0"/></input><output><port id="1"/></output></layer>
        <layer id="6" name="b" type="My&quot;Op" version="extension"><input><port id="0"/></input><output><port id="1"/></output></layer></layers>"#;
    let edges = r#"<edge from-layer="3" from-port="3" to-layer="5" to-port="0"/><edge from-layer="5" from-port="1" to-layer="6" to-port="0"/></edges>"#;
    let text = changed(FED, &[("\t</layers>", more), ("\t</edges>", edges), ("type=\"Gather\"", "type=\"MatMul\"")]);
    let error = Model::from_bytes(text).map(drop).unwrap_err();
    assert_eq!(error.kind(), Kind::Unsupported);
    let texts: Vec<String> = error.causes().iter().map(Error::to_string).collect();
    assert_eq!(
        texts,
        [
            "node \"node\" (org.openvinotoolkit::MatMul): the operator is not implemented (operator set \"opset8\")",
            "node \"a\" (org.openvinotoolkit::ReLU): the operator is not implemented (operator set \"opset1\")",
            "node \"b\" (org.openvinotoolkit::My\\\"Op): the operator set \"extension\" is not supported",
        ]
    );
    assert_eq!(
        error.to_string(),
        "the model needs 3 operators that are not implemented (of 3; 3 of 3 nodes): org.openvinotoolkit::MatMul, \
         org.openvinotoolkit::ReLU, org.openvinotoolkit::My\\\"Op"
    );
    assert!(error.causes().iter().all(|cause| cause.kind() == Kind::Unsupported));
    let indices: Vec<_> = error.causes().iter().map(|cause| cause.place().node_index).collect();
    assert_eq!(indices, [Some(0), Some(1), Some(2)]);
}
