#!/usr/bin/env python3
"""Writes small pictures in all formats with the pixels that Pillow decodes.

    python tools/make_pictures.py           writes kernels/src/pictures/cases.txt
    python tools/make_pictures.py --check   exits 1 if Pillow decodes other pixels from the files that are there

A line is a name, the size, the file and its pixels, red, green and blue. Needs numpy, Pillow and simplejpeg.
"""

import io
import sys
from pathlib import Path

import numpy as np
import simplejpeg
from PIL import Image

CASES = Path(__file__).resolve().parent.parent / "kernels" / "src" / "pictures" / "cases.txt"
HEAD = "# Pictures and what Pillow decodes: written by tools/make_pictures.py.\n"


def main():
    if sys.argv[1:] == ["--check"]:
        lines = [line.split(" ") for line in CASES.read_text().splitlines()[1:]]
        wrong = [line[0] for line in lines if decoded(bytes.fromhex(line[2])) != (line[1], line[3])]
        sys.exit(f"Pillow decodes others: {wrong}" if wrong else 0)
    text = HEAD
    for name, file in pictures():
        size, pixels = decoded(file)
        text += f"{name} {size} {file.hex()} {pixels}\n"
    CASES.write_text(text, encoding="utf-8", newline="\n")


def decoded(file):
    image = Image.open(io.BytesIO(file)).convert("RGB")
    return f"{image.width}x{image.height}", image.tobytes().hex()


def pictures():
    for progressive in (False, True):
        kind = "progressive" if progressive else "sequential"
        for factors, width, height in (("4:4:4", 9, 7), ("4:2:2", 17, 3), ("4:2:0", 19, 9), ("4:2:0", 5, 17)):
            options = {"subsampling": factors, "quality": 80, "progressive": progressive}
            yield f"jpeg_{kind}_{factors}_{width}", saved(picture(width, height), "JPEG", **options)
        yield f"jpeg_{kind}_gray", saved(picture(9, 9).convert("L"), "JPEG", progressive=progressive)
        yield f"jpeg_{kind}_cmyk", saved(cmyk(9, 5), "JPEG", progressive=progressive)
        yield f"jpeg_{kind}_restarts", saved(picture(25, 9), "JPEG", restart_marker_blocks=1, progressive=progressive)
    yield "jpeg_optimized", saved(picture(17, 9), "JPEG", optimize=True, quality=95)
    yield "jpeg_rgb", saved(picture(9, 5), "JPEG", keep_rgb=True)
    yield "jpeg_coarse", saved(noise(18, 9), "JPEG", quality=1)
    yield "jpeg_fine", saved(noise(9, 9), "JPEG", quality=100)
    for width in (1, 2, 3):
        yield f"jpeg_narrow_{width}", saved(picture(width, 5), "JPEG", subsampling="4:2:0")
    for factors in ("440", "411"):
        array = np.asarray(picture(11, 19))
        yield f"jpeg_{factors}", simplejpeg.encode_jpeg(array, quality=90, colorsubsampling=factors)
    for mode in ("1", "L", "LA", "RGB", "RGBA"):
        yield f"png_{mode}", saved(picture(11, 5).convert(mode), "PNG")
    for colors in (2, 4, 16, 40):
        yield f"png_palette_{colors}", saved(picture(11, 5).quantize(colors), "PNG")
    yield "png_unpacked", saved(noise(7, 3), "PNG", compress_level=0)
    yield "bmp_rgb", saved(picture(5, 3), "BMP")
    yield "bmp_gray", saved(picture(7, 3).convert("L").point(lambda value: value & 0xF0), "BMP")
    yield "bmp_bits", saved(picture(11, 3).convert("1"), "BMP")
    yield "bmp_runs", runs()
    yield "bmp_half_runs", half_runs()
    yield "bmp_565", masks()
    yield "ppm", saved(picture(5, 3), "PPM")
    yield "pgm", saved(picture(5, 3).convert("L"), "PPM")
    yield "pbm", saved(picture(11, 3).convert("1"), "PPM")
    yield "pgm_text", b"P2 # grays\n3 2 # size\n7\n0 1 2\n5 6 7\n"
    yield "pbm_text", b"P1\n5 2\n10101\n0 1 1 0 0\n"
    yield "ppm_text", b"P3 2 1 1000 0 500 1000 250 1 999"
    yield "ppm_16_bits", b"P6\n2 1 65535\n" + bytes(range(100, 112))
    for packing in (None, "tiff_lzw", "packbits", "tiff_adobe_deflate"):
        yield f"tiff_rgb_{packing}", saved(picture(7, 5), "TIFF", compression=packing)
    for mode in ("1", "L", "LA", "RGBA", "CMYK"):
        image = cmyk(5, 3) if mode == "CMYK" else picture(11, 3).convert(mode)
        yield f"tiff_{mode}", saved(image, "TIFF", compression="tiff_lzw")
    yield "tiff_palette", saved(picture(7, 3).quantize(16), "TIFF")
    yield "tiff_differences", saved(picture(9, 5), "TIFF", compression="tiff_lzw", tiffinfo={317: 2})
    yield "tiff_strips", saved(picture(5, 7), "TIFF", compression="tiff_lzw", tiffinfo={278: 2})
    yield "webp_lossy", saved(picture(19, 9), "WEBP", quality=60)
    yield "webp_lossless", saved(picture(9, 5), "WEBP", lossless=True)
    yield "webp_transparent", saved(transparent(9, 5), "WEBP", quality=60)
    yield "webp_lossless_transparent", saved(transparent(9, 5), "WEBP", lossless=True, exact=True)
    for mode in ("L", "LA", "RGB", "RGBA"):
        yield f"jpeg2000_{mode}", saved(picture(9, 5).convert(mode), "JPEG2000")
    yield "jpeg2000_stream", saved(picture(13, 9), "JPEG2000", no_jp2=True, num_resolutions=2)
    yield "jpeg2000_tiles", saved(picture(13, 9), "JPEG2000", tile_size=(8, 8), num_resolutions=2)


def picture(width, height):
    y, x = np.mgrid[0:height, 0:width]
    channels = [x * 23 + y * 5, 255 - y * 19 - x * 3, x * y * 7 + 40]
    return Image.fromarray((np.stack(channels, -1) % 256).astype(np.uint8), "RGB")


def noise(width, height):
    return Image.fromarray(np.random.RandomState(1).randint(0, 256, (height, width, 3), dtype=np.uint8), "RGB")


def cmyk(width, height):
    image = picture(width, height)
    return Image.merge("CMYK", [*image.split(), image.convert("L")])


def transparent(width, height):
    image = picture(width, height)
    image.putalpha(image.getchannel(2))
    return image


def saved(image, kind, **options):
    file = io.BytesIO()
    image.save(file, kind, **options)
    return file.getvalue()


def bitmap(width, height, bits, compression, tail, data):
    def word(number):
        return (number % (1 << 32)).to_bytes(4, "little")

    start = 54 + len(tail)
    head = b"BM" + word(start + len(data)) + word(0) + word(start) + word(40) + word(width) + word(height)
    middle = (1).to_bytes(2, "little") + bits.to_bytes(2, "little") + word(compression) + word(len(data))
    return head + middle + word(0) * 4 + tail + data


def palette(count):
    return bytes(value for k in range(count) for value in (k * 5 % 256, 255 - k, k * 3 % 256, 0))


def runs():
    return bitmap(6, 3, 8, 1, palette(256), bytes([6, 9, 0, 0, 0, 3, 1, 2, 3, 0, 3, 7, 0, 0, 2, 4, 4, 5, 0, 1]))


def half_runs():
    return bitmap(6, 2, 4, 2, palette(16), bytes([5, 0x12, 1, 0x30, 0, 0, 0, 5, 0x12, 0x34, 0x50, 0, 1, 0x60, 0, 1]))


def masks():
    tail = b"".join(mask.to_bytes(4, "little") for mask in (0xF800, 0x7E0, 0x1F))
    return bitmap(2, -2, 16, 3, tail, bytes([0x34, 0x12, 0xFF, 0xFF, 0xCD, 0xAB, 0x10, 0x84]))


if __name__ == "__main__":
    main()
