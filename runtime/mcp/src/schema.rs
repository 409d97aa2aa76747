//! Tools as actions a rule can name: one namespace a server, beside the actions of a box.

use crate::catalogue::Catalogue;
use crate::shape::{Field, Fields, Shape, Unsupported};
use dogwood_compiler::schema::BOX_ACTIONS;
use smol_str::SmolStr;
use std::collections::BTreeMap;
use std::fmt::Write;
use thiserror::Error;

/// Names that a namespace may not have, for they mean something in a policy.
const RESERVED: [&str; 24] = [
    "true",
    "false",
    "if",
    "then",
    "else",
    "in",
    "is",
    "like",
    "has",
    "__cedar",
    "principal",
    "action",
    "resource",
    "context",
    "when",
    "unless",
    "temporal",
    "formerly",
    "previous",
    "since",
    "within",
    "exists",
    "count",
    "sum",
];

/// Why tools cannot be named in a policy.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum SchemaFault {
    #[error(
        "the MCP servers {one:?} and {two:?} would both be the namespace `{namespace}`; rename one"
    )]
    SameNamespace {
        one: SmolStr,
        two: SmolStr,
        namespace: SmolStr,
    },
    #[error(
        "the MCP server {0:?} would be the namespace `Box`, which is the box itself; rename it"
    )]
    Taken(SmolStr),
    #[error("the MCP server {server:?}: {unsupported}")]
    Unsupported {
        server: SmolStr,
        unsupported: Unsupported,
    },
}

/// The namespace of a server: its name with everything that no name may hold replaced.
pub fn namespace(server: &str) -> SmolStr {
    let mut name: String = server
        .chars()
        .map(|c| if c.is_ascii_alphanumeric() { c } else { '_' })
        .collect();
    if name.is_empty() || name.starts_with(|c: char| c.is_ascii_digit()) {
        name.insert(0, '_');
    }
    if RESERVED.contains(&name.as_str()) {
        name.push('_');
    }
    name.into()
}

/// The actions of a box, then one namespace for each server.
pub fn generate_schema(servers: &[Catalogue]) -> Result<String, Vec<SchemaFault>> {
    let mut faults = Vec::new();
    let mut namespaces: BTreeMap<SmolStr, &SmolStr> = BTreeMap::new();
    let mut text = String::from(BOX_ACTIONS);
    for catalogue in servers {
        let namespace = namespace(&catalogue.server);
        if namespace == "Box" {
            faults.push(SchemaFault::Taken(catalogue.server.clone()));
        }
        if let Some(other) = namespaces.insert(namespace.clone(), &catalogue.server) {
            faults.push(SchemaFault::SameNamespace {
                one: other.clone(),
                two: catalogue.server.clone(),
                namespace,
            });
        }
        match server_namespace(catalogue) {
            Ok(fragment) => {
                text.push('\n');
                text.push_str(&fragment);
            }
            Err(found) => faults.extend(found),
        }
    }
    if faults.is_empty() {
        Ok(text)
    } else {
        Err(faults)
    }
}

/// The namespace of one server alone. Needs the actions of a box beside it.
pub fn server_namespace(catalogue: &Catalogue) -> Result<String, Vec<SchemaFault>> {
    let mut faults = Vec::new();
    let mut text = String::new();
    // Writing to a string does not fail.
    let _ = writeln!(
        text,
        "// The tools of the MCP server {:?}. Generated from its own list; do not edit.",
        catalogue.server
    );
    let _ = writeln!(text, "namespace {} {{", namespace(&catalogue.server));
    let mut first = true;
    for tool in catalogue.tools.values() {
        let fields = match &tool.input {
            Ok(fields) => fields,
            Err(found) => {
                faults.extend(found.iter().map(|unsupported| SchemaFault::Unsupported {
                    server: catalogue.server.clone(),
                    unsupported: unsupported.clone(),
                }));
                continue;
            }
        };
        if !std::mem::take(&mut first) {
            text.push('\n');
        }
        let _ = writeln!(text, "  action {:?} appliesTo {{", tool.name);
        text.push_str(
            "    principal: [Box::Agent],\n    resource: [Box::Resource],\n    context: { input: ",
        );
        write_fields(&mut text, fields);
        text.push_str(" }\n  };\n");
    }
    text.push_str("}\n");
    if faults.is_empty() {
        Ok(text)
    } else {
        Err(faults)
    }
}

fn write_fields(text: &mut String, fields: &Fields) {
    text.push('{');
    for (position, (name, Field { shape, required })) in fields.iter().enumerate() {
        let (comma, optional) = (
            if position == 0 { " " } else { ", " },
            if *required { "" } else { "?" },
        );
        let plain = name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
            && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
            && !RESERVED.contains(&name.as_str());
        let _ = if plain {
            write!(text, "{comma}{name}{optional}: ")
        } else {
            write!(text, "{comma}{name:?}{optional}: ")
        };
        write_shape(text, shape);
    }
    text.push_str(if fields.is_empty() { "}" } else { " }" });
}

/// Shapes are nested no deeper than they were read.
fn write_shape(text: &mut String, shape: &Shape) {
    match shape {
        Shape::Bool => text.push_str("Bool"),
        Shape::Long => text.push_str("Long"),
        Shape::Text => text.push_str("String"),
        Shape::List(item) => {
            text.push_str("Set<");
            write_shape(text, item);
            text.push('>');
        }
        Shape::Fields(fields) => write_fields(text, fields),
    }
}

#[cfg(test)]
mod tests {
    use super::{generate_schema, namespace, server_namespace};
    use crate::catalogue::{Catalogue, page};
    use dogwood_compiler::schema::resolve;
    use dogwood_compiler::value::EntityUid;
    use dogwood_grammar::parse_action_schema;
    use proptest::prelude::*;
    use serde_json::{Value, json};

    fn catalogue(server: &str, tools: Value) -> Catalogue {
        Catalogue::new(server, page(&json!({"tools": tools})).unwrap().0).unwrap()
    }

    #[test]
    fn a_server_becomes_a_namespace_beside_the_box() {
        let payments = catalogue(
            "pay-ments",
            json!([
                {"name": "wipe", "inputSchema": {"type": "object"}},
                {"name": "charge", "inputSchema": {
                    "type": "object",
                    "properties": {
                        "amount": {"type": "number"},
                        "in": {"type": "string"},
                        "card-no": {"type": "string"},
                        "to": {"type": "object", "properties": {"name": {"type": "string"}}},
                        "tags": {"type": "array", "items": {"type": "string"}},
                    },
                    "required": ["amount"],
                }},
            ]),
        );
        insta::assert_snapshot!(server_namespace(&payments).unwrap());
        let text = generate_schema(&[payments]).unwrap();
        let parsed = parse_action_schema(&text);
        assert_eq!(parsed.errors, []);
        let (actions, errors) = resolve(&parsed.tree);
        assert!(errors.is_empty(), "{errors:?}");
        for (ty, id) in [
            ("pay_ments::Action", "charge"),
            ("pay_ments::Action", "wipe"),
            ("Box::Action", "mcp:call"),
        ] {
            assert!(
                actions.actions.contains_key(&EntityUid::new(ty, id)),
                "{id}"
            );
        }
    }

    #[test]
    fn names_become_namespaces() {
        let named = ["a.b-c", "9p", "in", "sum", "Ünï", "x_1"].map(namespace);
        assert_eq!(named, ["a_b_c", "_9p", "in_", "sum_", "_n_", "x_1"]);
    }

    #[test]
    fn every_fault_is_told_at_once() {
        let odd =
            json!([{"name": "t", "inputSchema": {"type": "object", "properties": {"x": {}}}}]);
        let faults = generate_schema(&[
            catalogue("a-b", json!([])),
            catalogue("a_b", odd),
            catalogue("Box", json!([])),
        ]);
        let faults: Vec<String> = faults
            .unwrap_err()
            .iter()
            .map(ToString::to_string)
            .collect();
        insta::assert_snapshot!(faults.join("\n"));
    }

    proptest! {
        /// Whatever a server calls its tools and arguments, the schema parses and names them exactly.
        #[test]
        fn any_names_make_a_schema(server in "[A-Za-z0-9._-]{1,12}", tool in "\\PC{1,12}", field in "\\PC{1,12}") {
            prop_assume!(namespace(&server) != "Box");
            let tools = json!([{"name": tool, "inputSchema": {"type": "object", "properties": {field: {"type": "string"}}}}]);
            let text = generate_schema(&[catalogue(&server, tools)]).unwrap();
            let parsed = parse_action_schema(&text);
            prop_assert!(parsed.errors.is_empty(), "{}\n{:?}", text, parsed.errors);
            let (actions, errors) = resolve(&parsed.tree);
            prop_assert!(errors.is_empty(), "{:?}", errors);
            let uid = EntityUid::new(format!("{}::Action", namespace(&server)), tool);
            prop_assert!(actions.actions.contains_key(&uid));
        }
    }
}
