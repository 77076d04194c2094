//! Whose turn it is: in tests every access to a word may be where another process goes on, or where
//! this one ends.

use std::cell::RefCell;

thread_local!(static TURN: RefCell<Option<Box<dyn FnMut()>>> = const { RefCell::new(None) });

/// Called before every access.
pub(super) fn turn() {
    TURN.with(|turn| {
        if let Ok(mut turn) = turn.try_borrow_mut()
            && let Some(turn) = turn.as_mut()
        {
            turn();
        }
    });
}
