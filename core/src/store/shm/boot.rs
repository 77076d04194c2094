//! What tells this run of the machine from the one before.

/// Where the machine does not say, or not to this process.
pub(super) const UNKNOWN: [u64; 2] = [0; 2];

/// 128 bits.
#[cfg(target_os = "linux")]
pub(super) fn id() -> [u64; 2] {
    halves(&std::fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default())
}

#[cfg(target_os = "macos")]
pub(super) fn id() -> [u64; 2] {
    let mut text = [0_u8; 64];
    let mut length = text.len();
    // SAFETY: the name ends with a zero, and the length is that of the buffer.
    let failed = unsafe {
        libc::sysctlbyname(
            c"kern.bootsessionuuid".as_ptr(),
            text.as_mut_ptr().cast(),
            &raw mut length,
            std::ptr::null_mut(),
            0,
        )
    };
    if failed != 0 {
        return UNKNOWN;
    }
    halves(std::str::from_utf8(&text[..length.min(text.len())]).unwrap_or_default())
}

#[cfg(not(any(target_os = "linux", target_os = "macos")))]
pub(super) fn id() -> [u64; 2] {
    UNKNOWN
}

fn halves(text: &str) -> [u64; 2] {
    let digits: String = text.chars().filter(char::is_ascii_hexdigit).take(32).collect();
    let number = u128::from_str_radix(&digits, 16).unwrap_or(0);
    [(number >> 64) as u64, number as u64]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_halves_are_all_of_it() {
        assert_eq!(
            halves("01020304-0506-0708-090a-0b0c0d0e0f10\n"),
            [0x0102_0304_0506_0708, 0x090a_0b0c_0d0e_0f10]
        );
        assert_eq!(halves(""), UNKNOWN);
        assert_ne!(id(), UNKNOWN);
    }
}
