//! One JSON-RPC frame, read strictly.
//!
//! What is judged must be what the other side reads, so everything two parsers could read differently is
//! refused: repeated members, members nobody knows beside the known ones, numbers as ids that are not whole.
//! What is forwarded is written anew from what was read.

use box_authority::action::Outcome;
use serde::de::{DeserializeSeed, Error as _, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Number, Value, json};
use smol_str::SmolStr;
use std::fmt::{Display, Formatter};
use thiserror::Error;

/// Bytes of one frame at most.
pub const MAX_LINE: usize = 8 << 20;
/// Arrays and objects inside one another at most.
pub const MAX_DEPTH: usize = 64;
/// Bytes of a method name or an id that is a text, at most.
const MAX_WORD: usize = 256;

/// What a request is answered under. `1` and `"1"` are two ids.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Id {
    Number(i64),
    Text(SmolStr),
}

/// A frame that has the shape of one, and nothing else in it.
#[derive(Clone, Debug, PartialEq)]
pub enum Frame {
    Request {
        id: Id,
        method: SmolStr,
        params: Option<Map<String, Value>>,
    },
    Notification {
        method: SmolStr,
        params: Option<Map<String, Value>>,
    },
    Response {
        id: Id,
        ending: Ending,
    },
}

/// How a request was answered.
#[derive(Clone, Debug, PartialEq)]
pub enum Ending {
    Result(Value),
    Error(Map<String, Value>),
}

impl Ending {
    /// A server that could not read the request or has no such method did nothing. Any other error may come from
    /// the middle of the work, "invalid params" too, for tools say it of what they find out late.
    pub fn outcome(&self) -> Outcome {
        let code = match self {
            Ending::Result(_) => return Outcome::Done,
            Ending::Error(error) => error.get("code").and_then(Value::as_i64),
        };
        match code {
            Some(-32700 | -32600 | -32601) => Outcome::Failed,
            _ => Outcome::Done,
        }
    }
}

/// Why bytes are no frame.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum FrameFault {
    #[error("the frame is longer than {MAX_LINE} bytes")]
    TooLong,
    #[error("the frame is not JSON: {0}")]
    NotJson(String),
    #[error("a batch is not taken; send its messages one by one")]
    Batch,
    #[error("the frame is not an object")]
    NotAnObject,
    #[error("`jsonrpc` must be \"2.0\"")]
    Version,
    #[error("`id` must be a whole number or a text of at most {MAX_WORD} bytes")]
    Id,
    #[error("`method` must be a text of 1 to {MAX_WORD} printable characters")]
    Method,
    #[error("`params` must be an object")]
    Params,
    #[error("a frame has no member {0:?} there")]
    Member(String),
    #[error("a reply has either `result` or `error`")]
    Reply,
    #[error("`error` must be an object with a whole `code` and a text `message`")]
    Error,
}

/// Bytes that are no frame, with the id that stands in them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Malformed {
    pub id: Option<Id>,
    /// Whether it was meant as a reply: it has no method.
    pub reply: bool,
    pub fault: FrameFault,
}

impl Malformed {
    fn anonymous(fault: FrameFault) -> Malformed {
        Malformed {
            id: None,
            reply: false,
            fault,
        }
    }
}

impl FrameFault {
    /// The code JSON-RPC has for it.
    pub fn code(&self) -> i64 {
        match self {
            FrameFault::NotJson(_) => -32700,
            _ => -32600,
        }
    }
}

impl Display for Id {
    fn fmt(&self, f: &mut Formatter<'_>) -> std::fmt::Result {
        match self {
            Id::Number(n) => write!(f, "{n}"),
            Id::Text(text) => write!(f, "{text:?}"),
        }
    }
}

impl Id {
    pub fn read(value: &Value) -> Option<Id> {
        match value {
            Value::Number(n) => n.as_i64().map(Id::Number),
            Value::String(text) if text.len() <= MAX_WORD => Some(Id::Text(text.into())),
            _ => None,
        }
    }

    pub fn json(&self) -> Value {
        match self {
            Id::Number(n) => json!(n),
            Id::Text(text) => json!(text.as_str()),
        }
    }
}

/// JSON without repeated members and within [`MAX_DEPTH`].
pub fn strict_json(bytes: &[u8]) -> Result<Value, FrameFault> {
    if bytes.len() > MAX_LINE {
        return Err(FrameFault::TooLong);
    }
    let mut reader = serde_json::Deserializer::from_slice(bytes);
    Strict { depth: 0 }
        .deserialize(&mut reader)
        .and_then(|value| reader.end().map(|()| value))
        .map_err(|e| FrameFault::NotJson(e.to_string()))
}

#[derive(Clone, Copy)]
struct Strict {
    depth: usize,
}

impl Strict {
    fn inner<E: serde::de::Error>(self) -> Result<Strict, E> {
        if self.depth >= MAX_DEPTH {
            return Err(E::custom(format_args!(
                "more than {MAX_DEPTH} arrays and objects inside one another"
            )));
        }
        Ok(Strict {
            depth: self.depth + 1,
        })
    }
}

impl<'de> DeserializeSeed<'de> for Strict {
    type Value = Value;

    fn deserialize<D: serde::Deserializer<'de>>(self, reader: D) -> Result<Value, D::Error> {
        reader.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Strict {
    type Value = Value;

    fn expecting(&self, f: &mut Formatter<'_>) -> std::fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_bool<E>(self, b: bool) -> Result<Value, E> {
        Ok(Value::Bool(b))
    }

    fn visit_i64<E>(self, n: i64) -> Result<Value, E> {
        Ok(n.into())
    }

    fn visit_u64<E>(self, n: u64) -> Result<Value, E> {
        Ok(n.into())
    }

    fn visit_f64<E: serde::de::Error>(self, n: f64) -> Result<Value, E> {
        Number::from_f64(n)
            .map(Value::Number)
            .ok_or_else(|| E::custom("a number out of range"))
    }

    fn visit_str<E>(self, text: &str) -> Result<Value, E> {
        Ok(text.into())
    }

    fn visit_string<E>(self, text: String) -> Result<Value, E> {
        Ok(text.into())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Value, A::Error> {
        let inner = self.inner()?;
        let mut array = Vec::new();
        while let Some(item) = items.next_element_seed(inner)? {
            array.push(item);
        }
        Ok(array.into())
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<Value, A::Error> {
        let inner = self.inner()?;
        let mut object = Map::new();
        while let Some(name) = members.next_key::<String>()? {
            let value = members.next_value_seed(inner)?;
            if object.contains_key(&name) {
                return Err(A::Error::custom(format_args!("the member {name:?} twice")));
            }
            object.insert(name, value);
        }
        Ok(object.into())
    }
}

impl Frame {
    /// Reads one frame.
    pub fn parse(bytes: &[u8]) -> Result<Frame, Malformed> {
        strict_json(bytes)
            .map_err(Malformed::anonymous)
            .and_then(Frame::read)
    }

    /// Reads one frame from JSON that was read with [`strict_json`].
    pub fn read(value: Value) -> Result<Frame, Malformed> {
        let mut members = match value {
            Value::Object(members) => members,
            Value::Array(_) => return Err(Malformed::anonymous(FrameFault::Batch)),
            _ => return Err(Malformed::anonymous(FrameFault::NotAnObject)),
        };
        let id = members.remove("id").map(|id| Id::read(&id));
        let (found, reply) = (id.clone().flatten(), !members.contains_key("method"));
        shape(id, members).map_err(|fault| Malformed {
            id: found,
            reply,
            fault,
        })
    }

    /// One line, written anew.
    pub fn line(&self) -> String {
        let mut members = Map::new();
        members.insert("jsonrpc".into(), json!("2.0"));
        match self {
            Frame::Request { id, method, params } => {
                members.insert("id".into(), id.json());
                members.insert("method".into(), json!(method.as_str()));
                if let Some(params) = params {
                    members.insert("params".into(), Value::Object(params.clone()));
                }
            }
            Frame::Notification { method, params } => {
                members.insert("method".into(), json!(method.as_str()));
                if let Some(params) = params {
                    members.insert("params".into(), Value::Object(params.clone()));
                }
            }
            Frame::Response { id, ending } => {
                members.insert("id".into(), id.json());
                match ending {
                    Ending::Result(result) => members.insert("result".into(), result.clone()),
                    Ending::Error(error) => {
                        members.insert("error".into(), Value::Object(error.clone()))
                    }
                };
            }
        }
        Value::Object(members).to_string()
    }
}

/// `id` is what stood there: nothing, something that is no id, or one.
fn shape(id: Option<Option<Id>>, mut members: Map<String, Value>) -> Result<Frame, FrameFault> {
    if members.remove("jsonrpc") != Some(json!("2.0")) {
        return Err(FrameFault::Version);
    }
    let id = match id {
        Some(Some(id)) => Some(id),
        Some(None) => return Err(FrameFault::Id),
        None => None,
    };
    let method = match members.remove("method") {
        Some(Value::String(method)) => Some(method),
        Some(_) => return Err(FrameFault::Method),
        None => None,
    };
    let frame = if let Some(method) = method {
        let printable = method.chars().all(|c| c.is_ascii_graphic());
        if method.is_empty() || method.len() > MAX_WORD || !printable {
            return Err(FrameFault::Method);
        }
        let params = match members.remove("params") {
            Some(Value::Object(params)) => Some(params),
            Some(Value::Null) | None => None,
            Some(_) => return Err(FrameFault::Params),
        };
        let method = SmolStr::from(method);
        match id {
            Some(id) => Frame::Request { id, method, params },
            None => Frame::Notification { method, params },
        }
    } else {
        let ending = match (members.remove("result"), members.remove("error")) {
            (Some(result), None) => Ending::Result(result),
            (None, Some(Value::Object(error))) => {
                let code = error.get("code").and_then(Value::as_i64);
                let message = error.get("message").and_then(Value::as_str);
                if code.is_none() || message.is_none() {
                    return Err(FrameFault::Error);
                }
                Ending::Error(error)
            }
            (None, Some(_)) => return Err(FrameFault::Error),
            _ => return Err(FrameFault::Reply),
        };
        Frame::Response {
            id: id.ok_or(FrameFault::Id)?,
            ending,
        }
    };
    match members.into_iter().next() {
        Some((name, _)) => Err(FrameFault::Member(name)),
        None => Ok(frame),
    }
}

#[cfg(test)]
mod tests {
    use super::{Frame, MAX_DEPTH, Malformed, strict_json};

    fn fault(text: &str) -> String {
        let Malformed { id, fault, .. } = Frame::parse(text.as_bytes()).expect_err(text);
        let id = id.map(|id| format!(" (id {id})")).unwrap_or_default();
        format!("{} {fault}{id}", fault.code())
    }

    #[test]
    fn what_is_read_is_what_is_written() {
        for text in [
            r#"{"id":1,"jsonrpc":"2.0","method":"tools/call","params":{"name":"charge","x":[1,null,1.5]}}"#,
            r#"{"id":"a\nb","jsonrpc":"2.0","method":"ping"}"#,
            r#"{"jsonrpc":"2.0","method":"notifications/initialized","params":{}}"#,
            r#"{"id":-3,"jsonrpc":"2.0","result":{"unknown":{"kept":true}}}"#,
            r#"{"error":{"code":-1,"data":[],"message":"m"},"id":0,"jsonrpc":"2.0"}"#,
        ] {
            let written = Frame::parse(text.as_bytes()).expect(text).line();
            let (read, again) = (
                strict_json(text.as_bytes()),
                strict_json(written.as_bytes()),
            );
            assert_eq!(read, again);
            assert!(!written.contains('\n'));
        }
    }

    #[test]
    fn every_fault_has_its_words() {
        let deep = format!(
            r#"{{"jsonrpc":"2.0","id":1,"method":"m","params":{{"a":{}1{}}}}}"#,
            "[".repeat(MAX_DEPTH),
            "]".repeat(MAX_DEPTH)
        );
        let long = "x".repeat(super::MAX_LINE + 1);
        let faults: Vec<String> = [
            &long,
            "{",
            r#"{"jsonrpc":"2.0","id":1,"method":"ping","method":"tools/call"}"#,
            r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"a","name":"b"}}"#,
            r#"{"jsonrpc":"2.0","id":1,"method":"ping"} {}"#,
            &deep,
            r#"[{"jsonrpc":"2.0","id":1,"method":"ping"}]"#,
            "7",
            r#"{"id":1,"method":"ping"}"#,
            r#"{"jsonrpc":"2.0","id":1.5,"method":"ping"}"#,
            r#"{"jsonrpc":"2.0","id":null,"method":"ping"}"#,
            r#"{"jsonrpc":"2.0","id":99999999999999999999,"method":"ping"}"#,
            r#"{"jsonrpc":"2.0","id":1,"method":""}"#,
            r#"{"jsonrpc":"2.0","id":1,"method":"a b"}"#,
            r#"{"jsonrpc":"2.0","id":1,"method":["ping"]}"#,
            r#"{"jsonrpc":"2.0","id":1,"method":"ping","params":[1]}"#,
            r#"{"jsonrpc":"2.0","id":1,"method":"ping","Method":"tools/call"}"#,
            r#"{"jsonrpc":"2.0","id":1,"method":"ping","result":{}}"#,
            r#"{"jsonrpc":"2.0","id":1}"#,
            r#"{"jsonrpc":"2.0","result":{}}"#,
            r#"{"jsonrpc":"2.0","id":1,"result":{},"error":{"code":1,"message":"m"}}"#,
            r#"{"jsonrpc":"2.0","id":1,"error":{"code":"1","message":"m"}}"#,
        ]
        .into_iter()
        .map(fault)
        .collect();
        insta::assert_snapshot!(faults.join("\n"));
    }
}
