//! HTTP as every language must have it: the tables of `tests/http`.
#![allow(missing_docs, clippy::expect_used, clippy::panic, clippy::unwrap_used)]

use std::time::{Duration, SystemTime};

use mirab::http::{Address, Answers, Clients, Naming};
use mirab::{Limiter, ManualClock, Policy};
use proptest::prelude::*;
use serde::Deserialize;

#[derive(Deserialize)]
#[serde(untagged)]
enum Trusted {
    Hops(u32),
    Networks(Vec<String>),
}

/// Who has connected, the lines of the field, and who that is.
type Case = (Option<String>, Vec<String>, Option<String>);

#[derive(Deserialize)]
struct Group {
    why: String,
    trusted: Trusted,
    field: Option<String>,
    ipv6_prefix: Option<u8>,
    /// How often the last line stands there.
    repeat: Option<usize>,
    cases: Vec<Case>,
}

fn clients(group: &Group) -> Clients {
    let mut clients = match &group.trusted {
        Trusted::Hops(hops) => Clients::new().hops(*hops).unwrap(),
        Trusted::Networks(networks) => Clients::new().trusting(networks).unwrap(),
    };
    if let Some(field) = &group.field {
        clients = clients.field(field).unwrap();
    }
    group.ipv6_prefix.map_or(clients.clone(), |bits| clients.ipv6_prefix(bits).unwrap())
}

#[test]
fn every_spelling_is_the_client_that_a_careful_operator_expects() {
    let groups: Vec<Group> = serde_json::from_str(include_str!("../../tests/http/addresses.json")).unwrap();
    let mut count = 0;
    for group in &groups {
        let clients = clients(group);
        for (peer, lines, client) in &group.cases {
            let last =
                lines.last().into_iter().cycle().take(lines.len().min(1) * (group.repeat.unwrap_or(1) - 1));
            let lines: Vec<&str> = lines.iter().chain(last).map(String::as_str).collect();
            let found = clients.key(peer.as_deref(), lines.iter().copied());
            assert_eq!(&found, client, "{}: {peer:?} {lines:?}", group.why);
            count += 1;
        }
    }
    assert!(count >= 150, "{count}");
}

#[derive(Deserialize)]
struct Told {
    why: String,
    limits: String,
    costs: Vec<u64>,
    families: Vec<String>,
    body: Option<String>,
    policy_name: Option<String>,
    partition_key: Option<String>,
    max_hold: Option<u64>,
    status: u16,
    fields: Vec<(String, String)>,
    text: Option<String>,
}

#[test]
fn every_family_is_told_byte_for_byte() {
    let table: Vec<Told> = serde_json::from_str(include_str!("../../tests/http/answers.json")).unwrap();
    for told in &table {
        let clock = ManualClock::new(1_000_500_000).unwrap();
        let limiter = Limiter::builder(Policy::parse(&told.limits).unwrap()).clock(clock).build().unwrap();
        let mut answers = Answers::new(&told.families).unwrap().partition_salt(b"0123456789abcdef").unwrap();
        if let Some(body) = &told.body {
            answers = answers.body(body).unwrap();
        }
        if let Some(seconds) = told.max_hold {
            answers = answers.max_hold(Duration::from_secs(seconds));
        }
        let decisions: Vec<_> = told.costs.iter().map(|&cost| limiter.acquire("k", cost).unwrap()).collect();
        let naming = Naming {
            policy_name: told.policy_name.as_deref(),
            partition_key: told.partition_key.as_deref().map(str::as_bytes),
        };
        let now = SystemTime::UNIX_EPOCH + Duration::from_millis(1_000_500);
        let answer = answers.answer(decisions.last().unwrap().told(), &naming, Some(now));
        let fields: Vec<_> =
            answer.fields.into_iter().map(|(name, value)| (name.to_owned(), value)).collect();
        assert_eq!(fields, told.fields, "{}", told.why);
        assert_eq!((answer.status, answer.body), (told.status, told.text.clone()), "{}", told.why);
    }
}

/// What a client can write.
fn header() -> impl Strategy<Value = String> {
    prop_oneof![
        "[ -~\t]{0,40}",
        "(for=|by=|\"|\\\\|,|;|=| |1\\.1\\.1\\.1|10\\.0\\.0\\.2|\\[::1\\]|unknown){0,20}",
        ".{0,20}",
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(std::env::var("MIRAB_FUZZ").map_or(4_000, |n| n.parse().unwrap())))]

    #[test]
    fn a_client_cannot_choose_who_he_is(lines in prop::collection::vec(header(), 0..4), pairs: bool, near: bool) {
        let clients = Clients::new().trusting(&["10.0.0.0/8"]).unwrap();
        let clients = clients.field(if pairs { "Forwarded" } else { "X-Forwarded-For" }).unwrap();
        let his = "192.0.2.7";
        // Who isn't trusted is who has connected.
        let found = clients.key(Some(his), lines.iter().map(String::as_str));
        prop_assert_eq!(found.as_deref(), Some(his));
        // A trusted proxy adds whom it has met, to the last line or in a line of its own.
        let element = if pairs { format!("for={his}") } else { his.to_owned() };
        let mut sent = lines.clone();
        match sent.last_mut() {
            Some(last) if near => *last = format!("{last}, {element}"),
            _ => sent.push(element),
        }
        let found = clients.key(Some("10.0.0.1"), sent.iter().map(String::as_str));
        prop_assert_eq!(found.as_deref(), Some(his));
        let hops = Clients::new().hops(1).unwrap().field(if pairs { "Forwarded" } else { "X-Forwarded-For" }).unwrap();
        let found = hops.key(Some("10.0.0.1"), sent.iter().map(String::as_str));
        prop_assert_eq!(found.as_deref(), Some(his));
    }

    #[test]
    fn who_comes_back_when_he_was_told_to_is_admitted(
        count in 1_u64..20,
        per in 1_u64..100_000_000,
        kind in 0_usize..5,
        costs in prop::collection::vec((1_u64..25, 0_u64..20_000_000), 1..20),
    ) {
        let limits = match kind {
            0 => format!("{count} per {per} us"),
            1 => format!("leaky_bucket: {count} per {per} us queue 3"),
            2 => format!("fixed_window: {count} per {per} us; {count} per {per} us burst 30"),
            3 => format!("sliding_window: {count} per {per} us"),
            _ => format!("sliding_log: {count} per {per} us; fixed_window: {count} per {per} us from first"),
        };
        let clock = ManualClock::new(1_700_000_000_123_457).unwrap();
        let limiter = Limiter::builder(Policy::parse(&limits).unwrap()).clock(clock.clone()).build().unwrap();
        let answers = Answers::new(&["draft-8", "draft-6", "x-ratelimit"]).unwrap();
        for (cost, pause) in costs {
            clock.advance_us(pause).unwrap();
            let decision = limiter.acquire("k", cost).unwrap();
            let answer = answers.answer(decision.told(), &Naming::default(), None);
            let told = answer.fields.iter().find(|(name, _)| *name == "Retry-After").map(|(_, value)| value);
            prop_assert_eq!(answer.status, if decision.allowed() { 200 } else { 429 });
            prop_assert_eq!(told.is_some(), !decision.allowed() && !decision.never(), "{:?}", answer);
            if let Some(told) = told {
                prop_assert!(told.bytes().all(|byte| byte.is_ascii_digit()) && told != "0", "{}", told);
                let wait = Duration::from_secs(told.parse().unwrap());
                let exact = decision.retry_after().unwrap();
                prop_assert!(exact <= wait && wait < exact + Duration::from_secs(1));
                clock.advance_us(wait.as_micros() as u64).unwrap();
                prop_assert!(limiter.peek("k", cost).unwrap().allowed(), "{} after {}", limits, told);
            }
        }
    }

    #[test]
    fn an_address_is_the_same_however_it_is_written(bits: u128, is_v4: bool, port: u16) {
        let address = if is_v4 {
            std::net::IpAddr::V4(std::net::Ipv4Addr::from_bits(bits as u32))
        } else {
            std::net::IpAddr::V6(std::net::Ipv6Addr::from_bits(bits))
        };
        let parsed = Address::from(address);
        prop_assert_eq!(Address::parse(&address.to_string()), Some(parsed));
        prop_assert_eq!(Address::parse(&std::net::SocketAddr::new(address, port).to_string()), Some(parsed));
        let mapped = std::net::Ipv6Addr::from_bits(parsed.bits()).to_string();
        prop_assert_eq!(Address::parse(&mapped), Some(parsed));
        prop_assert_eq!(Address::parse(&format!("{mapped}%zone")), Some(parsed));
    }

    #[test]
    fn whatever_is_written_is_read_without_a_panic(text in ".{0,60}") {
        let _ = Address::parse(&text);
        let _ = Clients::new().trusting(&[&text]);
        let _ = Clients::new().field(&text);
    }
}
