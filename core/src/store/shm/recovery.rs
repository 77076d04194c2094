//! What a dead holder left: his unfinished step is put back, and what follows from the rest is made anew.
//!
//! A step over several parts is closed at the first of them, which is settled before the others.

use super::chain::NEXT;
use super::layout::{CONTROL_WORDS, JOURNAL};
use super::part::{Control, Freed, Guard, Holder, Part, Unheld, holder, next};
use super::slot::{FREE, Kind, Link, Place};

impl Part {
    /// The lock of a holder that is dead, made whole; none where somebody else was first.
    #[cold]
    pub fn take_from_the_dead(&self, lock: u64, who: Holder<'_>) -> Result<Option<Guard<'_>>, Unheld> {
        let lead = self.control(Control::Lead).get();
        let lead = usize::try_from(lead).ok().and_then(|lead| lead.checked_sub(1));
        let lead = lead.and_then(|lead| who.parts.get(lead)).filter(|lead| lead.index != self.index);
        let mut is_whole = false;
        if let Some(lead) = lead {
            // Until its step is settled the first part is held, and its own first.
            let is_held = holder(lead.lock_word()) != 0;
            let is_first = is_held && lead.control(Control::Lead).get_first() == lead.index as u64 + 1;
            let is_open = lead.control(Control::Open).get_first() == self.control(Control::LeadVersion).get();
            if is_open && is_first {
                return Err(Unheld::Settle(lead.index));
            }
            is_whole = !is_open;
        }
        let version = next(lock);
        if !self.control(Control::Lock).exchange(lock, version | who.own) {
            return Ok(None);
        }
        let mut guard = self.guard(version, who.own);
        if is_whole {
            self.control(Control::Journal).set(0);
        }
        guard.recover(holder(lock), who);
        Ok(Some(guard))
    }

    /// Lets a link lead elsewhere, while others may take its chain, or give it back.
    fn lead(&self, link: Link, next: usize) {
        let word = self.link(link);
        loop {
            let old = word.get();
            if word.exchange(old, old & !NEXT | next as u64) {
                return;
            }
        }
    }

    /// Whether what is said of the part is what its slots say.
    pub fn adds_up(&self) -> bool {
        let all = (0..self.slots.len()).map(|slot| self.stored(slot));
        let all = all.filter(|stored| Kind::of(stored.words).is_some());
        let (used, taken) = all.fold((0, 0), |(used, taken), stored| {
            (used + 1, taken + self.block_of(stored).map_or(0, |block| block.granules))
        });
        let marked: u32 = self.marks.iter().map(|mark| mark.get().count_ones()).sum();
        used == self.used() && taken == marked as usize
    }

    /// Makes all of it anew where a chain leads nowhere.
    pub fn mend(&self, fingerprint: u64) {
        if matches!(self.find(fingerprint), Place::Broken) {
            self.make_anew();
        }
    }

    /// Makes all of it anew that follows from the chains: what is free, and the counts. What leads
    /// nowhere, or contradicts itself, is cut off.
    pub fn make_anew(&self) {
        let mut is_used = vec![false; self.slots.len()];
        let (mut used, mut blocks) = (0, 0);
        // What is not to be where it is may lead round.
        let mut passed_over = 0;
        self.marks.iter().for_each(|mark| mark.set(0));
        for head in 0..self.heads.len() {
            let mut link = Link::Head(head);
            loop {
                let next = self.next(link);
                let Some(slot) = next.checked_sub(1) else { break };
                if is_used.get(slot).is_none_or(|&is_used| is_used) || passed_over > self.slots.len() {
                    self.lead(link, 0);
                    break;
                }
                let stored = self.stored(slot);
                let block = self.block_of(stored);
                let is_sound = self.home(self.slots[slot][2].get()) == head
                    && match Kind::of(stored.words) {
                        Some(Kind::Small) => true,
                        Some(Kind::Block) => {
                            blocks += 1;
                            true
                        }
                        Some(_) => block.is_some_and(|block| self.take(block)),
                        None => false,
                    };
                if is_sound {
                    is_used[slot] = true;
                    used += 1;
                    link = Link::Slot(slot);
                } else {
                    passed_over += 1;
                    self.lead(link, self.next(Link::Slot(slot)));
                }
            }
        }
        let mut free = 0;
        for slot in (0..self.slots.len()).rev().filter(|&slot| !is_used[slot]) {
            self.slots[slot][0].set(FREE);
            self.slots[slot][3].set(free);
            free = slot as u64 + 1;
        }
        self.control(Control::Free).set(free);
        self.control(Control::Used).set(used);
        self.control(Control::Blocks).set(blocks);
    }
}

impl Guard<'_> {
    /// Says that this part is one of several, and where their step is closed.
    pub fn join(&self, lead: &Guard<'_>) {
        if lead.part.index == self.part.index {
            self.part.control(Control::Open).set(self.version);
        }
        self.part.control(Control::LeadVersion).set(lead.version);
        self.part.control(Control::Lead).set(lead.part.index as u64 + 1);
    }

    /// Closes the step of all parts that have joined this one.
    pub fn close_all(&self) {
        self.part.control(Control::Open).set(0);
    }

    pub fn leave(&self) {
        self.part.control(Control::Lead).set(0);
    }

    /// Puts back what an unfinished step of a dead holder changed, here and in the parts that had
    /// joined.
    fn recover(&mut self, dead: u64, who: Holder<'_>) {
        let is_dead = |number| number == dead || !who.owners.lives(number);
        let open = self.part.control(Control::Open).get();
        let is_lead = self.part.control(Control::Lead).get() == self.part.index as u64 + 1;
        if is_lead && open != 0 {
            for other in who.parts.iter().filter(|other| other.index != self.part.index) {
                let lock = other.control(Control::Lock).get_first();
                if other.control(Control::Lead).get() == self.part.index as u64 + 1
                    && other.control(Control::LeadVersion).get() == open
                    && holder(lock) != 0
                    && other.control(Control::Lock).exchange(lock, next(lock) | self.own)
                {
                    let mut guard = other.guard(next(lock), self.own);
                    guard.put_back();
                    guard.leave();
                    other.release_dead(|number| is_dead(number) || number == holder(lock));
                }
            }
        } else if is_lead {
            // It was closed for all of them, here too.
            self.part.control(Control::Journal).set(0);
        }
        self.put_back();
        self.close_all();
        self.leave();
        self.part.release_dead(is_dead);
    }

    /// Puts back what the journal says, the latest first, and makes anew what follows from the rest.
    pub fn put_back(&mut self) {
        let journal = self.part.control(Control::Journal);
        let written = usize::try_from(journal.get()).unwrap_or(JOURNAL).min(JOURNAL);
        for [place, old] in self.part.journal[..written].iter().rev() {
            let place = usize::try_from(place.get()).ok();
            // The head of the part is not of the journal's.
            let place = place.filter(|&place| place >= CONTROL_WORDS + 2 * JOURNAL);
            if let Some(word) = place.and_then(|place| self.part.all.get(place)) {
                word.set(old.get());
            }
        }
        journal.set(0);
        self.written = 0;
        self.part.make_anew();
        self.loose = 0;
        self.freed = Freed::default();
    }
}
