//! The families of header fields that tell where limits stand.

use std::fmt::Write;
use std::time::{Duration, SystemTime};

use super::structured::quoted;
use crate::standing::Standing;
use crate::told::Told;
use crate::{Error, Result};

/// Header fields in their order, names and values.
pub type Fields = Vec<(&'static str, String)>;

/// A family: its name, and what writes its fields. The next draft is one more row.
#[derive(Debug)]
pub(super) struct Family {
    pub name: &'static str,
    pub write: fn(&Facts<'_>, &mut Fields),
}

pub(super) const FAMILIES: [Family; 6] = [
    // `RateLimit-Policy: "5/minute";q=5;w=60` and `RateLimit: "5/minute";r=4;t=12`, all limits: drafts 8 to 11.
    Family { name: "draft-8", write: |facts, fields| structured(facts, ";", fields) },
    // The same with a blank after each semicolon, as express-rate-limit writes it.
    Family { name: "draft-8-spaced", write: |facts, fields| structured(facts, "; ", fields) },
    // `RateLimit-Policy: 5;w=60` and `RateLimit: limit=5, remaining=4, reset=12`.
    Family { name: "draft-7", write: draft_7 },
    // `RateLimit-Policy: 5;w=60`, `RateLimit-Limit`, `RateLimit-Remaining`, `RateLimit-Reset`.
    Family { name: "draft-6", write: draft_6 },
    // `X-RateLimit-Limit`, `-Remaining` and `-Reset`, this in seconds from now.
    Family { name: "x-ratelimit", write: |facts, fields| x_ratelimit(facts, facts.reset(), fields) },
    // The same, the reset as seconds since 1970.
    Family { name: "x-ratelimit-epoch", write: |facts, fields| x_ratelimit(facts, facts.reset_at(), fields) },
];

impl Family {
    /// # Errors
    /// `invalid_argument` for a name that is none of them.
    pub fn named(name: &str) -> Result<&'static Self> {
        FAMILIES.iter().find(|family| family.name == name).ok_or_else(|| {
            let names = FAMILIES.map(|family| family.name).join(", ");
            Error::argument(format!("the header family {name:?}: it must be one of {names}"))
        })
    }
}

/// What the fields are made of.
pub(super) struct Facts<'a> {
    pub told: Told<'a>,
    /// In place of the limits' names.
    pub policy_name: Option<&'a str>,
    /// The partition of the client, as a byte sequence's base64.
    pub partition: Option<String>,
    pub now: SystemTime,
}

impl<'a> Facts<'a> {
    /// Where the limit stands that decided; none where that is none.
    fn decided(&self) -> Option<Standing<'a>> {
        Some(self.told.decided()).filter(|standing| told_capacity(standing).is_some())
    }

    /// How long until the limit that decided is free again, or admits what it refused.
    fn reset_after(&self) -> Duration {
        self.told.retry_after().unwrap_or_else(|| self.told.decided().reset_after)
    }

    fn reset(&self) -> u64 {
        seconds(self.reset_after())
    }

    fn reset_at(&self) -> u64 {
        let now = self.now.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        seconds(now + self.reset_after())
    }
}

fn structured(facts: &Facts<'_>, semicolon: &str, fields: &mut Fields) {
    let (mut policies, mut limits) = (String::new(), String::new());
    for (place, standing) in facts.told.standings().enumerate() {
        let Some(capacity) = told_capacity(&standing) else { continue };
        // One name for several limits would tell them apart no more.
        let own = facts.policy_name.filter(|_| facts.told.standings().len() == 1);
        let name = quoted(own.unwrap_or_else(|| standing.name()));
        if !policies.is_empty() {
            policies.push_str(", ");
            limits.push_str(", ");
        }
        let _ = write!(policies, "{name}{semicolon}q={capacity}");
        if let Some(window) = window(facts, &standing) {
            let _ = write!(policies, "{semicolon}w={window}");
        }
        if standing.of().is_concurrency() {
            let _ = write!(policies, "{semicolon}qu=\"concurrent-requests\"");
        }
        if let Some(partition) = &facts.partition {
            let _ = write!(policies, "{semicolon}pk=:{partition}:");
        }
        let _ = write!(limits, "{name}{semicolon}r={}", standing.remaining);
        let decided = facts.told.limit_index().unwrap_or(0) == place;
        let until = facts.told.retry_after().filter(|_| decided).or(standing.next_after);
        if let Some(until) = until {
            let _ = write!(limits, "{semicolon}t={}", seconds(until));
        }
    }
    if !policies.is_empty() {
        fields.push(("RateLimit-Policy", policies));
        fields.push(("RateLimit", limits));
    }
}

fn draft_7(facts: &Facts<'_>, fields: &mut Fields) {
    let Some(Standing { remaining, limit, .. }) = facts.decided() else { return };
    fields.push(("RateLimit-Policy", plain_policy(facts)));
    fields.push(("RateLimit", format!("limit={limit}, remaining={remaining}, reset={}", facts.reset())));
}

fn draft_6(facts: &Facts<'_>, fields: &mut Fields) {
    let Some(Standing { remaining, limit, .. }) = facts.decided() else { return };
    fields.push(("RateLimit-Policy", plain_policy(facts)));
    fields.push(("RateLimit-Limit", limit.to_string()));
    fields.push(("RateLimit-Remaining", remaining.to_string()));
    fields.push(("RateLimit-Reset", facts.reset().to_string()));
}

fn x_ratelimit(facts: &Facts<'_>, reset: u64, fields: &mut Fields) {
    let Some(Standing { remaining, limit, .. }) = facts.decided() else { return };
    fields.push(("X-RateLimit-Limit", limit.to_string()));
    fields.push(("X-RateLimit-Remaining", remaining.to_string()));
    fields.push(("X-RateLimit-Reset", reset.to_string()));
}

fn plain_policy(facts: &Facts<'_>) -> String {
    let decided = facts.told.decided();
    format!("{};w={}", decided.limit, window(facts, &decided).unwrap_or(1))
}

/// The capacity to tell; none for what has no limit.
fn told_capacity(standing: &Standing<'_>) -> Option<u64> {
    let bounded = standing.of().period().is_some() || standing.limit == 0;
    bounded.then_some(standing.limit)
}

fn window(facts: &Facts<'_>, standing: &Standing<'_>) -> Option<u64> {
    standing.of().window(facts.told.now()).map(seconds)
}

/// Whole seconds, rounded up.
pub(super) fn seconds(duration: Duration) -> u64 {
    duration.as_secs() + u64::from(duration.subsec_nanos() > 0)
}
