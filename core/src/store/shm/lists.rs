//! Lists in their blocks: room for what is added, and what a slot says of them.

use super::arena::{Block, Item, Ring, block_word};
use super::kept::Kept;
use super::part::{Guard, Part};
use super::room::Need;
use super::slot::{Kind, Stored};
use crate::algorithm::concurrency::{Lease, Leases};
use crate::algorithm::list::List;
use crate::algorithm::sliding_buckets::Buckets;
use crate::algorithm::sliding_log::{Entry, Log};
use crate::algorithm::{Algorithm, Found, State};
use crate::{Error, ErrorKind, Result};

/// A list, and the block that is free when it is written in place of the one before.
pub(super) type Copied<T> = (Ring<T>, Option<Block>);

/// How many units the longest list of a limit takes; none for a state of few numbers.
pub(super) fn units_of(algorithm: &Algorithm) -> Option<u64> {
    match algorithm {
        Algorithm::SlidingLog(it) => Some(it.limit),
        Algorithm::SlidingBuckets(it) => Some(1 + (it.buckets + 1).div_ceil(4)),
        Algorithm::Concurrency(it) => Some(it.limit.saturating_mul(2)),
        _ => None,
    }
}

pub(super) fn small(state: &State) -> Option<Stored> {
    state.words().map(|words| Stored { words, total: 0 })
}

pub(super) fn of_log(log: &Log<Ring<Entry>>) -> Stored {
    let total = u32::try_from(log.total).unwrap_or(u32::MAX);
    Stored { words: [Kind::Log.word(log.last_end), log.entries.word()], total }
}

pub(super) fn of_leases(leases: &Leases<Ring<Lease>>) -> Stored {
    let total = u32::try_from(leases.total).unwrap_or(u32::MAX);
    Stored { words: [Kind::Leases.word(leases.last_end()), leases.leases.word()], total }
}

/// A ring with nothing in it.
fn fresh<T: Item>(guard: &mut Guard<'_>, need: Need<'_>) -> Result<Option<Ring<T>>> {
    let block = guard.make_block(T::UNITS, need)?;
    Ok(block.and_then(|block| Ring::in_block(guard.part, block)))
}

/// The same list in a block of its own, with room for `more`, and the block where it was; none where there is no
/// room and others owe more.
pub(super) fn copy<T: Item>(
    guard: &mut Guard<'_>,
    old: &Ring<T>,
    more: usize,
    need: Need<'_>,
) -> Result<Option<Copied<T>>> {
    let units = (old.len() + more).max(1) * T::UNITS;
    let Some(block) = guard.make_block(units, need)? else { return Ok(None) };
    let mut new = Ring::in_block(guard.part, block).ok_or_else(corrupt)?;
    old.since(0).for_each(|item| new.push(item));
    Ok(Some((new, Some(old.block))))
}

/// A list that `more` can be added to where nobody sees it: the same where it only grows and has room, else a copy.
pub(super) fn room_for<T: Item>(
    guard: &mut Guard<'_>,
    old: Option<&Ring<T>>,
    (more, found): (usize, Found),
    need: Need<'_>,
) -> Result<Option<Copied<T>>> {
    match old {
        Some(old) if found != Found::Future && old.len() + more <= old.room() => Ok(Some((*old, None))),
        Some(old) => copy(guard, old, more, need),
        None => Ok(fresh(guard, need)?.map(|new| (new, None))),
    }
}

/// Counts lie behind the number of the newest and their own, four to a unit.
pub(super) fn buckets(part: &Part, stored: Stored) -> Option<Kept> {
    let block = part.block_of(stored)?;
    let ring: Ring<Entry> = Ring::in_block(part, block)?;
    let [newest, len] = ring.unit(0)?;
    let len = usize::try_from(len.get()).ok().filter(|&len| len <= (ring.room() - 1) * 4)?;
    let counts = (0..len).map_while(|place| {
        let word = &ring.unit(1 + place / 4)?[place / 2 % 2];
        Some((word.get() >> (place % 2 * 32)) as u32)
    });
    let newest = newest.get().min(crate::clock::MAX_TIME_US);
    let buckets = Buckets { newest, counts: counts.collect(), last_end: stored.end() };
    Some(Kept::Buckets(Box::new(buckets), block))
}

pub(super) fn of_buckets(guard: &mut Guard<'_>, buckets: &Buckets, need: Need<'_>) -> Result<Option<Stored>> {
    let Buckets { newest, counts, last_end } = buckets;
    let Some(block) = guard.make_block(1 + counts.len().div_ceil(4), need)? else { return Ok(None) };
    let ring: Ring<Entry> = Ring::in_block(guard.part, block).ok_or_else(corrupt)?;
    let total = counts.iter().fold(0, |total: u32, &count| total.saturating_add(count));
    for (place, pair) in counts.iter().copied().collect::<Vec<u32>>().chunks(2).enumerate() {
        let word = u64::from(pair[0]) | u64::from(pair.get(1).copied().unwrap_or(0)) << 32;
        ring.unit(1 + place / 2).ok_or_else(corrupt)?[place % 2].set(word);
    }
    let [first, len] = ring.unit(0).ok_or_else(corrupt)?;
    first.set(*newest);
    len.set(counts.len() as u64);
    Ok(Some(Stored { words: [Kind::Buckets.word(*last_end), block_word(block)], total }))
}

pub(super) fn corrupt() -> Error {
    Error::new(
        ErrorKind::StoreCorrupt,
        "what the shared-memory store holds for this key is not what mirab writes: the file is damaged and should be \
         removed",
    )
}

pub(super) fn full() -> Error {
    Error::new(
        ErrorKind::StoreFull,
        "the shared-memory store has no room for the lists of this key's part (log_entries)",
    )
}
