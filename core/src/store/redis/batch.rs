//! What is asked of the server: a call of one caller, and calls that travel together.

use smallvec::SmallVec;

use super::script::{self, Program};
use super::wire::{Args, Reply};
use crate::clock::Time;

/// The most groups of one call of the script: more would keep the server from others for too long.
pub(super) const MOST_GROUPS: usize = 64;

/// What one caller asks.
pub(super) enum Ask {
    Decide(Decide),
    Script { program: &'static Program, keys: Args, arguments: Args },
    Plain(Args),
}

/// Groups to decide: their part of the script's keys and arguments.
pub(super) struct Decide {
    /// The algorithms that the script must know.
    pub parts: usize,
    pub keys: Args,
    pub arguments: Args,
    pub time: Time,
    /// How many numbers are told of each group that was decided.
    pub told: SmallVec<[usize; 1]>,
}

impl Ask {
    /// How many groups it decides, when it can travel with others.
    pub fn groups(&self) -> Option<usize> {
        match self {
            Self::Decide(it) if it.time.given().is_none() => Some(it.told.len()),
            _ => None,
        }
    }
}

/// The commands for calls that travel together: by the script's digest, and by its source for a server
/// that does not know it.
pub(super) enum Command {
    Script { program: &'static Program, keys: Args, arguments: Args },
    Plain(Args),
}

impl Command {
    /// One command for all of them: a single call, or several that decide by the server's time.
    #[expect(clippy::needless_pass_by_value, reason = "an iterator, which is walked more than once")]
    pub fn of<'a>(asks: impl Iterator<Item = &'a Ask> + Clone) -> Self {
        let mut decides =
            asks.clone().filter_map(|ask| if let Ask::Decide(it) = ask { Some(it) } else { None });
        let Some(time) = decides.clone().next().map(|first| first.time) else {
            return match asks.clone().next() {
                Some(Ask::Script { program, keys, arguments }) => {
                    Self::Script { program, keys: keys.clone(), arguments: arguments.clone() }
                }
                Some(Ask::Plain(args)) => Self::Plain(args.clone()),
                _ => Self::Plain(Args::default()),
            };
        };
        let parts = decides.clone().fold(0, |parts, it| parts | it.parts);
        let (mut keys, mut arguments) = (Args::default(), Args::default());
        script::time_arguments(&mut arguments, time);
        decides.by_ref().for_each(|it| {
            keys.args(&it.keys);
            arguments.args(&it.arguments);
        });
        Self::Script { program: Program::deciding(parts), keys, arguments }
    }

    /// The command, or that with the script's source.
    pub fn args(&self, with_source: bool) -> Args {
        match self {
            Self::Plain(args) => args.clone(),
            Self::Script { program, keys, arguments } => {
                let mut args = Args::default();
                if with_source {
                    args.arg("EVAL").arg(program.source.as_str());
                } else {
                    args.arg("EVALSHA").arg(program.digest.as_str());
                }
                args.arg(keys.count()).args(keys).args(arguments);
                args
            }
        }
    }
}

/// Parts the answer to calls that travelled together: to each what it would have been told alone. None
/// when it has another shape.
pub(super) fn part<'a>(reply: Reply, asks: impl ExactSizeIterator<Item = &'a Ask>) -> Option<Vec<Reply>> {
    if asks.len() == 1 {
        return Some(vec![reply]);
    }
    let Reply::Integers(numbers) = reply else { return None };
    let (&now, mut rest) = numbers.split_first()?;
    let mut parts = Vec::with_capacity(asks.len());
    for ask in asks {
        let Ask::Decide(it) = ask else { return None };
        let mut own = vec![now];
        for &told in &it.told {
            let length = match *rest.first()? {
                0 | 1 => 1 + told,
                2 => 2,
                _ => 1,
            };
            let (group, others) = rest.split_at_checked(length)?;
            own.extend_from_slice(group);
            rest = others;
        }
        parts.push(Reply::Integers(own));
    }
    rest.is_empty().then_some(parts)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn decide(told: &[usize]) -> Ask {
        let (keys, arguments) = (Args::default(), Args::default());
        Ask::Decide(Decide { parts: 1, keys, arguments, time: Time::STORE, told: told.into() })
    }

    #[test]
    fn each_is_told_what_it_would_be_told_alone() {
        let asks = [decide(&[2]), decide(&[4, 2]), decide(&[2]), decide(&[2])];
        let numbers = vec![9, 1, 10, 11, 0, 20, 21, 22, 23, 1, 24, 25, 2, 30, -1];
        let parts = part(Reply::Integers(numbers), asks.iter()).unwrap();
        let expected: [&[i64]; 4] =
            [&[9, 1, 10, 11], &[9, 0, 20, 21, 22, 23, 1, 24, 25], &[9, 2, 30], &[9, -1]];
        assert_eq!(parts, expected.map(|numbers| Reply::Integers(numbers.to_vec())));
    }

    #[test]
    fn an_answer_of_another_shape_is_nobodys() {
        let asks = [decide(&[2]), decide(&[2])];
        for numbers in [vec![], vec![9], vec![9, 1, 2, 3], vec![9, 1, 2, 3, 1, 4, 5, 6]] {
            assert_eq!(part(Reply::Integers(numbers), asks.iter()), None);
        }
        assert_eq!(part(Reply::Other, asks.iter()), None);
    }
}
