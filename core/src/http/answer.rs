//! What a client is told: the status, the header fields and the body that go with a decision.
//!
//! `Retry-After` is that of RFC 9110, in whole seconds; status 429 that of RFC 6585, 503 where the store
//! could not be asked; the bodies are problem details (RFC 9457) of the types that the IETF's
//! draft-ietf-httpapi-ratelimit-headers registers, or plain JSON.

use std::time::{Duration, SystemTime};

use super::fields::{Facts, Family, Fields, seconds};
use super::partition::{Salt, partition};
use super::structured::json;
use crate::told::Told;
use crate::{Error, Result};

/// How decisions are told: made once, used for each.
#[derive(Clone, Debug, Default)]
pub struct Answers {
    families: Vec<&'static Family>,
    body: Body,
    salt: Salt,
    max_hold: Option<Duration>,
}

/// What stands in the body of a refusal.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Body {
    #[default]
    None,
    Problem,
    Json,
}

/// What of one request is told beside its decision.
#[derive(Clone, Copy, Debug, Default)]
pub struct Naming<'a> {
    /// In place of the limit's name, for a policy of one limit.
    pub policy_name: Option<&'a str>,
    /// A key whose salted hash is told as `pk`, so that a client sees which of his buckets is meant.
    pub partition_key: Option<&'a [u8]>,
}

/// An answer: to be sent where it refuses; where it admits, its fields go with the response.
#[non_exhaustive]
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answer {
    /// 200 where the request may pass, 429 where it may not, 503 where nobody could decide.
    pub status: u16,
    /// The header fields, with the `Content-Type` of the body.
    pub fields: Fields,
    /// The body of a refusal, where one is wanted.
    pub body: Option<String>,
}

impl Answers {
    /// Answers with the fields of these families: any of `draft-8` (and to 11), `draft-8-spaced`,
    /// `draft-7`, `draft-6`, `x-ratelimit`, `x-ratelimit-epoch`.
    ///
    /// # Errors
    /// `invalid_argument` for another name.
    pub fn new(families: &[impl AsRef<str>]) -> Result<Self> {
        let families = families.iter().map(|name| Family::named(name.as_ref())).collect::<Result<_>>()?;
        Ok(Self { families, ..Self::default() })
    }

    /// The body of refusals: `none` (the default), `problem` for `application/problem+json`, `json`.
    ///
    /// # Errors
    /// `invalid_argument` for another word.
    pub fn body(mut self, body: &str) -> Result<Self> {
        self.body = match body {
            "none" => Body::None,
            "problem" => Body::Problem,
            "json" => Body::Json,
            _ => return Err(Error::argument(format!("the body {body:?}: it must be none, problem or json"))),
        };
        Ok(self)
    }

    /// A secret of all processes that answer the same clients: with it they tell a client the same `pk`.
    /// Without one each process has one of its own.
    ///
    /// # Errors
    /// `invalid_argument` for less than 16 bytes.
    pub fn partition_salt(mut self, salt: &[u8]) -> Result<Self> {
        self.salt = Salt::given(salt)?;
        Ok(self)
    }

    /// The longest that a request is held for the `delay` of a leaky bucket: an admitted one that would
    /// have to be held longer is answered as refused, until it would not be.
    #[must_use]
    pub fn max_hold(mut self, longest: Duration) -> Self {
        self.max_hold = Some(longest);
        self
    }

    /// The answer to a decision. `now` serves the families that tell a date; the decision's own time where it is
    /// not given.
    pub fn answer(&self, told: Told<'_>, naming: &Naming<'_>, now: Option<SystemTime>) -> Answer {
        let held = self.max_hold.and_then(|longest| told.delay().checked_sub(longest));
        let held = held.filter(|beyond| told.allowed() && !beyond.is_zero());
        let refuses = !told.allowed() || held.is_some();
        let mut fields = Fields::with_capacity(self.families.len() * 4 + 3);
        // Where nobody decided there is nothing to tell of limits, and the numbers of a request that is given
        // back are no longer true.
        if !told.is_by_rule() && held.is_none() {
            let partition = naming.partition_key.map(|key| partition(&self.salt, key));
            let now = now.unwrap_or_else(|| told.date());
            let facts = Facts { told, policy_name: naming.policy_name, partition, now };
            self.families.iter().for_each(|family| (family.write)(&facts, &mut fields));
        }
        let status = match refuses {
            false => 200,
            true if told.is_by_rule() => 503,
            true => 429,
        };
        let wait = held.map(|beyond| seconds(beyond).max(1)).or_else(|| retry_after_seconds(told));
        let wait = wait.map(|wait| wait.max(self.until_held_briefly(told)));
        let mut answer = Answer { status, fields, body: None };
        if refuses {
            if let Some(seconds) = wait {
                answer.fields.push(("Retry-After", seconds.to_string()));
            }
            answer.fields.push(("Cache-Control", "no-store".to_owned()));
            self.put_body(told, naming, wait, &mut answer);
        }
        answer
    }

    /// How long until what was refused would not be held too long, in seconds; 0 where that is no matter: a
    /// place in a queue comes with the whole queue before it.
    fn until_held_briefly(&self, told: Told<'_>) -> u64 {
        let longest = self.max_hold.filter(|_| !told.allowed());
        let Some(longest) = longest else { return 0 };
        let queues = told.standings().filter(|standing| !standing.of().longest_delay().is_zero());
        queues.map(|it| seconds(it.reset_after.saturating_sub(longest))).max().unwrap_or(0)
    }

    fn put_body(&self, told: Told<'_>, naming: &Naming<'_>, wait: Option<u64>, answer: &mut Answer) {
        let (kind, body) = match self.body {
            Body::None => return,
            Body::Problem => ("application/problem+json", problem(told, naming, wait, answer.status)),
            Body::Json => ("application/json", plain(told, naming, wait, answer.status)),
        };
        answer.fields.push(("Content-Type", kind.to_owned()));
        answer.body = Some(body);
    }
}

/// The value of `Retry-After`: whole seconds, rounded up, at least 1; none when allowed or never.
/// A place under a concurrency limit may be free at any time: try again in a second.
pub fn retry_after_seconds(decision: Told<'_>) -> Option<u64> {
    let wait = seconds(decision.retry_after()?).max(1);
    Some(if decision.decided().of().is_concurrency() { 1 } else { wait })
}

fn problem(told: Told<'_>, naming: &Naming<'_>, wait: Option<u64>, status: u16) -> String {
    // The titles are those of the draft's registry.
    let (kind, title) = if status == 503 {
        (
            "temporary-reduced-capacity",
            "Request cannot be satisfied due to temporary server capacity constraints",
        )
    } else {
        ("quota-exceeded", "Request cannot be satisfied as assigned quota has been exceeded")
    };
    let detail = json(&sentence(wait, status));
    let violated: Vec<String> = violated(told, naming).into_iter().map(json).collect();
    let wait = wait.map_or(String::new(), |seconds| format!(",\"retry-after\":{seconds}"));
    format!(
        "{{\"type\":\"https://iana.org/assignments/http-problem-types#{kind}\",\"title\":\"{title}\",\
         \"status\":{status},\"detail\":{detail},\"violated-policies\":[{}]{wait}}}",
        violated.join(",")
    )
}

fn plain(told: Told<'_>, naming: &Naming<'_>, wait: Option<u64>, status: u16) -> String {
    let error = if status == 503 { "unavailable" } else { "rate_limited" };
    let message = json(&sentence(wait, status));
    let limit = violated(told, naming).first().map_or("null".to_owned(), |name| json(name));
    let wait = wait.map_or("null".to_owned(), |seconds| seconds.to_string());
    format!("{{\"error\":\"{error}\",\"message\":{message},\"limit\":{limit},\"retry_after\":{wait}}}")
}

fn sentence(wait: Option<u64>, status: u16) -> String {
    match (wait, status) {
        (wait, 503) => {
            let then = wait.map_or(String::new(), |wait| format!(" Try again in {}.", in_words(wait)));
            format!("The service cannot check its limits now.{then}")
        }
        (Some(wait), _) => format!("Too many requests. Try again in {}.", in_words(wait)),
        (None, _) => "This request is more than the limit ever admits.".to_owned(),
    }
}

fn in_words(seconds: u64) -> String {
    if seconds == 1 { "1 second".to_owned() } else { format!("{seconds} seconds") }
}

/// The names of the limits that refuse, the one that decided first.
fn violated<'a>(told: Told<'a>, naming: &Naming<'a>) -> Vec<&'a str> {
    if told.is_by_rule() {
        return Vec::new();
    }
    let decided = told.limit_index().unwrap_or(0);
    let name = |place: usize| told.standings().nth(place).map(|standing| standing.name());
    let others = told
        .standings()
        .enumerate()
        .filter(|&(place, _)| place != decided && told.refuses(place))
        .map(|(_, standing)| standing.name());
    let names = name(decided).into_iter().chain(others);
    match naming.policy_name {
        Some(name) if told.standings().len() == 1 => vec![name],
        _ => names.collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Limiter, ManualClock, Policy};

    fn answer(answers: &Answers, policy: &str, costs: &[u64], naming: &Naming<'_>) -> Answer {
        let clock = ManualClock::new(1_000_500_000).unwrap();
        let limiter = Limiter::builder(Policy::parse(policy).unwrap()).clock(clock).build().unwrap();
        let mut last = None;
        for &cost in costs {
            last = Some(limiter.acquire("k", cost).unwrap());
        }
        let now = SystemTime::UNIX_EPOCH + Duration::from_millis(1_000_500);
        answers.answer(last.unwrap().told(), naming, Some(now))
    }

    fn fields(policy: &str, costs: &[u64], families: &[&str], naming: &Naming<'_>) -> Vec<String> {
        let answers = Answers::new(families).unwrap().partition_salt(b"0123456789abcdef").unwrap();
        let told = answer(&answers, policy, costs, naming);
        told.fields.iter().map(|(name, value)| format!("{name}: {value}")).collect()
    }

    fn plain(policy: &str, costs: &[u64], family: &str) -> Vec<String> {
        fields(policy, costs, &[family], &Naming::default())
    }

    #[test]
    fn the_current_draft_lists_every_limit() {
        assert_eq!(
            plain("burst=5/minute; fixed_window: 100/hour", &[1], "draft-8"),
            [
                "RateLimit-Policy: \"burst\";q=5;w=60, \"fixed_window: 100/hour\";q=100;w=3600",
                "RateLimit: \"burst\";r=4;t=12, \"fixed_window: 100/hour\";r=99;t=2600",
            ]
        );
        assert_eq!(
            plain("5/minute", &[5, 2], "draft-8"),
            [
                "RateLimit-Policy: \"5/minute\";q=5;w=60",
                "RateLimit: \"5/minute\";r=0;t=24",
                "Retry-After: 24",
                "Cache-Control: no-store",
            ]
        );
    }

    #[test]
    fn each_algorithm_tells_its_window() {
        let policy = |text: &str| plain(text, &[1], "draft-8");
        assert_eq!(
            policy("leaky_bucket: 2/second queue 9"),
            [
                "RateLimit-Policy: \"leaky_bucket: 2/second queue 9\";q=10;w=5",
                "RateLimit: \"leaky_bucket: 2/second queue 9\";r=9;t=1"
            ]
        );
        assert_eq!(policy("x=sliding_log: 2/minute")[0], "RateLimit-Policy: \"x\";q=2;w=60");
        assert_eq!(
            plain("c=concurrency: 2 for 30s", &[2, 1], "draft-8"),
            [
                "RateLimit-Policy: \"c\";q=2;qu=\"concurrent-requests\"",
                "RateLimit: \"c\";r=0;t=30",
                "Retry-After: 1",
                "Cache-Control: no-store",
            ]
        );
    }

    #[test]
    fn what_never_passes_has_no_retry_after() {
        let never = plain("5/minute", &[6], "draft-8");
        assert_eq!(never[1], "RateLimit: \"5/minute\";r=5");
        assert_eq!(never[2..], ["Cache-Control: no-store"]);
        assert_eq!(
            plain("deny", &[1], "draft-8")[..2],
            ["RateLimit-Policy: \"deny\";q=0", "RateLimit: \"deny\";r=0"]
        );
        assert!(plain("unlimited", &[1], "draft-8").is_empty());
    }

    #[test]
    fn older_families_tell_the_limit_that_decided() {
        let policy = "fixed_window: 5/minute from first";
        assert_eq!(
            plain(policy, &[1], "draft-7"),
            ["RateLimit-Policy: 5;w=60", "RateLimit: limit=5, remaining=4, reset=60"]
        );
        assert_eq!(
            plain(policy, &[1], "draft-6"),
            [
                "RateLimit-Policy: 5;w=60",
                "RateLimit-Limit: 5",
                "RateLimit-Remaining: 4",
                "RateLimit-Reset: 60"
            ]
        );
        assert_eq!(
            plain(policy, &[1], "x-ratelimit-epoch"),
            ["X-RateLimit-Limit: 5", "X-RateLimit-Remaining: 4", "X-RateLimit-Reset: 1061"]
        );
        assert_eq!(
            plain(policy, &[5, 1], "x-ratelimit")[2..],
            ["X-RateLimit-Reset: 60", "Retry-After: 60", "Cache-Control: no-store"]
        );
    }

    #[test]
    fn names_are_escaped_and_keys_hashed() {
        let naming = Naming { policy_name: Some("a\"b\\c\u{e9}"), partition_key: Some(b"127.0.0.1") };
        assert_eq!(
            fields("fixed_window: 5/minute from first", &[1], &["draft-8-spaced"], &naming),
            [
                "RateLimit-Policy: \"a\\\"b\\\\c?\"; q=5; w=60; pk=:NzRmNjJjYmI0NTAy:",
                "RateLimit: \"a\\\"b\\\\c?\"; r=4; t=60",
            ]
        );
    }

    #[test]
    fn the_wait_is_rounded_up_and_at_least_a_second() {
        let wait = plain("1000/second", &[1000, 1], "draft-8");
        assert!(wait.contains(&"Retry-After: 1".to_owned()), "{wait:?}");
    }

    #[test]
    fn a_refusal_has_the_body_that_is_wanted() {
        let told = |body, policy, costs: &[u64]| {
            let answers = Answers::new(&["draft-8"]).unwrap().body(body).unwrap();
            let told = answer(&answers, policy, costs, &Naming::default());
            let kind =
                told.fields.iter().find(|(name, _)| *name == "Content-Type").map(|(_, kind)| kind.clone());
            (told.status, kind.unwrap_or_default(), told.body.unwrap_or_default())
        };
        assert_eq!(told("problem", "5/minute", &[1]), (200, String::new(), String::new()));
        assert_eq!(told("none", "5/minute", &[5, 1]), (429, String::new(), String::new()));
        assert_eq!(
            told("problem", "b=5/minute; d=9/hour; e=99/hour", &[5, 5]),
            (
                429,
                "application/problem+json".to_owned(),
                "{\"type\":\"https://iana.org/assignments/http-problem-types#quota-exceeded\",\"title\":\"Request \
                 cannot be satisfied as assigned quota has been exceeded\",\"status\":429,\"detail\":\"Too many \
                 requests. Try again in 400 seconds.\",\"violated-policies\":[\"d\",\"b\"],\"retry-after\":400}"
                    .to_owned()
            )
        );
        assert_eq!(
            told("json", "5/second", &[5, 1]),
            (
                429,
                "application/json".to_owned(),
                "{\"error\":\"rate_limited\",\"message\":\"Too many requests. Try again in 1 second.\",\
                 \"limit\":\"5/second\",\"retry_after\":1}"
                    .to_owned()
            )
        );
        let (_, _, never) = told("json", "5/second", &[6]);
        assert!(never.contains("more than the limit") && never.ends_with("\"retry_after\":null}"), "{never}");
        assert!(Answers::default().body("xml").is_err_and(|error| error.to_string().contains("\"xml\"")));
        assert!(Answers::new(&["draft-99"]).is_err_and(|error| error.to_string().contains("draft-8-spaced")));
    }

    #[test]
    fn who_would_be_held_too_long_is_refused_until_he_would_not() {
        let answers = Answers::new(&["draft-8"]).unwrap().max_hold(Duration::from_secs(3));
        let held =
            |costs: &[u64]| answer(&answers, "leaky_bucket: 1/second queue 9", costs, &Naming::default());
        assert_eq!(held(&[1, 1, 1, 1]).status, 200);
        let refused = held(&[1, 1, 1, 1, 1, 1]);
        assert_eq!(refused.status, 429);
        assert_eq!(refused.fields[0], ("Retry-After", "2".to_owned()));
        // Of a full queue, too: the place that is free first would be held too long.
        let full = held(&[10, 1]);
        assert!(full.fields.contains(&("Retry-After", "7".to_owned())), "{full:?}");
        assert_eq!(refused.fields.len(), 2);
    }
}
