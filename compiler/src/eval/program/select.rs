//! Which values of one path a condition can be true for at all: for dispatch on constants.

use super::{Constant, Path, PathId, Program, Test, TestId};
use dogwood_grammar::ast::Var;

/// Where the path leads to a value and that is none of these, the condition is false, without an error.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Selection {
    pub path: PathId,
    pub among: Vec<Constant>,
}

impl Program {
    /// Every selection that is right for this condition.
    pub fn selections(&self, id: TestId) -> Vec<Selection> {
        let one = [id];
        let parts = match self.tests.get(id as usize) {
            Some(Test::All(parts)) => parts.list.as_slice(),
            _ => &one,
        };
        let mut found: Vec<Selection> = Vec::new();
        for (at, part) in parts.iter().enumerate() {
            let Some(selection) = self.selection(*part) else {
                continue;
            };
            let before = parts.get(..at).unwrap_or_default();
            let path = selection.path;
            // What comes before must not fail where this is false.
            if before.iter().all(|part| self.is_safe(*part, path)) {
                found.push(selection);
            }
        }
        found
    }

    /// A leaf without which this condition is false, and no error either.
    pub fn needs_leaf(&self, id: TestId) -> Option<usize> {
        let one = [id];
        let parts = match self.tests.get(id as usize)? {
            Test::All(parts) => parts.list.as_slice(),
            _ => &one,
        };
        let leaf = |part: &TestId| match self.tests.get(*part as usize) {
            Some(Test::Leaf(number)) => Some(*number),
            _ => None,
        };
        let at = parts.iter().position(|part| leaf(part).is_some())?;
        let before = parts.get(..at)?;
        // No path leads here, so that only what cannot fail at all is safe.
        let safe = before.iter().all(|part| self.is_safe(*part, PathId::MAX));
        if safe { leaf(parts.get(at)?) } else { None }
    }

    fn selection(&self, id: TestId) -> Option<Selection> {
        let (path, mut among) = match self.tests.get(id as usize)? {
            Test::Same(path, constant) => (*path, vec![constant.clone()]),
            Test::OneOf(path, constants) => (*path, constants.clone()),
            Test::Any(parts) => {
                let mut parts = parts.list.iter().map(|part| self.selection(*part));
                let mut all = parts.next()??;
                for part in parts {
                    let part = part?;
                    if part.path != all.path {
                        return None;
                    }
                    all.among.extend(part.among);
                }
                (all.path, all.among)
            }
            _ => return None,
        };
        // Two truth values select nothing.
        if among
            .iter()
            .any(|constant| matches!(constant, Constant::Bool(_)))
        {
            return None;
        }
        let mut seen = std::collections::HashSet::new();
        among.retain(|constant| seen.insert(constant.clone()));
        Some(Selection { path, among })
    }

    /// Whether a test cannot fail where `path` leads to a value.
    fn is_safe(&self, id: TestId, path: PathId) -> bool {
        match self.tests.get(id as usize) {
            Some(Test::Known(_) | Test::Leaf(_)) => true,
            Some(Test::Not(inner)) => self.is_safe(*inner, path),
            Some(Test::All(parts) | Test::Any(parts)) => {
                parts.list.iter().all(|part| self.is_safe(*part, path))
            }
            Some(Test::If(parts)) => parts.iter().all(|part| self.is_safe(*part, path)),
            Some(Test::Same(of, _) | Test::OneOf(of, _)) => {
                self.is_entity(*of) || self.leads_to(*of, path)
            }
            Some(Test::Is(of, _) | Test::In(of, _)) => self.is_entity(*of),
            Some(Test::Has(of, from)) => {
                let holder = match self.paths.get(*of as usize) {
                    Some(Path::Attr { of, depth, .. }) if depth == from => Some(*of),
                    _ => None,
                };
                self.leads_to(*of, path)
                    || holder.is_some_and(|holder| {
                        holder != path && self.leads_to(holder, path) || self.is_root(holder)
                    })
            }
            _ => false,
        }
    }

    fn is_root(&self, path: PathId) -> bool {
        matches!(self.paths.get(path as usize), Some(Path::Root(_)))
    }

    fn is_entity(&self, path: PathId) -> bool {
        let root = self.paths.get(path as usize);
        matches!(root, Some(Path::Root(var)) if *var != Var::Context)
    }

    /// Whether the way to `path` passes `of`, or ends there.
    fn leads_to(&self, of: PathId, path: PathId) -> bool {
        let mut at = path;
        loop {
            if at == of {
                return true;
            }
            match self.paths.get(at as usize) {
                // A path is numbered after the one it goes on from.
                Some(Path::Attr { of: before, .. }) if *before < at => at = *before,
                _ => return false,
            }
        }
    }
}
