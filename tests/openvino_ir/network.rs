//! Accepted variations of an `.xml` file, and their meaning.

use crate::common::differences::{assert_as_expected, difference};
use crate::text::{Change, FED, changed, feeds};
use ndarray::array;
use onnxref::{Dim, Error, Kind, Model, Outputs, Tensor};

/// What [`FED`] gives for [`feeds`].
fn picked() -> Tensor {
    array![[4f32, 5.0], [0.0, 0.0]].into()
}

fn run(text: &str) -> Result<Outputs, Error> {
    Model::from_bytes(text.to_string().into_bytes())?.run(feeds())
}

/// The changes make [`FED`] a file that gives the same, but maybe by another name.
fn check_runs(cases: &[(&str, &[Change<'_>])]) {
    for (name, changes) in cases {
        let outputs = run(&changed(FED, changes)).unwrap_or_else(|error| panic!("{name}: {error}"));
        assert_eq!(outputs.iter().next().unwrap().1.tensor().unwrap(), &picked(), "{name}");
    }
}

#[test]
fn the_good_network_is_good() {
    let model = Model::from_bytes(FED).unwrap();
    let inputs: Vec<(&str, Option<&[Dim]>)> =
        model.inputs().map(|info| (info.name.as_str(), info.shape.as_deref())).collect();
    let (two, three) = (Dim::Fixed(2), Dim::Fixed(3));
    let data = [three, two.clone()];
    assert_eq!(inputs, [("data", Some(&data[..])), ("indices", Some(&[two])), ("axis", Some(&[]))]);
    assert_eq!(model.outputs().map(|info| info.name.as_str()).collect::<Vec<_>>(), ["output"]);
    assert_eq!((model.ir_version(), model.node_count()), (11, 1));
    assert_eq!(model.metadata(), [("name".to_string(), "good".to_string())]);
    assert!(model.report().is_empty());
    assert_eq!(run(FED).unwrap()["output"], picked());
}

#[test]
fn what_xml_allows() {
    check_runs(&[
        ("as it is", &[]),
        ("a byte order mark", &[("<?xml", "\u{feff}<?xml")]),
        ("white space first", &[("<?xml version=\"1.0\"?>", " \r\n\t")]),
        ("a mark and white space", &[("<?xml version=\"1.0\"?>", "\u{feff}\n ")]),
        ("no declaration", &[("<?xml version=\"1.0\"?>\n", "")]),
        ("a comment first", &[("<?xml version=\"1.0\"?>", "<!-- <net> -->")]),
        (
            "comments",
            &[("<layers>", "<!-- </layer> --><layers><!-- a -- b -->"), ("</net>", "<!----></net><!-- c -->")],
        ),
        ("instructions and data", &[("<layers>", "<?some thing?><![CDATA[</layers>]]><layers>")]),
        ("single quotes", &[("id=\"0\"", "id='0'")]),
        ("space in a tag", &[("id=\"0\" name=\"data\"", "id = \"0\"\n\tname\r\n= 'data'")]),
        (
            "space in numbers",
            &[("id=\"0\"", "id=\" 0 \""), ("3,2", " 3 , 2 "), ("batch_dims=\"0\"", "batch_dims=\" 0\n\"")],
        ),
        ("the entities of XML", &[("name=\"node\"", "name=\"&lt;&gt;&amp;&apos;&quot;&#65;&#x1F642;\"")]),
        ("attributes that nobody knows", &[("<layer id=\"0\"", "<layer a=\"\" id=\"0\""), ("<net", "<net b=\"&gt;\"")]),
        ("elements that nobody knows", &[("<layers>", "<a><net/><layers><layer/></layers></a><layers>")]),
        ("no dimensions", &[("<dim>3</dim><dim>2</dim>", ""), ("<dim>2</dim>", "")]),
    ]);
}

#[test]
fn what_a_network_allows() {
    check_runs(&[
        ("IR version 10", &[("version=\"11\"", "version=\"10\"")]),
        ("any size", &[("shape=\"3,2\"", "shape=\"?,-1\"")]),
        ("any rank", &[("shape=\"3,2\"", "shape=\"...\"")]),
        ("a range", &[("shape=\"3,2\"", "shape=\"2..4,..2\"")]),
        ("no batch_dims", &[("<data batch_dims=\"0\" />", "")]),
        ("version 16", &[("opset8", "opset16")]),
        (
            "ids up to the greatest",
            &[
                ("layer id=\"4\"", "layer id=\"18446744073709551615\""),
                ("to-layer=\"4\"", "to-layer=\"18446744073709551615\""),
            ],
        ),
        (
            "no names of tensors",
            &[
                ("names=\"data\"", ""),
                ("names=\"indices\"", "names=\"\""),
                ("names=\"axis\"", ""),
                ("names=\"output\"", ""),
            ],
        ),
        ("no name of the network", &[("name=\"good\" ", "")]),
        (
            "the last layer first",
            &[
                (
                    "<layers>",
                    "<layers><layer id=\"9\" name=\"result\" type=\"Result\"><input><port id=\"0\"/></input></layer>",
                ),
                ("<layer id=\"4\" name=\"result\" type=\"Result\" version=\"opset1\">", "<other>"),
                ("</input>\n\t\t</layer>\n\t</layers>", "</input>\n\t\t</other>\n\t</layers>"),
                ("to-layer=\"4\"", "to-layer=\"9\""),
            ],
        ),
        (
            "edges before layers",
            &[
                (
                    "<layers>",
                    "<edges><edge from-layer=\"0\" from-port=\"0\" to-layer=\"3\" to-port=\"0\" /></edges><layers>",
                ),
                ("\t\t<edge from-layer=\"0\" from-port=\"0\" to-layer=\"3\" to-port=\"0\" />\n", ""),
            ],
        ),
    ]);
    let model = Model::from_bytes(changed(FED, &[("shape=\"3,2\"", "shape=\"1..,2\"")])).unwrap();
    assert_eq!(model.report(), ["the shape \"1..,2\" of \"data\" has ranges, which are not checked"]);
    let shape = model.inputs().next().unwrap().shape.clone();
    assert_eq!(shape, Some(vec![Dim::Unknown, Dim::Fixed(2)]));
}

/// All layers the other way round.
#[test]
fn layers_in_any_order() {
    let (head, rest) = FED.split_once("\t\t<layer ").unwrap();
    let (layers, tail) = rest.split_once("\t</layers>").unwrap();
    let mut layers: Vec<String> = layers.split("\t\t<layer ").map(|layer| format!("\t\t<layer {layer}")).collect();
    layers.reverse();
    let text = format!("{head}{}\t</layers>{tail}", layers.concat());
    let model = Model::from_bytes(text).unwrap();
    assert_eq!(model.inputs().map(|info| info.name.as_str()).collect::<Vec<_>>(), ["axis", "indices", "data"]);
    assert_eq!(model.run(feeds()).unwrap()["output"], picked());
}

fn names(text: &str) -> (Vec<String>, Vec<String>) {
    let model = Model::from_bytes(text.to_string()).unwrap();
    let (inputs, outputs) = (model.inputs(), model.outputs());
    (inputs.map(|info| info.name.clone()).collect(), outputs.map(|info| info.name.clone()).collect())
}

#[test]
fn names_of_inputs_and_outputs() {
    let name = |names: &str| self::names(&changed(FED, &[("names=\"data\"", names)])).0[0].clone();
    assert_eq!(name("names=\"first,second\""), "first");
    assert_eq!(name(r#"names="a\,b,c""#), "a,b");
    assert_eq!(name(r#"names="a\b""#), r"a\b");
    assert_eq!(name("names=\",,x\""), "x");
    assert_eq!(name("names=\"\""), "data", "the layer's");
    assert_eq!(name("names=\"&quot;\n\u{202e}\""), "\" \u{202e}");

    let output = |names: &str| self::names(&changed(FED, &[("names=\"output\"", names)])).1[0].clone();
    assert_eq!(output("names=\"x,y\""), "x");
    assert_eq!(output(""), "result", "the layer's");
}

const SECOND_RESULT: [Change<'_>; 2] = [
    ("\t</layers>", "<layer id=\"5\" name=\"second\" type=\"Result\"><input><port id=\"0\"/></input></layer></layers>"),
    ("\t</edges>", "<edge from-layer=\"3\" from-port=\"3\" to-layer=\"5\" to-port=\"0\"/></edges>"),
];

#[test]
fn two_results_of_one_tensor() {
    let text = changed(FED, &SECOND_RESULT);
    let outputs = run(&text).unwrap();
    assert_eq!(outputs.iter().map(|(name, _)| name).collect::<Vec<_>>(), ["output", "second"]);
    assert_eq!((&outputs["output"], &outputs["second"]), (&picked(), &picked()));
    // A runner too keeps both.
    let model = Model::from_bytes(text).unwrap();
    let mut runner = model.runner();
    runner.feed("data", array![[1f32, 2.0], [3.0, 4.0], [5.0, 6.0]]).unwrap();
    runner.feed("indices", array![0i64, 0]).unwrap();
    runner.feed("axis", Tensor::scalar(0i64)).unwrap();
    for _ in 0..2 {
        runner.run().unwrap();
        assert_eq!(runner.output("output").unwrap(), runner.output("second").unwrap());
    }
}

#[test]
fn a_parameter_that_is_a_result() {
    let text = changed(FED, &[SECOND_RESULT[0], (SECOND_RESULT[1].0, &SECOND_RESULT[1].1.replace('3', "0"))]);
    let outputs = run(&text).unwrap();
    assert_eq!(outputs["output"], picked());
    assert_eq!(outputs["data"], array![[0f32, 1.0], [2.0, 3.0], [4.0, 5.0]].into());
}

/// As of the others, the type and the shape of its feed are checked.
#[test]
fn a_parameter_that_is_not_used_is_fed_all_the_same() {
    let unused = r#"<layer id="7" name="unused" type="Parameter"><data shape="1" element_type="boolean"/><output><port id="0"/></output></layer></layers>"#;
    let model = Model::from_bytes(changed(FED, &[("</layers>", unused)])).unwrap();
    assert_as_expected([
        difference("not fed", model.run(feeds()), Kind::Input, "missing input \"unused\" (bool, [1])"),
        difference(
            "a wrong feed",
            model.run(feeds().with("unused", array![1u8])),
            Kind::Input,
            "input \"unused\" has element type uint8, but the model expects bool",
        ),
    ]);
    assert_eq!(model.run(feeds().with("unused", array![true])).unwrap()["output"], picked());
}

/// Two inputs of one name could not be fed, nor could two outputs of one name be told apart.
#[test]
fn inputs_and_outputs_have_names_of_their_own() {
    let (same, also) = ([("name=\"indices\"", "name=\"data\""), ("names=\"indices\"", "")], ("names=\"data\"", ""));
    let text = changed(FED, &[same[0], same[1], also]);
    let text_of_two = changed(FED, &[SECOND_RESULT[0], SECOND_RESULT[1], ("name=\"second\"", "name=\"output\"")]);
    assert_as_expected([
        difference(
            "inputs",
            Model::from_bytes(text),
            Kind::Model,
            "\"Parameter\" \"data\": another input is called \"data\" already",
        ),
        difference(
            "outputs",
            Model::from_bytes(text_of_two),
            Kind::Model,
            "\"Result\" \"output\": another output is called \"output\" already",
        ),
    ]);
    // The name of another input's tensor is no obstacle where the layer has one of its own.
    let (inputs, _) = names(&changed(FED, &[("names=\"indices\"", "names=\"data\"")]));
    assert_eq!(inputs, ["data", "indices", "axis"]);
}
