//! Windows over the spatial axes: what convolutions and pools read of their attributes. Shared by their families.

use crate::error::{Error, Result, quote};
use crate::operator::{Inference, Node};
use crate::value::{Dim, DimsText, Formula};
use smallvec::SmallVec;

/// Windows that slide along the axes behind the batch and the channels.
#[derive(Debug)]
pub(super) struct Windows {
    along: SmallVec<[Along; 3]>,
    /// A last window may begin within the input and reach beyond its end.
    ceil: bool,
}

/// Windows along one axis.
#[derive(Debug, Clone, Copy)]
struct Along {
    /// The entries that a window spans, those between its taps included, if its size is known.
    span: Option<i64>,
    stride: i64,
    pads: Pads,
}

#[derive(Debug, Clone, Copy)]
enum Pads {
    Given {
        begin: i64,
        end: i64,
    },
    /// As many as let each stride begin a window.
    Same,
}

impl Windows {
    /// Windows of these sizes, as far as they are known, with the attributes `strides`, `dilations`, `pads`, `auto_pad` and
    /// `ceil_mode` of a node.
    pub(super) fn of(node: &Node<'_>, kernel: &[Option<i64>]) -> Result<Windows> {
        let count = kernel.len();
        let (strides, dilations) = (list(node, "strides", count, 1)?, list(node, "dilations", count, 1)?);
        let pads = list(node, "pads", 2 * count, 0)?;
        let kinds = [("NOTSET", None), ("VALID", Some(false)), ("SAME_UPPER", Some(true)), ("SAME_LOWER", Some(true))];
        let same = if node.attribute("auto_pad").is_some() { node.choice("auto_pad", &kinds)? } else { None };
        if same.is_some() && pads.iter().any(|pad| *pad != 0) {
            return Err(Error::model("pads and auto_pad are both given: only one of them can be").attribute("pads"));
        }
        let pads = |k: usize| match same {
            None => Pads::Given { begin: at(&pads, k), end: at(&pads, count + k) },
            Some(false) => Pads::Given { begin: 0, end: 0 },
            Some(true) => Pads::Same,
        };
        let span = |k: usize, size: i64| size.checked_sub(1)?.checked_mul(at(&dilations, k))?.checked_add(1);
        let along = |(k, size): (usize, &Option<i64>)| Along {
            span: size.and_then(|size| span(k, size)),
            stride: at(&strides, k),
            pads: pads(k),
        };
        // Windows without padding that reach beyond the end are none, by the formula of VALID.
        let ceil = node.attribute("ceil_mode").is_some() && node.flag("ceil_mode")? && same.is_none();
        Ok(Windows { along: kernel.iter().enumerate().map(along).collect(), ceil })
    }

    /// The number of windows along each of the spatial axes, as far as it is known.
    pub(super) fn counts(&self, dims: &[Dim]) -> Vec<Dim> {
        let count = |(along, dim): (&Along, &Dim)| {
            let count = Formula::of(dim).and_then(|size| along.count(&size, self.ceil));
            count
                .map_or(Dim::Unknown, |count| count.number().map_or_else(|| count.dim(), |count| Dim::of(count.max(0))))
        };
        self.along.iter().zip(dims).map(count).collect()
    }

    /// The sizes of the image that as many windows cover, as far as they are known: the attribute `output_padding` adds
    /// to them.
    pub(super) fn covered(&self, node: &Node<'_>, counts: &[Dim]) -> Result<Vec<Dim>> {
        let more = list(node, "output_padding", counts.len(), 0)?;
        let size = |((along, count), more): ((&Along, &Dim), &i64)| {
            Formula::of(count).and_then(|count| along.covered(&count, *more)).map_or(Dim::Unknown, |size| size.dim())
        };
        Ok(self.along.iter().zip(counts).zip(&more).map(size).collect())
    }
}

impl Along {
    fn count(&self, size: &Formula, ceil: bool) -> Option<Formula> {
        let Along { span, stride, pads } = *self;
        let Pads::Given { begin, end } = pads else {
            return size.plus(&Formula::from(stride - 1))?.floor_over(stride);
        };
        let span = span?;
        let beyond = match ceil {
            false => begin.checked_add(end)?.checked_sub(span)?,
            // A last window may reach beyond the end, but one that begins behind the input is none.
            true => end.checked_add(stride)?.checked_sub(span)?.min(0).checked_add(begin)? - 1,
        };
        size.plus(&Formula::from(beyond))?.floor_over(stride)?.plus(&Formula::from(1))
    }

    fn covered(&self, count: &Formula, more: i64) -> Option<Formula> {
        let size = count.times(&Formula::from(self.stride))?;
        let Pads::Given { begin, end } = self.pads else { return Some(size) };
        let beyond = self.span?.checked_sub(self.stride)?.checked_add(more)?.checked_sub(begin)?.checked_sub(end)?;
        size.plus(&Formula::from(beyond))
    }
}

/// An attribute with a number for each of `count` places, which must be at least `least`: if it isn't given, all are that.
pub(super) fn list(node: &Node<'_>, name: &str, count: usize, least: i64) -> Result<Vec<i64>> {
    let given = node.optional(name, Node::ints)?;
    let list = given.filter(|list| !list.is_empty()).map_or_else(|| vec![least; count], <[i64]>::to_vec);
    if list.len() != count {
        let text = format!("{name} has {} numbers: {count} are needed", list.len());
        return Err(Error::model(text).attribute(name).size(list.len()));
    }
    check_least(name, &list, least)?;
    Ok(list)
}

fn check_least(name: &str, list: &[i64], least: i64) -> Result<()> {
    match list.iter().position(|number| *number < least) {
        None => Ok(()),
        Some(k) => {
            let number = at(list, k);
            let text = format!("{name}[{k}] is {number}: it must be at least {least}");
            Err(Error::model(text).attribute(name).value(number).position(vec![k]))
        }
    }
}

fn at(list: &[i64], k: usize) -> i64 {
    list.get(k).copied().unwrap_or(0)
}

/// The sizes of the windows along `count` axes, as far as they are known: the attribute `kernel_shape`.
pub(super) fn kernel(node: &Node<'_>, count: usize) -> Result<Vec<Option<i64>>> {
    match node.optional("kernel_shape", Node::ints)? {
        None | Some([]) => Ok(vec![None; count]),
        Some(_) => Ok(list(node, "kernel_shape", count, 1)?.into_iter().map(Some).collect()),
    }
}

/// As [`kernel`], of the filters in the input `w`: their last `count` dimensions, which must be equal.
pub(super) fn kernel_of(facts: &Inference<'_>, w: usize, count: usize) -> Result<Vec<Option<i64>>> {
    let filters = facts.dims(w).unwrap_or_default();
    let sizes = filters.get(filters.len().saturating_sub(count)..).unwrap_or_default();
    let mut kernel = kernel(facts, count)?;
    for (k, (given, size)) in kernel.iter_mut().zip(sizes.iter().map(Dim::fixed)).enumerate() {
        let (name, shape) = (facts.input_name(w), DimsText(filters));
        match (*given, size) {
            (Some(given), Some(size)) if given != size => {
                let text =
                    format!("kernel_shape[{k}] is {given}, but in {} of shape {shape} it is {size}", quote(name));
                return Err(Error::model(text).attribute("kernel_shape").value(given).position(vec![k]));
            }
            (_, Some(0)) => {
                let text = format!("{} of shape {shape} has windows without entries", quote(name));
                return Err(Error::input(text).parameter(name).axis((k + filters.len() - count) as i64).size(0));
            }
            _ => *given = given.or(size),
        }
    }
    Ok(kernel)
}

/// An attribute that must be at least 1, as the number of groups that channels are divided into.
pub(super) fn one_or_more(node: &Node<'_>, name: &str) -> Result<i64> {
    match node.int(name)? {
        number @ 1.. => Ok(number),
        number => Err(Error::model(format!("{name} is {number}: it must be at least 1")).attribute(name).value(number)),
    }
}

/// What is known about the shape of a convolution of the images in the input `x` with the filters in the input `w`, if the
/// ranks are known. There may be a number for each filter in the input `bias`.
pub(super) fn convolved(facts: &Inference<'_>, x: usize, w: usize, bias: Option<usize>) -> Result<Option<Vec<Dim>>> {
    let group = one_or_more(facts, "group")?;
    let (Some(images), Some(filters)) = (facts.ranked(x, 3..)?, facts.ranked(w, 3..)?) else { return Ok(None) };
    if images.len() != filters.len() {
        return Err(facts.unequal_ranks(x, w));
    }
    let ([batch, channels, image @ ..], [count, of_each, ..]) = (images, filters) else { return Ok(None) };
    if let (Some(have), Some(each)) = (channels.fixed(), of_each.fixed())
        && Some(have) != group.checked_mul(each)
    {
        let (x, w) = (facts.input_name(x), facts.input_name(w));
        let text = format!("{} has {have} channels, but the filters of {group} groups have {each} each", quote(x));
        return Err(Error::input(text).parameter(w).axis(1).value(have));
    }
    if let Some(bias) = bias {
        facts.sizes::<1>(bias)?;
        facts.same_size((w, 0), (bias, 0))?;
    }
    let counts = Windows::of(facts, &kernel_of(facts, w, image.len())?)?.counts(image);
    Ok(Some([&[batch.clone(), count.clone()], &*counts].concat()))
}
