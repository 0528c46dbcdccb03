//! Windows over the spatial axes: what convolutions and pools read of their attributes. Shared by their families.

use crate::error::{Error, Result, quote};
use crate::operator::{Inference, Node};
use crate::value::{Dim, DimsText, Formula};
use kernels::windows::Axis;
use smallvec::SmallVec;

/// The attributes of windows, read once: the number of axes may be known in a run only.
#[derive(Debug, Clone)]
pub(super) struct WindowAttributes {
    kernel: Numbers,
    strides: Numbers,
    dilations: Numbers,
    pads: Numbers,
    /// What `auto_pad` says beside NOTSET.
    auto: Option<Pads>,
    ceil: bool,
}

/// The sizes of windows along some axes, as far as they are known.
pub(super) type Kernel = SmallVec<[Option<i64>; 3]>;

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
    /// The taps of a window, and the entries that it spans, those between its taps included: if its size is known.
    taps: Option<i64>,
    span: Option<i64>,
    stride: i64,
    dilation: i64,
    pads: Pads,
}

#[derive(Debug, Clone, Copy)]
enum Pads {
    Given {
        begin: i64,
        end: i64,
    },
    /// As many as let each stride begin a window, divided evenly. An odd one is at the end, or at the beginning.
    Same {
        begin_first: bool,
    },
}

impl WindowAttributes {
    /// The attributes `kernel_shape`, `strides`, `dilations`, `pads`, `auto_pad` and `ceil_mode` of a node.
    pub(super) fn of(node: &Node<'_>) -> Result<WindowAttributes> {
        let [kernel, strides, dilations] =
            ["kernel_shape", "strides", "dilations"].map(|name| Numbers::of(node, name, 1));
        let pads = Numbers::of(node, "pads", 0)?;
        let same = |begin_first| Some(Pads::Same { begin_first });
        let kinds = [
            ("NOTSET", None),
            ("VALID", Some(Pads::Given { begin: 0, end: 0 })),
            ("SAME_UPPER", same(false)),
            ("SAME_LOWER", same(true)),
        ];
        // To engines an empty text is NOTSET, and there are files with one.
        let auto = match node.optional("auto_pad", Node::string)? {
            None | Some("") => None,
            Some(_) => node.choice("auto_pad", &kinds)?,
        };
        if auto.is_some() && pads.list.iter().any(|pad| *pad != 0) {
            return Err(Error::model("pads and auto_pad are both given: only one of them can be").attribute("pads"));
        }
        // Windows without padding that reach beyond the end are none, by the formula of VALID.
        let ceil = node.attribute("ceil_mode").is_some() && node.flag("ceil_mode")? && auto.is_none();
        Ok(WindowAttributes { kernel: kernel?, strides: strides?, dilations: dilations?, pads, auto, ceil })
    }

    /// The sizes of the windows along `count` axes, as far as they are known: the attribute `kernel_shape`.
    pub(super) fn kernel(&self, count: usize) -> Result<Kernel> {
        match *self.kernel.list {
            [] => Ok(SmallVec::from_elem(None, count)),
            _ => Ok(self.kernel.each(count)?.into_iter().map(Some).collect()),
        }
    }

    /// As [`WindowAttributes::kernel`], of the filters in the input `w`: their last `count` dimensions, which must be equal.
    pub(super) fn kernel_of(&self, facts: &Inference<'_>, w: usize, count: usize) -> Result<Kernel> {
        let filters = facts.dims(w).unwrap_or_default();
        let sizes = filters.get(filters.len().saturating_sub(count)..).unwrap_or_default();
        let mut kernel = self.kernel(count)?;
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

    /// Whether `auto_pad` is SAME_UPPER.
    pub(super) fn is_same_upper(&self) -> bool {
        matches!(self.auto, Some(Pads::Same { begin_first: false }))
    }

    /// Windows of these sizes, as far as they are known.
    pub(super) fn windows(&self, kernel: &[Option<i64>]) -> Result<Windows> {
        let count = kernel.len();
        let (strides, dilations) = (self.strides.each(count)?, self.dilations.each(count)?);
        let pads = self.pads.each(2 * count)?;
        let given = |k: usize| Pads::Given { begin: at(&pads, k), end: at(&pads, count + k) };
        let along = |(k, taps): (usize, &Option<i64>)| {
            let (stride, dilation, pads) = (at(&strides, k), at(&dilations, k), self.auto.unwrap_or_else(|| given(k)));
            let span = taps.and_then(|taps| taps.checked_sub(1)?.checked_mul(dilation)?.checked_add(1));
            Along { taps: *taps, span, stride, dilation, pads }
        };
        Ok(Windows { along: kernel.iter().enumerate().map(along).collect(), ceil: self.ceil })
    }
}

impl WindowAttributes {
    /// The windows of an image of one axis to three along slices, rows and columns, and how many there are along each, if they can
    /// be counted. An image of fewer axes has one slice, or one row.
    pub(super) fn of_image(&self, kernel: &[Option<i64>], image: &[usize]) -> Result<Option<([Axis; 3], [usize; 3])>> {
        let Some(outer) = 3usize.checked_sub(image.len()).filter(|_| kernel.len() == image.len()) else {
            return Ok(None);
        };
        let windows = self.windows(kernel)?;
        let dims: SmallVec<[Dim; 3]> = image.iter().copied().map(Dim::Fixed).collect();
        let Some(counts) = Dim::sizes(&windows.counts(&dims)) else { return Ok(None) };
        let (mut axes, mut all) = ([Axis::ROW; 3], [1; 3]);
        let own = axes.iter_mut().zip(&mut all).skip(outer).zip(windows.axes(image, &counts)?.into_iter().zip(counts));
        own.for_each(|((axis, count), (own, own_count))| (*axis, *count) = (own, own_count));
        Ok(Some((axes, all)))
    }
}

impl Windows {
    /// The number of windows along each of the spatial axes, as far as it is known.
    pub(super) fn counts(&self, dims: &[Dim]) -> SmallVec<[Dim; 3]> {
        let count = |(along, dim): (&Along, &Dim)| {
            let count = Formula::of(dim).and_then(|size| along.count(&size, self.ceil));
            count
                .map_or(Dim::Unknown, |count| count.number().map_or_else(|| count.dim(), |count| Dim::of(count.max(0))))
        };
        self.along.iter().zip(dims).map(count).collect()
    }

    /// The same windows without padding.
    pub(super) fn without_padding(mut self) -> Windows {
        self.along.iter_mut().for_each(|along| along.pads = Pads::Given { begin: 0, end: 0 });
        self
    }

    /// The sizes of the image that as many windows cover, as far as they are known, with what is added along each axis.
    pub(super) fn covered(&self, more: &[i64], counts: &[Dim]) -> Result<Vec<Dim>> {
        let size = |((along, count), more): ((&Along, &Dim), &i64)| {
            Formula::of(count).and_then(|count| along.covered(&count, *more)).map_or(Dim::Unknown, |size| size.dim())
        };
        Ok(self.along.iter().zip(counts).zip(more).map(size).collect())
    }

    /// Fails if `output_padding` says more than the text allows: less than the stride, or than the dilation.
    pub(super) fn check_more(&self, more: &[i64]) -> Result<()> {
        let wrong = |(along, more): (&Along, &i64)| *more >= along.stride.max(along.dilation);
        match self.along.iter().zip(more).position(wrong) {
            None => Ok(()),
            Some(k) => {
                let number = at(more, k);
                let text = format!("output_padding[{k}] is {number}: it must be less than the stride or the dilation");
                Err(Error::model(text).attribute("output_padding").value(number).position(vec![k]))
            }
        }
    }

    /// The windows along each axis of an image, for kernels: `counts` of them.
    pub(super) fn axes(&self, image: &[usize], counts: &[usize]) -> Result<SmallVec<[Axis; 3]>> {
        let axis = |((along, input), output): ((&Along, &usize), &usize)| {
            along.axis(*input, *output).ok_or_else(|| {
                let Along { stride, dilation, .. } = along;
                Error::model(format!("windows with strides {stride} and dilations {dilation} reach beyond any image"))
            })
        };
        self.along.iter().zip(image).zip(counts).map(axis).collect()
    }

    /// As [`Windows::axes`], of an image that the windows are spread over. The pads are cut off; if they aren't given, or the
    /// image has a size of its own (`sized`), they are what the windows cover beyond it: none if they don't.
    pub(super) fn spread(
        &self,
        image: &[usize],
        counts: &[usize],
        more: &[i64],
        sized: bool,
        begin_first: bool,
    ) -> Result<SmallVec<[Axis; 3]>> {
        let mut axes = self.axes(image, counts)?;
        for (((axis, along), count), more) in axes.iter_mut().zip(&self.along).zip(counts).zip(more) {
            if sized || matches!(along.pads, Pads::Same { .. }) {
                let covered = i128::from(along.stride) * (*count as i128 - 1) + i128::from(along.span.unwrap_or(0));
                let beyond = (covered + i128::from(*more) - axis.input as i128).max(0);
                let pad = if begin_first { beyond - beyond / 2 } else { beyond / 2 };
                axis.pad = usize::try_from(pad).unwrap_or(usize::MAX);
            }
        }
        Ok(axes)
    }

    /// The same windows on the image with its padding, which surrounds `axes`.
    pub(super) fn padded(&self, axes: &[Axis]) -> SmallVec<[Axis; 3]> {
        let padded = |(along, axis): (&Along, &Axis)| {
            let end = match along.pads {
                Pads::Given { end, .. } => usize::try_from(end).unwrap_or(usize::MAX),
                // What the windows see beyond the image.
                Pads::Same { .. } => usize::MAX,
            };
            Axis { input: axis.pad.saturating_add(axis.input).saturating_add(end), pad: 0, ..*axis }
        };
        self.along.iter().zip(axes).map(padded).collect()
    }
}

impl Along {
    /// `None` if a place can't be counted.
    fn axis(&self, input: usize, output: usize) -> Option<Axis> {
        let size = |number: i64| usize::try_from(number).ok();
        let (stride, span) = (size(self.stride)?, size(self.span?)?);
        let pad = match self.pads {
            Pads::Given { begin, .. } => size(begin)?,
            Pads::Same { begin_first } => {
                let covered = output.saturating_sub(1).checked_mul(stride)?.checked_add(span)?;
                let pads = covered.saturating_sub(input);
                if begin_first { pads.div_ceil(2) } else { pads / 2 }
            }
        };
        let (kernel, dilation) = (size(self.taps?)?, size(self.dilation)?);
        Some(Axis { input, output, kernel, stride, dilation, pad }).filter(Axis::fits)
    }

    fn count(&self, size: &Formula, ceil: bool) -> Option<Formula> {
        let Along { span, stride, pads, .. } = *self;
        let Pads::Given { begin, end } = pads else {
            return size.plus(&Formula::from(stride - 1))?.floor_over(stride);
        };
        let span = span?;
        let beyond = match ceil {
            false => begin.checked_add(end)?.checked_sub(span)?,
            // A last window may reach beyond the end, but one that begins behind the input is none.
            true => end.checked_add(stride)?.checked_sub(span)?.min(0).checked_add(begin)? - 1,
        };
        // Where no window fits, there is none.
        size.plus(&Formula::from(beyond.checked_add(stride)?))?.at_least_0()?.floor_over(stride)
    }

    fn covered(&self, count: &Formula, more: i64) -> Option<Formula> {
        let size = count.times(&Formula::from(self.stride))?;
        let Pads::Given { begin, end } = self.pads else { return Some(size) };
        let beyond = self.span?.checked_sub(self.stride)?.checked_add(more)?.checked_sub(begin)?.checked_sub(end)?;
        size.plus(&Formula::from(beyond))
    }
}

/// An attribute with a number for each of several places, which must be at least `least`: if it isn't given, all are that.
#[derive(Debug, Clone)]
pub(super) struct Numbers {
    name: &'static str,
    pub(super) list: Vec<i64>,
    least: i64,
}

impl Numbers {
    pub(super) fn of(node: &Node<'_>, name: &'static str, least: i64) -> Result<Numbers> {
        let list = node.optional(name, Node::ints)?.map(<[i64]>::to_vec).unwrap_or_default();
        if let Some((k, number)) = list.iter().enumerate().find(|(_, number)| **number < least) {
            let text = format!("{name}[{k}] is {number}: it must be at least {least}");
            return Err(Error::model(text).attribute(name).value(*number).position(vec![k]));
        }
        Ok(Numbers { name, list, least })
    }

    /// A number for each of `count` places.
    pub(super) fn each(&self, count: usize) -> Result<SmallVec<[i64; 6]>> {
        match self.list.len() {
            0 => Ok(SmallVec::from_elem(self.least, count)),
            own if own == count => Ok(SmallVec::from_slice(&self.list)),
            own => {
                let text = format!("{} has {own} numbers: {count} are needed", self.name);
                Err(Error::model(text).attribute(self.name).size(own))
            }
        }
    }
}

fn at(list: &[i64], k: usize) -> i64 {
    list.get(k).copied().unwrap_or(0)
}

/// An attribute that must be at least 1, as the number of groups that channels are divided into.
pub(super) fn one_or_more(node: &Node<'_>, name: &str) -> Result<i64> {
    match node.int(name)? {
        number @ 1.. => Ok(number),
        number => Err(Error::model(format!("{name} is {number}: it must be at least 1")).attribute(name).value(number)),
    }
}
