//! Keys of 16 bytes, and an order to ask for them.

use std::collections::HashMap;
use std::sync::Arc;

pub type Key = [u8; 16];

/// How many indexes an order holds; a power of two.
pub const ORDER: usize = 1 << 20;

/// Keys such as `user:00000012345`, the first being number `from`.
pub fn make(from: usize, count: usize) -> Vec<Key> {
    (from..from + count)
        .map(|mut number| {
            let mut key = *b"user:00000000000";
            for digit in key[5..].iter_mut().rev() {
                *digit = b'0' + (number % 10) as u8;
                number /= 10;
            }
            key
        })
        .collect()
}

/// Random indexes below `count`, the same in every run (xorshift64*).
pub fn random_order(count: usize) -> Vec<u32> {
    let mut state = 0x9E37_79B9_7F4A_7C15_u64;
    (0..ORDER)
        .map(|_| {
            state ^= state >> 12;
            state ^= state << 25;
            state ^= state >> 27;
            let high = state.wrapping_mul(0x2545_F491_4F6C_DD1D) >> 32;
            ((high * count as u64) >> 32) as u32
        })
        .collect()
}

/// What a scenario asks for. One key has no order: it costs no memory to walk through.
#[derive(Clone)]
pub struct Keys {
    pub all: Arc<[Key]>,
    pub order: Option<Arc<[u32]>>,
}

/// The keys of each count, made once.
#[derive(Default)]
pub struct Cache(HashMap<usize, Keys>);

impl Cache {
    pub fn get(&mut self, count: usize) -> Keys {
        let made = self.0.entry(count).or_insert_with(|| Keys {
            all: make(0, count).into(),
            order: (count > 1).then(|| random_order(count).into()),
        });
        made.clone()
    }
}
