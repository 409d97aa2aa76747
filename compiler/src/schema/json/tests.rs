//! Schemas in the JSON syntax: what they resolve to, and what is said of broken ones.

#![allow(clippy::unwrap_used)]

use crate::compile::{Source, check_action_schema};
use crate::diagnostic::{Style, render};
use crate::schema::{resolve, write};
use dogwood_grammar::print::print_action_schema;

const SOUND: &str = r#"{
  "Depot": {
    "annotations": { "doc": "everything" },
    "commonTypes": {
      "Load": { "type": "Record", "attributes": {
        "kg": { "type": "Long" },
        "note": { "type": "String", "required": false },
        "bay": { "type": "Entity", "name": "Bay" },
        "from": { "type": "Extension", "name": "ipaddr", "required": false }
      } }
    },
    "entityTypes": {
      "Team": {},
      "Clerk": {
        "memberOfTypes": ["Team"],
        "shape": { "type": "Record", "attributes": {
          "friends": { "type": "Set", "element": { "type": "EntityOrCommon", "name": "Clerk" } },
          "rank": { "type": "Entity", "name": "Depot::Rank" },
          "ok": { "type": "Boolean" }
        }, "additionalAttributes": false },
        "tags": { "type": "String" }
      },
      "Rank": { "enum": ["low", "high"] },
      "Bay": { "shape": { "type": "Load" } }
    },
    "actions": {
      "any": {},
      "move": {
        "memberOf": [{ "id": "any" }],
        "appliesTo": { "principalTypes": ["Clerk"], "resourceTypes": ["Depot::Bay"], "context": { "type": "Load" } }
      },
      "never": { "appliesTo": { "principalTypes": [], "resourceTypes": [] } }
    }
  }
}"#;

fn said(text: &str) -> String {
    let source = Source {
        name: "depot.json".to_owned(),
        text: text.to_owned(),
    };
    let found = check_action_schema(&source);
    render(&found, &[("depot.json", text)], Style::Plain)
}

#[test]
fn a_schema_means_what_the_human_syntax_would() {
    let (tree, errors) = super::read(SOUND);
    assert_eq!(errors, []);
    let (schema, errors) = resolve(&tree);
    assert_eq!(errors, []);
    insta::assert_snapshot!(print_action_schema(&write::tree(&schema)), @r#"
    @doc("everything")
    namespace Depot {
      entity Bay = { bay: Depot::Bay, from?: ipaddr, kg: Long, note?: String };
      entity Clerk in [Depot::Team] = { friends: Set<Depot::Clerk>, ok: Bool, rank: Depot::Rank } tags String;
      entity Rank enum ["low", "high"];
      entity Team;
      action "any";
      action "move" in [Depot::Action::"any"] appliesTo { principal: [Depot::Clerk], resource: [Depot::Bay], context: { bay: Depot::Bay, from?: ipaddr, kg: Long, note?: String } };
      action "never";
    }
    "#);
    // What is written as JSON is read as the same.
    let json = write::to_json(&write::tree(&schema)).to_string();
    let (again, errors) = resolve(&super::read(&json).0);
    assert_eq!(errors, []);
    assert_eq!(again.entity_types, schema.entity_types);
    assert_eq!(again.actions, schema.actions);
}

#[test]
fn mistakes_are_named_where_they_stand() {
    let broken = SOUND
        .replace(r#""name": "Bay""#, r#""name": "Bya""#)
        .replace(r#""memberOfTypes""#, r#""memberOfType""#)
        .replace(
            r#"{ "type": "Boolean" }"#,
            r#"{ "type": "Boolean", "element": 1 }"#,
        )
        .replace(r#""ipaddr""#, r#""ip""#)
        .replace(
            r#""any": {}"#,
            r#""any": {}, "any": { "attributes": { "a": 1 } }"#,
        )
        .replace("Attributes\": false", "Attributes\": true")
        .replace(
            r#"{ "shape": { "type": "Load" } }"#,
            r#"{ "shape": { "type": "Clerk" } }"#,
        );
    insta::assert_snapshot!(said(&broken), @r#"
    error[unknown-entity-type]: there is no entity type `Bya`
      ┌─ depot.json:8:44
      │
    8 │         "bay": { "type": "Entity", "name": "Bya" },
      │                                            ^^^^^
      │
      = help: declare it in `entityTypes`; a name of another namespace is written in full

    error[unknown-type]: there is no extension type `ip`
      ┌─ depot.json:9:48
      │
    9 │         "from": { "type": "Extension", "name": "ip", "required": false }
      │                                                ^^^^
      │
      = help: the extension types are `decimal`, `ipaddr`, `datetime` and `duration`

    error[json-shape]: there is no key `memberOfType` here
       ┌─ depot.json:15:9
       │
    15 │         "memberOfType": ["Team"],
       │         ^^^^^^^^^^^^^^
       │
       = help: did you mean `memberOfTypes`?
       = fix: change to `memberOfTypes`

    error[json-shape]: the type `Boolean` has no `element`
       ┌─ depot.json:19:38
       │
    19 │           "ok": { "type": "Boolean", "element": 1 }
       │                                      ^^^^^^^^^
       │
       = help: remove the key, or name another `type`

    error[json-shape]: records with attributes nobody declared are not supported
       ┌─ depot.json:20:36
       │
    20 │         }, "additionalAttributes": true },
       │                                    ^^^^
       │
       = help: remove `additionalAttributes`; tags hold what is not known beforehand

    error[unknown-type]: `Clerk` is an entity type, not a common type
       ┌─ depot.json:24:35
       │
    24 │       "Bay": { "shape": { "type": "Clerk" } }
       │                                   ^^^^^^^
       │
       = help: write `"type": "Entity", "name": "Clerk"`

    error[duplicate-declaration]: `any` is given twice
       ┌─ depot.json:27:18
       │
    27 │       "any": {}, "any": { "attributes": { "a": 1 } },
       │       -----      ^^^^^ given again here
       │       │           
       │       first given here
       │
       = help: remove one of the two, or rename it

    error[json-shape]: actions have no attributes
       ┌─ depot.json:27:41
       │
    27 │       "any": {}, "any": { "attributes": { "a": 1 } },
       │                                         ^^^^^^^^^^
       │
       = help: remove `attributes`; what differs between requests belongs into the context
    "#);
}

#[test]
fn text_that_is_no_json_is_said_to_be() {
    insta::assert_snapshot!(said("{ \"A\": { \"entityTypes\": {}, } }"), @r#"
    error[not-json]: this is not JSON
      ┌─ depot.json:1:29
      │
    1 │ { "A": { "entityTypes": {}, } }
      │                             ^ expected a key between quotes
    "#);
}

#[test]
fn parts_that_are_missing_are_named() {
    insta::assert_snapshot!(said(r#"{ "A": { "entityTypes": { "T": { "shape": { "type": "Record" } } } }, "A-B": 3 }"#), @r#"
    error[json-shape]: `actions` is missing here
      ┌─ depot.json:1:3
      │
    1 │ { "A": { "entityTypes": { "T": { "shape": { "type": "Record" } } } }, "A-B": 3 }
      │   ^^^

    error[json-shape]: `attributes` is missing here
      ┌─ depot.json:1:43
      │
    1 │ { "A": { "entityTypes": { "T": { "shape": { "type": "Record" } } } }, "A-B": 3 }
      │                                           ^^^^^^^^^^^^^^^^^^^^

    error[json-shape]: `A-B` is not a name
      ┌─ depot.json:1:71
      │
    1 │ { "A": { "entityTypes": { "T": { "shape": { "type": "Record" } } } }, "A-B": 3 }
      │                                                                       ^^^^^
      │
      = help: a name is letters, digits and `_`; `::` stands between namespaces

    error[json-shape]: here a namespace is needed, not a number
      ┌─ depot.json:1:78
      │
    1 │ { "A": { "entityTypes": { "T": { "shape": { "type": "Record" } } } }, "A-B": 3 }
      │                                                                              ^
    "#);
}

#[test]
fn annotations_are_called_by_a_word() {
    let with = |key: &str| {
        said(&format!(
            r#"{{ "": {{ "entityTypes": {{ "A": {{ "annotations": {{ "{key}": "x" }} }} }}, "actions": {{}} }} }}"#
        ))
    };
    assert_eq!(with("doc"), "");
    assert_eq!(with("if"), "");
    insta::assert_snapshot!(with("doc since"), @r#"
    error[json-shape]: `doc since` is not a name
      ┌─ depot.json:1:50
      │
    1 │ { "": { "entityTypes": { "A": { "annotations": { "doc since": "x" } } }, "actions": {} } }
      │                                                  ^^^^^^^^^^^
      │
      = help: a name is letters, digits and `_`; `::` stands between namespaces
    "#);
}
