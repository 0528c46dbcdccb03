//! Pictures of `cases.txt`, which `tools/make_pictures.py` writes with the pixels that Pillow decodes, and damaged ones.

use super::{Fault, Pixel, open, open_opacity};
use crate::{Resources, Stop, Stopped};

const CASES: &str = include_str!("cases.txt");

fn bytes(hex: &str) -> Vec<u8> {
    let pair = |k| u8::from_str_radix(&hex[k..k + 2], 16).unwrap();
    (0..hex.len()).step_by(2).map(pair).collect()
}

/// The name, the file, the size and the pixels of each case.
fn cases() -> impl Iterator<Item = (&'static str, Vec<u8>, String, Vec<u8>)> {
    CASES.lines().skip(1).map(|line| {
        let [name, size, file, pixels] = line.split(' ').collect::<Vec<_>>()[..] else { panic!("{line}") };
        (name, bytes(file), size.to_string(), bytes(pixels))
    })
}

/// The size and the pixels.
fn decoded(file: &[u8]) -> Result<(String, Vec<u8>), Fault> {
    let mut lookout = Resources { threads: 1, stop: None }.lookout();
    let picture = open(file, &mut lookout)?;
    let size = format!("{}x{}", picture.width, picture.height);
    assert!(picture.memory < 1 << 26 && picture.work < 1 << 26, "{size}: {} {}", picture.memory, picture.work);
    let mut pixels = vec![[0; 3]; picture.width * picture.height];
    picture.decode(&mut pixels, &mut lookout)?;
    Ok((size, pixels.into_iter().flatten().collect()))
}

#[test]
fn pixels_are_those_of_pillow() {
    let mut count = 0;
    for (name, file, size, pixels) in cases() {
        assert_eq!(decoded(&file), Ok((size, pixels)), "{name}");
        count += 1;
    }
    assert_eq!(count, 68);
}

/// The opacity of a PNG with this chunk behind its header, as the numbers of the first row, and its colours.
fn opacities(name: &str, transparency: &[u8]) -> (Vec<u8>, Vec<u8>) {
    let (_, mut file, _, pixels) = cases().find(|case| case.0 == name).unwrap();
    let at = file.windows(4).position(|window| window == b"IDAT").unwrap() - 4;
    let chunk = [&(transparency.len() as u32).to_be_bytes(), b"tRNS", transparency, &[0; 4]].concat();
    file.splice(at..at, chunk);
    let mut lookout = Resources { threads: 1, stop: None }.lookout();
    let picture = open_opacity(&file, &mut lookout).unwrap().unwrap();
    let mut opacity = vec![[0; 3]; picture.width * picture.height];
    picture.decode(&mut opacity, &mut lookout).unwrap();
    assert_eq!(decoded(&file).unwrap().1, pixels, "{name}");
    (opacity.iter().map(|[opacity, ..]| *opacity).collect(), pixels)
}

#[test]
fn the_opacity_of_a_png() {
    for name in ["png_1", "png_L", "png_RGB", "png_RGBA", "png_LA", "png_palette_4", "png_palette_40"] {
        assert!(opacities(name, &[]).0.iter().all(|opacity| *opacity == 255), "{name}");
    }
    // One colour is transparent: of 1 bit, of 8 bits, of three samples.
    for (name, samples, most) in [("png_1", 1, 1), ("png_L", 1, 255), ("png_RGB", 3, 255)] {
        let (_, pixels) = opacities(name, &[]);
        let colors: &[Pixel] = bytemuck::cast_slice(&pixels);
        let clear = colors[colors.len() / 2];
        let chunk: Vec<u8> = clear[..samples].iter().flat_map(|sample| [0, sample & most]).collect();
        let (opacity, _) = opacities(name, &chunk);
        for (color, opacity) in colors.iter().zip(opacity) {
            assert_eq!(opacity, if *color == clear { 0 } else { 255 }, "{name}");
        }
    }
    // That of each number of a palette; numbers beyond the list are opaque.
    let (opacity, pixels) = opacities("png_palette_4", &[10, 20, 255]);
    let mut pairs: Vec<_> = bytemuck::cast_slice::<_, Pixel>(&pixels).iter().zip(opacity).collect();
    pairs.sort();
    pairs.dedup();
    let mut found: Vec<u8> = pairs.iter().map(|pair| pair.1).collect();
    found.sort();
    assert_eq!(found, [10, 20, 255, 255]);
    let none =
        |file| open_opacity(file, &mut Resources { threads: 1, stop: None }.lookout()).map(|found| found.is_none());
    assert_eq!(none(b"P5 1 1 255 a"), Ok(true));
    assert_eq!(none(b"RIFF"), Err(Fault::Undecodable));
}

/// What Pillow decodes otherwise: it cuts grays of 16 bits at 255.
#[test]
fn the_high_byte_of_16_bits_counts() {
    let long = |tag: u16, value: u32| {
        let value = value.to_be_bytes();
        [tag.to_be_bytes(), [0, 4], [0, 0], [0, 1], [value[0], value[1]], [value[2], value[3]]]
    };
    let tags = [long(256, 3), long(257, 1), long(258, 16), long(262, 1), long(273, 82), long(279, 6)];
    let mut file = b"MM\0\x2A\0\0\0\x08\0\x06".to_vec();
    tags.iter().flatten().for_each(|bytes| file.extend(bytes));
    file.extend([0x12, 0x34, 0xFF, 0, 0, 0xFF]);
    assert_eq!(decoded(&file), Ok(("3x1".into(), vec![0x12, 0x12, 0x12, 0xFF, 0xFF, 0xFF, 0, 0, 0])));
}

#[test]
fn what_is_not_decoded() {
    let faults = |file: &[u8]| assert_eq!(decoded(file), Err(Fault::Undecodable), "{file:?}");
    for file in [
        &b""[..],
        b"BM",
        b"GIF89a",
        b"P6 0 1 255 ",
        b"P6 2 1 255 abcde",
        b"P5 1 1 0 a",
        b"P5 1 1 65536 ab",
        b"P2 1 1 9 x",
    ] {
        faults(file);
    }
    // No frame, a frame of 12 bits, factors that don't divide each other, arithmetic codes.
    faults(&bytes("ffd8ffd9"));
    faults(&bytes("ffd8ffc0000b0c0001000101011100ffd9"));
    faults(&bytes("ffd8ffc00011080001000103013100022100031100ffd9"));
    faults(&bytes("ffd8ffc9000b080001000101011100ffd9"));
}

/// A file that ends early has no pixels, or all of them if what is missing comes after them.
#[test]
fn files_that_end_early() {
    // The last number of a text may have fewer digits.
    for (name, file, size, pixels) in cases().filter(|(name, ..)| !name.ends_with("_text")) {
        for len in 0..file.len() {
            match decoded(&file[..len]) {
                Err(fault) => assert_eq!(fault, Fault::Undecodable, "{name}: {len}"),
                Ok(early) => assert_eq!(early, (size.clone(), pixels.clone()), "{name}: {len} of {}", file.len()),
            }
        }
    }
}

/// Whatever a byte is, there are pixels or a fault.
#[test]
fn damaged_files() {
    let mut counts = [0; 2];
    for (_, file, ..) in cases() {
        for at in (0..file.len()).step_by(5) {
            let mut file = file.clone();
            file[at] = file[at].wrapping_mul(31).wrapping_add(at as u8 | 1);
            let size = open(&file, &mut Resources { threads: 1, stop: None }.lookout());
            if size
                .as_ref()
                .is_ok_and(|picture| picture.memory + picture.work + picture.width * picture.height > 1 << 26)
            {
                continue;
            }
            counts[usize::from(decoded(&file).is_ok())] += 1;
        }
    }
    assert!(counts.iter().all(|count| *count > 500), "{counts:?}");
}

#[test]
fn decoding_stops() {
    let stop = Stop::default();
    stop.stop();
    let mut lookout = Resources { threads: 1, stop: Some(&stop) }.lookout();
    let file = [b"P6 1000 1000 255 ".to_vec(), vec![7; 3_000_000]].concat();
    let mut pixels = vec![Pixel::default(); 1_000_000];
    let stopped = open(&file, &mut lookout).and_then(|picture| picture.decode(&mut pixels, &mut lookout));
    assert_eq!(stopped, Err(Fault::Stopped(Stopped::Cancelled)));
}
