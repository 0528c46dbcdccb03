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

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::indexing_slicing)]

    use super::{identity, is_ort};

    /// A part of a file, and where it begins in its bytes.
    type Part = (Vec<u8>, usize);

    /// A table whose fields are numbers or lead to parts behind it.
    fn table(fields: &[(usize, Result<u32, Part>)]) -> Part {
        let slots = fields.iter().map(|(slot, _)| slot + 1).max().unwrap_or(0);
        let start = 4 + 2 * slots;
        let mut bytes = vec![0; start + 4 + 4 * fields.len()];
        bytes[..2].copy_from_slice(&(start as u16).to_le_bytes());
        bytes[start..start + 4].copy_from_slice(&(start as i32).to_le_bytes());
        for (k, (slot, field)) in fields.iter().enumerate() {
            let offset = 4 + 4 * k;
            bytes[4 + 2 * slot..][..2].copy_from_slice(&(offset as u16).to_le_bytes());
            let value = match field {
                Ok(number) => *number,
                Err((part, begin)) => {
                    let value = bytes.len() + begin - (start + offset);
                    bytes.extend_from_slice(part);
                    value as u32
                }
            };
            bytes[start + offset..][..4].copy_from_slice(&value.to_le_bytes());
        }
        (bytes, start)
    }

    fn text(text: &str) -> Part {
        ([&(text.len() as u32).to_le_bytes(), text.as_bytes()].concat(), 0)
    }

    fn list((part, begin): Part) -> Part {
        ([&1u32.to_le_bytes()[..], &(4 + begin as u32).to_le_bytes(), &part].concat(), 0)
    }

    /// A file of a graph with one node.
    fn file(operator: &str, output: &str) -> Vec<u8> {
        let tensor = table(&[(2, Err(table(&[(0, Ok(1))])))]);
        let value = table(&[(0, Err(text("in"))), (2, Err(tensor))]);
        let node = table(&[(5, Err(text(operator))), (8, Err(list(text("in")))), (9, Err(list(text("out"))))]);
        let graph = table(&[
            (1, Err(list(value))),
            (2, Err(list(node))),
            (5, Err(list(text("in")))),
            (6, Err(list(text(output)))),
        ]);
        let (root, begin) = table(&[(1, Err(table(&[(7, Err(graph))])))]);
        [&(8 + begin as u32).to_le_bytes()[..], b"ORTM", &root].concat()
    }

    #[test]
    fn one_identity() {
        let model = identity(&file("Identity", "out")).unwrap();
        let model = onnxref::Model::from_bytes(model).unwrap();
        let given = model.run(onnxref::inputs! { "in" => vec![1f32, 2.0] }).unwrap();
        assert_eq!(given.tensor("out").unwrap().as_slice::<f32>().unwrap(), [1.0, 2.0]);
        assert_eq!(identity(&file("Neg", "out")), None);
        assert_eq!(identity(&file("Identity", "other")), None);
        assert!(is_ort(&file("Neg", "out")) && !is_ort(b"ORTM") && !is_ort(b""));
    }

    /// Bytes of anyone.
    #[test]
    fn broken_files() {
        let file = file("Identity", "out");
        (0..file.len()).for_each(|len| assert_eq!(identity(&file[..len]), None, "{len}"));
        for at in 0..file.len() {
            for byte in [0, 1, 0x7f, 0x80, 0xff] {
                let mut broken = file.clone();
                broken[at] = byte;
                let _ = identity(&broken);
            }
        }
    }
}
