//! Attributes and tensors from text.

use super::cursor::Cursor;
use super::read;
use super::words::noted;
use crate::document::{Attribute, AttributeValue as V, Initializer, Part, Size, Type, ValueInfo};
use crate::dtype::DType;
use crate::error::Result;
use crate::tensor::{Tensor, pack};
use bytes::Bytes;

/// `: kind = value`, after the name.
pub(super) fn attribute(from: &mut Cursor<'_>, name: String) -> Result<Attribute> {
    let mut kind = None;
    if from.accept(":") {
        let word = from.peek();
        kind = super::KINDS.iter().position(|name| *name == word).map(|kind| kind as i32);
        if kind.is_none() {
            return Err(from.expected("the kind of an attribute"));
        }
        from.expect(word)?;
    }
    from.expect("=")?;
    let kind = kind.filter(|kind| *kind != 0);
    if from.accept("@") {
        let outer = from.name("the name of an attribute")?;
        return Ok(Attribute::new(name, V::Reference(outer, kind.unwrap_or(0))));
    }
    let value = if from.accept("[") { list(from, kind)? } else { single(from, kind)? };
    if kind.is_some_and(|kind| kind != value.kind()) {
        let word = |kind: i32| usize::try_from(kind).ok().and_then(|at| super::KINDS.get(at)).copied();
        let (stated, found) = (kind.and_then(word).unwrap_or_default(), word(value.kind()).unwrap_or_default());
        return Err(from.error(&format!("the attribute is declared as {stated}, but its value is of kind {found}")));
    }
    Ok(Attribute::new(name, value))
}

fn single(from: &mut Cursor<'_>, kind: Option<i32>) -> Result<V> {
    if from.sees("\"") {
        return Ok(V::String(from.string()?.into()));
    }
    let (note, tensor) = (from.notes()?.pop(), read::sees_type(from));
    if !tensor && let Some(number) = from.number() {
        let is_float = kind == Some(1) || !integral(number);
        return if is_float {
            let value = number.parse().map_err(|_| from.error(&format!("{number} is not a float")))?;
            noted(value, note).map(V::Float)
        } else {
            number.parse().map(V::Int).map_err(|_| from.error(&format!("{number} exceeds int64")))
        };
    }
    if !tensor {
        if !from.sees_name() {
            return Err(from.expected("the value of an attribute"));
        }
        return Ok(V::Graph(Box::new(read::graph(from)?.into())));
    }
    let declared = read::value_type(from)?;
    let name = if from.sees_name() { from.name("the name of a tensor")? } else { String::new() };
    if from.accept("=") || from.sees("{") || from.sees("[") {
        from.take(2 * size_of::<Part<Initializer>>())?;
        return Ok(V::Tensor(Box::new(tensor_of(from, &declared, name)?.into())));
    }
    if !name.is_empty() {
        return Err(from.expected("the elements of a tensor"));
    }
    Ok(V::Type(Box::new(declared.into())))
}

/// Whether a number is an integer.
fn integral(number: &str) -> bool {
    number.strip_prefix('-').unwrap_or(number).bytes().all(|byte| byte.is_ascii_digit())
}

/// Values up to `]`. The first tells the kind if none is declared.
fn list(from: &mut Cursor<'_>, kind: Option<i32>) -> Result<V> {
    let mut all = match kind {
        None => V::Missing,
        Some(6) => V::Floats(Vec::new()),
        Some(7) => V::Ints(Vec::new()),
        Some(8) => V::Strings(Vec::new()),
        Some(9) => V::Tensors(Vec::new()),
        Some(10) => V::Graphs(Vec::new()),
        Some(14) => V::Types(Vec::new()),
        Some(_) => return Err(from.error("a list is not a value of the attribute's kind")),
    };
    let item = matches!(all, V::Floats(_)).then_some(1);
    from.list("]", |from| {
        from.take(size_of::<V>())?;
        // A list that begins with a float has only floats.
        let one = single(from, if matches!(all, V::Floats(_)) { Some(1) } else { item })?;
        match (&mut all, one) {
            (V::Missing, V::Float(value)) => all = V::Floats(vec![value]),
            (V::Missing, V::Int(value)) => all = V::Ints(vec![value]),
            (V::Missing, V::String(value)) => all = V::Strings(vec![value]),
            (V::Missing, V::Tensor(value)) => all = V::Tensors(vec![*value]),
            (V::Missing, V::Graph(value)) => all = V::Graphs(vec![*value]),
            (V::Missing, V::Type(value)) => all = V::Types(vec![*value]),
            (V::Floats(values), V::Float(value)) => values.push(value),
            (V::Ints(values), V::Int(value)) => values.push(value),
            (V::Strings(values), V::String(value)) => values.push(value),
            (V::Tensors(values), V::Tensor(value)) => values.push(*value),
            (V::Graphs(values), V::Graph(value)) => values.push(*value),
            (V::Types(values), V::Type(value)) => values.push(*value),
            _ => return Err(from.error("the values of a list are of one kind")),
        }
        Ok(())
    })?;
    if all == V::Missing {
        return Err(from.error("an empty list needs the kind of its attribute: `name: ints = []`"));
    }
    Ok(all)
}

/// The elements of a value that has a type.
pub(super) fn initializer(from: &mut Cursor<'_>, info: &ValueInfo) -> Result<Initializer> {
    from.take(2 * size_of::<Part<Initializer>>())?;
    match &info.value_type {
        Some(declared) => tensor_of(from, declared, info.name.clone()),
        None => Err(from.error("an initializer needs a type: `float[2] name = {1, 2}`")),
    }
}

/// `{1, 2}`, or `["location": "file"]`.
fn tensor_of(from: &mut Cursor<'_>, declared: &Type, name: String) -> Result<Initializer> {
    let shape = declared.tensor.as_ref().and_then(|tensor| Some((tensor.elem_type, tensor.shape.as_ref()?)));
    let Some((data_type, shape)) = shape else {
        return Err(from.error("a tensor with elements needs a type with its shape: `float[2]`"));
    };
    let fixed = |size: &Size| if let Size::Fixed(size) = size { Some(*size) } else { None };
    let Some(dims) = shape.dims.iter().map(|dim| fixed(&dim.size)).collect::<Option<Vec<_>>>() else {
        return Err(from.error("the dimensions of a tensor with elements are numbers"));
    };
    let mut tensor = Initializer { dims, data_type, name, ..Initializer::default() };
    if from.sees("[") {
        tensor.external_data = read::entries(from)?;
        tensor.data_location = 1;
        return Ok(tensor);
    }
    if !from.sees("{") {
        return Err(from.expected("`{` or `[`"));
    }
    if data_type == DType::String.code() {
        return strings(from, tensor);
    }
    let raw = elements(from, &tensor)?;
    tensor.set_raw(raw);
    Ok(tensor)
}

/// The number of elements that the shape says.
fn count(from: &Cursor<'_>, tensor: &Initializer) -> Result<usize> {
    let product = tensor.dims.iter().try_fold(1usize, |n, dim| n.checked_mul(usize::try_from(*dim).ok()?));
    product.ok_or_else(|| from.error("the shape of the tensor is not valid"))
}

fn strings(from: &mut Cursor<'_>, tensor: Initializer) -> Result<Initializer> {
    let mut all = Vec::new();
    from.expect("{")?;
    from.list("}", |from| {
        from.take(2 * size_of::<String>())?;
        all.push(from.string()?);
        Ok(())
    })?;
    let wanted = count(from, &tensor)?;
    // They are copied to a tensor, and to the form of the file.
    from.take(all.iter().map(|text| 2 * (text.len() + size_of::<String>())).sum())?;
    if all.len() != wanted {
        return Err(from.error(&format!("the tensor has {} elements: its shape needs {wanted}", all.len())));
    }
    let shape: Vec<usize> = tensor.dims.iter().map(|dim| usize::try_from(*dim).unwrap_or(0)).collect();
    Ok(Initializer::new(tensor.name, &Tensor::from_strings(&shape, all)?))
}

/// Elements as raw data.
fn elements(from: &mut Cursor<'_>, tensor: &Initializer) -> Result<Bytes> {
    use DType as D;
    let Some(dtype) = tensor.dtype() else { return Err(from.error("no element type")) };
    let wanted = count(from, tensor)?;
    let (mut raw, mut found) = (Vec::new(), 0usize);
    from.expect("{")?;
    from.list("}", |from| {
        found += 1;
        from.take(2 * dtype.size())?;
        macro_rules! push {
            ($type:ty, $what:literal) => {{
                let value: $type = from.parse($what)?;
                raw.extend_from_slice(&value.to_le_bytes())
            }};
        }
        macro_rules! push_float {
            ($type:ty) => {{
                let note = from.notes()?.pop();
                let value: $type = from.parse("a number")?;
                raw.extend_from_slice(&noted(value, note)?.to_le_bytes())
            }};
        }
        match dtype {
            D::Float | D::Complex64 => push_float!(f32),
            D::Double | D::Complex128 => push_float!(f64),
            D::Int8 => push!(i8, "an int8"),
            D::Int16 => push!(i16, "an int16"),
            D::Int32 => push!(i32, "an int32"),
            D::Int64 => push!(i64, "an int64"),
            D::Uint16 => push!(u16, "a uint16"),
            D::Uint32 => push!(u32, "a uint32"),
            D::Uint64 => push!(u64, "a uint64"),
            D::Float16 | D::Bfloat16 => push!(u16, "the bits of a number, as an integer below 65536"),
            D::Bool => {
                let value: u8 = from.parse("0 or 1")?;
                if value > 1 {
                    return Err(from.error("an element of a bool tensor is 0 or 1"));
                }
                raw.push(value);
            }
            dtype if dtype.bits() < 8 => {
                let value: i16 = from.parse("an integer below 256")?;
                if !(-8..256).contains(&value) {
                    return Err(from.error("an element of fewer than 8 bits is from -8 to 255"));
                }
                raw.extend(value.to_le_bytes().first());
            }
            _ => push!(u8, "an integer below 256"),
        }
        Ok(())
    })?;
    let per = if matches!(dtype, D::Complex64 | D::Complex128) { 2 } else { 1 };
    let mismatch = |from: &Cursor<'_>, wanted: usize| {
        Err(from.error(&format!("the tensor has {found} elements: its shape needs {wanted}")))
    };
    let bits = dtype.bits();
    if bits < 8 {
        // One by one, or packed, as the format has them.
        if found == wanted {
            let mask = u8::MAX << bits;
            let fits = |byte: &u8| byte & mask == 0 || (byte & mask == mask && byte >> (bits - 1) & 1 == 1);
            if !raw.iter().all(fits) {
                return Err(from.error(&format!("an element has more than {bits} bits")));
            }
            return Ok(pack(dtype, &raw).into());
        }
        return if found as u128 == (wanted as u128 * bits as u128).div_ceil(8) {
            Ok(raw.into())
        } else {
            mismatch(from, wanted)
        };
    }
    match wanted.checked_mul(per) {
        Some(wanted) if wanted == found => Ok(raw.into()),
        _ => mismatch(from, wanted.saturating_mul(per)),
    }
}
