//! Concurrency: at most so many in flight. A lease that its holder never returns expires.

use std::collections::VecDeque;

use super::list::List;
use super::{Found, Tally};
use crate::receipt::Lease as Id;

/// A concurrency limit's numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Concurrency {
    pub limit: u64,
    pub expires_us: u64,
}

/// The leases of a key, in the order of their ends.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Leases<L = VecDeque<Lease>> {
    pub leases: L,
    /// What all of them count.
    pub total: u64,
}

/// One admitted request, until it is returned or ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Lease {
    pub end: u64,
    pub count: u64,
    pub id: Id,
}

impl Lease {
    pub fn new(end: u64, count: u64, id: Id) -> Self {
        Self { end, count, id }
    }
}

impl<L: List<Lease>> Leases<L> {
    pub fn last_end(&self) -> u64 {
        self.leases.last().map_or(0, |lease| lease.end)
    }

    /// Ends a lease; true when it still counted at `now`.
    pub fn release(&mut self, id: Id, now: u64) -> bool {
        let Some((place, lease)) = self.leases.since(0).enumerate().find(|(_, lease)| lease.id == id) else {
            return false;
        };
        self.leases.remove(place);
        self.total = self.total.saturating_sub(lease.count);
        lease.end > now
    }

    /// How many have ended, and what those count.
    fn ended(&self, now: u64) -> (usize, u64) {
        let ended = self.leases.since(0).take_while(|lease| lease.end <= now);
        ended.fold((0, 0), |(ended, over), lease| (ended + 1, over + lease.count))
    }
}

impl Concurrency {
    /// When a lease that is taken now ends.
    pub fn end(&self, now: u64) -> u64 {
        now + self.expires_us
    }

    /// No lease lasts longer than one that is taken now.
    pub fn read(&self, leases: &Leases<impl List<Lease>>, now: u64, cost: u64) -> (Tally, Found) {
        let latest = self.end(now);
        let (ended, over) = leases.ended(now);
        let live = leases.leases.since(ended).map(|lease| (lease.end.min(latest), lease.count));
        let used = leases.total.saturating_sub(over);
        let tally = Tally::of(live, used, leases.last_end().min(latest), self.limit, cost);
        let found = if leases.last_end() > latest {
            Found::Future
        } else if ended > 0 {
            Found::Aged
        } else {
            Found::Sound
        };
        (tally, found)
    }

    /// Drops what has ended, corrects what lasts too long, and adds the lease that was taken.
    pub fn write(&self, leases: &mut Leases<impl List<Lease>>, now: u64, taken: Option<Lease>) {
        let latest = self.end(now);
        let (ended, over) = leases.ended(now);
        leases.leases.drop_first(ended);
        leases.total = leases.total.saturating_sub(over);
        for place in (0..leases.leases.len()).rev() {
            match leases.leases.get(place) {
                Some(lease) if lease.end > latest => {
                    leases.leases.put(place, Lease { end: latest, ..lease });
                }
                _ => break,
            }
        }
        if let Some(lease) = taken {
            leases.leases.push(lease);
            leases.total += lease.count;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMIT: Concurrency = Concurrency { limit: 2, expires_us: 30 };

    fn id(low: u64) -> Id {
        Id { high: 0, low }
    }

    #[test]
    fn a_lease_ends_by_itself_or_by_release() {
        let mut leases: Leases = Leases::default();
        LIMIT.write(&mut leases, 0, Some(Lease::new(30, 1, id(7))));
        LIMIT.write(&mut leases, 5, Some(Lease::new(35, 1, id(8))));
        assert_eq!({ LIMIT.read(&leases, 29, 1).0.needed_end }, 30);
        assert!(leases.release(id(8), 29));
        assert!(!leases.release(id(8), 29));
        assert_eq!(LIMIT.read(&leases, 29, 1).0.used, 1);
        let (tally, found) = LIMIT.read(&leases, 30, 1);
        assert_eq!((tally.used, found), (0, Found::Aged));
        assert!(!leases.release(id(7), 30));
    }

    #[test]
    fn no_lease_lasts_longer_than_a_new_one() {
        let mut leases: Leases = Leases::default();
        LIMIT.write(&mut leases, 1_000, Some(Lease::new(1_030, 2, id(1))));
        let (tally, found) = LIMIT.read(&leases, 10, 1);
        assert_eq!((tally.needed_end, found), (40, Found::Future));
        LIMIT.write(&mut leases, 10, None);
        assert_eq!(leases.last_end(), 40);
    }
}
