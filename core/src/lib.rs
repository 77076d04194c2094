//! A rate limiter that is exact, shared between processes and languages, and fast.
//!
//! ```
//! use mirab::{Limit, Limiter};
//!
//! let limiter = Limiter::builder(Limit::parse("100/second burst 300")?).build()?;
//! let decision = limiter.acquire("user:42", 1)?;
//! assert!(decision.allowed());
//! assert_eq!(decision.remaining(), 299);
//! # Ok::<(), mirab::Error>(())
//! ```
//!
//! A [`Limit`] is an algorithm with its numbers; a [`Policy`] is one or more limits that are
//! decided together; a [`Limiter`] is a policy on a [`Store`]; it answers with a [`Decision`].
//! Time is whole microseconds since 1970, arithmetic is exact, and every duration that is
//! reported is rounded up to a microsecond.

mod algorithm;
mod clock;
mod decision;
#[cfg(feature = "redis")]
mod driver;
pub mod duration;
mod error;
mod failure;
mod fork;
mod health;
pub mod http;
mod key;
mod lane;
mod limit;
mod limiter;
mod named;
mod notation;
mod once;
mod policy;
mod receipt;
mod standing;
mod stats;
mod store;
mod told;
mod wait;

pub use algorithm::fixed_window::Anchor;
pub use clock::{Clock, ManualClock, Time};
pub use decision::Decision;
#[cfg(feature = "redis")]
pub use driver::{Driver, Watch};
pub use error::{Error, ErrorKind, Result};
pub use failure::OnStoreFailure;
pub use health::{Health, News};
pub use limit::Limit;
pub use limiter::{Limiter, LimiterBuilder};
pub use policy::Policy;
pub use receipt::Receipt;
pub use standing::Standing;
pub use stats::Stats;
pub use store::Store;
pub use told::{BareDecision, Told};
pub use wait::{Step, Waiter};

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
