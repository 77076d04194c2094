//! The time that one unit takes, as an exact fraction of microseconds.

/// The longest period and the longest full drain, in microseconds: 35 years.
pub(crate) const MAX_SPAN_US: u64 = 1 << 50;

/// `p/q` microseconds a unit, in lowest terms.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Interval {
    pub p: u64,
    pub q: u64,
}

/// A stretch of time: whole microseconds and a fraction in units of `1/q`. Packed, so that a tag fits
/// beside it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[repr(C, packed(4))]
pub(crate) struct Span {
    pub whole: u64,
    pub fraction: u32,
}

impl Interval {
    /// The interval of `count` units in `period_us` microseconds; both at least 1.
    pub fn new(count: u64, period_us: u64) -> Self {
        let divisor = gcd(count, period_us);
        Self { p: period_us / divisor, q: count / divisor }
    }

    /// `units` times the interval; a product of at most 2^50 microseconds.
    #[inline]
    pub fn times(self, units: u64) -> Span {
        let ticks = u128::from(units) * u128::from(self.p);
        // Nearly every product fits a word, where the division is several times cheaper.
        match u64::try_from(ticks) {
            Ok(ticks) => Span { whole: ticks / self.q, fraction: (ticks % self.q) as u32 },
            Err(_) => Span {
                whole: (ticks / u128::from(self.q)) as u64,
                fraction: (ticks % u128::from(self.q)) as u32,
            },
        }
    }

    /// A span in units of `1/q` microseconds.
    #[inline]
    pub fn ticks(self, span: Span) -> u128 {
        u128::from(span.whole) * u128::from(self.q) + u128::from(span.fraction)
    }

    /// Units of `1/q` microseconds, rounded up to whole microseconds.
    #[inline]
    pub fn micros(self, ticks: u128) -> u64 {
        div_ceil(ticks, self.q)
    }

    /// How many intervals a stretch of `1/q` microseconds takes up, begun ones included.
    #[inline]
    pub fn units(self, ticks: u128) -> u64 {
        div_ceil(ticks, self.p)
    }
}

/// A quotient that fits a word, rounded up. Nearly every dividend does, too: then the division is
/// several times cheaper.
#[inline]
fn div_ceil(dividend: u128, divisor: u64) -> u64 {
    match u64::try_from(dividend) {
        Ok(dividend) => dividend.div_ceil(divisor),
        Err(_) => dividend.div_ceil(u128::from(divisor)) as u64,
    }
}

pub(crate) fn gcd(mut a: u64, mut b: u64) -> u64 {
    while b != 0 {
        (a, b) = (b, a % b);
    }
    a
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_interval_is_in_lowest_terms() {
        assert_eq!(Interval::new(5, 60_000_000), Interval { p: 12_000_000, q: 1 });
        assert_eq!(Interval::new(3, 1_000_000), Interval { p: 1_000_000, q: 3 });
        assert_eq!(Interval::new(600_000_000, 1_000_000), Interval { p: 1, q: 600 });
    }

    #[test]
    fn multiples_are_exact_also_beyond_a_word() {
        let third = Interval::new(3, 1_000_000);
        let span = third.times(2);
        assert_eq!((span.whole, span.fraction), (666_666, 2));
        assert_eq!(third.micros(third.ticks(span)), 666_667);
        let wide = Interval::new(999_999_937, (1 << 50) - 1);
        let full = wide.times(999_999_937);
        assert_eq!((full.whole, full.fraction), ((1 << 50) - 1, 0));
    }
}
