//! Damaged schemas, against `cedar-policy`: what is a schema there is one here, and nothing else; and a
//! schema in its JSON syntax says the same as in the human one.
//!
//! `DOGWOOD_CASES=20000 cargo test -p dogwood-reference-tests --test cedar_schemas` runs more than the
//! default 1,500 schemas; `DOGWOOD_SEED` starts elsewhere.

#![allow(clippy::expect_used, clippy::panic)]

use cedar_policy::{Schema, SchemaFragment};
use dogwood_compiler::compile::{self, Source};
use dogwood_compiler::grammar::print::lay_out_action_schema;
use dogwood_compiler::schema::{Service, write};

const TEXTS: [&str; 2] = [
    r#"
type Outer = Long; entity Top;
namespace Library { entity Group; entity Role enum [ "reader" , "writer" ] ;
  entity User in [ Group ] = { name : String , age ? : Long , role : Role , home : Home , friends : Set < User > } tags String ;
  type Home = { city : String , zip ? : Outer } ; type Pair = { left : Home , right : Other } ; type Other = Set < Home > ;
  entity Robot = { name : String , serial : Long } ; entity Shelf in [ Top ] ;
  entity Book in [ Shelf , Group ] = { title : String , price : decimal , due ? : datetime , owner : User , pair : Pair } ;
  action Reading , All ; action Sub in [ All ] ;
  action read , browse in [ Reading , Sub ] appliesTo { principal : [ User , Robot ] , resource : [ Book ] , context : { from ? : ipaddr , at : datetime , count : Long } } ;
  action lend appliesTo { principal : User , resource : [ Book , Shelf ] , context : Pair } ;
}
namespace Other { type T = __cedar :: Long ; entity E in [ Library :: Group ] = { t : T , b : Library :: Home } ; action go in [ Library :: Action :: "All" ] appliesTo { principal : [ E , Library :: User ] , resource : Top , context : T2 } ; type T2 = { x : T } ; }
"#,
    "entity A, B in [A]; type R = {x: Long, y?: R2}; type R2 = {z: A}; action a, b in [c] appliesTo { principal: [A], resource: B, context: R }; action c;",
];

struct Random(u64);

impl Random {
    fn new() -> Random {
        Random(number("DOGWOOD_SEED", 99).max(1))
    }

    fn below(&mut self, limit: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % limit as u64) as usize
    }

    /// A schema with one or two of its words removed, repeated or replaced.
    fn schema(&mut self) -> String {
        let mut spaced = TEXTS[self.below(2)].to_owned();
        for sign in ["{", "}", "[", "]", ",", ":", ";", "?", "<", ">", "="] {
            spaced = spaced.replace(sign, &format!(" {sign} "));
        }
        let spaced = spaced.replace(":  :", "::");
        let mut tokens: Vec<&str> = spaced.split_whitespace().collect();
        let is_word = |token: &str| token.starts_with(|c: char| c.is_alphabetic() || c == '"');
        let words: Vec<&str> = tokens
            .iter()
            .copied()
            .filter(|token| is_word(token))
            .collect();
        for _ in 0..1 + self.below(2) {
            let mut at = self.below(tokens.len());
            match self.below(8) {
                0 => {
                    tokens.remove(at);
                }
                1 => tokens.insert(at, tokens[self.below(tokens.len())]),
                _ => {
                    while !is_word(tokens[at]) {
                        at = (at + 1) % tokens.len();
                    }
                    tokens[at] = words[self.below(words.len())];
                }
            }
        }
        tokens.join(" ")
    }
}

fn number(name: &str, default: u64) -> u64 {
    std::env::var(name)
        .ok()
        .and_then(|n| n.parse().ok())
        .unwrap_or(default)
}

fn load(name: &str, text: &str) -> Result<Service, String> {
    let actions = Source {
        name: name.into(),
        text: text.into(),
    };
    let events = Source {
        name: "e".into(),
        text: "event <A>::request { x: Long }".into(),
    };
    match compile::load_service(Some(&actions), Some(&events)) {
        Ok((service, _)) => Ok(service),
        Err(errors) => {
            let said = errors
                .iter()
                .map(|e| format!("{}: {} [{}]", e.code, e.message, e.span.text(text)));
            Err(said.collect::<Vec<_>>().join("; "))
        }
    }
}

/// Texts we read and `cedar-policy` does not, all of them clear: a comma behind the last element, an empty list of
/// groups, and a word of Cedar as a name. What we print has none of these.
fn only_written_otherwise(error: &str) -> bool {
    error.ends_with("unexpected token `]`") || error.ends_with("is a reserved identifier")
}

/// A difference that is meant: of two attributes with one name in a record, `cedar-policy` keeps the
/// last without a word. One of them is a mistake, and we say so.
fn repeats_an_attribute(error: &str) -> bool {
    error.contains("duplicate: ")
}

/// A difference that is meant: `cedar-policy` lets an entity type and a common type of one namespace share
/// a name, and takes the name for the common type. A reader cannot tell which is meant, so we refuse it.
fn shares_a_name(error: &str) -> bool {
    error.contains("duplicate-declaration: ")
}

/// JSON does not keep the order of actions.
fn described(service: &Service) -> String {
    let mut actions = service.actions.clone();
    actions.actions.sort_keys();
    lay_out_action_schema(&write::tree(&actions))
}

#[test]
fn what_is_a_schema_there_is_one_here_and_nothing_else() {
    let mut random = Random::new();
    let (mut accepted, mut rejected, mut different) = (0, 0, Vec::new());
    for _ in 0..number("DOGWOOD_CASES", 1500) {
        let text = random.schema();
        let theirs = Schema::from_cedarschema_str(&text)
            .map(|_| ())
            .map_err(|e| e.to_string());
        let ours = load("a.cedarschema", &text);
        match (&theirs, &ours) {
            (Ok(()), Ok(service)) => {
                accepted += 1;
                // What we write is read there, in both syntaxes.
                let tree = write::tree(&service.actions);
                let written = described(service);
                if let Err(error) = Schema::from_cedarschema_str(&written) {
                    different.push(format!("written again: {error}\n{written}"));
                }
                if let Err(error) = Schema::from_json_value(write::to_json(&tree)) {
                    different.push(format!("written as JSON: {error}\n{written}"));
                }
            }
            (Err(_), Err(_)) => rejected += 1,
            (Ok(()), Err(error)) if repeats_an_attribute(error) || shares_a_name(error) => {}
            (Err(error), Ok(_)) if only_written_otherwise(error) => {}
            _ => different.push(format!(
                "{text}\n  there: {theirs:?}\n  here: {:?}",
                ours.err()
            )),
        }
    }
    println!("cedar schemas: {accepted} accepted, {rejected} rejected by both");
    assert!(accepted > 20 && rejected > 20, "the generator reaches both");
    assert!(
        different.is_empty(),
        "{} differ:\n{}",
        different.len(),
        different
            .iter()
            .take(10)
            .cloned()
            .collect::<Vec<_>>()
            .join("\n")
    );
}

/// `cedar-policy` turns the human syntax into JSON; both must mean the same to us.
#[test]
fn both_syntaxes_say_the_same() {
    let mut random = Random::new();
    let (mut same, mut different) = (0, Vec::new());
    for _ in 0..number("DOGWOOD_CASES", 1500) {
        let text = random.schema();
        let Ok((fragment, _)) = SchemaFragment::from_cedarschema_str(&text) else {
            continue;
        };
        let Ok(json) = fragment.to_json_value() else {
            continue;
        };
        let json_text = json.to_string();
        let human = load("a.cedarschema", &text);
        let read = load("a.json", &json_text);
        // A fragment may speak of what another one declares; alone it is no schema to anybody.
        match (&human, &read) {
            (Ok(human), Ok(read)) if described(human) == described(read) => same += 1,
            (Err(_), Err(_)) => {}
            (Err(error), Ok(_)) if repeats_an_attribute(error) => {}
            _ => different.push(format!(
                "{text}\n{json:#}\n  human: {:?}\n  JSON: {:?}",
                human.map(|s| described(&s)),
                read.map(|s| described(&s))
            )),
        }
    }
    println!("cedar schemas: {same} the same in both syntaxes");
    assert!(same > 20, "the generator reaches sound schemas");
    assert!(
        different.is_empty(),
        "{} differ:\n{}",
        different.len(),
        different
            .iter()
            .take(4)
            .cloned()
            .collect::<Vec<_>>()
            .join("\n")
    );
}

/// Damaged JSON schemas: accepted there and here alike.
#[test]
fn what_is_a_json_schema_there_is_one_here_and_nothing_else() {
    let mut random = Random::new();
    let (mut accepted, mut rejected, mut different) = (0, 0, Vec::new());
    let sound: Vec<String> = TEXTS
        .iter()
        .map(|text| {
            let (fragment, _) = SchemaFragment::from_cedarschema_str(text).expect("it is sound");
            fragment.to_json_string().expect("it has a JSON form")
        })
        .collect();
    for _ in 0..number("DOGWOOD_CASES", 1500) {
        let mut text = sound[random.below(2)].clone();
        for _ in 0..1 + random.below(2) {
            // Strings exchange their places: names, keys and types alike.
            let strings: Vec<(usize, usize)> = text
                .match_indices('"')
                .map(|(at, _)| at)
                .collect::<Vec<_>>()
                .chunks(2)
                .filter_map(|pair| Some((*pair.first()?, *pair.get(1)? + 1)))
                .collect();
            let from = strings[random.below(strings.len())];
            let to = strings[random.below(strings.len())];
            let word = match random.below(6) {
                0 => "\"Long\"".to_owned(),
                1 => "\"Boolean\"".to_owned(),
                2 => "\"EntityOrCommon\"".to_owned(),
                _ => text[from.0..from.1].to_owned(),
            };
            text.replace_range(to.0..to.1, &word);
        }
        let theirs = Schema::from_json_str(&text)
            .map(|_| ())
            .map_err(|e| e.to_string());
        let ours = load("a.json", &text).map(|_| ());
        match (&theirs, &ours) {
            (Ok(()), Ok(())) => accepted += 1,
            (Err(_), Err(_)) => rejected += 1,
            _ => different.push(format!("{text}\n  there: {theirs:?}\n  here: {ours:?}")),
        }
    }
    println!("cedar JSON schemas: {accepted} accepted, {rejected} rejected by both");
    assert!(accepted > 20 && rejected > 20, "the generator reaches both");
    assert!(
        different.is_empty(),
        "{} differ:\n{}",
        different.len(),
        different
            .iter()
            .take(6)
            .cloned()
            .collect::<Vec<_>>()
            .join("\n")
    );
}

/// A schema made of tools is one there, too.
#[test]
fn schemas_made_of_tools_are_schemas_there() {
    let types = [
        r#"{ "type": "string", "enum": ["a", "b\"c"] }"#,
        r#"{ "type": "array", "items": { "type": "object", "properties": { "in": { "type": "null" }, "a b": {} } } }"#,
        r#"{ "type": "object", "additionalProperties": true }"#,
        r##"{ "anyOf": [{ "$ref": "#/$defs/Node" }, { "type": ["string", "integer"] }] }"##,
        r#"{ "type": "array", "prefixItems": [{ "type": "number" }, { "const": 1 }], "items": false }"#,
        r#"{ "type": "object", "properties": { "if": { "type": "boolean" }, "": { "type": "string", "format": "ipv6" } }, "required": ["if"] }"#,
    ];
    for (at, first) in types.iter().enumerate() {
        let second = types[(at + 1) % types.len()];
        let manifest = format!(
            r##"{{ "result": {{ "tools": [{{ "name": "files.read-all", "inputSchema": {{ "type": "object",
                "$defs": {{ "Node": {{ "type": "object", "properties": {{ "next": {{ "$ref": "#/$defs/Node" }} }} }} }},
                "properties": {{ "String": {first}, "Set": {second} }}, "required": ["Set"] }} }},
                {{ "name": "9", "inputSchema": {{}}, "outputSchema": {{ "type": "object", "properties": {{ "x": {second} }},
                "$defs": {{ "Node": {{ "type": "integer" }} }} }} }}] }} }}"##
        );
        let source = Source {
            name: "tools.json".into(),
            text: manifest.clone(),
        };
        let made = dogwood_compiler::mcp_schema::from_manifest(&source);
        let made = made.unwrap_or_else(|errors| panic!("{errors:?}\n{manifest}"));
        assert!(load("a.cedarschema", &made).is_ok(), "{made}");
        if let Err(error) = Schema::from_cedarschema_str(&made) {
            panic!("{error:?}\n{made}");
        }
    }
}
