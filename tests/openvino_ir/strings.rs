//! String constants: a count, offsets and text in the `.bin` file.

use crate::common::differences::{assert_as_expected, difference};
use crate::text::{Change, FED, changed, load};
use ndarray::array;
use onnxref::{Error, Kind, Model, Tensor, inputs};

/// Data of strings, and what it is in the file.
fn strings(shape: &str, raw: &[u8]) -> Result<Model, Error> {
    let data: Change<'_> = (
        "type=\"Parameter\" version=\"opset1\">\n\t\t\t<data shape=\"3,2\" element_type=\"f32\" />",
        &format!(
            "type=\"Const\">\n\t\t\t<data shape=\"{shape}\" element_type=\"string\" offset=\"1\" size=\"{}\" />",
            raw.len()
        ),
    );
    load(&changed(FED, &[data]), Some(&[&[9], raw].concat()))
}

fn laid_out(numbers: &[u32], text: &str) -> Vec<u8> {
    let mut raw: Vec<u8> = numbers.iter().flat_map(|number| number.to_le_bytes()).collect();
    raw.extend(text.as_bytes());
    raw
}

#[test]
fn good_strings() {
    let get = |shape: &str, raw: &[u8], indices: Tensor| {
        let model = strings(shape, raw).unwrap();
        let output = model.run(inputs! { "indices" => indices, "axis" => Tensor::scalar(0i64) }).unwrap();
        output["output"].strings().unwrap().map(str::to_string).collect::<Vec<_>>()
    };
    let three = laid_out(&[3, 0, 1, 1, 3], "aé");
    assert_eq!(get("3", &three, array![2i64, 1].into()), ["é", ""]);
    assert_eq!(get("3", &three, array![7i64, 0].into()), ["", "a"]);
    assert_eq!(get("2", &laid_out(&[2, 0, 1, 2], "\0b"), array![0i64, 1].into()), ["\0", "b"]);
    assert_eq!(strings("0", &laid_out(&[0, 0], "")).map(drop).map_err(|e| e.to_string()), Ok(()));
    assert_eq!(strings("0", &[]).map(drop).map_err(|e| e.to_string()), Ok(()));
}

#[test]
fn wrong_strings() {
    let layout = "its strings are not laid out as a count, offsets and text";
    let cut = laid_out(&[2, 0, 1, 2], "ab");
    let cases: [(&str, &str, Vec<u8>, &str); 13] = [
        ("nothing", "1", vec![], "a string tensor of shape [1] takes 1 strings, not 0"),
        ("three bytes", "0", vec![0; 3], layout),
        ("a count alone", "1", laid_out(&[1], ""), layout),
        ("no end", "1", laid_out(&[1, 0], ""), layout),
        (
            "fewer than there should be",
            "2",
            laid_out(&[1, 0, 1], "a"),
            "a string tensor of shape [2] takes 2 strings, not 1",
        ),
        ("more than there should be", "1", cut.clone(), "a string tensor of shape [1] takes 1 strings, not 2"),
        ("a count beyond the file", "1", laid_out(&[u32::MAX, 0, 1], "a"), layout),
        ("an end beyond the text", "1", laid_out(&[1, 0, 2], "a"), layout),
        ("an end far beyond the text", "1", laid_out(&[1, 0, u32::MAX], "a"), layout),
        ("an end before the start", "1", laid_out(&[1, 1, 0], "a"), layout),
        ("text before the first", "1", laid_out(&[1, 1, 2], "ab"), layout),
        ("text behind the last", "1", laid_out(&[1, 0, 1], "ab"), layout),
        (
            "half a character",
            "2",
            laid_out(&[2, 0, 1, 2], "é"),
            "string 0 is not UTF-8: incomplete utf-8 byte sequence from index 0",
        ),
    ];
    assert_as_expected(cases.iter().map(|(name, shape, raw, text)| {
        difference(name, strings(shape, raw), Kind::Model, &format!("\"Const\" \"data\": {text}"))
    }));
    for end in 0..cut.len() {
        assert_eq!(strings("2", &cut[..end]).map(drop).unwrap_err().kind(), Kind::Model, "{end}");
    }
    let huge = strings("4294967296,4294967296", &cut).map(drop).unwrap_err();
    assert_eq!(huge.kind(), Kind::Model);
}
