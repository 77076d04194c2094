//! Who is asking, and what he is told.

use std::hint::black_box;

use mirab::http::{Address, Answers, Clients, Naming};

use super::{Scene, limiter, scene};

const ADDRESSES: [(&str, &str); 7] = [
    ("v4", "192.0.2.7"),
    ("v4_port", "192.0.2.7:51234"),
    ("v4_mapped", "::ffff:192.0.2.7"),
    ("v4_mapped_hex", "::ffff:c000:207"),
    ("v6", "2001:db8:1:2:3:4:5:6"),
    ("v6_port", "[2001:db8:1:2ff::9]:443"),
    ("v6_zone", "fe80::1%eth0"),
];

pub fn scenes() -> Vec<Scene> {
    let address = |(name, text): (&str, &'static str)| {
        scene(format!("address_{name}"), move || {
            Box::new(move || black_box(Address::parse(black_box(text))).is_some())
        })
    };
    let mut scenes: Vec<Scene> = ADDRESSES.map(address).into();
    scenes.push(scene("client_behind_a_proxy", || {
        let clients = Clients::new().trusting(&["10.0.0.0/8"]).unwrap();
        let line = "1.1.1.1, 192.0.2.7, 10.0.0.2";
        Box::new(move || black_box(clients.key(Some("10.0.0.1"), [black_box(line)])).is_some())
    }));
    for family in ["draft-8", "draft-6", "x-ratelimit"] {
        scenes.push(scene(format!("answer_{}", family.replace('-', "_")), move || {
            let answers = Answers::new(&[family]).unwrap();
            let decision = limiter("5/minute").acquire("k", 1).unwrap();
            let naming = Naming::default();
            Box::new(move || {
                let answer = answers.answer(decision.told(), &naming, None);
                black_box(answer).status == 200
            })
        }));
    }
    scenes
}
