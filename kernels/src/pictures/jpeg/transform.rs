//! From coefficients to samples, and from brightness and colour to red, green and blue: in integers, as libjpeg does.

use super::super::Pixel;
use super::BLOCK;

/// Fractional bits of factors.
const FRACTION: u32 = 13;

/// Fractional bits kept between columns and rows.
const KEPT: u32 = 2;

/// Factors of the transform by Loeffler, Ligtenberg and Moschytz, with [`FRACTION`] bits.
const C_0_298: i32 = 2446;
const C_0_390: i32 = 3196;
const C_0_541: i32 = 4433;
const C_0_765: i32 = 6270;
const C_0_899: i32 = 7373;
const C_1_175: i32 = 9633;
const C_1_501: i32 = 12299;
const C_1_847: i32 = 15137;
const C_1_961: i32 = 16069;
const C_2_053: i32 = 16819;
const C_2_562: i32 = 20995;
const C_3_072: i32 = 25172;

/// The inverse cosine transform of a block, after its coefficients are multiplied by their steps: 8 rows.
pub(super) fn inverse<'p>(block: &[i16; BLOCK], steps: &[u16; BLOCK], rows: impl Iterator<Item = &'p mut [u8; 8]>) {
    let mut work = [0i32; BLOCK];
    for ((to, coefficient), step) in work.iter_mut().zip(block).zip(steps) {
        *to = i32::from(*coefficient).wrapping_mul((*step).into());
    }
    let mut columns = turned(&work);
    for column in columns.as_chunks_mut().0 {
        *column = pass(column, FRACTION - KEPT);
    }
    for (samples, row) in rows.zip(turned(&columns).as_chunks().0) {
        *samples = pass(row, FRACTION + KEPT + 3).map(|sample| sample.wrapping_add(128).clamp(0, 255) as u8);
    }
}

fn turned(block: &[i32; BLOCK]) -> [i32; BLOCK] {
    std::array::from_fn(|k| block.get(k % 8 * 8 + k / 8).copied().unwrap_or_default())
}

/// The transform of 8 numbers, rounded to `shift` bits less. Sums of numbers that no picture has may wrap.
fn pass(&[a, b, c, d, e, f, g, h]: &[i32; 8], shift: u32) -> [i32; 8] {
    let add = i32::wrapping_add;
    let sub = i32::wrapping_sub;
    let times = i32::wrapping_mul;
    // Even numbers.
    let both = times(add(c, g), C_0_541);
    let (low, high) = (add(both, times(g, -C_1_847)), add(both, times(c, C_0_765)));
    let (sum, difference) = (add(a, e) << FRACTION, sub(a, e) << FRACTION);
    let even = [add(sum, high), add(difference, low), sub(difference, low), sub(sum, high)];
    // Odd numbers.
    let (hb, fd, hd, fb) = (add(h, b), add(f, d), add(h, d), add(f, b));
    let all = times(add(hd, fb), C_1_175);
    let (hb, fd) = (times(hb, -C_0_899), times(fd, -C_2_562));
    let (hd, fb) = (add(times(hd, -C_1_961), all), add(times(fb, -C_0_390), all));
    let odd = [
        add(add(times(b, C_1_501), hb), fb),
        add(add(times(d, C_3_072), fd), hd),
        add(add(times(f, C_2_053), fd), fb),
        add(add(times(h, C_0_298), hb), hd),
    ];
    let half = 1 << (shift - 1);
    let rounded = |value: i32| add(value, half) >> shift;
    let [e0, e1, e2, e3] = even;
    let [o0, o1, o2, o3] = odd;
    [add(e0, o0), add(e1, o1), add(e2, o2), add(e3, o3), sub(e3, o3), sub(e2, o2), sub(e1, o1), sub(e0, o0)]
        .map(rounded)
}

/// Red, green and blue of brightness and two differences of colour.
pub(super) fn rgb(y: u8, cb: u8, cr: u8) -> Pixel {
    const HALF: i32 = 1 << 15;
    let (y, cb, cr) = (i32::from(y), i32::from(cb) - 128, i32::from(cr) - 128);
    let red = y + ((91881 * cr + HALF) >> 16);
    let green = y + ((-22554 * cb - 46802 * cr + HALF) >> 16);
    let blue = y + ((116_130 * cb + HALF) >> 16);
    [red, green, blue].map(|value| value.clamp(0, 255) as u8)
}
