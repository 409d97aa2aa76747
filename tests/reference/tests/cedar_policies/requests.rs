//! Random requests with their entities, as both engines take them.

use super::generate::Random;
use cedar_policy::{Context, Entities, EntityUid as CedarUid, Request, Schema};
use dogwood_compiler::event::{EntityData, Event, RequestPart};
use dogwood_compiler::value::{EntityUid, Record, Value};
use serde_json::json;

/// The library's schema, where everything a trace cannot carry is optional: it is never given.
pub const DECIDED: &str = r#"
namespace Library {
  entity Group in [Group];
  entity Role enum ["reader", "writer"];
  entity User in [Group] = {
    name: String, age?: Long, role: Role, home: { city: String, zip?: String }, friends: Set<User>, ok?: Bool
  } tags String;
  entity Robot = { name: String, serial: Long };
  entity Shelf in [Shelf];
  entity Book in [Shelf] = { title: String, price: decimal, due?: datetime, owner: User };
  action Reading;
  action read, browse in [Reading] appliesTo {
    principal: [User, Robot], resource: [Book], context: { from?: ipaddr, at?: datetime, count: Long }
  };
  action lend appliesTo {
    principal: [User], resource: [Book, Shelf], context: { span?: duration, note?: { text?: String } }
  };
}
"#;

#[derive(Debug)]
pub struct Asked {
    principal: EntityUid,
    action: EntityUid,
    resource: EntityUid,
    context: Record,
    entities: Vec<EntityData>,
}

fn uid(ty: &str, id: &str) -> EntityUid {
    EntityUid::new(format!("Library::{ty}"), id)
}

impl Asked {
    pub fn random(random: &mut Random) -> Asked {
        let lend = random.below(3) == 0;
        let robot = !lend && random.below(3) == 0;
        let shelf = lend && random.below(3) == 0;
        let user = ["u", "v", "w"][random.below(3)];
        let mut context = Record::new();
        if lend {
            match random.below(4) {
                0 => {}
                1 => {
                    context.insert("note".into(), Value::Object(Record::new()));
                }
                _ => {
                    let note = [("text".into(), Value::str(random.pick(&["a", "ab", "b"])))];
                    context.insert("note".into(), Value::Object(note.into_iter().collect()));
                }
            }
        } else {
            let count = [0, 1, 2, 3, i64::MAX, -1][random.below(6)];
            context.insert("count".into(), Value::Int(count));
        }
        let mut entities: Vec<EntityData> = ["u", "v", "w"]
            .iter()
            .map(|id| Asked::user(random, id))
            .collect();
        for id in ["g", "h"] {
            let parents = match id {
                "g" if random.below(2) == 0 => vec![uid("Group", "h")],
                _ => Vec::new(),
            };
            entities.push(entity(uid("Group", id), Vec::new(), parents));
        }
        let robots = vec![
            ("name", Value::str(random.pick(&["a", "R"]))),
            ("serial", Value::Int([1, 7, i64::MAX][random.below(3)])),
        ];
        entities.push(entity(uid("Robot", "u"), robots, Vec::new()));
        let book = vec![
            ("title", Value::str(random.pick(&["a", "abc", "x"]))),
            (
                "price",
                Value::Decimal(random.pick(&["1.5", "0.0001", "12.0"]).into()),
            ),
            (
                "owner",
                Value::Entity(uid("User", ["u", "v", "gone"][random.below(3)])),
            ),
        ];
        let shelves = match random.below(2) {
            0 => vec![uid("Shelf", "s")],
            _ => Vec::new(),
        };
        entities.push(entity(uid("Book", "b"), book, shelves));
        entities.push(entity(uid("Shelf", "s"), Vec::new(), Vec::new()));
        if random.below(8) == 0 {
            entities.retain(|entity| entity.uid != uid("Book", "b"));
        }
        Asked {
            principal: if robot {
                uid("Robot", "u")
            } else {
                uid("User", user)
            },
            action: uid(
                "Action",
                if lend {
                    "lend"
                } else {
                    ["read", "browse"][random.below(2)]
                },
            ),
            resource: if shelf {
                uid("Shelf", "s")
            } else {
                uid("Book", "b")
            },
            context,
            entities,
        }
    }

    fn user(random: &mut Random, id: &str) -> EntityData {
        let mut home = Record::new();
        home.insert("city".into(), Value::str(random.pick(&["a", "Rome"])));
        if random.below(2) == 0 {
            home.insert("zip".into(), Value::str(random.pick(&["a", "00100"])));
        }
        let friends = ["u", "v"].iter().filter(|_| random.below(2) == 0);
        let friends = friends.map(|id| Value::Entity(uid("User", id))).collect();
        let mut attrs = vec![
            ("name", Value::str(random.pick(&["a", "ann"]))),
            (
                "role",
                Value::Entity(uid("Role", random.pick(&["reader", "writer"]))),
            ),
            ("home", Value::Object(home)),
            ("friends", Value::Array(friends)),
        ];
        if random.below(2) == 0 {
            attrs.push((
                "age",
                Value::Int([0, 1, 40, i64::MAX, i64::MIN][random.below(5)]),
            ));
        }
        if random.below(2) == 0 {
            attrs.push(("ok", Value::Bool(random.below(2) == 0)));
        }
        let parents = ["g", "h"].iter().filter(|_| random.below(3) == 0);
        let parents = parents.map(|id| uid("Group", id)).collect();
        let mut user = entity(uid("User", id), attrs, parents);
        for tag in ["a", "ann", "b"] {
            if random.below(3) == 0 {
                let value = Value::str(random.pick(&["a", "ann"]));
                user.tags.insert(tag.into(), value);
            }
        }
        user
    }

    pub fn event(&self) -> Event {
        Event {
            time: 0,
            action: self.action.clone(),
            kind: "request".into(),
            logged: Record::new(),
            request: Some(RequestPart {
                principal: Some(self.principal.clone()),
                resource: Some(self.resource.clone()),
                context: self.context.clone(),
                entities: self.entities.clone(),
            }),
        }
    }

    pub fn request(&self, schema: &Schema) -> Request {
        let action = cedar_uid(&self.action);
        let fields = self
            .context
            .iter()
            .map(|(name, value)| (name.to_string(), cedar_json(value)));
        let context = serde_json::Value::Object(fields.collect());
        let context = Context::from_json_value(context, Some((schema, &action)));
        let context = context.expect("the context fits the schema");
        let (principal, resource) = (cedar_uid(&self.principal), cedar_uid(&self.resource));
        Request::new(principal, action, resource, context, None).expect("no schema, no error")
    }

    pub fn entities(&self, schema: &Schema) -> Entities {
        let all = self.entities.iter().map(|entity| {
            let attrs = entity.attrs.iter();
            let attrs = attrs.map(|(name, value)| (name.to_string(), cedar_json(value)));
            let parents: Vec<_> = entity.parents.iter().map(uid_json).collect();
            let tags = entity.tags.iter();
            let tags = tags.map(|(name, value)| (name.to_string(), cedar_json(value)));
            json!({
                "uid": uid_json(&entity.uid),
                "attrs": serde_json::Value::Object(attrs.collect()),
                "parents": parents,
                "tags": serde_json::Value::Object(tags.collect()),
            })
        });
        let all = serde_json::Value::Array(all.collect());
        Entities::from_json_value(all, Some(schema)).expect("the entities fit the schema")
    }
}

fn entity(uid: EntityUid, attrs: Vec<(&str, Value)>, parents: Vec<EntityUid>) -> EntityData {
    EntityData {
        uid,
        attrs: attrs
            .into_iter()
            .map(|(name, value)| (name.into(), value))
            .collect(),
        parents,
        tags: Record::new(),
    }
}

fn cedar_uid(uid: &EntityUid) -> CedarUid {
    CedarUid::from_json(uid_json(uid)).expect("a type and an id")
}

fn uid_json(uid: &EntityUid) -> serde_json::Value {
    json!({ "type": uid.ty, "id": uid.id })
}

fn cedar_json(value: &Value) -> serde_json::Value {
    match value {
        Value::Null => json!(""),
        Value::Bool(value) => json!(value),
        Value::Int(value) => json!(value),
        Value::String(value) => json!(value),
        Value::Decimal(text) => json!({ "__extn": { "fn": "decimal", "arg": text } }),
        Value::Entity(uid) => json!({ "__entity": uid_json(uid) }),
        Value::Array(items) => items.iter().map(cedar_json).collect(),
        Value::Object(fields) => {
            let fields = fields
                .iter()
                .map(|(name, value)| (name.to_string(), cedar_json(value)));
            serde_json::Value::Object(fields.collect())
        }
    }
}
