//! Manifests and the schemas made of them; every schema is read back by the loader.

#![allow(clippy::unwrap_used)]

use super::*;
use crate::compile::check_action_schema;
use crate::diagnostic::{Style, render};

fn source(name: &str, text: &str) -> Source {
    Source {
        name: name.to_owned(),
        text: text.to_owned(),
    }
}

fn made(manifest: &str) -> String {
    let text = from_manifest(&source("tools.json", manifest)).unwrap();
    assert_eq!(check_action_schema(&source("made", &text)), [], "{text}");
    text
}

/// What is wrong with a manifest, as its author sees it.
fn refused(manifest: &str) -> String {
    let errors = from_manifest(&source("tools.json", manifest)).unwrap_err();
    render(&errors, &[("tools.json", manifest)], Style::Plain)
}

#[test]
fn a_tool_without_arguments() {
    insta::assert_snapshot!(made(r#"[{ "name": "now", "inputSchema": { "type": "object" } }]"#), @r#"
    namespace Drupe {
      entity User;
      entity Gateway;
      type SystemContext = { now: datetime };
      action "Mcp" appliesTo {
        principal: [User],
        resource: [Gateway],
        context: { isOutput: Bool, output?: {}, system: SystemContext }
      };
      action "CallTool" in ["Mcp"] appliesTo {
        principal: [User],
        resource: [Gateway],
        context: { isOutput: Bool, output?: {}, system: SystemContext }
      };
      type nowInput = {};
      type nowOutput = {};
      action "now" in ["CallTool"] appliesTo {
        principal: [User],
        resource: [Gateway],
        context: { input: nowInput, output?: nowOutput, system: SystemContext }
      };
    }
    "#);
}

#[test]
fn a_manifest_may_be_a_reply_or_an_object() {
    let bare = r#"[{ "name": "now", "inputSchema": { "type": "object" } }]"#;
    let object = format!(r#"{{ "tools": {bare} }}"#);
    let reply = format!(r#"{{ "jsonrpc": "2.0", "id": 1, "result": {object} }}"#);
    assert_eq!(made(bare), made(&object));
    assert_eq!(made(bare), made(&reply));
    assert_eq!(made(bare), made(&format!("\u{feff}{bare}")));
}

#[test]
fn every_type_has_its_place() {
    insta::assert_snapshot!(made(r##"{ "tools": [{
        "name": "ship",
        "inputSchema": {
            "type": "object",
            "required": ["crate", "kg"],
            "$defs": {
                "Place": { "type": "object", "properties": { "city": { "type": "string" }, "near": { "$ref": "#/$defs/Place" } } },
                "Code": { "type": "string" }
            },
            "properties": {
                "crate": { "type": "string" },
                "kg": { "type": "integer", "enum": [1, 2] },
                "price": { "type": "number" },
                "due": { "type": "string", "format": "date-time" },
                "from": { "type": "string", "format": "ipv4" },
                "mail": { "type": "string", "format": "email" },
                "speed": { "type": "string", "enum": ["slow", "fast"] },
                "nothing": { "type": "null" },
                "any": {},
                "fixed": { "const": 3 },
                "mixed": { "enum": [1, "a"] },
                "tags": { "type": "array", "items": { "type": "string" } },
                "loose": { "type": "array" },
                "pair": { "type": "array", "prefixItems": [{ "type": "string" }, { "type": "integer" }], "items": false },
                "open": { "type": "array", "prefixItems": [{ "type": "string" }, { "type": "integer" }] },
                "same": { "type": "array", "prefixItems": [{ "type": "string" }], "items": { "type": "string" } },
                "either": { "anyOf": [{ "type": "string" }, { "type": "integer" }] },
                "or": { "type": ["string", "null"] },
                "address": { "type": "object", "properties": { "zip-code": { "type": "string" }, "geo": { "type": "object", "properties": {} } }, "additionalProperties": { "type": "string" } },
                "target": { "$ref": "#/$defs/Place" },
                "code": { "$ref": "#/$defs/Code" }
            }
        },
        "outputSchema": { "type": "object", "properties": { "ok": { "type": "boolean" } }, "required": ["ok"] }
    }, { "name": "list-files", "inputSchema": { "type": "object", "properties": { "in": { "type": "string" } } } }] }"##), @r#"
    namespace Drupe {
      entity Null;
      entity Unknown;
      entity User;
      entity Gateway;
      type SystemContext = { now: datetime };
      action "Mcp" appliesTo {
        principal: [User],
        resource: [Gateway],
        context: { isOutput: Bool, output?: {}, system: SystemContext }
      };
      action "CallTool" in ["Mcp"] appliesTo {
        principal: [User],
        resource: [Gateway],
        context: { isOutput: Bool, output?: {}, system: SystemContext }
      };
      entity ship_Input_speed enum ["slow", "fast"];
      entity ship_Input_address_geo;
      entity ship_Input_address = {
        "zip-code"?: String,
        geo?: ship_Input_address_geo
      } tags String;
      entity ship_Input_Place = { city?: String, near?: ship_Input_Place };
      type ship_Input_Code = String;
      type shipInput = {
        crate: String,
        kg: Long,
        price?: decimal,
        due?: datetime,
        from?: ipaddr,
        mail?: String,
        speed?: ship_Input_speed,
        nothing?: Null,
        any?: Unknown,
        fixed?: Unknown,
        mixed?: Unknown,
        tags?: Set<String>,
        loose?: Set<Unknown>,
        pair?: { proj0: String, proj1: Long },
        open?: Set<Unknown>,
        same?: Set<String>,
        either?: { typeChoice0?: String, typeChoice1?: Long },
        or?: { typeChoice0?: String, typeChoice1?: Null },
        address?: ship_Input_address,
        target?: ship_Input_Place,
        code?: ship_Input_Code
      };
      type shipOutput = { ok: Bool };
      action "ship" in ["CallTool"] appliesTo {
        principal: [User],
        resource: [Gateway],
        context: { input: shipInput, output?: shipOutput, system: SystemContext }
      };
      type list_filesInput = { "in"?: String };
      type list_filesOutput = {};
      action "list-files" in ["CallTool"] appliesTo {
        principal: [User],
        resource: [Gateway],
        context: {
          input: list_filesInput,
          output?: list_filesOutput,
          system: SystemContext
        }
      };
    }
    "#);
}

#[test]
fn mistakes_are_named_where_they_stand() {
    insta::assert_snapshot!(refused(r#"{ "toolz": [] }"#), @r#"
    error[manifest-tools]: there is no list of tools here
      ┌─ tools.json:1:1
      │
    1 │ { "toolz": [] }
      │ ^
      │
      = help: a manifest is an array of tools, an object with `tools`, or the reply to `tools/list`
    "#);
    insta::assert_snapshot!(refused("[1,\n"), @"
    error[not-json]: this is not JSON
      ┌─ tools.json:1:4
      │
    1 │ [1,
      │    ^ expected a value
    ");
    insta::assert_snapshot!(refused(r#"[{ "inputSchema": {} }, { "name": "a" }, 3]"#), @r#"
    error[manifest-tools]: this tool has no `name`
      ┌─ tools.json:1:2
      │
    1 │ [{ "inputSchema": {} }, { "name": "a" }, 3]
      │  ^
      │
      = help: an action is called by the name of its tool

    error[manifest-tools]: the tool `a` has no `inputSchema`
      ┌─ tools.json:1:35
      │
    1 │ [{ "inputSchema": {} }, { "name": "a" }, 3]
      │                                   ^^^
      │
      = help: a tool without arguments has `"inputSchema": { "type": "object" }`

    error[manifest-tools]: a tool is an object, but this is a number
      ┌─ tools.json:1:42
      │
    1 │ [{ "inputSchema": {} }, { "name": "a" }, 3]
      │                                          ^
      │
      = help: as in `{ "name": "search", "inputSchema": { "type": "object" } }`
    "#);
    insta::assert_snapshot!(refused(r##"[
  { "name": "a", "inputSchema": { "type": "object", "properties": {
      "choice": { "type": "string", "enum": [] },
      "place": { "$ref": "#/$defs/Nowhere" },
      "list": { "type": "array", "items": [{ "type": "string" }] },
      "x-y": { "type": "object" }, "x_y": { "type": "object" },
      "kind": { "type": "text" }
  } } },
  { "name": "a", "inputSchema": { "type": "object" } },
  { "name": "b", "inputSchema": { "type": "array" } }
]"##), @r##"
    error[empty-enum]: this `enum` has no values
      ┌─ tools.json:3:45
      │
    3 │       "choice": { "type": "string", "enum": [] },
      │                                             ^^
      │
      = help: list at least one value, or remove `enum`

    error[unknown-reference]: `#/$defs/Nowhere` refers to nothing in this schema
      ┌─ tools.json:4:26
      │
    4 │       "place": { "$ref": "#/$defs/Nowhere" },
      │                          ^^^^^^^^^^^^^^^^^
      │
      = help: a reference names a definition of the same tool, `#/$defs/Name`

    error[manifest-schema]: `items` is one schema for all elements, not a list
      ┌─ tools.json:5:43
      │
    5 │       "list": { "type": "array", "items": [{ "type": "string" }] },
      │                                           ^^^^^^^^^^^^^^^^^^^^^^
      │
      = help: write the schemas of a tuple as `prefixItems`, and `"items": false`

    error[duplicate-declaration]: the type made for this is called `a_Input_x_y`, and there is one already
      ┌─ tools.json:6:36
      │
    6 │       "x-y": { "type": "object" }, "x_y": { "type": "object" },
      │       -----                        ^^^^^
      │       │                             
      │       the other one is made for this
      │
      = help: rename the tool or property; `_` stands for every character that no name may have

    error[unknown-type]: JSON Schema has no type `text`
      ┌─ tools.json:7:25
      │
    7 │       "kind": { "type": "text" }
      │                         ^^^^^^
      │
      = help: the types are `object`, `array`, `string`, `number`, `integer`, `boolean` and `null`

    error[duplicate-declaration]: the tool `a` is declared twice
      ┌─ tools.json:9:13
      │
    2 │   { "name": "a", "inputSchema": { "type": "object", "properties": {
      │             --- first declared here
      ·
    9 │   { "name": "a", "inputSchema": { "type": "object" } },
      │             ^^^
      │
      = help: an action stands for one tool; rename or remove one of the two

    error[manifest-schema]: the arguments of `b` must be an object, but this is `array`
       ┌─ tools.json:10:43
       │
    10 │   { "name": "b", "inputSchema": { "type": "array" } }
       │                                           ^^^^^^^
       │
       = help: write `"type": "object"` with the arguments as `properties`
    "##);
}

#[test]
fn deep_and_circular_schemas_end() {
    let deep = format!(
        r#"[{{ "name": "a", "inputSchema": {{ "type": "object", "properties": {{ "x": {}{{}}{} }} }} }}]"#,
        r#"{ "type": "array", "items": "#.repeat(100),
        "}".repeat(100),
    );
    assert!(refused(&deep).contains("nested more than 64 deep"));
    let circle = r##"[{ "name": "a", "inputSchema": { "type": "object",
        "$defs": { "A": { "$ref": "#/$defs/B" }, "B": { "$ref": "#/$defs/A" } },
        "properties": { "x": { "$ref": "#/$defs/A" } } } }]"##;
    // A definition that is only itself has no type; the loader of schemas says so.
    let text = from_manifest(&source("tools.json", circle)).unwrap();
    assert!(!check_action_schema(&source("made", &text)).is_empty());
}
