//! How a store is, for JavaScript.

use mirab::{Health, Result};

use crate::js::{Context, IntoJs, Value};

/// As an array, in the order of `lib/health.js`.
pub struct Report(pub Health);

impl IntoJs for Report {
    fn into_js(self, context: &Context<'_>) -> Result<Value> {
        let health = self.0;
        let (kind, message) = health.last_error.map(|(kind, text)| (kind.name(), text)).unzip();
        let fields = [
            context.give(health.store)?,
            context.give(health.ok)?,
            context.give(health.circuit)?,
            context.give(health.opened as f64)?,
            context.give(kind)?,
            context.give(message)?,
            context.give(health.server_version)?,
            context.give(health.maxmemory_policy)?,
            context.give(health.may_drop_keys)?,
            context.give(health.clock_ahead_us.map(|us| us as f64))?,
            context.give(f64::from(health.layout))?,
            context.give(health.last_error_age.map(|age| age.as_secs_f64() * 1e3))?,
        ];
        context.give(fields.to_vec())
    }
}
