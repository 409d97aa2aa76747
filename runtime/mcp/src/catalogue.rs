//! The tools a server named, and how a list of them is gathered page by page.

use crate::shape::{Fields, Unsupported, input_shape};
use serde_json::{Map, Value};
use smol_str::SmolStr;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use thiserror::Error;

/// Pages of one list at most.
pub const MAX_PAGES: usize = 256;
/// Bytes of one list at most.
pub const MAX_LIST_BYTES: usize = 8 << 20;
/// Bytes of all lists of a run at most.
pub const MAX_LISTED_BYTES: usize = 32 << 20;
/// Lists begun and not ended at most; the oldest is forgotten.
pub const MAX_UNFINISHED: usize = 4;
/// Times a server may change its tools during a run, whatever connections it has.
pub const MAX_CHANGES: usize = 16;
/// Bytes of a tool's name at most.
const MAX_NAME: usize = 256;

/// The tools of one server, as one finished list named them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Catalogue {
    pub server: SmolStr,
    /// By their exact names.
    pub tools: BTreeMap<SmolStr, Tool>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tool {
    pub name: SmolStr,
    /// What the arguments look like to a rule, or why no rule could speak of them.
    pub input: Result<Fields, Vec<Unsupported>>,
    /// The input schema with its members in order: equal schemas, equal texts.
    pub schema: String,
}

/// Why a list is no catalogue.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum CatalogueFault {
    #[error("the reply holds no array `tools`")]
    NoTools,
    #[error(
        "a tool has no `name`, or one that is empty, longer than {MAX_NAME} bytes or not printable"
    )]
    Name,
    #[error("the tool {0:?} has no object `inputSchema`")]
    NoSchema(SmolStr),
    #[error("the tool {0:?} is listed twice")]
    Twice(SmolStr),
    #[error("`nextCursor` must be a text")]
    Cursor,
    #[error("the list has more than {MAX_PAGES} pages")]
    Pages,
    #[error("the list is longer than {MAX_LIST_BYTES} bytes")]
    Bytes,
    #[error("the lists of this run are longer than {MAX_LISTED_BYTES} bytes together")]
    AllBytes,
    #[error("the tools of this server changed more than {MAX_CHANGES} times")]
    Changes,
}

impl Catalogue {
    pub fn new(server: impl Into<SmolStr>, listed: Vec<Tool>) -> Result<Catalogue, CatalogueFault> {
        let mut tools = BTreeMap::new();
        for tool in listed {
            let name = tool.name.clone();
            if tools.insert(name.clone(), tool).is_some() {
                return Err(CatalogueFault::Twice(name));
            }
        }
        Ok(Catalogue {
            server: server.into(),
            tools,
        })
    }

    /// Names and input schemas; descriptions and order do not count.
    pub fn fingerprint(&self) -> Vec<(&str, &str)> {
        let tools = self.tools.values();
        tools
            .map(|tool| (tool.name.as_str(), tool.schema.as_str()))
            .collect()
    }

    /// Whether both name this tool with the same arguments.
    pub fn shares(&self, other: &Catalogue, tool: &str) -> bool {
        match (self.tools.get(tool), other.tools.get(tool)) {
            (Some(one), Some(two)) => one.schema == two.schema,
            _ => false,
        }
    }

    /// Tools that only one of the two has, or that differ.
    pub fn differing(&self, other: &Catalogue) -> Vec<SmolStr> {
        let names: BTreeSet<&SmolStr> = self.tools.keys().chain(other.tools.keys()).collect();
        let differing = names.into_iter().filter(|name| !self.shares(other, name));
        differing.cloned().collect()
    }

    /// Everything in the tools that no rule could speak of.
    pub fn unsupported(&self) -> Vec<Unsupported> {
        let tools = self.tools.values();
        tools
            .filter_map(|tool| tool.input.as_ref().err())
            .flatten()
            .cloned()
            .collect()
    }
}

/// One page of a `tools/list`: its tools, and the cursor of the next.
pub fn page(result: &Value) -> Result<(Vec<Tool>, Option<SmolStr>), CatalogueFault> {
    let listed = result
        .get("tools")
        .and_then(Value::as_array)
        .ok_or(CatalogueFault::NoTools)?;
    let tools = listed.iter().map(tool).collect::<Result<_, _>>()?;
    let next = match result.get("nextCursor") {
        None | Some(Value::Null) => None,
        Some(Value::String(cursor)) => Some(cursor.into()),
        Some(_) => return Err(CatalogueFault::Cursor),
    };
    Ok((tools, next))
}

fn tool(listed: &Value) -> Result<Tool, CatalogueFault> {
    let name = listed
        .get("name")
        .and_then(Value::as_str)
        .unwrap_or_default();
    if name.is_empty() || name.len() > MAX_NAME || name.chars().any(char::is_control) {
        return Err(CatalogueFault::Name);
    }
    let schema = listed
        .get("inputSchema")
        .filter(|schema| schema.is_object())
        .ok_or_else(|| CatalogueFault::NoSchema(name.into()))?;
    Ok(Tool {
        name: name.into(),
        input: input_shape(name, schema),
        schema: ordered(schema).to_string(),
    })
}

/// Members in the order of their names, however the map keeps them. Depth was bounded when it was read.
fn ordered(value: &Value) -> Value {
    match value {
        Value::Object(members) => {
            let sorted: BTreeMap<&String, &Value> = members.iter().collect();
            let sorted = sorted
                .into_iter()
                .map(|(name, value)| (name.clone(), ordered(value)));
            Value::Object(sorted.collect::<Map<_, _>>())
        }
        Value::Array(items) => items.iter().map(ordered).collect(),
        other => other.clone(),
    }
}

/// What listing may still cost: bytes of the run, and changes of one server.
#[derive(Clone, Debug, Default)]
pub struct Allowance {
    bytes: Arc<AtomicUsize>,
    tools: Arc<Mutex<Known>>,
}

#[derive(Debug, Default)]
struct Known {
    latest: Option<Arc<Catalogue>>,
    changes: usize,
}

impl Allowance {
    /// For another server of the same run.
    pub fn another(&self) -> Allowance {
        Allowance {
            bytes: Arc::clone(&self.bytes),
            tools: Arc::default(),
        }
    }

    fn spend(&self, bytes: usize) -> Result<(), CatalogueFault> {
        let before = self.bytes.fetch_add(bytes, Ordering::Relaxed);
        match before.saturating_add(bytes) > MAX_LISTED_BYTES {
            true => Err(CatalogueFault::AllBytes),
            false => Ok(()),
        }
    }

    /// The tools of the server are these now.
    pub fn change(&self, catalogue: &Arc<Catalogue>) -> Result<(), CatalogueFault> {
        let mut known = self.tools.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(latest) = &known.latest
            && latest.fingerprint() != catalogue.fingerprint()
        {
            known.changes += 1;
        }
        known.latest = Some(Arc::clone(catalogue));
        match known.changes > MAX_CHANGES {
            true => Err(CatalogueFault::Changes),
            false => Ok(()),
        }
    }
}

/// The lists a client is gathering.
#[derive(Debug, Default)]
pub struct Lists {
    /// Oldest first.
    unfinished: Vec<List>,
    started: u64,
    allowance: Allowance,
}

#[derive(Debug)]
struct List {
    number: ListNumber,
    tools: Vec<Tool>,
    pages: usize,
    bytes: usize,
    /// What the next request of this list must bring, once a page came.
    next: Option<SmolStr>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ListNumber(u64);

/// What a page made of its list.
#[derive(Debug)]
pub enum Gathered {
    /// More pages follow, or the list was forgotten meanwhile.
    Page,
    Finished(Vec<Tool>),
}

impl Lists {
    pub fn new(allowance: Allowance) -> Lists {
        Lists {
            unfinished: Vec::new(),
            started: 0,
            allowance,
        }
    }

    /// A request for a page: the list it belongs to. One with a cursor that no page gave belongs to none.
    pub fn asked(&mut self, cursor: Option<&str>) -> Option<ListNumber> {
        let Some(cursor) = cursor else {
            self.started += 1;
            let number = ListNumber(self.started);
            if self.unfinished.len() >= MAX_UNFINISHED {
                self.unfinished.remove(0);
            }
            self.unfinished.push(List {
                number,
                tools: Vec::new(),
                pages: 0,
                bytes: 0,
                next: None,
            });
            return Some(number);
        };
        let list = self
            .unfinished
            .iter_mut()
            .find(|list| list.next.as_deref() == Some(cursor))?;
        // A cursor is good for one request.
        list.next = None;
        Some(list.number)
    }

    /// A list whose request was refused, failed or was cancelled.
    pub fn forget(&mut self, number: ListNumber) {
        self.unfinished.retain(|list| list.number != number);
    }

    /// A page came. A list that cannot go on is forgotten.
    pub fn answered(
        &mut self,
        number: ListNumber,
        result: &Value,
        bytes: usize,
    ) -> Result<Gathered, CatalogueFault> {
        let Some(at) = self
            .unfinished
            .iter()
            .position(|list| list.number == number)
        else {
            return Ok(Gathered::Page);
        };
        let mut list = self.unfinished.remove(at);
        list.bytes += bytes;
        list.pages += 1;
        self.allowance.spend(bytes)?;
        if list.bytes > MAX_LIST_BYTES {
            return Err(CatalogueFault::Bytes);
        }
        let (tools, next) = page(result)?;
        list.tools.extend(tools);
        match next {
            None => Ok(Gathered::Finished(list.tools)),
            Some(_) if list.pages >= MAX_PAGES => Err(CatalogueFault::Pages),
            Some(cursor) => {
                list.next = Some(cursor);
                self.unfinished.insert(at, list);
                Ok(Gathered::Page)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{
        Allowance, Catalogue, CatalogueFault, Gathered, Lists, MAX_CHANGES, MAX_LIST_BYTES,
        MAX_PAGES, page,
    };
    use serde_json::{Value, json};
    use std::sync::Arc;

    fn listed(names: &[&str], next: Option<&str>) -> Value {
        let tools: Vec<Value> = names
            .iter()
            .map(
                |name| json!({"name": name, "description": "…", "inputSchema": {"type": "object"}}),
            )
            .collect();
        json!({"tools": tools, "nextCursor": next})
    }

    fn catalogue(value: &Value) -> Result<Catalogue, CatalogueFault> {
        Catalogue::new("s", page(value)?.0)
    }

    #[test]
    fn a_list_is_the_chain_of_its_own_cursors() {
        let mut lists = Lists::default();
        let number = lists.asked(None).unwrap();
        assert!(matches!(
            lists.answered(number, &listed(&["a"], Some("2")), 9),
            Ok(Gathered::Page)
        ));
        assert_eq!(lists.asked(Some("3")), None);
        assert_eq!(lists.asked(Some("2")), Some(number));
        assert_eq!(lists.asked(Some("2")), None);
        let Ok(Gathered::Finished(tools)) = lists.answered(number, &listed(&["b"], None), 9) else {
            panic!("the last page ends the list");
        };
        assert_eq!(tools.len(), 2);
    }

    #[test]
    fn only_a_few_lists_are_kept_open() {
        let mut lists = Lists::default();
        let first = lists.asked(None).unwrap();
        for _ in 0..4 {
            lists.asked(None);
        }
        assert!(matches!(
            lists.answered(first, &listed(&["a"], None), 1),
            Ok(Gathered::Page)
        ));
        assert_eq!(lists.unfinished.len(), 4);
    }

    #[test]
    fn lists_that_do_not_end_are_given_up() {
        let mut lists = Lists::default();
        let number = lists.asked(None).unwrap();
        for turn in 1..MAX_PAGES {
            let cursor = turn.to_string();
            lists
                .answered(number, &listed(&[], Some(&cursor)), 1)
                .unwrap();
            assert_eq!(lists.asked(Some(&cursor)), Some(number));
        }
        assert_eq!(
            lists
                .answered(number, &listed(&[], Some("x")), 1)
                .unwrap_err(),
            CatalogueFault::Pages
        );
        let mut total = 0;
        loop {
            let number = lists.asked(None).unwrap();
            total += 1;
            match lists.answered(number, &listed(&[], Some("x")), MAX_LIST_BYTES) {
                Ok(_) => assert_eq!(
                    {
                        let number = lists.asked(Some("x")).unwrap();
                        lists.answered(number, &listed(&[], None), 1).unwrap_err()
                    },
                    CatalogueFault::Bytes
                ),
                Err(fault) => {
                    assert_eq!(fault, CatalogueFault::AllBytes);
                    break;
                }
            }
        }
        assert_eq!(total, 4);
    }

    #[test]
    fn what_listing_costs_is_shared_by_the_connections_of_a_server() {
        let allowance = Allowance::default();
        let other = allowance.another();
        let tools = |name: &str| Arc::new(catalogue(&listed(&[name], None)).unwrap());
        for _ in 0..MAX_CHANGES {
            assert_eq!(allowance.change(&tools("a")), Ok(()));
            assert_eq!(allowance.change(&tools("a")), Ok(()));
        }
        for turn in 0..MAX_CHANGES {
            let name = if turn % 2 == 0 { "b" } else { "a" };
            assert_eq!(allowance.clone().change(&tools(name)), Ok(()));
        }
        let faults = [allowance.change(&tools("b")), other.change(&tools("b"))];
        assert_eq!(faults, [Err(CatalogueFault::Changes), Ok(())]);
        for turn in 1..=5 {
            let mut lists = Lists::new(allowance.another());
            let number = lists.asked(None).unwrap();
            let gathered = lists.answered(number, &listed(&["a"], None), MAX_LIST_BYTES);
            assert_eq!(gathered.is_ok(), turn <= 4);
        }
    }

    #[test]
    fn faults_of_a_list() {
        let faults: Vec<String> = [
            json!({}),
            json!({"tools": [{"inputSchema": {}}]}),
            json!({"tools": [{"name": "a\nb", "inputSchema": {}}]}),
            json!({"tools": [{"name": "a"}]}),
            json!({"tools": [{"name": "a", "inputSchema": true}]}),
            json!({"tools": [], "nextCursor": 3}),
            listed(&["a", "a"], None),
        ]
        .iter()
        .map(|value| catalogue(value).unwrap_err().to_string())
        .collect();
        insta::assert_snapshot!(faults.join("\n"));
    }

    #[test]
    fn descriptions_and_order_do_not_change_a_catalogue() {
        let one = json!({"tools": [{"name": "a", "description": "x", "inputSchema": {"type": "object", "properties": {"p": {"type": "string"}}}}, {"name": "b", "inputSchema": {}}]});
        let two = json!({"tools": [{"name": "b", "inputSchema": {}}, {"name": "a", "inputSchema": {"properties": {"p": {"type": "string"}}, "type": "object"}}]});
        let other =
            json!({"tools": [{"name": "b", "inputSchema": {}}, {"name": "a", "inputSchema": {}}]});
        let [one, two, other] = [one, two, other].map(|value| catalogue(&value).unwrap());
        assert_eq!(one.fingerprint(), two.fingerprint());
        assert_eq!(one.differing(&other), ["a"]);
        assert!(one.shares(&other, "b"));
    }
}
