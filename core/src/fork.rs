//! Forks: a child must find no lock held by a thread that it doesn't have.
//!
//! Around a fork, the forking thread itself holds every lock of every store, so that the state that
//! the child inherits is whole and the locks can be given back in both processes.

use std::marker::PhantomData;
use std::mem;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

/// A store whose locks are taken around a fork.
pub(crate) trait Lockable: Send + Sync {
    /// Takes every lock, in an order that no other caller contradicts.
    fn lock_all(&self) -> Vec<Box<dyn Held + '_>>;
}

/// A guard of some lock.
pub(crate) trait Held {}

impl<T> Held for MutexGuard<'_, T> {}

/// Taken before all others, by those who look at what is kept under names.
static NAMES: Mutex<()> = Mutex::new(());
static STORES: Mutex<Vec<Weak<dyn Lockable>>> = Mutex::new(Vec::new());
static GENERATION: AtomicU32 = AtomicU32::new(0);
static AROUND: Mutex<Option<Around>> = Mutex::new(None);

/// How many forks lie between this process and the one that loaded the library.
#[cfg(any(feature = "redis", feature = "shm"))]
pub(crate) fn generation() -> u32 {
    GENERATION.load(Ordering::Relaxed)
}

/// Locks, also after a panic of another holder: our critical sections leave whole states.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// From now on the store's locks are taken around forks.
pub(crate) fn watch(store: &Arc<impl Lockable + 'static>) {
    register();
    let store: Arc<dyn Lockable> = store.clone();
    let mut stores = lock(&STORES);
    if stores.len() == stores.capacity() {
        stores.retain(|store| store.strong_count() > 0);
    }
    stores.push(Arc::downgrade(&store));
}

/// Does what nobody else may do meanwhile, and no fork may come between.
pub(crate) fn naming<R>(act: impl FnOnce() -> R) -> R {
    register();
    let _alone = lock(&NAMES);
    act()
}

fn register() {
    static REGISTERED: AtomicBool = AtomicBool::new(false);
    if !REGISTERED.swap(true, Ordering::AcqRel) {
        // SAFETY: the handlers are functions of this library, which unregisters them when unloaded.
        // Where there is no memory for them, forks beside busy threads go unprotected.
        unsafe { libc::pthread_atfork(Some(before), Some(in_parent), Some(in_child)) };
    }
}

/// What is held from just before a fork until just after it.
struct Around {
    guards: Vec<Box<dyn Held>>,
    list: MutexGuard<'static, Vec<Weak<dyn Lockable>>>,
    names: MutexGuard<'static, ()>,
    stores: Vec<Arc<dyn Lockable>>,
    /// Made, held and dropped by the one thread that forks.
    _thread: PhantomData<*const ()>,
}

// SAFETY: it is put away and taken back by the forking thread (in the child: its only thread), and
// no second fork gets between, since its handler waits for the list.
unsafe impl Send for Around {}

extern "C" fn before() {
    let names = lock(&NAMES);
    let list = lock(&STORES);
    let stores: Vec<Arc<dyn Lockable>> = list.iter().filter_map(Weak::upgrade).collect();
    let guards = stores.iter().flat_map(|store| store.lock_all());
    // SAFETY: the guards are dropped before the stores that they borrow from, see `after`.
    let guards = guards.map(|guard| unsafe { mem::transmute::<Box<dyn Held + '_>, Box<dyn Held>>(guard) });
    let guards = guards.collect();
    *lock(&AROUND) = Some(Around { guards, list, names, stores, _thread: PhantomData });
}

extern "C" fn in_parent() {
    after();
}

extern "C" fn in_child() {
    GENERATION.fetch_add(1, Ordering::Relaxed);
    after();
}

fn after() {
    if let Some(Around { guards, list, names, stores, .. }) = lock(&AROUND).take() {
        drop(guards);
        drop(list);
        drop(names);
        drop(stores);
    }
}
