//! Every code a diagnostic can have, with what it means in one sentence.
//!
//! Codes are stable: people search for them. A test holds this list equal to what the phases use, and a row
//! without its page does not compile.

/// A row of the table makes a code: the row, and its page `pages/CODE.md` beside this file.
macro_rules! codes {
    ($(($code:literal, $meaning:literal),)*) => {
        /// Code and meaning, sorted by code.
        pub const CODES: &[(&str, &str)] = &[$(($code, $meaning)),*];

        /// Code and page, sorted by code.
        pub const PAGES: &[(&str, &str)] =
            &[$(($code, include_str!(concat!("pages/", $code, ".md")))),*];
    };
}

#[rustfmt::skip]
codes! {
    ("absent-unequal", "`!=` compares something that may be absent, and is false where it is."),
    ("action-is", "`is` tests the type of an entity; an action is named with `==` or `in`."),
    ("action-slot", "A rule's action cannot be left open as `?action`."),
    ("ambiguous-type", "A value has another type for another action or entity the rule applies to."),
    ("applies-to-context", "The `context` of an action is a record type."),
    ("applies-to-part", "`appliesTo` has the parts `principal`, `resource` and `context` only."),
    ("applies-to-types", "`principal` and `resource` of `appliesTo` list entity types."),
    ("arithmetic-off", "`+`, `-` and `*` inside `temporal { … }` are experimental and switched off."),
    ("assign-for-eq", "A single `=` stands where `==` compares."),
    ("attempt-as-precondition", "A rule opens after a `request`, and denied requests count as well."),
    ("bad-literal", "The text of a `decimal`, `ip`, `datetime` or `duration` cannot be read as one."),
    ("bad-unit", "A window has a unit other than `s`, `m`, `h` and `d`."),
    ("binder-parentheses", "`exists` and `for` take their variables as `(name: Type)`."),
    ("blank-schema", "An event schema without any text declares no event."),
    ("call-in-macro", "The body of a macro calls a macro; only arguments may."),
    ("call-of-non-name", "Something other than a function or a method is called."),
    ("cap-counts-itself", "A cap ends one request early: the count includes the request being decided."),
    ("chained-comparison", "A temporal comparison has more than two sides."),
    ("chained-since", "`since` follows `since` without parentheses."),
    ("context-alone", "`context` stands without a field in a temporal condition."),
    ("context-not-a-record", "The context of an action is declared as something other than a record."),
    ("cyclic-action", "An action is in a group that is in it."),
    ("cyclic-type", "A type is declared through itself."),
    ("decimal-literal", "`decimal` in a temporal condition takes one string literal."),
    ("duplicate", "The same thing is given twice where it may be given once."),
    ("duplicate-annotation", "A rule has two annotations of one name; the last one counts."),
    ("duplicate-declaration", "A schema declares one name twice."),
    ("duplicate-event", "An event schema declares one kind of event twice."),
    ("duplicate-field", "An event has two fields of one name."),
    ("duplicate-id", "Two rules have one `@id`."),
    ("duplicate-macro", "A file defines one macro twice."),
    ("duplicate-parameter", "A macro has two parameters of one name."),
    ("empty-enum", "An enumerated entity type has no choices."),
    ("empty-set", "An empty set literal has no element type, so nothing can be compared with it."),
    ("entity-record", "An entity is written as a record; entities are named by type and id."),
    ("entity-type-name", "An enumerated type has a name that entity types cannot have."),
    ("entity-type-namespace", "An enumerated type of providers is in a namespace without a provider."),
    ("expansion-too-deep", "Written out, the macros of a rule nest too deeply."),
    ("expansion-too-large", "Written out, the macros of a rule are too large."),
    ("experimental-arithmetic", "A temporal condition uses arithmetic, which may still change."),
    ("exported-name", "An enumerated type of providers would clash with a name of the action schema."),
    ("field-group", "A predicate names a group of fields where it must name one field."),
    ("forbid-without-permit", "A rule forbids what no rule permits."),
    ("foreign-character", "A character that has no meaning in the language."),
    ("fraction", "A number with a fraction; decimals are written as text."),
    ("free-variable", "A variable of a temporal condition is introduced nowhere."),
    ("group-action", "An action group stands where an action that can be asked for is needed."),
    ("hoisted-name", "What a rule becomes as plain Cedar needs a name that the schema declares itself."),
    ("impossible-scope", "No request can match the head of a rule."),
    ("incomplete-applies-to", "`appliesTo` must name at least one principal and one resource type."),
    ("index-not-string", "Records are indexed with a string literal."),
    ("integer-range", "A number does not fit 64 bits."),
    ("invalid-escape", "A string has an escape that does not exist."),
    ("json-shape", "A schema in the JSON syntax has a key or a value where it cannot stand."),
    ("late-max-window", "`max_window` stands behind an event or a second time."),
    ("list-in-temporal", "A list stands in a predicate or comparison of a temporal condition."),
    ("loose-relation", "A comparison follows `has`, `like` or `is` without parentheses."),
    ("manifest-schema", "The input or output of a tool is no JSON Schema that can become types."),
    ("manifest-tools", "A manifest does not list tools with a name and an input schema."),
    ("misplaced-value", "A count, sum or arithmetic stands elsewhere than as one side of a comparison."),
    ("missing-braces", "A predicate lacks its braces, which stand even where they are empty."),
    ("missing-clause-word", "A condition lacks its `when` or `unless`."),
    ("missing-dot", "The `.` behind the variables of `exists` or `for` is missing."),
    ("missing-event-kind", "A predicate names an action, but not which kind of event."),
    ("missing-key", "An object or table lacks a key it needs."),
    ("missing-semicolon", "A rule, macro or declaration lacks its `;`."),
    ("missing-unit", "A window has an amount without a unit."),
    ("missing-window", "An operator that looks back does not say how far."),
    ("mixed-set", "The elements of a set have different types."),
    ("mixed-signs", "`!` and `-` stand in one run of signs."),
    ("needs-parentheses", "An operand must stand in parentheses."),
    ("nested-namespace", "A namespace is declared inside another."),
    ("nesting-too-deep", "The records of an event schema nest too deeply."),
    ("never-applies", "No request can meet the conditions of a rule."),
    ("never-equal", "Two values that are compared can never be equal."),
    ("never-now", "A predicate outside `formerly`, `previous` and `since` can never match the request."),
    ("never-true", "A test can never hold for the requests of its rule."),
    ("no-providers", "A file of providers declares none."),
    ("no-tags", "An entity without tags is asked for one."),
    ("not-a-condition", "A value stands where a temporal condition is needed."),
    ("not-a-literal", "An extension constructor takes a literal, so that it can be checked beforehand."),
    ("not-a-record", "A field is read from something that is no record."),
    ("not-a-value", "A condition stands where a value is needed."),
    ("not-an-enum", "A provider takes entities of a type that is not enumerated."),
    ("not-in-temporal", "An operator of Cedar stands in a temporal condition, which does not have it."),
    ("not-json", "A file that must be JSON is not."),
    ("not-temporal", "A part of a temporal condition does not look at any event."),
    ("open-metadata", "Connections to any host are permitted, the cloud's metadata service included."),
    ("open-string", "A string has no closing quote."),
    ("partial-pin", "A pin of the event schema narrows predicates, but does not part the history."),
    ("path-root", "Fields are read from a variable that has none."),
    ("pattern-literal", "The right side of `like` is not a string literal."),
    ("pin-on-group", "A group of fields is pinned; only single fields can be."),
    ("pin-value", "A field is pinned to something other than a request's scope or context."),
    ("pin-without-value", "A pinned field lacks its value."),
    ("positive-since", "The left side of `since` must match every event, so any other event ends it."),
    ("provider-argument", "An information provider is given something other than paths, literals and sets of these."),
    ("provider-in-macro", "The body of a `def cedar` macro asks an information provider."),
    ("provider-name", "A provider has a name that no policy can ask it by."),
    ("provider-type", "A type of a provider is put together wrongly."),
    ("reserved-macro-name", "A macro has a name that the language needs itself."),
    ("reserved-name", "A declaration has a name that is reserved."),
    ("reserved-variable", "A variable has the name of a part of the request."),
    ("scope-colon", "A type is tested with `:` instead of `is`."),
    ("scope-entity", "A scope compares with something other than one named entity."),
    ("scope-list", "A list stands in a scope elsewhere than behind `action in`."),
    ("scope-operator", "A scope has an operator other than `==`, `in` and `is`."),
    ("script-error", "The script of a provider cannot be run."),
    ("script-function", "The script of a provider lacks a function that the declaration needs."),
    ("script-kind", "A provider is implemented in a kind of script that does not exist."),
    ("script-source", "A provider has no script, two of them, or one that cannot be read."),
    ("selector-argument", "A selector of an event declaration names another variable."),
    ("self-match", "A condition about the past is met by the request being decided."),
    ("shadowed-declaration", "A declaration hides one outside its namespace."),
    ("shadowed-method", "A method of a provider has the name of one of the language, which hides it."),
    ("shadowed-rule", "Another rule without a condition makes a rule pointless."),
    ("spread-as-type", "`inputs` or `outputs` stands as the type of a field."),
    ("star-escape", "`\\*` stands in a string that is no pattern."),
    ("stray-brace", "A `}` closes nothing."),
    ("stray-parameter", "A macro parameter stands outside a macro."),
    ("stray-semicolon", "A `;` ends nothing."),
    ("summand-not-listed", "The variable that is summed is not in the `for` list."),
    ("syntax", "The text does not follow the grammar at this place."),
    ("template-slot", "A rule has a template slot; there are no templates."),
    ("temporal-bypassed", "A permit with a temporal condition stands beside one without any."),
    ("temporal-in-macro", "The body of a `def cedar` macro has a temporal block."),
    ("temporal-let", "A temporal condition has a `let`; values are named with `exists`."),
    ("temporal-or", "A temporal condition has `||`; it is written with `!` and `&&`, or as two rules."),
    ("test-case-word", "A test uses a word that a row of its table does not have."),
    ("test-nothing-decided", "A test expects a verdict of an event at which nothing is decided."),
    ("test-policy", "A test file does not lead to the policy it tests."),
    ("test-rule", "A test expects a rule that the policy does not have."),
    ("test-syntax", "A test file is not TOML."),
    ("test-time", "A test has a time that cannot be read, or that runs backwards."),
    ("too-deep", "The text nests more than 200 levels deep."),
    ("too-many-fields", "The event schema gives the actions too many fields in all."),
    ("trace", "A line of a trace cannot be read."),
    ("trailing-comma", "A comma follows the last element of a list that allows none there."),
    ("type-argument", "A type that takes no argument is given one."),
    ("type-as-spread", "`principalType` or `resourceType` is spread; each is the type of a field."),
    ("type-mismatch", "A value has another type than its place needs."),
    ("type-too-deep", "A type of the action schema nests too deeply."),
    ("types-too-large", "The types of the action schema are too large when written out."),
    ("unbounded-read", "A rule permits reading every file."),
    ("unclosed-bracket", "A bracket is never closed."),
    ("unguarded-optional", "An optional attribute is read without testing first that it is there."),
    ("unguarded-tag", "A tag is read without testing first that it is there."),
    ("unknown-action", "The action schema declares no such action."),
    ("unknown-action-type", "No action is declared under that name."),
    ("unknown-attribute", "The record or entity has no such attribute."),
    ("unknown-clause-word", "A condition begins with another word than `when` or `unless`."),
    ("unknown-code", "`@allow` names a code that no message has."),
    ("unknown-declaration", "A schema has a declaration that does not exist."),
    ("unknown-effect", "A rule begins with another word than `permit` or `forbid`."),
    ("unknown-entity-type", "The action schema declares no such entity type."),
    ("unknown-enum-value", "An enumerated entity type has no such choice."),
    ("unknown-event", "The event schema derives no such event for the action."),
    ("unknown-field", "The event has no such field."),
    ("unknown-function", "There is no such function or `def cedar` macro."),
    ("unknown-key", "An object or table has a key that means nothing there."),
    ("unknown-macro", "There is no such temporal macro."),
    ("unknown-method", "There is no such method."),
    ("unknown-param-type", "A type of a provider does not exist."),
    ("unknown-parameter", "A macro's body names a parameter it does not have."),
    ("unknown-provider", "There is no such information provider."),
    ("unknown-reference", "A `$ref` of a tool's schema leads to no definition."),
    ("unknown-scope-variable", "A scope has a variable other than `principal`, `action` and `resource`."),
    ("unknown-selector", "An event declaration has a selector that does not exist."),
    ("unknown-slot", "A template slot does not fit its variable."),
    ("unknown-type", "The action schema declares no such type."),
    ("unknown-variable", "An expression has a variable that does not exist."),
    ("unknown-variable-type", "A variable of a temporal condition has a type that is not declared."),
    ("unreachable-prerequisite", "A rule waits for the outcome of an action that no rule permits."),
    ("unrestricted-variable", "A variable of a temporal condition is not bound by any event that happens."),
    ("unsupported-operator", "An operator that the language does not have."),
    ("unused-variable", "A variable of a count or sum does not occur in its condition."),
    ("value-counted", "A count or sum is over different values where events were probably meant."),
    ("value-without-pin", "A field of an event schema has a value, but is not pinned."),
    ("variable-too-early", "A variable is tested before it is bound; order in a chain counts."),
    ("window-range", "A window is longer than can be counted."),
    ("window-too-long", "A window is longer than the event schema allows."),
    ("word-operator", "`and`, `or` or `not` stands where the language has `&&`, `||` and `!`."),
    ("wrong-argument", "An argument of a macro has another shape than the macro needs."),
    ("wrong-argument-count", "A macro is given too many or too few arguments."),
    ("wrong-arity", "A function or method is given too many or too few arguments."),
    ("wrong-macro-kind", "A macro stands where macros of another kind belong."),
    ("wrong-shape", "A value of a JSON or test file has another shape than its place needs."),
    ("zero-max-window", "`max_window` is nothing."),
    ("zero-window", "A window is nothing."),
}

/// What a code means.
pub fn meaning(code: &str) -> Option<&'static str> {
    let at = CODES.binary_search_by_key(&code, |(name, _)| name).ok()?;
    CODES.get(at).map(|(_, meaning)| *meaning)
}

/// The code most like the one asked for.
pub fn nearest(code: &str) -> Option<&'static str> {
    let names = CODES.iter().map(|(name, _)| *name);
    let near = names
        .map(|name| (strsim::osa_distance(name, code), name))
        .min()?;
    (near.0 <= 1 + code.len() / 4).then_some(near.1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;
    use std::path::Path;

    /// Codes in the text of a source file: the first argument of whatever makes a diagnostic.
    fn used(text: &str, found: &mut BTreeSet<String>) {
        let makers = ["say(", "error(", "warning(", "unknown("];
        for maker in makers {
            for (at, _) in text.match_indices(maker) {
                let rest = text[at + maker.len()..].trim_start();
                let Some(literal) = rest.strip_prefix('"') else {
                    continue;
                };
                let Some((code, _)) = literal.split_once('"') else {
                    continue;
                };
                let kebab = |c: char| c.is_ascii_lowercase() || c == '-';
                if !code.is_empty() && code.chars().all(kebab) {
                    found.insert(code.to_owned());
                }
            }
        }
    }

    fn files(dir: &Path, found: &mut BTreeSet<String>) {
        for entry in std::fs::read_dir(dir).unwrap() {
            let path = entry.unwrap().path();
            let name = path.file_name().unwrap().to_string_lossy().into_owned();
            // Tests make up codes of their own, and whole test files stand beside what they test.
            if path.is_dir() {
                files(&path, found);
            } else if name.ends_with(".rs") && name != "tests.rs" {
                let text = std::fs::read_to_string(&path).unwrap();
                used(text.split("#[cfg(test)]").next().unwrap(), found);
            }
        }
    }

    #[test]
    fn the_list_is_what_the_phases_use() {
        let mut found = BTreeSet::new();
        let here = Path::new(env!("CARGO_MANIFEST_DIR"));
        files(&here.join("src"), &mut found);
        files(&here.join("../grammar/src"), &mut found);
        let listed: BTreeSet<String> = CODES.iter().map(|(code, _)| (*code).to_owned()).collect();
        let missing: Vec<_> = found.difference(&listed).collect();
        let stale: Vec<_> = listed.difference(&found).collect();
        assert!(
            missing.is_empty() && stale.is_empty(),
            "missing: {missing:?}, stale: {stale:?}"
        );
    }

    #[test]
    fn codes_are_sorted_and_found() {
        assert!(CODES.is_sorted_by(|a, b| a.0 < b.0));
        assert!(CODES.iter().all(|(_, text)| text.ends_with('.')));
        assert_eq!(meaning("trace"), Some("A line of a trace cannot be read."));
        assert_eq!(meaning("no-such-code"), None);
        assert_eq!(nearest("unknown-acton"), Some("unknown-action"));
        assert_eq!(nearest("zzz"), None);
    }
}
