//! A policy: one or more limits that are decided together for one key.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use crate::limit::Limit;
use crate::store::bucket::Bucket;
use crate::store::charge::{Charge, Group};
use crate::{Error, Result, notation};

const MAX_LIMITS: usize = 16;

/// One or more limits that are decided together for one key: all admit, or nothing is consumed.
#[derive(Clone)]
pub struct Policy {
    shared: Arc<Shared>,
}

/// On a cache line of its own, with its count of references.
#[repr(align(64))]
struct Shared(Arc<Parts>);

struct Parts {
    limits: Box<[Limit]>,
    buckets: Box<[Bucket]>,
}

impl Policy {
    /// Reads limits that are separated by `;`, `,` or `|`, e.g. `1000/hour; 20000/day`.
    ///
    /// # Errors
    /// `invalid_limit` that points at the place; otherwise as [`Policy::new`].
    pub fn parse(text: &str) -> Result<Self> {
        Self::new(notation::parse_policy(text)?)
    }

    /// A policy of 1 to 16 limits, none twice.
    ///
    /// # Errors
    /// `invalid_limit` for no limit, too many, or one twice.
    pub fn new(limits: Vec<Limit>) -> Result<Self> {
        if !(1..=MAX_LIMITS).contains(&limits.len()) {
            return Err(Error::limit(format!(
                "a policy of {} limits: it must have 1 to {MAX_LIMITS}",
                limits.len()
            )));
        }
        let buckets: Box<[Bucket]> = limits.iter().map(Bucket::new).collect();
        for (index, bucket) in buckets.iter().enumerate() {
            if buckets[..index].iter().any(|earlier| earlier.id() == bucket.id()) {
                return Err(Error::limit(match limits[index].given_name() {
                    Some(name) => format!("two limits of the policy are named \"{name}\""),
                    None => format!("the limit \"{}\" stands twice in the policy", limits[index]),
                }));
            }
        }
        Ok(Self::of(limits.into(), buckets))
    }

    /// The limits, in order.
    pub fn limits(&self) -> &[Limit] {
        &self.shared.0.limits
    }

    /// The limits with their identities, in order.
    #[inline]
    pub(crate) fn buckets(&self) -> &[Bucket] {
        &self.shared.0.buckets
    }

    /// The charges of a request: `cost` of every limit for one key.
    pub(crate) fn group<'a>(&'a self, key: &'a [u8], cost: u64) -> Group<'a> {
        let charge = |bucket| Charge { bucket, key, cost };
        Group { charges: self.buckets().iter().map(charge).collect() }
    }

    /// The same policy with a count of references of its own: who clones this one, and drops it, does
    /// not wait for those who clone the other.
    pub(crate) fn apart(&self) -> Self {
        Self { shared: Arc::new(Shared(Arc::clone(&self.shared.0))) }
    }

    fn of(limits: Box<[Limit]>, buckets: Box<[Bucket]>) -> Self {
        Self { shared: Arc::new(Shared(Arc::new(Parts { limits, buckets }))) }
    }
}

impl From<Limit> for Policy {
    fn from(limit: Limit) -> Self {
        let bucket = Bucket::new(&limit);
        Self::of([limit].into(), [bucket].into())
    }
}

impl TryFrom<Vec<Limit>> for Policy {
    type Error = Error;

    fn try_from(limits: Vec<Limit>) -> Result<Self> {
        Self::new(limits)
    }
}

impl FromStr for Policy {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        Self::parse(text)
    }
}

impl fmt::Display for Policy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, limit) in self.limits().iter().enumerate() {
            let separator = if index == 0 { "" } else { "; " };
            write!(f, "{separator}{limit}")?;
        }
        Ok(())
    }
}

impl fmt::Debug for Policy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Policy({self})")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_policy_keeps_its_order_and_takes_no_limit_twice() {
        let policy = Policy::parse("1000/hour, 20000/day").unwrap();
        assert_eq!(policy.to_string(), "1000/hour; 20000/day");
        let twice = Policy::parse("5/minute; 5 per 60 s").unwrap_err();
        assert!(twice.to_string().contains("\"5/minute\""), "{twice}");
        assert!(Policy::parse("a=5/minute; b=5/minute").is_ok());
        let named = Policy::parse("a=5/minute; a=6/minute").unwrap_err();
        assert!(named.to_string().contains("named \"a\""), "{named}");
    }

    #[test]
    fn a_policy_has_one_to_sixteen_limits() {
        let limits = |count: u64| (1..=count).map(|n| Limit::parse(&format!("{n}/s")).unwrap()).collect();
        assert!(Policy::new(limits(0)).is_err());
        assert!(Policy::new(limits(16)).is_ok());
        assert!(Policy::new(limits(17)).unwrap_err().to_string().contains("17"));
    }
}
