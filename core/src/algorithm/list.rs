//! Lists of what was admitted, oldest first, wherever a store keeps them.

use std::collections::VecDeque;

/// A list that grows at its end and is dropped from its beginning.
pub(crate) trait List<T: Copy> {
    fn len(&self) -> usize;

    fn get(&self, place: usize) -> Option<T>;

    /// Replaces what lies at a place.
    fn put(&mut self, place: usize, item: T);

    fn push(&mut self, item: T);

    /// Drops the first `count`.
    fn drop_first(&mut self, count: usize);

    fn remove(&mut self, place: usize);

    fn last(&self) -> Option<T> {
        self.get(self.len().checked_sub(1)?)
    }

    /// What lies at `first` and behind it.
    fn since(&self, first: usize) -> impl Iterator<Item = T> {
        (first..self.len()).map_while(|place| self.get(place))
    }

    /// How many at the beginning are over.
    fn count_while(&self, mut is_over: impl FnMut(T) -> bool) -> usize {
        self.since(0).take_while(|&item| is_over(item)).count()
    }
}

impl<T: Copy> List<T> for VecDeque<T> {
    fn len(&self) -> usize {
        self.len()
    }

    #[inline]
    fn get(&self, place: usize) -> Option<T> {
        self.get(place).copied()
    }

    fn put(&mut self, place: usize, item: T) {
        if let Some(old) = self.get_mut(place) {
            *old = item;
        }
    }

    fn push(&mut self, item: T) {
        self.push_back(item);
    }

    fn drop_first(&mut self, count: usize) {
        self.drain(..count.min(self.len()));
    }

    fn remove(&mut self, place: usize) {
        self.remove(place);
    }
}
