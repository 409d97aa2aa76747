//! Which rule of the old version became which of the new one.

use crate::explain::NamedRule;
use crate::normal;
use std::collections::BTreeMap;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PairKind {
    /// The same, whatever the spelling; `reworded` where the spelling changed.
    Same {
        reworded: bool,
    },
    /// The normal forms differ.
    Changed,
    Added,
    Removed,
}

/// Positions of a rule in both versions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pair {
    pub old: Option<usize>,
    pub new: Option<usize>,
    pub kind: PairKind,
}

/// Pairs rules by `@id`, then by normal form, then by order: a rule without an `@id` that is left over on both
/// sides of one effect is taken for a changed one. In the order of the new version; removed rules last.
pub fn pairs(old: &[NamedRule], new: &[NamedRule]) -> Vec<Pair> {
    let forms = |rules: &[NamedRule]| -> Vec<String> {
        rules.iter().map(|rule| normal::text(&rule.rule)).collect()
    };
    let (old_forms, new_forms) = (forms(old), forms(new));
    let mut partner: BTreeMap<usize, usize> = BTreeMap::new();
    let mut taken = vec![false; old.len()];
    let id = |rule: &NamedRule| rule.rule.annotation("id").map(str::to_owned);
    let mut join = |partner: &mut BTreeMap<usize, usize>, fits: &dyn Fn(usize, usize) -> bool| {
        for at in 0..new.len() {
            if partner.contains_key(&at) {
                continue;
            }
            let found = (0..old.len())
                .find(|before| taken.get(*before) == Some(&false) && fits(*before, at));
            if let Some(before) = found {
                partner.insert(at, before);
                if let Some(taken) = taken.get_mut(before) {
                    *taken = true;
                }
            }
        }
    };
    join(&mut partner, &|before, at| {
        let (a, b) = (old.get(before).and_then(id), new.get(at).and_then(id));
        a.is_some() && a == b
    });
    join(&mut partner, &|before, at| {
        old_forms.get(before) == new_forms.get(at)
    });
    join(&mut partner, &|before, at| {
        let (Some(a), Some(b)) = (old.get(before), new.get(at)) else {
            return false;
        };
        id(a).is_none() && id(b).is_none() && a.rule.effect == b.rule.effect
    });
    let mut found: Vec<Pair> = (0..new.len())
        .map(|at| {
            let before = partner.get(&at).copied();
            let kind = match before {
                None => PairKind::Added,
                Some(before) if old_forms.get(before) == new_forms.get(at) => PairKind::Same {
                    reworded: spelled(old.get(before)) != spelled(new.get(at)),
                },
                Some(_) => PairKind::Changed,
            };
            Pair {
                old: before,
                new: Some(at),
                kind,
            }
        })
        .collect();
    found.extend(
        (0..old.len())
            .filter(|before| taken.get(*before) == Some(&false))
            .map(|before| Pair {
                old: Some(before),
                new: None,
                kind: PairKind::Removed,
            }),
    );
    found
}

/// The rule as it prints, annotations left out.
fn spelled(rule: Option<&NamedRule>) -> Option<String> {
    rule.map(|named| {
        let mut rule = named.rule.clone();
        rule.annotations.clear();
        crate::grammar::print::print_rule(&rule)
    })
}
