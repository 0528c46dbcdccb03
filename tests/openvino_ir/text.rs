//! Networks as text, made by changing valid ones.

use crate::common::differences::{assert_as_expected, difference};
use ndarray::array;
use onnxref::{Error, Inputs, Kind, LoadOptions, Model, Tensor, inputs};
use std::fs;
use tempfile::TempDir;

/// `output = Gather(data, indices, axis)` of version 8, all three fed.
pub(crate) const FED: &str = r#"<?xml version="1.0"?>
<net name="good" version="11">
	<layers>
		<layer id="0" name="data" type="Parameter" version="opset1">
			<data shape="3,2" element_type="f32" />
			<output>
				<port id="0" precision="FP32" names="data"><dim>3</dim><dim>2</dim></port>
			</output>
		</layer>
		<layer id="1" name="indices" type="Parameter" version="opset1">
			<data shape="2" element_type="i64" />
			<output>
				<port id="0" precision="I64" names="indices"><dim>2</dim></port>
			</output>
		</layer>
		<layer id="2" name="axis" type="Parameter" version="opset1">
			<data shape="" element_type="i64" />
			<output>
				<port id="0" precision="I64" names="axis" />
			</output>
		</layer>
		<layer id="3" name="node" type="Gather" version="opset8">
			<data batch_dims="0" />
			<input>
				<port id="0" precision="FP32"><dim>3</dim><dim>2</dim></port>
				<port id="1" precision="I64"><dim>2</dim></port>
				<port id="2" precision="I64" />
			</input>
			<output>
				<port id="3" precision="FP32" names="output"><dim>2</dim><dim>2</dim></port>
			</output>
		</layer>
		<layer id="4" name="result" type="Result" version="opset1">
			<input>
				<port id="0" precision="FP32"><dim>2</dim><dim>2</dim></port>
			</input>
		</layer>
	</layers>
	<edges>
		<edge from-layer="0" from-port="0" to-layer="3" to-port="0" />
		<edge from-layer="1" from-port="0" to-layer="3" to-port="1" />
		<edge from-layer="2" from-port="0" to-layer="3" to-port="2" />
		<edge from-layer="3" from-port="3" to-layer="4" to-port="0" />
	</edges>
	<rt_info />
</net>
"#;

/// What [`FED`] takes.
pub(crate) fn feeds() -> Inputs<'static> {
    let data = array![[0f32, 1.0], [2.0, 3.0], [4.0, 5.0]];
    inputs! { "data" => data, "indices" => array![-1i64, 3], "axis" => Tensor::scalar(0i64) }
}

/// A change: the text where it first stands, and what stands there instead.
pub(crate) type Change<'a> = (&'a str, &'a str);

/// The text with changes, one after the other.
pub(crate) fn changed(text: &str, changes: &[Change<'_>]) -> String {
    changes.iter().fold(text.to_string(), |text, (from, to)| {
        assert!(text.contains(from), "{from} is not there");
        text.replacen(from, to, 1)
    })
}

/// A folder with a network and its `.bin` file, if it has one.
pub(crate) fn folder(text: &[u8], bin: Option<&[u8]>) -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("model.xml"), text).unwrap();
    if let Some(bin) = bin {
        fs::write(folder.path().join("model.bin"), bin).unwrap();
    }
    folder
}

pub(crate) fn load(text: &str, bin: Option<&[u8]>) -> Result<Model, Error> {
    load_with(&Model::options(), text, bin)
}

pub(crate) fn load_with(options: &LoadOptions, text: &str, bin: Option<&[u8]>) -> Result<Model, Error> {
    options.load(folder(text.as_bytes(), bin).path().join("model.xml"))
}

/// What makes [`FED`] wrong, and the error, be it loaded from a file or from bytes.
pub(crate) type Case<'a> = (&'a str, &'a [Change<'a>], Kind, &'a str);

pub(crate) fn check(cases: &[Case<'_>]) {
    assert_as_expected(cases.iter().flat_map(|(name, changes, kind, text)| {
        let network = changed(FED, changes);
        let bytes = Model::from_bytes(network.clone().into_bytes());
        let from_file = load(&network, None).map_err(|error| error.to_string());
        assert_eq!(from_file.map(drop), bytes.as_ref().map(drop).map_err(Error::to_string), "{name}");
        [difference(name, bytes, *kind, text)]
    }));
}
