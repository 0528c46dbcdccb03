//! Components with fewer samples than the picture has pixels.

use super::{Component, Jpeg};

/// Writes a line of a component, as wide as the picture.
///
/// Between samples at half the distance a pixel takes 3/4 of the nearer and 1/4 of the other one; halves are rounded down and
/// up in turns. Other factors, and lines of one or two samples, repeat the samples.
pub(super) fn line(jpeg: &Jpeg<'_>, component: &Component, plane: &[u8], y: usize, sums: &mut [u16], line: &mut [u8]) {
    let (across, down) = (jpeg.across / component.across, jpeg.down / component.down);
    let row = |y: usize| {
        let from = y.min(component.height - 1) * component.row * 8;
        plane.get(from..from + component.width).unwrap_or_default()
    };
    let near = row(y / down);
    let smooth = match (across, down) {
        (1, 2) => true,
        (2, 1 | 2) => component.width > 2,
        _ => false,
    };
    if !smooth {
        for (samples, sample) in line.chunks_mut(across).zip(near) {
            samples.fill(*sample);
        }
        return;
    }
    let sums = sums.get_mut(..component.width).unwrap_or_default();
    let upper = y.is_multiple_of(2);
    if down == 2 {
        let far = row(if upper { (y / 2).saturating_sub(1) } else { y / 2 + 1 });
        for ((sum, near), far) in sums.iter_mut().zip(near).zip(far) {
            *sum = 3 * u16::from(*near) + u16::from(*far);
        }
    } else {
        sums.iter_mut().zip(near).for_each(|(sum, near)| *sum = (*near).into());
    }
    if across == 1 {
        let half = if upper { 1 } else { 2 };
        line.iter_mut().zip(sums).for_each(|(to, sum)| *to = ((*sum + half) >> 2) as u8);
        return;
    }
    let (left_half, right_half, shift) = if down == 2 { (8, 7, 4) } else { (1, 2, 2) };
    let mut left = sums.first().copied().unwrap_or_default();
    let after = sums.iter().skip(1).chain(sums.last());
    for ((to, sum), right) in line.as_chunks_mut::<2>().0.iter_mut().zip(sums.iter()).zip(after) {
        *to = [(3 * sum + left + left_half) >> shift, (3 * sum + right + right_half) >> shift].map(|value| value as u8);
        left = *sum;
    }
}
