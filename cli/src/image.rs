//! Pictures as tensors.

use crate::failure::exceeded;
use crate::resize;
use clap::{Args, ValueEnum};
use kernels::Lookout;
use kernels::pictures::{self, Fault, Picture, Pixel};
use onnxref::{DType, Dim, Limits, Tensor, ValueType};
use std::sync::atomic::{AtomicBool, Ordering};

/// Maximum number of pixels of a resized picture, and of what comes in between.
const MAX_PIXELS: usize = 1 << 26;

/// Maximum memory of the decoder and of the pixels.
const MAX_BYTES: usize = 1 << 31;

/// How pictures become tensors.
#[derive(Debug, Default, Args)]
pub(crate) struct Pictures {
    /// The order of the dimensions of a picture: NCHW or NHWC
    #[arg(
        long,
        value_enum,
        default_value = "nchw",
        ignore_case = true,
        hide_possible_values = true,
        hide_short_help = true
    )]
    layout: Layout,

    /// Subtract this from each channel of a picture
    ///
    /// Elements of float types are (pixel / 255 - mean) / std, those of integer types are the pixels, 0 to 255.
    #[arg(long, value_name = "R,G,B", value_delimiter = ',', value_parser = finite, hide_short_help = true, allow_negative_numbers = true)]
    mean: Vec<f32>,

    /// Then divide each channel of a picture by this
    #[arg(long, value_name = "R,G,B", value_delimiter = ',', value_parser = divisor, hide_short_help = true, allow_negative_numbers = true)]
    std: Vec<f32>,

    /// Resize pictures, by a triangle filter
    #[arg(long, value_name = "WIDTHxHEIGHT", value_parser = size, hide_short_help = true)]
    resize: Option<(usize, usize)>,

    /// Whether a picture was read.
    #[arg(skip)]
    used: AtomicBool,
}

impl Pictures {
    /// Why the flags are wrong, if they say something of pictures and none was read.
    pub(crate) fn unused(&self) -> Option<String> {
        let flags =
            [("--mean", !self.mean.is_empty()), ("--std", !self.std.is_empty()), ("--resize", self.resize.is_some())];
        let (flag, _) = flags.into_iter().find(|(_, given)| *given && !self.used.load(Ordering::Relaxed))?;
        Some(format!("{flag} is for pictures, but no input is one: give a file such as .png or .jpg with -i"))
    }
}

#[derive(Debug, Default, Clone, Copy, PartialEq, ValueEnum)]
enum Layout {
    #[default]
    Nchw,
    Nhwc,
}

fn size(text: &str) -> Result<(usize, usize), String> {
    let size = text.split_once('x').and_then(|(width, height)| Some((width.parse().ok()?, height.parse().ok()?)));
    let size = size.filter(|(width, height)| *width > 0 && *height > 0);
    let (width, height) = size.ok_or("expected a size such as 224x224")?;
    match bounded(width, height) {
        true => Ok((width, height)),
        false => Err(format!("a picture may have {MAX_PIXELS} pixels at most")),
    }
}

fn bounded(width: usize, height: usize) -> bool {
    width.saturating_mul(height) <= MAX_PIXELS
}

fn finite(text: &str) -> Result<f32, String> {
    let number = text.parse().ok().filter(|number: &f32| number.is_finite());
    number.ok_or_else(|| "expected a finite number, such as 0.485".to_string())
}

fn divisor(text: &str) -> Result<f32, String> {
    finite(text)
        .ok()
        .filter(|number| *number != 0.0)
        .ok_or("expected a finite number other than 0, such as 0.229".into())
}

/// How many channels a picture may have.
const CHANNELS: [usize; 3] = [1, 3, 4];

/// The dimensions of a picture in a tensor of 2 to 4.
struct Axes {
    /// Two dimensions have none.
    channels: Option<usize>,
    height: Option<usize>,
    width: Option<usize>,
}

impl Axes {
    fn of(order: Layout, rank: usize) -> Axes {
        let last = |count: usize| rank.checked_sub(count);
        match order {
            Layout::Nhwc if rank > 2 => Axes { channels: last(1), height: last(3), width: last(2) },
            _ => Axes { channels: last(3), height: last(2), width: last(1) },
        }
    }
}

/// Whether bytes are a picture that is read.
pub(crate) fn opens(bytes: &[u8]) -> bool {
    pictures::open(bytes, &mut Lookout::new(None)).is_ok()
}

/// The tensor of a picture, for an input of this type and shape. It takes at most as many bytes as a tensor of a run may
/// have, and its pixels as many as a run may hold.
pub(crate) fn read(
    bytes: &[u8],
    (pictures, limits): (&Pictures, &Limits),
    value_type: Option<&ValueType>,
    shape: Option<&[Dim]>,
) -> Result<Tensor, String> {
    pictures.used.store(true, Ordering::Relaxed);
    let dtype = value_type.map_or(Some(DType::Float), ValueType::dtype).ok_or("a picture is a tensor")?;
    let float = matches!(dtype, DType::Float | DType::Double | DType::Float16);
    let scaled = !pictures.mean.is_empty() || !pictures.std.is_empty();
    if scaled && !float {
        return Err(format!(
            "--mean and --std are for inputs of type float32, float64 or float16, but the input is {dtype}"
        ));
    }
    let order = pictures.layout;
    let rank = shape.map_or(4, <[Dim]>::len);
    if !(2..=4).contains(&rank) {
        return Err(format!("a picture has 2 to 4 dimensions, but the input has {rank}"));
    }
    let axes = Axes::of(order, rank);
    let fixed = |axis: Option<usize>| match shape?.get(axis?)? {
        Dim::Fixed(size) => Some(*size),
        _ => None,
    };
    let channels = if rank == 2 { 1 } else { fixed(axes.channels).unwrap_or(3) };
    let (other, name) = match order {
        Layout::Nchw => (Layout::Nhwc, "nhwc"),
        Layout::Nhwc => (Layout::Nchw, "nchw"),
    };
    // Whether the channels seem to be where the other layout has them.
    let elsewhere = fixed(Axes::of(other, rank).channels).is_some_and(|channels| CHANNELS.contains(&channels));
    if !CHANNELS.contains(&channels) {
        let hint = if elsewhere { format!(": --layout {name} says where they are") } else { String::new() };
        return Err(format!("a picture has 1, 3 or 4 channels, but the input has {channels}{hint}"));
    }

    let picture = pictures::open(bytes, &mut Lookout::new(None)).map_err(why)?;
    let found = (picture.width, picture.height);
    let (width, height) = pictures.resize.unwrap_or(found);
    let declared = (fixed(axes.width), fixed(axes.height));
    let wanted = (declared.0.unwrap_or(width), declared.1.unwrap_or(height));
    if wanted != (width, height) {
        let what = if pictures.resize.is_some() { "--resize gives" } else { "the picture is" };
        let (w, h) = wanted;
        if elsewhere && fixed(axes.channels).is_none() {
            let takes = format!("but in this layout the input takes {w}x{h}");
            return Err(format!("{what} {width}x{height}, {takes}: --layout {name} says where its channels are"));
        }
        return Err(format!("{what} {width}x{height}, but the input takes {w}x{h}: --resize {w}x{h} fits"));
    }
    if (width, height) != found && !bounded(found.0, height) {
        return Err(format!(
            "--resize {width}x{height} of a picture of {}x{} takes more than {MAX_PIXELS} pixels in between",
            found.0, found.1
        ));
    }
    let len = width.saturating_mul(height).saturating_mul(channels);
    let need = (len as u64).saturating_mul(dtype.size() as u64);
    if need > limits.tensor_bytes {
        return Err(exceeded(&format!("as {dtype} it takes"), need, "tensor_bytes", limits.tensor_bytes));
    }
    let most = usize::try_from(limits.run_bytes).unwrap_or(usize::MAX).min(MAX_BYTES);
    let pixels_of = |picture| {
        let pixels = decoded(picture, most)?;
        resize::by_triangle(pixels, found, (width, height)).map_err(why)
    };
    let colors = pixels_of(picture)?;
    let pixels = match channels {
        1 => gray(&colors)?,
        4 => {
            let opaque = || list(colors.len(), (0..colors.len()).map(|_| [u8::MAX; 3]));
            let opacity = opacity(bytes)?.map_or_else(opaque, pixels_of)?;
            let pixels = colors.iter().zip(opacity);
            list(len, pixels.flat_map(|(&[r, g, b], [opacity, ..])| [r, g, b, opacity]))?
        }
        _ => colors.into_flattened(),
    };
    let sizes = match (order, rank) {
        (_, 2) => vec![height, width],
        (Layout::Nchw, 3) => vec![channels, height, width],
        (Layout::Nhwc, 3) => vec![height, width, channels],
        (Layout::Nchw, _) => vec![1, channels, height, width],
        (Layout::Nhwc, _) => vec![1, height, width, channels],
    };
    let pixels = if order == Layout::Nchw { planes(&pixels, channels)? } else { pixels };
    let channel = |k: usize| if order == Layout::Nchw { k / (width * height).max(1) } else { k % channels };
    let norm = |k: usize, pixel: u8| {
        let of = |list: &[f32], otherwise: f32| match list {
            [] => otherwise,
            [all] => *all,
            each => each.get(channel(k)).copied().unwrap_or(otherwise),
        };
        (f32::from(pixel) / 255.0 - of(&pictures.mean, 0.0)) / of(&pictures.std, 1.0)
    };
    for (flag, list) in [("--mean", &pictures.mean), ("--std", &pictures.std)] {
        if list.len() > 1 && list.len() != channels {
            return Err(format!("{flag} has {} values, but the picture has {channels} channels", list.len()));
        }
    }
    let floats = || pixels.iter().enumerate().map(|(k, pixel)| norm(k, *pixel));
    let tensor = match dtype {
        DType::Float => Tensor::from_elements(&sizes, list(len, floats())?),
        DType::Double => Tensor::from_elements(&sizes, list(len, floats().map(f64::from))?),
        DType::Float16 => Tensor::from_elements(&sizes, list(len, floats().map(onnxref::half::f16::from_f32))?),
        DType::Uint8 => Tensor::from_elements(&sizes, pixels),
        DType::Int32 => Tensor::from_elements(&sizes, list(len, pixels.into_iter().map(i32::from))?),
        DType::Int64 => Tensor::from_elements(&sizes, list(len, pixels.into_iter().map(i64::from))?),
        other => return Err(format!("a picture can't become {other}: float32, float64, float16, uint8, int32, int64")),
    };
    tensor.map_err(|e| format!("{e:#}"))
}

/// The pixels row by row. With the decoder they take at most so many bytes.
fn decoded(picture: Picture<'_>, most: usize) -> Result<Vec<Pixel>, String> {
    let (len, memory) = (picture.width.saturating_mul(picture.height), picture.memory);
    if len.saturating_mul(size_of::<Pixel>()).saturating_add(memory) > most {
        let flag = if most < MAX_BYTES { " (--limit run_bytes=N raises it)" } else { "" };
        return Err(format!(
            "decoding the picture of {}x{} takes more than {most} bytes{flag}",
            picture.width, picture.height
        ));
    }
    let mut pixels = list(len, (0..len).map(|_| Pixel::default()))?;
    picture.decode(&mut pixels, &mut Lookout::new(None)).map_err(why)?;
    Ok(pixels)
}

fn gray(colors: &[Pixel]) -> Result<Vec<u8>, String> {
    let mut gray = list(colors.len(), colors.iter().map(|_| 0))?;
    pictures::luma(colors, &mut gray, &mut Lookout::new(None)).map_err(why)?;
    Ok(gray)
}

/// The picture of the opacity, if the format has any.
fn opacity(bytes: &[u8]) -> Result<Option<Picture<'_>>, String> {
    let opened = pictures::open_opacity(bytes, &mut Lookout::new(None));
    opened.map_err(|_| "the opacity of pixels, the fourth channel, is read from PNG only".to_string())
}

fn why(fault: Fault) -> String {
    match fault {
        Fault::Undecodable => {
            "a damaged picture, or one that isn't read: PNG, JPEG, WebP, TIFF, BMP, PNM and JPEG 2000 are".to_string()
        }
        Fault::NoMemory(bytes) => format!("no memory for {bytes} bytes of the picture"),
        Fault::Stopped(stopped) => format!("{stopped:?}"),
    }
}

/// From the channels of each pixel to the pixels of each channel.
fn planes(pixels: &[u8], channels: usize) -> Result<Vec<u8>, String> {
    let planes = (0..channels).flat_map(|channel| pixels.iter().skip(channel).step_by(channels).copied());
    list(pixels.len(), planes)
}

/// A list of `len` entries of a picture.
fn list<T>(len: usize, entries: impl Iterator<Item = T>) -> Result<Vec<T>, String> {
    let mut list = room(len).map_err(why)?;
    list.extend(entries);
    Ok(list)
}

/// An empty list with room for `len` entries of a picture.
pub(crate) fn room<T>(len: usize) -> Result<Vec<T>, Fault> {
    let mut room = Vec::new();
    room.try_reserve_exact(len).map_err(|_| Fault::NoMemory(len.saturating_mul(size_of::<T>())))?;
    Ok(room)
}
