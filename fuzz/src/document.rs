//! Bytes as a model file that is read to be changed: what isn't changed is written as it was read, what is changed is read
//! again as the same.

use onnxref::Model;
use onnxref::document::Document;

pub fn run(bytes: &[u8]) {
    let options = Model::options().limits(crate::small_limits());
    // The text form is for another target.
    if bytes.trim_ascii_start().starts_with(b"<") || bytes.trim_ascii_start().starts_with(b"#") {
        return;
    }
    let document = match Document::from_bytes_with(bytes.to_vec(), &options) {
        Ok(document) => document,
        Err(error) => return crate::check_error(&error),
    };
    assert!(document.is_unchanged());
    assert_eq!(document.to_bytes().expect("what was read"), bytes);
    let mut changed = document.clone();
    changed.producer_name.push('x');
    changed.graph.name.push('x');
    changed.graph.nodes.iter_mut().for_each(|node| node.name.push('x'));
    let written = changed.to_bytes().expect("less than 2 GiB");
    match Document::from_bytes_with(written, &options) {
        Ok(again) => assert_eq!(*again, *changed, "what was written"),
        Err(error) => crate::check_error(&error),
    }
    match document.to_text() {
        Ok(text) => crate::text::run(text.as_bytes()),
        Err(error) => crate::check_error(&error),
    }
    if let Ok(found) = document.inspect(&options) {
        let mut changed = document.clone();
        let declared = changed.declare_shapes(&found);
        let (simplified, converted) =
            (document.clone().simplify(&found, 1 << 10), document.clone().convert(&found, 28));
        for done in [declared, simplified, converted] {
            done.err().iter().for_each(crate::check_error);
        }
    }
}
