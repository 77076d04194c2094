//! What a slot keeps, as the algorithms know it.

use super::arena::{Block, Ring};
use super::lists::{self, corrupt, full};
use super::part::{Guard, Part};
use super::room::Need;
use super::slot::{Kind, Place, Stored, space};
use crate::Result;
use crate::algorithm::concurrency::{Lease, Leases};
use crate::algorithm::sliding_buckets::Buckets;
use crate::algorithm::sliding_log::{Entry, Log};
use crate::algorithm::{Algorithm, Found, Seen, State};
use crate::clock::{Now, Time};
use crate::receipt::{Lease as LeaseId, Receipt};

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
            Some(Kind::Buckets) => lists::buckets(part, stored),
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
                (given, lists::small(&state).map(|stored| Written { stored, freed: None }))
            }
            (Algorithm::SlidingLog(it), Self::Log(log)) => {
                let (entries, freed) = lists::copy(guard, &log.entries, 0, need)?.ok_or_else(full)?;
                let mut log = Log { entries, ..log };
                let given = it.refund(&mut log, steady, units, (receipt.at.steady, receipt.cost));
                if given == 0 {
                    guard.untake(log.entries.block);
                }
                (given, Some(Written { stored: lists::of_log(&log), freed }))
            }
            (Algorithm::SlidingBuckets(it), Self::Buckets(mut buckets, old)) => {
                let given = it.refund(&mut buckets, steady, units, receipt.at.steady);
                if given == 0 {
                    return Ok((0, None));
                }
                let stored = lists::of_buckets(guard, &buckets, need)?.ok_or_else(full)?;
                (given, Some(Written { stored, freed: Some(old) }))
            }
            (Algorithm::Concurrency(_), Self::Leases(leases)) => {
                let total = leases.total;
                let (leases, freed) = lists::copy(guard, &leases.leases, 0, need)?.ok_or_else(full)?;
                let mut leases = Leases { leases, total };
                let given = u64::from(leases.release(receipt.lease, steady)) * units;
                // A lease that has ended is gone, too, though it gives nothing back.
                if leases.total == total {
                    guard.untake(leases.leases.block);
                    return Ok((0, None));
                }
                return Ok((given, Some(Written { stored: lists::of_leases(&leases), freed })));
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
        let (steady, more) = (now.steady, (usize::from(taken > 0), found));
        match (algorithm, kept) {
            (Algorithm::SlidingLog(it), kept) => {
                let (old, total) = match &kept {
                    Some(Kept::Log(log)) => (Some(&log.entries), log.total),
                    None => (None, 0),
                    Some(_) => return Err(corrupt()),
                };
                let Some((entries, freed)) = lists::room_for(guard, old, more, need)? else {
                    return Ok(None);
                };
                let mut log = Log { entries, total, last_end: 0 };
                it.write(&mut log, steady, taken);
                Ok(Some(Written { stored: lists::of_log(&log), freed }))
            }
            (Algorithm::Concurrency(it), kept) => {
                let (old, total) = match &kept {
                    Some(Kept::Leases(leases)) => (Some(&leases.leases), leases.total),
                    None => (None, 0),
                    Some(_) => return Err(corrupt()),
                };
                let Some((leases, freed)) = lists::room_for(guard, old, more, need)? else { return Ok(None) };
                let mut leases = Leases { leases, total };
                let new = (taken > 0).then(|| Lease::new(it.end(steady), taken, lease));
                it.write(&mut leases, steady, new);
                Ok(Some(Written { stored: lists::of_leases(&leases), freed }))
            }
            (Algorithm::SlidingBuckets(it), kept) => {
                let (mut buckets, freed) = match kept {
                    Some(Kept::Buckets(buckets, block)) => (buckets, Some(block)),
                    Some(_) => return Err(corrupt()),
                    None => (Box::default(), None),
                };
                it.write(&mut buckets, steady, taken);
                Ok(lists::of_buckets(guard, &buckets, need)?.map(|stored| Written { stored, freed }))
            }
            (_, Some(Kept::Small(_)) | None) => {
                let state = algorithm.fresh(seen);
                Ok(state.and_then(|state| lists::small(&state)).map(|stored| Written { stored, freed: None }))
            }
            (_, Some(_)) => Err(corrupt()),
        }
    }
}
