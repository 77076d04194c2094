//! `mirab.http`: who is asking, and what he is told, in the core's own bytes.

mod answers;
mod clients;

pub use answers::{PyAnswer, PyAnswers};
pub use clients::PyClients;
