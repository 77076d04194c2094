//! Classes whose objects are made and read without pyo3: final, frozen, and made only by this module. The
//! garbage collector does not look at their objects.

use std::ffi::{CStr, c_int, c_void};
use std::mem::offset_of;
use std::ptr;

use pyo3::exceptions::PyMemoryError;
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyBool, PyString, PyType};

use super::answer;

/// What an object of such a class holds.
pub trait Held: Sized + 'static {
    /// The full name of the class, such as `mirab.Decision`.
    const NAME: &'static CStr;
    const DOC: &'static CStr;
    /// The field that says whether the object is true: the interpreter reads it without a call.
    const TRUTH: Option<Named> = None;
    /// The other fields, which are computed when they are read.
    const FIELDS: &'static [Field<Self>];

    /// Where the class is kept once it was made.
    fn class() -> &'static PyOnceLock<Py<PyType>>;

    fn is_true(&self) -> bool {
        true
    }

    fn shown(&self) -> String;
}

pub struct Named {
    pub name: &'static CStr,
    pub doc: &'static CStr,
}

pub struct Field<T> {
    pub named: Named,
    pub read: for<'py> fn(&Bound<'py, T>) -> PyResult<Bound<'py, PyAny>>,
}

/// A field: its name, its text, and its value made from what the object holds.
macro_rules! field {
    ($name:literal, $doc:literal, $held:ident => $value:expr) => {
        $crate::raw::class::Field {
            named: $crate::raw::class::Named { name: $name, doc: $doc },
            read: |object| {
                let $held = $crate::raw::class::held(object.as_unbound());
                pyo3::IntoPyObjectExt::into_bound_py_any($value, object.py())
            },
        }
    };
}
pub(crate) use field;

#[repr(C)]
struct Object<T> {
    base: ffi::PyObject,
    /// `True` or `False`, which outlive all objects.
    truth: *mut ffi::PyObject,
    held: T,
}

/// The class.
#[inline]
pub fn class<T: Held>(py: Python<'_>) -> PyResult<&Bound<'_, PyType>> {
    T::class().get_or_try_init(py, || define::<T>(py)).map(|class| class.bind(py))
}

/// Why there is no object. It takes no room beside one, as an exception would.
pub struct NoMemory;

impl From<NoMemory> for PyErr {
    #[cold]
    fn from(_: NoMemory) -> Self {
        PyMemoryError::new_err(())
    }
}

/// A new object of the class, which was made when the module was.
#[inline]
pub fn object<T: Held>(py: Python<'_>, held: T) -> Result<Bound<'_, T>, NoMemory> {
    let class = T::class().get(py).ok_or(NoMemory)?;
    let truth = PyBool::new(py, held.is_true()).as_ptr();
    // SAFETY: the memory is as large as the class says, and nobody sees it before all of it is written.
    unsafe {
        let object = ffi::PyObject_Malloc(size_of::<Object<T>>()).cast::<Object<T>>();
        if object.is_null() {
            return Err(NoMemory);
        }
        ffi::PyObject_Init(object.cast(), class.as_ptr().cast());
        (&raw mut (*object).truth).write(truth);
        (&raw mut (*object).held).write(held);
        Ok(Bound::from_owned_ptr(py, object.cast()).cast_into_unchecked())
    }
}

/// Any object as one of the class; none where it is of another.
pub fn cast<'a, 'py, T: Held>(object: &'a Bound<'py, PyAny>) -> Option<&'a Bound<'py, T>> {
    let class = T::class().get(object.py())?;
    let is_ours = ptr::eq(object.get_type_ptr(), class.as_ptr().cast());
    // SAFETY: its class says so.
    is_ours.then(|| unsafe { object.cast_unchecked() })
}

/// What an object of the class holds.
#[inline]
pub fn held<T: Held>(object: &Py<T>) -> &T {
    // SAFETY: nothing is a `Py<T>` but what was made or cast above, and none of these objects changes.
    unsafe { &(*object.as_ptr().cast::<Object<T>>()).held }
}

fn define<T: Held>(py: Python<'_>) -> PyResult<Py<PyType>> {
    let slot = |slot, pfunc: *const c_void| ffi::PyType_Slot { slot, pfunc: pfunc.cast_mut() };
    let slots = [
        slot(ffi::Py_tp_doc, T::DOC.as_ptr().cast()),
        slot(ffi::Py_tp_members, members::<T>().as_ptr().cast()),
        slot(ffi::Py_tp_getset, getters::<T>().as_ptr().cast()),
        slot(ffi::Py_tp_repr, repr::<T> as *const c_void),
        slot(ffi::Py_nb_bool, is_true::<T> as *const c_void),
        slot(ffi::Py_tp_dealloc, dealloc::<T> as *const c_void),
        slot(0, ptr::null()),
    ];
    let mut spec = ffi::PyType_Spec {
        name: T::NAME.as_ptr(),
        basicsize: size_of::<Object<T>>() as c_int,
        itemsize: 0,
        flags: (ffi::Py_TPFLAGS_DEFAULT | ffi::Py_TPFLAGS_DISALLOW_INSTANTIATION) as u32,
        slots: slots.as_ptr().cast_mut(),
    };
    // SAFETY: each slot is of the type that its number asks for, and what it points to lives for ever.
    let class = unsafe { Bound::from_owned_ptr_or_err(py, ffi::PyType_FromSpec(&raw mut spec))? };
    Ok(class.cast_into::<PyType>()?.unbind())
}

fn members<T: Held>() -> &'static [ffi::PyMemberDef] {
    let truth = T::TRUTH.map(|Named { name, doc }| ffi::PyMemberDef {
        name: name.as_ptr(),
        type_code: ffi::Py_T_OBJECT_EX,
        offset: offset_of!(Object<T>, truth) as ffi::Py_ssize_t,
        flags: ffi::Py_READONLY,
        doc: doc.as_ptr(),
    });
    truth.into_iter().chain([ffi::PyMemberDef::default()]).collect::<Vec<_>>().leak()
}

fn getters<T: Held>() -> &'static [ffi::PyGetSetDef] {
    let getter = |field: &'static Field<T>| ffi::PyGetSetDef {
        name: field.named.name.as_ptr(),
        get: Some(get::<T>),
        set: None,
        doc: field.named.doc.as_ptr(),
        closure: ptr::from_ref(field).cast_mut().cast(),
    };
    T::FIELDS.iter().map(getter).chain([ffi::PyGetSetDef::default()]).collect::<Vec<_>>().leak()
}

unsafe extern "C" fn get<T: Held>(object: *mut ffi::PyObject, field: *mut c_void) -> *mut ffi::PyObject {
    // SAFETY: the interpreter calls it for an object of the class, with what `getters` put beside the name.
    unsafe {
        let field = &*field.cast::<Field<T>>();
        answer(|py| (field.read)(&Borrowed::from_ptr(py, object).cast_unchecked()))
    }
}

unsafe extern "C" fn repr<T: Held>(object: *mut ffi::PyObject) -> *mut ffi::PyObject {
    // SAFETY: as for `get`.
    unsafe {
        let held = &(*object.cast::<Object<T>>()).held;
        answer(|py| Ok(PyString::new(py, &held.shown()).into_any()))
    }
}

unsafe extern "C" fn is_true<T: Held>(object: *mut ffi::PyObject) -> c_int {
    // SAFETY: as for `get`.
    unsafe { c_int::from(ptr::eq((*object.cast::<Object<T>>()).truth, ffi::Py_True())) }
}

unsafe extern "C" fn dealloc<T: Held>(object: *mut ffi::PyObject) {
    // SAFETY: nobody else refers to the object, which owns a reference to its class.
    unsafe {
        let class = ffi::Py_TYPE(object);
        ptr::drop_in_place(&raw mut (*object.cast::<Object<T>>()).held);
        ffi::PyObject_Free(object.cast());
        ffi::Py_DecRef(class.cast());
    }
}
