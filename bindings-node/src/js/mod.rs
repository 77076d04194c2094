//! The layer over Node-API, and the only place with `unsafe`: a module of safe functions
//! `fn(&Call) -> Result<Value>`, whose errors and panics become thrown `MirabError`s.

mod call;
mod context;
mod event_loop;
mod module;
mod text;
mod uv;
mod value;
mod work;

pub use call::Call;
pub use context::Context;
pub(crate) use module::exports;
pub use module::{Export, enter};
pub use value::{IntoJs, Slots, Value};
