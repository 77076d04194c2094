//! What bindings used before.

use std::str::FromStr;
use std::time::SystemTime;

use super::address::Address;
use super::answer::{Answers, Naming};
use super::fields::{Family, Fields};
use crate::told::Told;
use crate::{Error, Result};

/// A family.
pub struct Headers(&'static str);

impl FromStr for Headers {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        Family::named(text).map(|family| Self(family.name))
    }
}

/// The fields.
pub fn headers(told: Told<'_>, families: &[Headers], naming: &Naming<'_>, now: SystemTime) -> Fields {
    let names: Vec<&str> = families.iter().map(|family| family.0).collect();
    Answers::new(&names).map_or_else(|_| Fields::new(), |answers| answers.answer(told, naming, now).fields)
}

/// The key.
pub fn client_key(address: &str, ipv6_prefix: u8) -> Option<String> {
    Address::parse(address).map(|address| address.key(ipv6_prefix))
}
