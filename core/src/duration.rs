//! Given durations become whole microseconds, here and nowhere else.

use std::time::Duration;

use crate::{Error, Result};

/// Seconds to the nearest microsecond; `what` names the argument in the error.
///
/// # Errors
/// `invalid_argument` for NaN, infinity, a negative value, and anything that is less than one
/// microsecond after rounding or more than 2^52 microseconds.
pub fn from_seconds(what: &str, seconds: f64) -> Result<Duration> {
    from_units(what, seconds, 1e6, "seconds")
}

/// Milliseconds to the nearest microsecond; `what` names the argument in the error.
///
/// # Errors
/// As [`from_seconds`].
pub fn from_millis(what: &str, millis: f64) -> Result<Duration> {
    from_units(what, millis, 1e3, "milliseconds")
}

fn from_units(what: &str, value: f64, micros_per_unit: f64, unit: &str) -> Result<Duration> {
    let micros = (value * micros_per_unit).round();
    // The comparison is false for NaN, too.
    if micros >= 1.0 && micros <= crate::clock::MAX_TIME_US as f64 {
        return Ok(Duration::from_micros(micros as u64));
    }
    // Without a hundred digits.
    let value = if value.abs() < 1e16 { value.to_string() } else { format!("{value:e}") };
    Err(Error::argument(format!(
        "{what} of {value} {unit}: it must be at least one microsecond and at most 2^52 microseconds"
    )))
}

/// A timeout in seconds to the nearest microsecond; 0 asks once and waits for nobody.
///
/// # Errors
/// As [`from_seconds`].
pub fn timeout_from_seconds(what: &str, seconds: f64) -> Result<Duration> {
    if seconds == 0.0 { Ok(Duration::ZERO) } else { from_seconds(what, seconds) }
}

/// A timeout in milliseconds, as [`timeout_from_seconds`].
///
/// # Errors
/// As [`from_seconds`].
pub fn timeout_from_millis(what: &str, millis: f64) -> Result<Duration> {
    if millis == 0.0 { Ok(Duration::ZERO) } else { from_millis(what, millis) }
}

/// A duration to the nearest microsecond, at least one.
pub(crate) fn to_micros(what: &str, duration: Duration) -> Result<u64> {
    let micros = (duration.as_nanos() + 500) / 1000;
    match u64::try_from(micros) {
        Ok(micros) if micros >= 1 => Ok(micros),
        _ => Err(Error::argument(format!(
            "{what} of {duration:?}: it must be at least one microsecond and at most 2^64"
        ))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nearest_microsecond_is_taken() {
        assert_eq!(from_seconds("per", 0.1).unwrap(), Duration::from_micros(100_000));
        assert_eq!(from_seconds("per", 0.000_001_4).unwrap(), Duration::from_micros(1));
        assert_eq!(from_seconds("per", 0.000_000_5).unwrap(), Duration::from_micros(1));
        assert_eq!(from_millis("per", 1500.0).unwrap(), Duration::from_micros(1_500_000));
        assert_eq!(to_micros("per", Duration::from_nanos(1_499)).unwrap(), 1);
    }

    #[test]
    fn every_exact_microsecond_survives_a_float() {
        for micros in [1, 3, 999_999, 1_790_000_000_123_457, (1 << 52) - 1, 1 << 52] {
            let seconds = micros as f64 / 1e6;
            assert_eq!(from_seconds("advance", seconds).unwrap().as_micros(), micros);
        }
    }

    #[test]
    fn what_is_no_duration_is_an_error_that_names_it() {
        assert!(from_seconds("per", 1e300).unwrap_err().to_string().starts_with("per of 1e300 seconds"));
        assert_eq!(timeout_from_seconds("timeout", 0.0), Ok(Duration::ZERO));
        assert!(timeout_from_millis("timeoutMs", -1.0).is_err());
        for bad in [0.0, -1.0, f64::NAN, f64::INFINITY, 0.000_000_4, 1e10] {
            let error = from_seconds("per", bad).unwrap_err();
            assert!(error.to_string().starts_with(&format!("per of {bad} seconds")), "{error}");
        }
        assert!(to_micros("per", Duration::from_nanos(499)).is_err());
    }
}
