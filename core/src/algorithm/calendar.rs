//! Calendar windows: a day, a week from Monday or a month in a time zone.
//!
//! Boundaries are midnights of that zone, also where a day has 23 or 25 hours. Where clocks skip
//! midnight, the day begins with its first instant.

use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::Mutex;

use jiff::civil::Date;
use jiff::tz::TimeZone;
use jiff::{Span, Timestamp};

use crate::named::Named;

/// Which windows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Unit {
    Day,
    Week,
    Month,
}

/// Windows of a calendar in a zone.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Calendar {
    pub unit: Unit,
    pub zone: &'static Zone,
}

/// A time zone by its name; there is one of each in a process, and it lives as long.
pub(crate) struct Zone {
    name: Box<str>,
    rules: TimeZone,
    /// The window that was asked for last, of each unit: a decision looks one up, and nearly always
    /// the same.
    last: [Mutex<(u64, u64)>; 3],
}

impl Zone {
    /// The zone of that IANA name; none when there is no such.
    pub fn named(name: &str) -> Option<&'static Self> {
        static ZONES: Named<&'static Zone> = Named::new();
        // No zone has a dot: a path would have.
        if name.contains('.') {
            return None;
        }
        ZONES.with(|zones| {
            let rules = TimeZone::get(name).ok()?;
            let name: Box<str> = rules.iana_name()?.into();
            // As many as there are zones, so that this is no leak.
            let make = |name| &*Box::leak(Box::new(Self { name, rules, last: Default::default() }));
            Some(*zones.entry(name.clone()).or_insert_with(|| make(name)))
        })
    }

    pub fn name(&self) -> &str {
        &self.name
    }
}

impl PartialEq for Zone {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name
    }
}

impl Eq for Zone {}

impl Hash for Zone {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.name.hash(state);
    }
}

impl fmt::Debug for Calendar {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?} in {}", self.unit, self.zone.name)
    }
}

impl Calendar {
    /// The start and the end of the window of an instant, in microseconds since 1970. What began
    /// before 1970 begins at 0.
    pub fn window(&self, now: u64) -> (u64, u64) {
        // `try_lock`: whoever finds it taken (or was forked while it was) computes.
        let last = &self.zone.last[self.unit as usize];
        if let Ok(known) = last.try_lock()
            && known.0 <= now
            && now < known.1
        {
            return *known;
        }
        let window = self.compute(now);
        if let Ok(mut known) = last.try_lock() {
            *known = window;
        }
        window
    }

    fn compute(&self, now: u64) -> (u64, u64) {
        let instant = Timestamp::from_microsecond(now as i64).unwrap_or(Timestamp::UNIX_EPOCH);
        let today = self.zone.rules.to_datetime(instant).date();
        let (first, step) = match self.unit {
            Unit::Day => (today, Span::new().days(1)),
            Unit::Week => {
                let past = i64::from(today.weekday().to_monday_zero_offset());
                (today.saturating_sub(Span::new().days(past)), Span::new().days(7))
            }
            Unit::Month => (today.first_of_month(), Span::new().months(1)),
        };
        let (start, end) = (self.midnight(first), self.midnight(first.saturating_add(step)));
        // Where clocks go back over midnight, the first minutes of a date come twice.
        if now < start {
            return (self.midnight(first.saturating_sub(step)), start);
        }
        (start, end)
    }

    /// The first instant of a date.
    fn midnight(&self, date: Date) -> u64 {
        let start = date.to_zoned_datetime(self.zone.rules.clone()).map(|start| start.timestamp());
        let micros = start.map_or(0, Timestamp::as_microsecond);
        u64::try_from(micros).unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(text: &str) -> u64 {
        text.parse::<Timestamp>().unwrap().as_microsecond() as u64
    }

    fn window(unit: Unit, zone: &str, now: &str) -> (String, String) {
        let calendar = Calendar { unit, zone: Zone::named(zone).unwrap() };
        let (start, end) = calendar.window(at(now));
        let text = |us: u64| Timestamp::from_microsecond(us as i64).unwrap().to_string();
        (text(start), text(end))
    }

    fn is(found: (String, String), start: &str, end: &str) {
        let (from, to) = found;
        assert_eq!((from.as_str(), to.as_str()), (start, end));
    }

    #[test]
    fn days_weeks_and_months_begin_at_midnight_there() {
        is(
            window(Unit::Day, "UTC", "2026-11-30T23:59:59.999999Z"),
            "2026-11-30T00:00:00Z",
            "2026-12-01T00:00:00Z",
        );
        is(
            window(Unit::Week, "Asia/Tashkent", "2026-11-30T05:00:00Z"),
            "2026-11-29T19:00:00Z",
            "2026-12-06T19:00:00Z",
        );
        is(
            window(Unit::Month, "America/New_York", "2026-03-15T00:00:00Z"),
            "2026-03-01T05:00:00Z",
            "2026-04-01T04:00:00Z",
        );
        is(
            window(Unit::Month, "UTC", "2024-02-29T12:00:00Z"),
            "2024-02-01T00:00:00Z",
            "2024-03-01T00:00:00Z",
        );
        is(window(Unit::Day, "UTC", "1970-01-01T00:00:00Z"), "1970-01-01T00:00:00Z", "1970-01-02T00:00:00Z");
    }

    #[test]
    fn a_day_without_midnight_begins_with_its_first_instant() {
        // Cairo skips the hour after midnight of 24 April 2026, and repeats the last of 29 October.
        is(
            window(Unit::Day, "Africa/Cairo", "2026-04-24T10:00:00Z"),
            "2026-04-23T22:00:00Z",
            "2026-04-24T21:00:00Z",
        );
        is(
            window(Unit::Day, "Africa/Cairo", "2026-10-29T12:00:00Z"),
            "2026-10-28T21:00:00Z",
            "2026-10-29T22:00:00Z",
        );
    }

    #[test]
    fn zones_have_one_name_in_any_case() {
        assert!(std::ptr::eq(Zone::named("africa/cairo").unwrap(), Zone::named("Africa/Cairo").unwrap()));
        assert_eq!(Zone::named("africa/cairo").unwrap().name(), "Africa/Cairo");
        assert!(Zone::named("Mars/Olympus").is_none());
    }
}
