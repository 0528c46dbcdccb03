//! ImageDecoder: the pixels of a picture that is stored as BMP, JPEG, PNG and others.
//! <https://onnx.ai/onnx/operators/onnx__ImageDecoder.html>

use crate::ops::prelude::*;
use kernels::pictures::{self, Fault, Picture, Pixel};

pub(super) const IMAGE_DECODER: Implementation = Implementation::run("ImageDecoder", &[20], load);

/// `image[y, x, c]` = channel `c` of a pixel of the picture in `encoded_stream`
///
/// A stream that can't be decoded gives an image without pixels. Transparency is dropped; of 16 bits the high 8 count; CMYK
/// becomes RGB without a colour profile; the orientation in EXIF is ignored. Pixels of JPEG are those of libjpeg. Grays are
/// computed from red, green and blue.
#[derive(Debug)]
struct ImageDecoder {
    format: PixelFormat,
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum PixelFormat {
    Rgb,
    Bgr,
    Grayscale,
}

impl PixelFormat {
    fn channels(self) -> usize {
        if self == PixelFormat::Grayscale { 1 } else { size_of::<Pixel>() }
    }
}

fn load(node: &Node<'_>) -> Result<Box<dyn Operator>> {
    let formats = [("RGB", PixelFormat::Rgb), ("BGR", PixelFormat::Bgr), ("Grayscale", PixelFormat::Grayscale)];
    Ok(Box::new(ImageDecoder { format: node.choice("pixel_format", &formats)? }))
}

impl Operator for ImageDecoder {
    fn run(&self, call: &mut Call<'_>) -> Result<Values> {
        call.by_rule(|facts| facts.sizes::<1>(0).map(|_| ()))?;
        let stream = call.tensor(0)?.as_slice::<u8>()?;
        let decoded = pictures::open(stream, &mut call.lookout());
        let image = match decoded.map_err(Failure::from).and_then(|picture| self.decode(picture, call)) {
            Err(Failure::Undecodable) => call.output::<u8>(&[0, 0, self.format.channels()])?,
            Err(Failure::Error(error)) => return Err(error),
            Ok(image) => image,
        };
        Ok(image.finish().into())
    }

    /// The image of a stream that can't be decoded has channels, too.
    fn infer(&self, facts: &mut Inference<'_>) -> Result<()> {
        facts.sizes::<1>(0)?;
        facts.give(0, [Dim::Unknown, Dim::Unknown, Dim::Fixed(self.format.channels())]);
        Ok(())
    }
}

/// Why there is no image.
enum Failure {
    Undecodable,
    Error(Error),
}

impl From<Error> for Failure {
    fn from(error: Error) -> Failure {
        Failure::Error(error)
    }
}

impl From<Stopped> for Failure {
    fn from(stopped: Stopped) -> Failure {
        Failure::Error(stopped.into())
    }
}

impl From<Fault> for Failure {
    fn from(fault: Fault) -> Failure {
        match fault {
            Fault::Undecodable => Failure::Undecodable,
            Fault::NoMemory(bytes) => Error::out_of_memory("the picture", bytes as u64).into(),
            Fault::Stopped(stopped) => stopped.into(),
        }
    }
}

impl ImageDecoder {
    fn decode(&self, picture: Picture<'_>, call: &Call<'_>) -> Result<NewTensor, Failure> {
        call.charge(picture.work as u64)?;
        let mut image = call.output::<u8>(&[picture.height, picture.width, self.format.channels()])?;
        let _decoder = call.context().memory.count(picture.memory)?;
        let mut lookout = call.lookout();
        if self.format == PixelFormat::Grayscale {
            let mut colors = call.scratch::<Pixel>(picture.width * picture.height)?;
            let colors = colors.elements_mut::<Pixel>();
            picture.decode(colors, &mut lookout)?;
            pictures::luma(colors, image.bytes_mut(), &mut lookout)?;
            return Ok(image);
        }
        let colors = image.bytes_mut().as_chunks_mut().0;
        picture.decode(colors, &mut lookout)?;
        if self.format == PixelFormat::Bgr {
            pictures::reverse(colors, &mut lookout)?;
        }
        Ok(image)
    }
}

#[cfg(test)]
mod tests {
    use crate::ops::testing::{infer, run, string, tensor};
    use crate::value::Value;

    fn stream(bytes: &[u8]) -> Value {
        tensor(&[bytes.len()], bytes.to_vec())
    }

    /// Red, and a dark pixel of other shares.
    const PIXELS: &[u8] = b"P6 2 1 255 \xFF\x00\x00\x0A\x14\x28";

    #[test]
    fn formats_of_pixels() {
        let decoded = |format| run("ImageDecoder", 20, [string("pixel_format", format)], [&stream(PIXELS)]);
        decoded("RGB").gives(tensor(&[1, 2, 3], vec![255u8, 0, 0, 10, 20, 40]));
        decoded("BGR").gives(tensor(&[1, 2, 3], vec![0u8, 0, 255, 40, 20, 10]));
        decoded("Grayscale").gives(tensor(&[1, 2, 1], vec![76u8, 19]));
        run("ImageDecoder", 28, [], [&stream(PIXELS)]).gives(tensor(&[1, 2, 3], vec![255u8, 0, 0, 10, 20, 40]));
    }

    #[test]
    fn what_is_no_picture_has_no_pixels() {
        for bytes in [&b""[..], b"no picture", &PIXELS[..PIXELS.len() - 1]] {
            run("ImageDecoder", 20, [], [&stream(bytes)]).gives(tensor(&[0, 0, 3], Vec::<u8>::new()));
        }
        let gray = [string("pixel_format", "Grayscale")];
        run("ImageDecoder", 20, gray, [&stream(b"")]).gives(tensor(&[0, 0, 1], Vec::<u8>::new()));
    }

    #[test]
    fn refusals() {
        run("ImageDecoder", 20, [], [&tensor(&[1, 2], vec![0u8; 2])])
            .fails("\"encoded_stream\" has shape [1, 2] of rank 2");
    }

    #[test]
    fn shapes() {
        infer("ImageDecoder", 20, [], ["uint8[n]"]).gives("[?, ?, 3]");
        infer("ImageDecoder", 20, [string("pixel_format", "BGR")], ["uint8"]).gives("[?, ?, 3]");
        infer("ImageDecoder", 20, [string("pixel_format", "Grayscale")], ["uint8"]).gives("[?, ?, 1]");
        infer("ImageDecoder", 20, [], ["uint8[2, 3]"]).fails("\"encoded_stream\" has shape [2, 3] of rank 2");
        infer("ImageDecoder", 20, [string("pixel_format", "rgb")], ["uint8"])
            .fails("pixel_format is \"rgb\": allowed RGB, BGR, Grayscale");
    }
}
