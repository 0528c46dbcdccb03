//! How groups of channels and filters lie in blocks.

use super::CHANNELS;

/// Channels of half a block.
pub(super) const HALF: usize = CHANNELS / 2;

/// Whether groups share blocks of channels or of filters, in parts that loops can tell apart: each has halves of blocks, or a
/// quarter of one.
pub fn share_blocks(channels: usize, filters: usize, groups: usize) -> bool {
    !have_blocks(channels, filters, groups)
        && (are_whole(HALF, channels, filters, groups) || are_quarters(channels, filters, groups))
}

/// Whether each of some groups has whole blocks of channels and of filters, as a single one counts.
pub fn have_blocks(channels: usize, filters: usize, groups: usize) -> bool {
    groups <= 1 || are_whole(CHANNELS, channels, filters, groups)
}

/// Whether each group has a multiple of so many channels, and of filters.
fn are_whole(part: usize, channels: usize, filters: usize, groups: usize) -> bool {
    [channels, filters].iter().all(|all| all.is_multiple_of(groups.saturating_mul(part)))
}

/// Whether each group has a quarter of a block of channels, and of filters.
pub(super) fn are_quarters(channels: usize, filters: usize, groups: usize) -> bool {
    groups > 1 && [channels, filters] == [groups.saturating_mul(CHANNELS / 4); 2]
}

/// Whether some groups begin in the middle of a block.
pub(super) fn begin_late(channels: usize, filters: usize, groups: usize) -> bool {
    groups > 1 && !are_quarters(channels, filters, groups) && !(channels / groups).is_multiple_of(CHANNELS)
}

/// The first channels that the halves of a block see which begins with a filter.
pub(super) fn first_channels(channels: usize, filters: usize, groups: usize, filter: usize) -> [usize; 2] {
    if are_quarters(channels, filters, groups) {
        return [filter; 2];
    }
    let [of_each, of_group] = [channels, filters].map(|all| all / groups.max(1));
    let half = if filter + HALF < filters { HALF } else { 0 };
    [filter, filter + half].map(|filter| filter / of_group.max(1) * of_each)
}

/// Whether pairs of blocks of filters see the same channels.
pub(super) fn has_pairs(filters: usize, groups: usize) -> bool {
    groups <= 1 || (filters / groups).is_multiple_of(2 * CHANNELS)
}
