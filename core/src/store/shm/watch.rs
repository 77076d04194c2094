//! What becomes of the file and of those who share it, and what an operator hears of it.

use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use super::decide::{Address, Locked};
use super::layout::Geometry;
use super::mapped::Mapped;
use super::part::Control;
use super::settings::Settings;
use super::slot::{Kind, Stored};
use super::{ShmStore, file};
use crate::clock::{Now, Time};
use crate::fork::{self, lock};
use crate::health::News;
use crate::{Error, ErrorKind, Result};

/// How long a file that was removed is kept: whoever decides in it has ended by then.
const KEPT: Duration = Duration::from_secs(10);

impl ShmStore {
    /// The file, for whoever decides: a process that was just forked looks first whether it still is.
    #[inline]
    pub(super) fn here(&self) -> &'static Mapped {
        let mapped = self.mapped();
        if mapped.owners.own().is_some() { mapped } else { self.come(mapped) }
    }

    #[cold]
    fn come(&self, mapped: &'static Mapped) -> &'static Mapped {
        if file::is_gone(mapped, &self.settings.path) {
            self.begin_anew(mapped, false);
        }
        let mapped = self.mapped();
        // What is wrong with it, whoever decides is told.
        let _ = mapped.holder(self.timeout());
        mapped
    }

    /// Looks after a decision whether a part that had failed decides again, and from time to time how the file is.
    #[inline]
    pub(super) fn went_well(&self, mapped: &'static Mapped, part: usize, time: Time, now: Now) {
        if self.trouble.is_over(part) {
            self.tell("decides again about all keys", false);
        }
        if time.given().is_none() && mapped.is_to_be_looked_for(now) {
            self.look(mapped);
        }
    }

    #[cold]
    fn look(&self, mapped: &'static Mapped) {
        if file::is_gone(mapped, &self.settings.path) {
            return self.begin_anew(mapped, true);
        }
        let why = mapped.check().err().map(|error| {
            let path = &self.settings.path;
            (error.kind(), format!("the file {path:?} was overwritten and should be removed: it {error}"))
        });
        self.cannot_rely(why);
        lock(&self.retired).retain(|(mapped, since)| {
            let is_kept = since.elapsed() < KEPT;
            if !is_kept {
                mapped.let_go();
            }
            is_kept
        });
        self.forget_blocks(mapped);
        let (_, evicted) = mapped.counts();
        // What is forgotten from now on is told once; what was before this process came is not.
        let before = self.evicted.fetch_min(evicted, Ordering::Relaxed);
        if evicted > before && !self.is_full.swap(true, Ordering::Relaxed) {
            let Mapped { geometry, header, .. } = mapped;
            let (keys, entries) = (header.max_keys, geometry.log_entries);
            let what =
                format!("forgets live states for want of room (max_keys={keys}, log_entries={entries})");
            self.tell(&what, false);
        }
    }

    /// Forgets the blocks that are over, so that nobody looks for one in their parts.
    fn forget_blocks(&self, mapped: &'static Mapped) {
        let Ok(who) = mapped.holder(self.timeout()) else { return };
        let now = mapped.now(Time::STORE);
        for part in mapped.parts.iter().filter(|part| part.control(Control::Blocks).get() > 0) {
            let Some(mut guard) = part.lock_now(who.own) else { continue };
            let is_over = |stored: Stored| {
                Kind::of(stored.words) == Some(Kind::Block) && !stored.is_given() && stored.is_spent(now)
            };
            for slot in 0..part.slots.len() {
                // One that is held, or damaged, is met by whoever needs it.
                if is_over(part.stored(slot)) && guard.forget_if(slot, who, is_over).is_err() {
                    break;
                }
            }
        }
    }

    /// The same after any other operation, of which these are the places.
    pub(super) fn done(&self, mapped: &'static Mapped, addresses: &[Address], time: Time) {
        let part = addresses.first().map_or(0, |address| address.part);
        self.went_well(mapped, part, time, mapped.now(time));
    }

    /// Looks after a failure whether the file is still there: it may have been removed for it.
    #[cold]
    pub(super) fn failed(&self, mapped: &'static Mapped, part: usize, error: &Error) {
        if file::is_gone(mapped, &self.settings.path) {
            self.begin_anew(mapped, true);
        } else if self.trouble.begins(part, error) {
            self.tell(&format!("does not decide about some keys: {error}"), true);
        }
    }

    pub(super) fn lock_or_look(
        &self,
        mapped: &'static Mapped,
        addresses: &[Address],
    ) -> Result<Locked<'static>> {
        let part = addresses.first().map_or(0, |address| address.part);
        self.lock(mapped, addresses).inspect_err(|error| self.failed(mapped, part, error))
    }

    /// The file was removed, and others make or have made a new one: goes on there.
    #[cold]
    fn begin_anew(&self, old: &'static Mapped, is_news: bool) {
        // A descriptor that was closed is no news: it is the same file.
        let is_news = is_news && old.has_descriptor();
        fork::naming(|| {
            if !std::ptr::eq(self.mapped(), old) {
                return;
            }
            let path = &self.settings.path;
            match file::open(&self.settings) {
                Ok(new) => {
                    lock(&self.lost).take();
                    self.trouble.is_past();
                    self.mapped.store(Box::leak(Box::new(new)), Ordering::Release);
                    lock(&self.retired).push((old, Instant::now()));
                    if is_news {
                        self.tell(&format!("the file {path:?} was removed: what it counted is gone"), true);
                    }
                }
                Err(error) => {
                    // It is tried again each second, and told once.
                    let what = format!("the file {path:?} was removed, and there is no new one: {error}");
                    self.cannot_rely(Some((error.kind(), what)));
                }
            }
        })
    }

    /// Remembers why the file is not to be relied on, and tells it once.
    fn cannot_rely(&self, why: Option<(ErrorKind, String)>) {
        let mut lost = lock(&self.lost);
        let is_new = why.is_some() && *lost != why;
        lost.clone_from(&why);
        drop(lost);
        if let (true, Some((_, what))) = (is_new, why) {
            self.tell(&what, true);
        }
    }

    /// Says what another than the first to come asks for in vain.
    pub(super) fn compare(&self, settings: &Settings) {
        let Mapped { geometry, header, .. } = self.mapped();
        let log_entries = Geometry::of(settings).log_entries as u64;
        for (name, asked, found) in [
            ("max_keys", settings.max_keys as u64, header.max_keys),
            ("log_entries", log_entries, geometry.log_entries as u64),
        ] {
            if asked != found {
                self.tell(
                    &format!("made with {name}={found}, not {asked}: it stays so until the file is removed"),
                    false,
                );
            }
        }
    }

    /// Says what another limiter of this process asks for in vain, too.
    pub(super) fn compare_own(&self, settings: &Settings) {
        let shown = |settings: &Settings| {
            let when_full = if settings.refuses_when_full { "refuse" } else { "evict_least_indebted" };
            format!("when_full={when_full} and timeout_ms={}", settings.timeout.as_millis())
        };
        let (asked, own) = (shown(settings), shown(&self.settings));
        if asked != own {
            self.tell(&format!("is open in this process with {own}, not {asked}: it stays so"), false);
        }
    }

    fn tell(&self, what: &str, is_error: bool) {
        let text = format!("the store {}: {what}", self.settings.shown);
        let mut news = lock(&self.news);
        if news.iter().all(|known| known.text != text) {
            news.push_back(News { text, is_error });
        }
    }

    pub fn next_news(&self) -> Option<News> {
        lock(&self.news).pop_front()
    }
}
