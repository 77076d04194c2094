//! HTTP: who is asking, and what he is told. The same bytes from every language.

mod address;
mod answer;
mod clients;
mod fields;
mod forwarded;
mod network;
mod partition;
mod structured;

pub use address::Address;
pub use answer::{Answer, Answers, Naming, retry_after_seconds};
pub use clients::Clients;
pub use fields::Fields;
