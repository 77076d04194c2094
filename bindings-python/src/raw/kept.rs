//! A reference that an object keeps for as long as it lives.

use std::marker::PhantomData;
use std::mem::ManuallyDrop;
use std::ops::Deref;

use pyo3::ffi;
use pyo3::prelude::*;

/// As `Py`, which asks at its end whether the thread is attached: what the interpreter ends knows that it is.
/// It cannot be sent to another thread, or to where the interpreter is detached.
pub struct Kept<T>(ManuallyDrop<Py<T>>, PhantomData<*const ()>);

impl<T> Kept<T> {
    #[inline]
    pub fn new(object: &Bound<'_, T>) -> Self {
        Self(ManuallyDrop::new(object.clone().unbind()), PhantomData)
    }
}

impl<T> Deref for Kept<T> {
    type Target = Py<T>;

    #[inline]
    fn deref(&self) -> &Py<T> {
        &self.0
    }
}

impl<T> Drop for Kept<T> {
    #[inline]
    fn drop(&mut self) {
        // SAFETY: the reference is owned, and this thread is attached.
        unsafe { ffi::Py_DecRef(self.0.as_ptr()) }
    }
}
