//! Users and groups, as far as a file's owner must be named.

use std::fs;

/// The user that this process acts as.
pub(super) fn user() -> u32 {
    rustix::process::geteuid().as_raw()
}

/// The group of what this process makes.
pub(super) fn group() -> u32 {
    rustix::process::getegid().as_raw()
}

/// The number of a group.
pub(super) fn group_named(name: &str) -> Option<u32> {
    entry("/etc/group", |fields| fields.first() == Some(&name))?.get(2)?.parse().ok()
}

/// A user as an operator knows him: `1000 (ada)`.
pub(super) fn shown(user: u32) -> String {
    let number = user.to_string();
    let found = entry("/etc/passwd", |fields| fields.get(2) == Some(&number.as_str()));
    match found.as_deref().and_then(|fields| fields.first()) {
        Some(name) => format!("{user} ({name})"),
        None => number,
    }
}

/// The fields of the first line of such a file for which `is_it` says so.
fn entry(file: &str, is_it: impl Fn(&[&str]) -> bool) -> Option<Vec<String>> {
    let text = fs::read_to_string(file).ok()?;
    text.lines().find_map(|line| {
        let fields: Vec<&str> = line.split(':').collect();
        is_it(&fields).then(|| fields.into_iter().map(str::to_owned).collect())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn root_is_known_everywhere() {
        assert_eq!(shown(0), "0 (root)");
        assert_eq!(group_named("root").or_else(|| group_named("wheel")), Some(0));
        assert_eq!(group_named("no such group"), None);
        assert_eq!(shown(4_294_967_294), "4294967294");
    }
}
