//! Who is asking over HTTP, and what he is told, as the core says it.

use std::time::Duration;

use mirab::http::{Answers, Clients, Naming};
use mirab::{Error, ErrorKind, Result};

use crate::js::{Call, Value};

/// `(networks, hops?, header, ipv6Prefix) => clients`; the networks count where there are no hops.
pub fn clients_new(call: &Call<'_>) -> Result<Value> {
    let clients = match call.number_or_none(1) {
        Some(hops) => Clients::new().hops(hops as u32)?,
        None => Clients::new().trusting(&call.texts(0)?)?,
    };
    let bits = u8::try_from(call.integer(3)?).unwrap_or(u8::MAX);
    let clients = clients.field(&call.text(2)?)?.ipv6_prefix(bits)?;
    call.give(call.state().clients.borrow_mut().insert(clients) as f64)
}

/// `(clients)`.
pub fn clients_free(call: &Call<'_>) -> Result<Value> {
    call.state().clients.borrow_mut().try_remove(call.handle(0)?);
    call.give(())
}

/// `(clients) => text | undefined`: the header that is to be handed over.
pub fn clients_header(call: &Call<'_>) -> Result<Value> {
    let clients = call.state().clients.borrow();
    call.give(clients.get(call.handle(0)?).and_then(Clients::wants))
}

/// `(clients, peer?, lines) => text | undefined`.
pub fn clients_key(call: &Call<'_>) -> Result<Value> {
    let clients = call.state().clients.borrow();
    let (peer, lines) = (call.text_or_none(1), call.texts(2)?);
    let clients = clients.get(call.handle(0)?).ok_or_else(|| missing("clients"))?;
    call.give(clients.key(peer.as_deref(), lines.iter().map(String::as_str)))
}

/// `(families, body, partitionSalt?, maxHoldMs?) => answers`; of the salt a text stands for its UTF-8.
pub fn answers_new(call: &Call<'_>) -> Result<Value> {
    let mut answers = Answers::new(&call.texts(0)?)?.body(&call.text(1)?)?;
    answers = call.with_bytes_or_none(2, |salt| match salt {
        Some(salt) => answers.partition_salt(salt),
        None => Ok(answers),
    })?;
    if let Some(longest) = call.number_or_none(3) {
        answers = answers.max_hold(Duration::from_micros((longest * 1000.0).round() as u64));
    }
    call.give(call.state().answers.borrow_mut().insert(answers) as f64)
}

/// `(answers)`.
pub fn answers_free(call: &Call<'_>) -> Result<Value> {
    call.state().answers.borrow_mut().try_remove(call.handle(0)?);
    call.give(())
}

/// `(answers, heldDecision, policyName?, partitionKey?) => [status, body?, name, value, name, value...]`.
pub fn answer(call: &Call<'_>) -> Result<Value> {
    let (answers, decisions) = (call.state().answers.borrow(), call.state().decisions.borrow());
    let answers = answers.get(call.handle(0)?).ok_or_else(|| missing("answers"))?;
    let decision = decisions.get(call.handle(1)?).ok_or_else(|| missing("a decision"))?;
    let policy_name = call.text_or_none(2);
    let answer = call.with_bytes_or_none(3, |partition_key| {
        let naming = Naming { policy_name: policy_name.as_deref(), partition_key };
        Ok(answers.answer(decision.told(), &naming, None))
    })?;
    let mut values = vec![call.give(f64::from(answer.status))?, call.give(answer.body)?];
    for (name, value) in answer.fields {
        values.extend([call.give(name)?, call.give(value)?]);
    }
    call.give(values)
}

fn missing(what: &str) -> Error {
    Error::new(ErrorKind::Internal, format!("{what} that does not exist"))
}
