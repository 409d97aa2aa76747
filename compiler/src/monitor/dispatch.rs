//! Which rules a decision can concern: by the action, then by constants.
//!
//! Many rules of one action often ask the same path of the request for different constants. One lookup of its
//! value finds those that can be satisfied; the others are false without an error, and cost nothing.

use super::families::Families;
use crate::eval::program::{Constant, Found, PathId, Program, Run, Selection, TestId};
use crate::value::{EntityUid, Value};
use foldhash::quality::RandomState;
use rustc_hash::FxHashMap;
use smol_str::SmolStr;
use std::collections::{BTreeMap, HashMap, HashSet};

/// With fewer rules than this, the tests themselves cost no more than the lookup.
const FEW: usize = 4;

/// Some rules, each with its condition.
#[derive(Clone, Debug, Default)]
pub(super) struct Dispatch {
    /// All of them, in order.
    pub rules: Vec<usize>,
    always: Vec<(usize, TestId)>,
    groups: Vec<Group>,
    pub families: Vec<FamilyGroup>,
}

/// Rules that need a leaf of one family.
#[derive(Clone, Debug)]
pub(super) struct FamilyGroup {
    pub family: usize,
    /// For where the family does not answer as one.
    pub rules: Vec<(usize, TestId)>,
    pub by_leaf: FxHashMap<usize, Vec<(usize, TestId)>>,
}

/// Rules that need one of some constants at this path.
#[derive(Clone, Debug)]
struct Group {
    path: PathId,
    /// For where the path leads nowhere, which may be an error of each.
    rules: Vec<(usize, TestId)>,
    texts: HashMap<SmolStr, Vec<(usize, TestId)>, RandomState>,
    numbers: HashMap<i64, Vec<(usize, TestId)>, RandomState>,
    entities: HashMap<EntityUid, Vec<(usize, TestId)>, RandomState>,
}

/// A rule and the test it stands for.
type Ruled = (usize, TestId);

impl Dispatch {
    pub fn new(rules: Vec<(usize, TestId)>, program: &Program, families: &Families) -> Dispatch {
        let selections: Vec<Vec<Selection>> = rules
            .iter()
            .map(|(_, condition)| program.selections(*condition))
            .collect();
        let mut constants: HashMap<PathId, HashSet<&Constant>> = HashMap::new();
        for selection in selections.iter().flatten() {
            let seen = constants.entry(selection.path).or_default();
            seen.extend(&selection.among);
        }
        // The path that tells most rules apart.
        let best = |selections: &[Selection]| {
            let apart = |selection: &&Selection| constants.get(&selection.path).map(HashSet::len);
            selections.iter().max_by_key(apart).cloned()
        };
        let mut dispatch = Dispatch {
            rules: rules.iter().map(|(rule, _)| *rule).collect(),
            ..Dispatch::default()
        };
        let mut grouped: BTreeMap<PathId, Vec<(Ruled, Vec<Constant>)>> = BTreeMap::new();
        let mut by_family: BTreeMap<usize, Vec<(Ruled, usize)>> = BTreeMap::new();
        for (rule, selections) in rules.iter().zip(&selections) {
            if let Some(best) = best(selections) {
                let members = grouped.entry(best.path).or_default();
                members.push((*rule, best.among));
                continue;
            }
            let leaf = program.needs_leaf(rule.1);
            match leaf.and_then(|leaf| Some((leaf, families.of(leaf)?.0))) {
                Some((leaf, family)) => by_family.entry(family).or_default().push((*rule, leaf)),
                None => dispatch.always.push(*rule),
            }
        }
        for (path, members) in grouped {
            if members.len() < FEW {
                let rules = members.into_iter().map(|(rule, _)| rule);
                dispatch.always.extend(rules);
            } else {
                dispatch.groups.push(Group::new(path, members));
            }
        }
        for (family, members) in by_family {
            if members.len() < FEW {
                let rules = members.into_iter().map(|(rule, _)| rule);
                dispatch.always.extend(rules);
                continue;
            }
            let mut by_leaf: FxHashMap<usize, Vec<_>> = FxHashMap::default();
            for (rule, leaf) in &members {
                by_leaf.entry(*leaf).or_default().push(*rule);
            }
            dispatch.families.push(FamilyGroup {
                family,
                rules: members.into_iter().map(|(rule, _)| rule).collect(),
                by_leaf,
            });
        }
        dispatch.always.sort_unstable();
        dispatch
    }

    /// Visits every rule that can be satisfied or fail, in no special order, but for those of `families`.
    pub fn each<'r, 'a>(
        &self,
        run: &mut Run<'r, 'a>,
        visit: &mut dyn FnMut(&mut Run<'r, 'a>, usize, TestId),
    ) {
        for (rule, condition) in &self.always {
            visit(run, *rule, *condition);
        }
        for group in &self.groups {
            let found = match run.find(group.path) {
                Found::Absent(_) | Found::Wrong => Some(&group.rules),
                // Null reads as the empty string.
                Found::Value(Value::Null) => group.texts.get(""),
                Found::Value(Value::String(text)) => group.texts.get(text.as_str()),
                Found::Value(Value::Int(n)) => group.numbers.get(n),
                Found::Uid(uid) | Found::Value(Value::Entity(uid)) => group.entities.get(uid),
                Found::Value(_) | Found::Record(_) => None,
            };
            for (rule, condition) in found.into_iter().flatten() {
                visit(run, *rule, *condition);
            }
        }
    }
}

impl Group {
    fn new(path: PathId, members: Vec<((usize, TestId), Vec<Constant>)>) -> Group {
        let mut group = Group {
            path,
            rules: Vec::with_capacity(members.len()),
            texts: HashMap::default(),
            numbers: HashMap::default(),
            entities: HashMap::default(),
        };
        for (rule, among) in members {
            group.rules.push(rule);
            for constant in among {
                match constant {
                    Constant::Str(text) => group.texts.entry(text).or_default().push(rule),
                    Constant::Long(n) => group.numbers.entry(n).or_default().push(rule),
                    Constant::Entity(uid) => group.entities.entry(uid).or_default().push(rule),
                    // No path is selected by truth values.
                    Constant::Bool(_) => {}
                }
            }
        }
        group
    }
}

#[cfg(test)]
mod tests;
