//! What a process keeps under names, whole also in a child that is forked while another thread looks at it.

use std::collections::BTreeMap;
use std::sync::Mutex;

use crate::fork::{self, lock};

pub(crate) struct Named<T>(Mutex<BTreeMap<Box<str>, T>>);

impl<T> Named<T> {
    pub const fn new() -> Self {
        Self(Mutex::new(BTreeMap::new()))
    }

    /// Looks at all of them, alone. Within, no others may be looked at.
    pub fn with<R>(&self, look: impl FnOnce(&mut BTreeMap<Box<str>, T>) -> R) -> R {
        fork::naming(|| look(&mut lock(&self.0)))
    }
}
