//! Windows over the spatial axes: what convolutions and pools read of their attributes. Shared by their families.

use crate::error::{Error, Result, quote};
use crate::operator::Node;
use crate::value::{Dim, Formula};
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
    /// The entries that a window spans, those between its taps included.
    span: i64,
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
    /// Windows of these sizes, with the attributes `strides`, `dilations`, `pads`, `auto_pad` and `ceil_mode` of a node.
    pub(super) fn of(node: &Node<'_>, kernel: &[i64]) -> Result<Windows> {
        let count = kernel.len();
        positive("kernel_shape", kernel)?;
        let (strides, dilations) = (list(node, "strides", count, 1)?, list(node, "dilations", count, 1)?);
        positive("strides", &strides)?;
        positive("dilations", &dilations)?;
        let pads = list(node, "pads", 2 * count, 0)?;
        let kinds = [("NOTSET", None), ("VALID", Some(false)), ("SAME_UPPER", Some(true)), ("SAME_LOWER", Some(true))];
        let same = if node.attribute("auto_pad").is_some() { node.choice("auto_pad", &kinds)? } else { None };
        let pads = |k: usize| match same {
            None => Pads::Given { begin: at(&pads, k), end: at(&pads, count + k) },
            Some(false) => Pads::Given { begin: 0, end: 0 },
            Some(true) => Pads::Same,
        };
        let along = |(k, kernel): (usize, &i64)| Along {
            span: (kernel - 1).saturating_mul(at(&dilations, k)).saturating_add(1),
            stride: at(&strides, k),
            pads: pads(k),
        };
        let ceil = node.attribute("ceil_mode").is_some() && node.flag("ceil_mode")?;
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
}

impl Along {
    fn count(&self, size: &Formula, ceil: bool) -> Option<Formula> {
        let Along { span, stride, pads } = *self;
        let Pads::Given { begin, end } = pads else {
            return size.plus(&Formula::from(stride - 1))?.floor_over(stride);
        };
        let beyond = begin.checked_add(end)?.checked_sub(span)?;
        let steps = size.plus(&Formula::from(beyond))?;
        if !ceil || stride == 1 {
            return steps.floor_over(stride)?.plus(&Formula::from(1));
        }
        // A window that begins behind the input is none.
        let (size, steps) = (size.number()?, steps.number()?);
        let count = steps.checked_add(stride - 1)?.div_euclid(stride).checked_add(1)?;
        let behind = (count - 1).checked_mul(stride)? >= size.checked_add(begin)?;
        Some(Formula::from(count - i64::from(behind)))
    }
}

/// An attribute with a number for each of `count` places: `default` if it isn't given.
fn list(node: &Node<'_>, name: &str, count: usize, default: i64) -> Result<Vec<i64>> {
    let given = node.attribute(name).map(|_| node.ints(name)).transpose()?;
    let list = given.filter(|list| !list.is_empty()).map_or_else(|| vec![default; count], <[i64]>::to_vec);
    if list.len() != count {
        let text = format!("{name} has {} numbers: {count} are needed", list.len());
        return Err(Error::model(text).attribute(name).size(list.len()));
    }
    Ok(list)
}

fn positive(name: &str, list: &[i64]) -> Result<()> {
    match list.iter().position(|number| *number < 1) {
        None => Ok(()),
        Some(k) => {
            let number = at(list, k);
            let text = format!("{name}[{k}] is {number}: it must be at least 1");
            Err(Error::model(text).attribute(name).value(number).position(vec![k]))
        }
    }
}

fn at(list: &[i64], k: usize) -> i64 {
    list.get(k).copied().unwrap_or(0)
}

/// The sizes of the windows: the attribute `kernel_shape`, and those of the filters if they are known. They must be equal.
pub(super) fn kernel(node: &Node<'_>, filters: Option<&[Dim]>) -> Result<Option<Vec<i64>>> {
    let given = node.attribute("kernel_shape").map(|_| node.ints("kernel_shape")).transpose()?;
    let sizes = filters.and_then(|filters| filters.iter().map(Dim::fixed).collect::<Option<Vec<i64>>>());
    match (given, sizes) {
        (Some(given), Some(sizes)) if given != sizes => {
            let text = format!("kernel_shape is {given:?}, but {} has windows of {sizes:?}", quote("W"));
            Err(Error::model(text).attribute("kernel_shape"))
        }
        (given, sizes) => Ok(sizes.or(given.map(<[i64]>::to_vec))),
    }
}
