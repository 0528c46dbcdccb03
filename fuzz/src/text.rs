//! Bytes as the text form of a model: what is read is written as text that is read as the same.

use onnxref::Model;
use onnxref::document::Document;

pub fn run(bytes: &[u8]) {
    let options = Model::options().limits(crate::small_limits());
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    let document = match Document::from_text_with(text, &options) {
        Ok(document) => document,
        Err(error) => return crate::check_error(&error),
    };
    let written = match document.to_text() {
        Ok(written) => written,
        Err(error) => return crate::check_error(&error),
    };
    // It may be longer, and exceed a limit.
    match Document::from_text_with(&written, &options) {
        Ok(again) => assert_eq!(again.to_text().expect("what was read"), written),
        Err(error) => {
            assert!(error.to_string().contains("limit"), "{error}: {written}");
            crate::check_error(&error);
        }
    }
}
