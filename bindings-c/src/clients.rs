//! Who is asking: the client's address, behind proxies that are trusted and no others.

use std::borrow::Cow;
use std::ffi::{CStr, c_char};

use mirab::http::Clients;

use crate::error::{Failure, mirab_error, mirab_result};
use crate::ffi::{
    self, Handle, exclusive, invalid, natural, null, output, outputs, shared, slice, terminated,
};
use crate::guard::{guard, guard_silently};

/// Room for the key of a client, its NUL byte included.
pub const MIRAB_CLIENT_KEY_SIZE: usize = 64;

/// Finds who is asking. Where nobody is trusted, that is who has connected, whatever the request
/// says. A trusted proxy tells for whom it asks, in one header that is read from the right: what
/// stands to the left of the first address that isn't trusted was written by that client himself,
/// and nobody believes it.
/// Threads: one at a time, while it is being set; then any number may ask it.
/// Lifetime: it stands alone, and copies what it is given.
/// NULL: `MIRAB_NULL_POINTER`, and nothing in `mirab_clients_free`.
/// Freeing: `mirab_clients_free`, once.
pub struct mirab_clients {
    inner: Clients,
}

impl Handle for mirab_clients {}

impl mirab_clients {
    /// What fails leaves it as it was.
    fn set(&mut self, change: impl FnOnce(Clients) -> mirab::Result<Clients>) -> Result<(), Failure> {
        self.inner = change(self.inner.clone())?;
        Ok(())
    }
}

/// Makes clients of whom nobody is trusted to tell of others.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mirab_clients_new(
    error: *mut mirab_error,
    out: *mut *mut mirab_clients,
) -> mirab_result {
    guard(error, || {
        // SAFETY: the header's conventions.
        let out = unsafe { output(out, "out")? };
        out.give(mirab_clients { inner: Clients::new() });
        Ok(())
    })
}

/// Trusts `count` proxies by their addresses: "10.0.0.0/8", "2001:db8::7", or the names "loopback",
/// "linklocal", "uniquelocal", "shared" (100.64.0.0/10) and "unix", for who connects through a
/// socket file. They take the place of those who were trusted before; 0 of them is nobody.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mirab_clients_trust(
    clients: *mut mirab_clients,
    proxies: *const *const c_char,
    count: usize,
    error: *mut mirab_error,
) -> mirab_result {
    guard(error, || {
        // SAFETY: the header's conventions.
        let (clients, proxies) =
            unsafe { (exclusive(clients, "clients")?, ffi::texts(proxies, count, "proxies")?) };
        clients.set(|clients| clients.trusting(&proxies))
    })
}

/// Trusts that there are so many proxies, one behind the other, 0 (nobody) to 32, and that nobody
/// reaches the server but through them: else he says who he is. It takes the place of
/// `mirab_clients_trust`.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mirab_clients_trust_hops(
    clients: *mut mirab_clients,
    hops: i64,
    error: *mut mirab_error,
) -> mirab_result {
    guard(error, || {
        // SAFETY: the header's conventions.
        let clients = unsafe { exclusive(clients, "clients")? };
        let hops = u32::try_from(natural(hops, "hops")?)
            .map_err(|_| invalid(format!("{hops} proxies: it must be 0 to 32")))?;
        clients.set(|clients| clients.hops(hops))
    })
}

/// The one header that the proxies write; "X-Forwarded-For", unless told otherwise. "Forwarded" is
/// read as RFC 7239 says, any other as a list of addresses.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mirab_clients_set_header(
    clients: *mut mirab_clients,
    name: *const c_char,
    error: *mut mirab_error,
) -> mirab_result {
    guard(error, || {
        // SAFETY: the header's conventions.
        let (clients, name) = unsafe { (exclusive(clients, "clients")?, ffi::text(name, "name")?) };
        clients.set(|clients| clients.field(name))
    })
}

/// How many bits of an IPv6 address make a client, 1 to 128; 64, unless told otherwise.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mirab_clients_set_ipv6_prefix(
    clients: *mut mirab_clients,
    bits: i64,
    error: *mut mirab_error,
) -> mirab_result {
    guard(error, || {
        // SAFETY: the header's conventions.
        let clients = unsafe { exclusive(clients, "clients")? };
        let bits = u8::try_from(natural(bits, "bits")?)
            .map_err(|_| invalid(format!("an IPv6 prefix of {bits} bits: it must be 1 to 128")))?;
        clients.set(|clients| clients.ipv6_prefix(bits))
    })
}

/// Writes the key of the client to `out_key`, for `mirab_limiter_acquire`: "192.0.2.7" or
/// "2001:db8:1:2::/64", ended by NUL. `room` is `MIRAB_CLIENT_KEY_SIZE` or more. `out` gets whether
/// he is known; if not, the key is empty, which no limiter takes.
/// `peer` is the address that has connected, with or without a port; NULL or empty for a socket file.
/// `lines` are the `count` values of the header, one for each time that the request has it, in their
/// order; NULL is fine when there are none. Both may be any bytes: what is no address is nobody.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mirab_clients_key(
    clients: *const mirab_clients,
    peer: *const c_char,
    lines: *const *const c_char,
    count: usize,
    error: *mut mirab_error,
    out: *mut bool,
    out_key: *mut c_char,
    room: usize,
) -> mirab_result {
    guard(error, || {
        // SAFETY: the header's conventions.
        let (clients, lines, out, place) = unsafe {
            let (clients, lines) = (shared(clients, "clients")?, slice(lines, count, "lines")?);
            let place = outputs(out_key, room, MIRAB_CLIENT_KEY_SIZE, "out_key")?;
            (clients, lines, output(out, "out")?, place)
        };
        let lines = lines.iter().map(|&line| lossy(line).ok_or_else(|| null("one of lines")));
        let (peer, lines) = (lossy(peer), lines.collect::<Result<Vec<_>, _>>()?);
        let key = clients.inner.key(peer.as_deref(), lines.iter().map(Cow::as_ref));
        out.write(key.is_some());
        place.write(terminated(&key.unwrap_or_default(), MIRAB_CLIENT_KEY_SIZE));
        Ok(())
    })
}

/// What a network has sent: a byte that is no UTF-8 is U+FFFD, and that is in no address.
fn lossy<'a>(text: *const c_char) -> Option<Cow<'a, str>> {
    // SAFETY: not NULL, and the promise of `ffi`.
    (!text.is_null()).then(|| unsafe { CStr::from_ptr(text) }.to_string_lossy())
}

/// Frees the clients. NULL is fine.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mirab_clients_free(clients: *mut mirab_clients) {
    // SAFETY: the header's conventions.
    guard_silently(|| unsafe { ffi::free(clients) });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_key_is_cut() {
        let clients = Clients::new().ipv6_prefix(128).unwrap_or_default();
        let longest = clients.key(Some("1111:2222:3333:4444:5555:6666:7777:8888"), []).unwrap_or_default();
        assert_eq!(longest.len(), 43);
        assert!(longest.len() < MIRAB_CLIENT_KEY_SIZE);
    }
}
