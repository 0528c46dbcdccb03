//! Pictures as tensors.

use clap::{Args, ValueEnum};
use image::{DynamicImage, imageops::FilterType};
use onnxref::{DType, Dim, Tensor, ValueType};

/// Maximum number of pixels of a picture.
const MAX_PIXELS: u64 = 1 << 28;

/// How pictures become tensors.
#[derive(Debug, Args)]
pub(crate) struct Pictures {
    /// The order of the dimensions of a picture: NCHW or NHWC
    #[arg(long, value_enum, default_value = "nchw", hide_possible_values = true, hide_short_help = true)]
    layout: Layout,

    /// Subtract this from each channel of a picture
    ///
    /// Elements of float types are (pixel / 255 - mean) / std, those of integer types are the pixels, 0 to 255.
    #[arg(long, value_name = "R,G,B", value_delimiter = ',', hide_short_help = true, allow_negative_numbers = true)]
    mean: Vec<f32>,

    /// Then divide each channel of a picture by this
    #[arg(long, value_name = "R,G,B", value_delimiter = ',', hide_short_help = true)]
    std: Vec<f32>,

    /// Resize pictures, by a triangle filter
    #[arg(long, value_name = "WIDTHxHEIGHT", value_parser = size, hide_short_help = true)]
    resize: Option<(u32, u32)>,
}

#[derive(Debug, Clone, Copy, PartialEq, ValueEnum)]
enum Layout {
    Nchw,
    Nhwc,
}

fn size(text: &str) -> Result<(u32, u32), String> {
    let size = text.split_once('x').and_then(|(width, height)| Some((width.parse().ok()?, height.parse().ok()?)));
    size.filter(|(width, height)| *width > 0 && *height > 0)
        .ok_or_else(|| "expected a size such as 224x224".to_string())
}

/// The tensor of a PNG or JPEG picture, for an input of this type and shape.
pub(crate) fn read(
    bytes: &[u8],
    pictures: &Pictures,
    value_type: Option<&ValueType>,
    shape: Option<&[Dim]>,
) -> Result<Tensor, String> {
    let mut reader =
        image::ImageReader::new(std::io::Cursor::new(bytes)).with_guessed_format().map_err(|e| e.to_string())?;
    let mut limits = image::Limits::default();
    limits.max_alloc = Some(8 * MAX_PIXELS);
    reader.limits(limits);
    let picture = reader.decode().map_err(|e| e.to_string())?;
    let picture = match pictures.resize {
        Some((width, height)) if (width, height) != (picture.width(), picture.height()) => {
            picture.resize_exact(width, height, FilterType::Triangle)
        }
        _ => picture,
    };
    let dtype = value_type.map_or(Some(DType::Float), ValueType::dtype).ok_or("a picture is a tensor")?;
    let order = pictures.layout;
    let rank = shape.map_or(4, <[Dim]>::len);
    if !(2..=4).contains(&rank) {
        return Err(format!("a picture has 2 to 4 dimensions, but the input has {rank}"));
    }
    let axis = if order == Layout::Nchw { rank.checked_sub(3) } else { rank.checked_sub(1).filter(|_| rank > 2) };
    let declared =
        axis.and_then(|axis| shape?.get(axis)).and_then(|dim| if let Dim::Fixed(n) = dim { Some(*n) } else { None });
    let channels = if rank == 2 { 1 } else { declared.unwrap_or(3) };
    let (width, height) = (picture.width() as usize, picture.height() as usize);
    let pixels = pixels(picture, channels)?;
    let sizes = match (order, rank) {
        (_, 2) => vec![height, width],
        (Layout::Nchw, 3) => vec![channels, height, width],
        (Layout::Nhwc, 3) => vec![height, width, channels],
        (Layout::Nchw, _) => vec![1, channels, height, width],
        (Layout::Nhwc, _) => vec![1, height, width, channels],
    };
    let pixels = if order == Layout::Nchw { planes(&pixels, channels) } else { pixels };
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
    let floats = || pixels.iter().enumerate().map(|(k, pixel)| norm(k, *pixel)).collect::<Vec<f32>>();
    let tensor = match dtype {
        DType::Float => Tensor::from_elements(&sizes, floats()),
        DType::Double => Tensor::from_elements(&sizes, floats().into_iter().map(f64::from).collect()),
        DType::Float16 => {
            Tensor::from_elements(&sizes, floats().into_iter().map(onnxref::half::f16::from_f32).collect())
        }
        DType::Uint8 => Tensor::from_elements(&sizes, pixels),
        DType::Int32 => Tensor::from_elements(&sizes, pixels.into_iter().map(i32::from).collect()),
        DType::Int64 => Tensor::from_elements(&sizes, pixels.into_iter().map(i64::from).collect()),
        other => return Err(format!("a picture can't become {other}: float32, float64, float16, uint8, int32, int64")),
    };
    tensor.map_err(|e| format!("{e:#}"))
}

/// The pixels row by row, the channels of each together.
fn pixels(picture: DynamicImage, channels: usize) -> Result<Vec<u8>, String> {
    match channels {
        1 => Ok(picture.into_luma8().into_raw()),
        3 => Ok(picture.into_rgb8().into_raw()),
        4 => Ok(picture.into_rgba8().into_raw()),
        _ => Err(format!(
            "a picture has 1, 3 or 4 channels, but the input has {channels} (--layout says where they are)"
        )),
    }
}

/// From the channels of each pixel to the pixels of each channel.
fn planes(pixels: &[u8], channels: usize) -> Vec<u8> {
    (0..channels).flat_map(|channel| pixels.iter().skip(channel).step_by(channels).copied()).collect()
}
