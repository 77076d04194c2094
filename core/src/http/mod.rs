//! HTTP: who is asking, and what he is told. The same bytes from every language.

mod address;
mod answer;

pub use address::client_key;
pub use answer::{Headers, Naming, headers, retry_after_seconds};
