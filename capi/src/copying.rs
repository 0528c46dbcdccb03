//! The crate `ort` copies tensors by a model of its own in onnxruntime's `.ort` format, whose graph is one Identity. That is
//! all that is read of this format: a model of one Identity.

/// What every file of the format has from its fifth byte on.
const MARK: &[u8] = b"ORTM";

/// Whether a file has onnxruntime's own format.
pub(crate) fn is_ort(file: &[u8]) -> bool {
    file.get(4..8) == Some(MARK)
}

/// A table of a FlatBuffers file: where it begins.
#[derive(Clone, Copy)]
struct Table<'a> {
    file: &'a [u8],
    at: usize,
}

fn u16_at(file: &[u8], at: usize) -> Option<usize> {
    Some(usize::from(u16::from_le_bytes(file.get(at..at.checked_add(2)?)?.try_into().ok()?)))
}

fn u32_at(file: &[u8], at: usize) -> Option<usize> {
    usize::try_from(u32::from_le_bytes(file.get(at..at.checked_add(4)?)?.try_into().ok()?)).ok()
}

/// Where an offset leads that is at `at`.
fn target(file: &[u8], at: usize) -> Option<usize> {
    at.checked_add(u32_at(file, at)?)
}

impl<'a> Table<'a> {
    /// Where a field is.
    fn field(self, number: usize) -> Option<usize> {
        let back = i32::from_le_bytes(self.file.get(self.at..self.at.checked_add(4)?)?.try_into().ok()?);
        let fields = usize::try_from(i64::try_from(self.at).ok()? - i64::from(back)).ok()?;
        let entry = 4 + 2 * number;
        let offset =
            if entry < u16_at(self.file, fields)? { u16_at(self.file, fields.checked_add(entry)?)? } else { 0 };
        (offset > 0).then(|| self.at.checked_add(offset))?
    }

    fn table(self, number: usize) -> Option<Table<'a>> {
        Some(Table { at: target(self.file, self.field(number)?)?, ..self })
    }

    /// The one element of a list.
    fn only(self, number: usize) -> Option<usize> {
        let list = target(self.file, self.field(number)?)?;
        (u32_at(self.file, list)? == 1).then(|| list.checked_add(4))?
    }

    fn text_at(self, at: usize) -> Option<&'a [u8]> {
        let text = target(self.file, at)?;
        let first = text.checked_add(4)?;
        self.file.get(first..first.checked_add(u32_at(self.file, text)?)?)
    }
}

/// An ONNX model of the same Identity, or nothing for another graph.
pub(crate) fn identity(file: &[u8]) -> Option<Vec<u8>> {
    let graph = Table { file, at: target(file, 0)? }.table(1)?.table(7)?;
    let node = Table { file, at: target(file, graph.only(2)?)? };
    if node.text_at(node.field(5)?)? != b"Identity" {
        return None;
    }
    let (input, output) = (node.text_at(node.only(8)?)?, node.text_at(node.only(9)?)?);
    if graph.text_at(graph.only(5)?)? != input || graph.text_at(graph.only(6)?)? != output {
        return None;
    }
    let values = target(file, graph.field(1)?)?;
    let value = Table { file, at: target(file, values.checked_add(4)?)? };
    let element = u32_at(file, value.table(2)?.table(2)?.field(0)?)?;
    let declared =
        |name: &[u8]| [bytes(1, name), bytes(2, &bytes(1, &[0x08, u8::try_from(element).unwrap_or(0)]))].concat();
    let node = [bytes(1, input), bytes(2, output), bytes(4, b"Identity")].concat();
    let graph =
        [bytes(1, &node), bytes(2, b"copy"), bytes(11, &declared(input)), bytes(12, &declared(output))].concat();
    // Version 10 of the format, opset 21.
    Some([vec![0x08, 10], bytes(7, &graph), bytes(8, &[0x10, 21])].concat())
}

/// A field of protobuf: bytes, text or a message.
fn bytes(field: u8, content: &[u8]) -> Vec<u8> {
    let mut encoded = vec![field << 3 | 2];
    let mut left = content.len();
    while left >= 0x80 {
        encoded.push(left as u8 | 0x80);
        left >>= 7;
    }
    encoded.push(left as u8);
    encoded.extend_from_slice(content);
    encoded
}
