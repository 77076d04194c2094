//! What a slot keeps, as the algorithms know it.

use super::arena::{Block, Item, Ring, block_word};
use super::part::{Guard, Part};
use super::room::Need;
use super::slot::{Kind, Place, Stored, space};
use crate::algorithm::concurrency::{Lease, Leases};
use crate::algorithm::list::List;
use crate::algorithm::sliding_buckets::Buckets;
use crate::algorithm::sliding_log::{Entry, Log};
use crate::algorithm::{Algorithm, Found, Seen, State};
use crate::clock::{Now, Time};
use crate::receipt::{Lease as LeaseId, Receipt};
use crate::{Error, ErrorKind, Result};

pub(super) enum Kept {
    Small(State),
    Log(Log<Ring<Entry>>),
    Buckets(Box<Buckets>, Block),
    Leases(Leases<Ring<Lease>>),
}

/// What a limit's state says.
pub(super) struct Looked {
    pub slot: Option<usize>,
    pub kept: Option<Kept>,
    pub seen: Seen,
    pub found: Found,
    pub admits: bool,
}

/// What is to be written, and what is free when it is.
#[derive(Clone, Copy)]
pub(super) struct Written {
    pub stored: Stored,
    pub freed: Option<Block>,
}

/// What a charge changes.
#[derive(Clone, Copy)]
pub(super) struct Change {
    pub seen: Seen,
    pub found: Found,
    pub now: Now,
    pub taken: u64,
    pub lease: LeaseId,
}

impl Looked {
    /// # Errors
    /// `store_corrupt` for what no release has written.
    pub fn new(part: &Part, at: u64, algorithm: &Algorithm, now: Now, cost: u64) -> Result<Self> {
        let slot = match part.find(at) {
            Place::At(slot) => Some(slot),
            Place::Nowhere => None,
            Place::Broken => return Err(corrupt()),
        };
        let kept = slot.map(|slot| Kept::of(part, part.stored(slot))).transpose()?;
        let (seen, found) = match &kept {
            Some(kept) => kept.see(algorithm, now, cost)?,
            None => algorithm.see(None, now, cost),
        };
        let admits = algorithm.admits(&seen, now, cost);
        Ok(Self { slot, kept, seen, found, admits })
    }
}

impl Guard<'_> {
    /// Writes a state where it is, or as a new one, for which there is a free slot.
    pub fn keep(&mut self, (slot, at): (Option<usize>, u64), written: Written, time: Time) -> Result<()> {
        let Written { mut stored, freed } = written;
        stored.words[0] |= space(time);
        match slot {
            Some(slot) => self.write(slot, stored)?,
            None => self.insert(at, stored)?,
        }
        self.freed.blocks.extend(freed);
        Ok(())
    }

    /// Gives back what a new state took that is not to be kept.
    pub fn untake_all(&mut self, stored: Stored) {
        if let Some(block) = self.part.block_of(stored) {
            self.untake(block);
        }
    }
}

impl Kept {
    /// # Errors
    /// `store_corrupt` for what no release has written.
    pub fn of(part: &Part, stored: Stored) -> Result<Self> {
        let total = u64::from(stored.total);
        let kept = match Kind::of(stored.words) {
            Some(Kind::Small) => stored.small().map(Self::Small),
            Some(Kind::Log) => Ring::of(part, stored)
                .map(|entries| Self::Log(Log { entries, total, last_end: stored.end() })),
            Some(Kind::Leases) => Ring::of(part, stored).map(|leases| Self::Leases(Leases { leases, total })),
            Some(Kind::Buckets) => buckets(part, stored),
            Some(Kind::Block) | None => None,
        };
        kept.ok_or_else(corrupt)
    }

    /// As [`Algorithm::see`].
    ///
    /// # Errors
    /// `store_corrupt` for a state of another algorithm.
    pub fn see(&self, algorithm: &Algorithm, now: Now, cost: u64) -> Result<(Seen, Found)> {
        match (algorithm, self) {
            (_, Self::Small(state)) => Ok(algorithm.see(Some(state), now, cost)),
            (Algorithm::SlidingLog(it), Self::Log(log)) => {
                let (tally, found) = it.read(log, now.steady, cost);
                Ok((Seen::Tally(tally), found))
            }
            (Algorithm::SlidingBuckets(it), Self::Buckets(buckets, _)) => {
                let (tally, found) = it.read(buckets, now.steady, cost);
                Ok((Seen::Tally(tally), found))
            }
            (Algorithm::Concurrency(it), Self::Leases(leases)) => {
                let (tally, found) = it.read(leases, now.steady, cost);
                Ok((Seen::Tally(tally), found))
            }
            _ => Err(corrupt()),
        }
    }

    /// Gives back, in a copy where it is a list: the units, and what is to be written.
    ///
    /// # Errors
    /// `store_full` where there is no room for the copy.
    pub fn refund(
        self,
        guard: &mut Guard<'_>,
        algorithm: &Algorithm,
        now: Now,
        (units, receipt, undo): (u64, &Receipt, bool),
        need: Need<'_>,
    ) -> Result<(u64, Option<Written>)> {
        let steady = now.steady;
        let (given, written) = match (algorithm, self) {
            (_, Self::Small(mut state)) => {
                let given = algorithm.refund(&mut state, now, units, receipt, undo);
                (given, small(&state).map(|stored| Written { stored, freed: None }))
            }
            (Algorithm::SlidingLog(it), Self::Log(log)) => {
                let (entries, freed) = copy(guard, &log.entries, 0, need)?;
                let mut log = Log { entries, ..log };
                let given = it.refund(&mut log, steady, units, (receipt.at.steady, receipt.cost));
                if given == 0 {
                    guard.untake(log.entries.block);
                }
                (given, Some(Written { stored: of_log(&log), freed }))
            }
            (Algorithm::SlidingBuckets(it), Self::Buckets(mut buckets, old)) => {
                let given = it.refund(&mut buckets, steady, units, receipt.at.steady);
                if given == 0 {
                    return Ok((0, None));
                }
                let stored = of_buckets(guard, &buckets, need)?.ok_or_else(full)?;
                (given, Some(Written { stored, freed: Some(old) }))
            }
            (Algorithm::Concurrency(_), Self::Leases(leases)) => {
                let total = leases.total;
                let (leases, freed) = copy(guard, &leases.leases, 0, need)?;
                let mut leases = Leases { leases, total };
                let given = u64::from(leases.release(receipt.lease, steady)) * units;
                // A lease that has ended is gone, too, though it gives nothing back.
                if leases.total == total {
                    guard.untake(leases.leases.block);
                    return Ok((0, None));
                }
                return Ok((given, Some(Written { stored: of_leases(&leases), freed })));
            }
            _ => return Err(corrupt()),
        };
        Ok((given, written.filter(|_| given > 0)))
    }
}

impl Change {
    /// What is to be written where `kept` is; none where there is no room and others owe more. A list
    /// takes what is added behind its end, which says nothing until the slot does.
    ///
    /// # Errors
    /// `store_full`, `store_corrupt`.
    pub fn written(
        self,
        guard: &mut Guard<'_>,
        algorithm: &Algorithm,
        kept: Option<Kept>,
        need: Need<'_>,
    ) -> Result<Option<Written>> {
        let Self { seen, found, now, taken, lease } = self;
        let (steady, more) = (now.steady, usize::from(taken > 0));
        let stays = |len: usize, room: usize| found != Found::Future && len + more <= room;
        match (algorithm, kept) {
            (Algorithm::SlidingLog(it), kept) => {
                let (entries, total, freed) = match kept {
                    Some(Kept::Log(log)) if stays(log.entries.len(), log.entries.room()) => {
                        (log.entries, log.total, None)
                    }
                    Some(Kept::Log(log)) => {
                        let Ok((entries, freed)) = copy(guard, &log.entries, more, need) else {
                            return refused(need);
                        };
                        (entries, log.total, freed)
                    }
                    Some(_) => return Err(corrupt()),
                    None => match fresh(guard, need)? {
                        Some(entries) => (entries, 0, None),
                        None => return Ok(None),
                    },
                };
                let mut log = Log { entries, total, last_end: 0 };
                it.write(&mut log, steady, taken);
                Ok(Some(Written { stored: of_log(&log), freed }))
            }
            (Algorithm::Concurrency(it), kept) => {
                let (leases, total, freed) = match kept {
                    Some(Kept::Leases(leases)) if stays(leases.leases.len(), leases.leases.room()) => {
                        (leases.leases, leases.total, None)
                    }
                    Some(Kept::Leases(leases)) => {
                        let Ok((copied, freed)) = copy(guard, &leases.leases, more, need) else {
                            return refused(need);
                        };
                        (copied, leases.total, freed)
                    }
                    Some(_) => return Err(corrupt()),
                    None => match fresh(guard, need)? {
                        Some(leases) => (leases, 0, None),
                        None => return Ok(None),
                    },
                };
                let mut leases = Leases { leases, total };
                it.write(&mut leases, steady, (taken > 0).then(|| Lease::new(it.end(steady), taken, lease)));
                Ok(Some(Written { stored: of_leases(&leases), freed }))
            }
            (Algorithm::SlidingBuckets(it), kept) => {
                let (mut buckets, freed) = match kept {
                    Some(Kept::Buckets(buckets, block)) => (buckets, Some(block)),
                    Some(_) => return Err(corrupt()),
                    None => (Box::default(), None),
                };
                it.write(&mut buckets, steady, taken);
                Ok(of_buckets(guard, &buckets, need)?.map(|stored| Written { stored, freed }))
            }
            (_, Some(Kept::Small(_)) | None) => {
                let state = algorithm.fresh(seen);
                Ok(state.and_then(|state| small(&state)).map(|stored| Written { stored, freed: None }))
            }
            (_, Some(_)) => Err(corrupt()),
        }
    }
}

/// How many units the longest list of a limit takes; none for a state of few numbers.
pub(super) fn units_of(algorithm: &Algorithm) -> Option<u64> {
    match algorithm {
        Algorithm::SlidingLog(it) => Some(it.limit),
        Algorithm::SlidingBuckets(it) => Some(1 + (it.buckets + 1).div_ceil(4)),
        Algorithm::Concurrency(it) => Some(it.limit.saturating_mul(2)),
        _ => None,
    }
}

fn refused(need: Need<'_>) -> Result<Option<Written>> {
    if need.refuses { Err(full()) } else { Ok(None) }
}

fn small(state: &State) -> Option<Stored> {
    state.words().map(|words| Stored { words, total: 0 })
}

fn of_log(log: &Log<Ring<Entry>>) -> Stored {
    let total = u32::try_from(log.total).unwrap_or(u32::MAX);
    Stored { words: [Kind::Log.word(log.last_end), log.entries.word()], total }
}

fn of_leases(leases: &Leases<Ring<Lease>>) -> Stored {
    let total = u32::try_from(leases.total).unwrap_or(u32::MAX);
    Stored { words: [Kind::Leases.word(leases.last_end()), leases.leases.word()], total }
}

/// A ring with nothing in it.
fn fresh<T: Item>(guard: &mut Guard<'_>, need: Need<'_>) -> Result<Option<Ring<T>>> {
    let block = guard.make_block(T::UNITS, need)?;
    Ok(block.and_then(|block| Ring::in_block(guard.part, block)))
}

/// The same list in a block of its own, with room for `more`; and the block where it was.
fn copy<T: Item>(
    guard: &mut Guard<'_>,
    old: &Ring<T>,
    more: usize,
    need: Need<'_>,
) -> Result<(Ring<T>, Option<Block>)> {
    let block = guard.make_block((old.len() + more).max(1) * T::UNITS, need)?.ok_or_else(full)?;
    let mut new = Ring::in_block(guard.part, block).ok_or_else(corrupt)?;
    old.since(0).for_each(|item| new.push(item));
    Ok((new, Some(old.block)))
}

/// Counts lie behind the number of the newest and their own, four to a unit.
fn buckets(part: &Part, stored: Stored) -> Option<Kept> {
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

fn of_buckets(guard: &mut Guard<'_>, buckets: &Buckets, need: Need<'_>) -> Result<Option<Stored>> {
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

fn full() -> Error {
    Error::new(
        ErrorKind::StoreFull,
        "the shared-memory store has no room for the lists of this key's part (log_entries)",
    )
}
