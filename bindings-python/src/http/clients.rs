//! `Clients`: who is asking.

use mirab::http::Clients;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyBytes, PyString};

use crate::convert::{TextArgument, shown};
use crate::error::{invalid_argument, raise};

/// Who is asking: the client's address, behind proxies that are trusted and no others.
///
/// Without a trusted proxy the client is who has connected, whatever the request says. A trusted proxy tells
/// for whom it asks, in one header that is read from the right: what stands to the left of the first address
/// that is not trusted was written by that client himself, and nobody believes it.
///
/// trusted_proxies: networks ("10.0.0.0/8", "2001:db8::7"), the names "loopback", "linklocal", "uniquelocal",
///     "shared" and "unix", or the number of proxies, one behind the other, that nobody can go round.
/// header: the one that the proxies write; "Forwarded" is read as RFC 7239 says, others as lists of addresses.
/// ipv6_prefix: how many bits of an IPv6 address make a client, 1 to 128.
///
/// Raises InvalidArgument for anything else.
#[pyclass(frozen, module = "mirab.http", name = "Clients")]
pub struct PyClients(Clients);

#[pymethods]
impl PyClients {
    #[new]
    #[pyo3(
        signature = (
            trusted_proxies=None,
            *,
            header=TextArgument::Default("X-Forwarded-For"),
            ipv6_prefix=Bits(64),
        ),
        text_signature = "(trusted_proxies=None, *, header='X-Forwarded-For', ipv6_prefix=64)"
    )]
    fn new(
        trusted_proxies: Option<&Bound<'_, PyAny>>,
        header: TextArgument<'_, '_>,
        ipv6_prefix: Bits,
    ) -> PyResult<Self> {
        let header = header.text("header", "the name of a header")?;
        let mut clients = Clients::new().field(header).map_err(raise)?;
        clients = clients.ipv6_prefix(ipv6_prefix.0).map_err(raise)?;
        if let Some(proxies) = trusted_proxies {
            clients = trusting(clients, proxies)?;
        }
        Ok(Self(clients))
    }

    /// The name of the header to hand over, in lower case; None where none is read.
    #[getter]
    fn header(&self) -> Option<&str> {
        self.0.wants()
    }

    /// The key of the client: "192.0.2.7", or "2001:db8:1:2::/64"; None where nothing is known of him.
    ///
    /// peer: the address that has connected, None or empty for a socket file.
    /// lines: the header's values, one for each time that the request has it, in their order.
    #[pyo3(signature = (peer, lines=None))]
    fn key(
        &self,
        peer: Option<&Bound<'_, PyAny>>,
        lines: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Option<String>> {
        let wrong = |peer| {
            invalid_argument(format!("peer {}: it must be the text of an address, or None", shown(peer)))
        };
        // As in a line, a lone surrogate is in no address.
        let peer = peer.map(|peer| peer.cast::<PyString>().map_err(|_| wrong(peer))).transpose()?;
        let peer = peer.map(|peer| peer.to_string_lossy());
        let peer = peer.as_deref();
        let lines = lines.map_or(Ok(Vec::new()), lines_of)?;
        Ok(self.0.key(peer, lines.iter().map(String::as_str)))
    }
}

/// How many bits of an address.
#[derive(Clone, Copy)]
struct Bits(u8);

impl FromPyObject<'_, '_> for Bits {
    type Error = PyErr;

    fn extract(value: Borrowed<'_, '_, PyAny>) -> PyResult<Self> {
        match value.extract() {
            Ok(bits) if !value.is_instance_of::<PyBool>() => Ok(Self(bits)),
            _ => Err(invalid_argument(format!(
                "ipv6_prefix {}: it must be an integer from 1 to 128",
                shown(&value)
            ))),
        }
    }
}

fn trusting(clients: Clients, proxies: &Bound<'_, PyAny>) -> PyResult<Clients> {
    let wrong = || {
        invalid_argument(format!(
            "trusted_proxies {}: it must be a list of networks, or a number of proxies from 0 to 32",
            shown(proxies)
        ))
    };
    if proxies.is_instance_of::<PyBool>() {
        return Err(wrong());
    }
    if let Ok(hops) = proxies.extract::<i64>() {
        return clients.hops(u32::try_from(hops).map_err(|_| wrong())?).map_err(raise);
    }
    if is_text(proxies) {
        return Err(wrong());
    }
    let networks: Vec<String> = proxies.extract().map_err(|_| wrong())?;
    clients.trusting(&networks).map_err(raise)
}

fn lines_of(lines: &Bound<'_, PyAny>) -> PyResult<Vec<String>> {
    let wrong =
        || invalid_argument(format!("lines {}: they must be a list of the header's values", shown(lines)));
    if is_text(lines) {
        return Err(wrong());
    }
    let all = lines.try_iter().map_err(|_| wrong())?;
    let mut texts = Vec::new();
    for line in all {
        // A lone surrogate is a byte that is no text: it is no address either.
        let line = line?.cast_into::<PyString>().map_err(|_| wrong())?;
        texts.push(line.to_string_lossy().into_owned());
    }
    Ok(texts)
}

/// One text would be read as a list of its letters.
fn is_text(value: &Bound<'_, PyAny>) -> bool {
    value.is_instance_of::<PyString>() || value.is_instance_of::<PyBytes>()
}
