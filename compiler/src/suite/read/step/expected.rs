//! What a step expects of its decision.

use super::*;

impl Steps<'_, '_> {
    pub(super) fn expected(&mut self, node: &Json, last: bool) -> Option<Expected> {
        let row = self.row.filter(|_| last);
        let said = |key: &str| -> Option<Json> {
            let of_row = row.and_then(|row| row.iter().find(|word| word.key.value == key));
            node.get(key)
                .or_else(|| of_row.map(|word| &word.value))
                .cloned()
        };
        let (expect, by, says) = (said("expect"), said("by"), said("says"));
        let by = by.map(|by| (self.names(&by), by.span));
        let verdict = match &expect {
            None if by.is_none() && says.is_none() => return None,
            None => {
                let span = by.as_ref().map_or(node.span, |(_, span)| *span);
                self.refuse(
                    Diagnostic::error("missing-key", span, "what should be decided is not said")
                        .help("add `expect = \"allow\"` or `expect = \"deny\"`"),
                );
                return None;
            }
            Some(word) => match word.as_str().map(SmolStr::as_str) {
                Some("allow") => Verdict::Allow,
                Some("deny") => Verdict::Deny,
                found => {
                    let wanted = "`\"allow\"` or `\"deny\"`";
                    self.refuse(match found {
                        Some(found) => Diagnostic::error(
                            "wrong-shape",
                            word.span,
                            format!("`expect` wants {wanted}, and this is `{found}`"),
                        ),
                        None => wrong("expect", word, wanted),
                    });
                    return None;
                }
            },
        };
        let says = match says {
            Some(node) => match node.as_str() {
                Some(text) => Some(text.to_string()),
                None => {
                    self.refuse(wrong("says", &node, "a string"));
                    None
                }
            },
            None => None,
        };
        let span = expect.as_ref().map_or(node.span, |expect| expect.span);
        Some(Expected {
            span,
            verdict,
            by: by.map(|(by, _)| by),
            says,
        })
    }

    pub(super) fn names(&mut self, node: &Json) -> Vec<String> {
        let items: Vec<Json> = match node.as_array() {
            Some(items) => items.to_vec(),
            None => vec![node.clone()],
        };
        let mut names = Vec::new();
        for item in items {
            let Some(name) = item.as_str() else {
                self.refuse(wrong("by", &item, "the names of rules"));
                continue;
            };
            if !self.reader.rules.contains(name.as_str()) {
                let known: Vec<SmolStr> = self.reader.rules.iter().map(SmolStr::new).collect();
                let problem = Diagnostic::error(
                    "test-rule",
                    item.span,
                    format!("no rule is called `{name}`"),
                );
                self.refuse(match nearest(name, &known) {
                    Some(near) => problem.label(format!("did you mean `{near}`?")).fix(
                        format!("change to `{near}`"),
                        item.span,
                        format!("{:?}", near.as_str()),
                    ),
                    None => problem.help(
                        "a rule is called by its `@id`, or by where it stands: `policy.dw:12`",
                    ),
                });
                continue;
            }
            names.push(name.to_string());
        }
        names
    }
}
