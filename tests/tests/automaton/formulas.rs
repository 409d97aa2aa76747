//! Random leaves and traces. A leaf is written as text from a list of choices, so that fewer and smaller
//! choices give a smaller leaf.

use super::stage::{record, source};
use dogwood_compiler::compile::load_service;
use dogwood_compiler::event::{EntityData, Event, RequestPart};
use dogwood_compiler::schema::Service;
use dogwood_compiler::value::{EntityUid, Record, Value};
use proptest::prelude::*;
use std::collections::BTreeSet;

/// A text, and the name of a clerk.
const LONG: &str = "too long to lie in a value";

const YARD: &str = r#"
namespace Yard {
  entity Clerk = { rank: Long };
  entity Bay;
  type In = { crate: String, kg?: Long, tare?: decimal };
  action Any;
  action "move"  in [Any] appliesTo { principal: [Clerk], resource: [Bay],
    context: { input: In, output?: { ok: Bool }, sessionId?: String } };
  action "weigh" in [Any] appliesTo { principal: [Clerk], resource: [Bay],
    context: { input: In, output?: { ok: Bool }, sessionId?: String } };
  action "beep" appliesTo { principal: [Clerk], resource: [Bay],
    context: { input: { crate: String }, sessionId?: String } };
}
"#;

/// Nothing pinned; the principal pinned everywhere; a context pin everywhere; a pin of requests only.
pub fn services() -> Vec<Service> {
    let plain = "callerPrincipal: principalType(A), sessionId: String";
    let principal = "pin callerPrincipal: principalType(A) = principal, sessionId: String";
    let session = "callerPrincipal: principalType(A), pin sessionId: String = context.sessionId";
    let build = |request: &str, others: &str| {
        let events = format!(
            "decision event <A>::request {{ ...inputs(A), {request} }}
             event <A>::response {{ ...inputs(A), ...outputs(A), {others} }}"
        );
        let (actions, events) = (source("a.cedarschema", YARD), source("e.dwschema", &events));
        match load_service(Some(&actions), Some(&events)) {
            Ok((service, _)) => service,
            Err(errors) => panic!("{errors:#?}"),
        }
    };
    let services = vec![
        build(plain, plain),
        build(principal, principal),
        build(session, session),
        build(principal, plain),
    ];
    let universal: Vec<bool> = services
        .iter()
        .map(|s| s.events.universal_pin.is_some())
        .collect();
    assert_eq!(universal, [false, true, true, false]);
    services
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Ty {
    Long,
    Text,
    Clerk,
    Decimal,
    Point,
}

type Scope = Vec<(String, Ty)>;

/// Writes a leaf from choices; when these run out every choice is the first.
pub struct Writer<'c> {
    choices: &'c [u8],
    at: usize,
    /// What kinds of condition it wrote that cells of their own are made for.
    pub wrote: BTreeSet<&'static str>,
}

impl<'c> Writer<'c> {
    pub fn new(choices: &'c [u8]) -> Writer<'c> {
        Writer {
            choices,
            at: 0,
            wrote: BTreeSet::new(),
        }
    }

    fn pick(&mut self, n: usize) -> usize {
        let choice = self.choices.get(self.at).copied().unwrap_or(0);
        self.at += 1;
        usize::from(choice) % n
    }

    fn of<T: Copy>(&mut self, items: &[T]) -> T {
        items[self.pick(items.len())]
    }

    pub fn leaf(&mut self) -> String {
        let scope = Scope::new();
        let depth = 1 + self.pick(3);
        let first = self.condition(depth, &scope);
        match self.pick(3) {
            0 => first,
            1 => format!("({first}) && ({})", self.condition(1, &scope)),
            _ => format!("!({first})"),
        }
    }

    fn window(&mut self) -> String {
        format!("within {}s", 1 + self.pick(20))
    }

    fn with(scope: &Scope, name: &str, ty: Ty) -> Scope {
        let mut inner: Scope = scope
            .iter()
            .filter(|(known, _)| known != name)
            .cloned()
            .collect();
        inner.push((name.into(), ty));
        inner
    }

    /// A condition that binds nothing new.
    fn condition(&mut self, depth: usize, scope: &Scope) -> String {
        if depth == 0 {
            return self.matcher(scope, None);
        }
        match self.pick(22) {
            0 => self.matcher(scope, None),
            1 => {
                let window = self.window();
                format!("formerly {window} ({})", self.filtered(depth - 1, scope))
            }
            2 => {
                let window = self.window();
                format!("previous {window} ({})", self.filtered(depth - 1, scope))
            }
            3 => {
                let left = self.condition(depth - 1, scope);
                let right = self.condition(depth - 1, scope);
                self.since(&left, &right)
            }
            4 => {
                let (left, right) = (self.matcher(scope, None), self.matcher(scope, None));
                let also = self.matcher(scope, None);
                let (window, shape) = (self.window(), self.pick(3));
                match shape {
                    0 => format!("(!({left})) since {window} ({right})"),
                    1 => format!("(!({left}) && !({also})) since {window} ({right})"),
                    _ => format!("({left}) since {window} ({right})"),
                }
            }
            5 => format!("!({})", self.condition(depth - 1, scope)),
            6 => {
                let first = self.condition(depth - 1, scope);
                format!("({first}) && ({})", self.condition(depth - 1, scope))
            }
            7 | 8 => {
                let name = self.of(&["x", "y", "z"]);
                let ty = self.of(&[Ty::Long, Ty::Text, Ty::Point, Ty::Clerk, Ty::Decimal]);
                let inner = Self::with(scope, name, ty);
                let outside: Scope = scope
                    .iter()
                    .filter(|(known, _)| known != name)
                    .cloned()
                    .collect();
                let binds = self.binds(name, ty, depth - 1, &outside);
                let rest = match self.pick(4) {
                    0 => format!(" && ({})", self.condition(depth - 1, &inner)),
                    1 => format!(" && {}", self.filter(depth - 1, &inner)),
                    2 => {
                        let more = self.condition(depth - 1, &inner);
                        format!(" && ({more}) && {}", self.filter(depth - 1, &inner))
                    }
                    _ => String::new(),
                };
                format!("exists ({name}: {}). (({binds}){rest})", name_of(ty))
            }
            9 | 10 => self.comparison(depth - 1, scope),
            11 | 12 => self.joined(scope),
            13 | 14 => self.lasting(scope),
            15 => self.compared(scope),
            16 => self.windows(scope),
            17 | 18 => self.nested(),
            19 | 20 => self.shared(scope),
            _ => {
                let head = self.matcher(scope, None);
                format!("({head}) && {}", self.filter(depth - 1, scope))
            }
        }
    }

    /// Two operators with a variable in common, perhaps with more of their own.
    fn joined(&mut self, scope: &Scope) -> String {
        let ty = self.of(&[Ty::Text, Ty::Long, Ty::Clerk]);
        let inner = Self::with(scope, "x", ty);
        let outside: Scope = scope
            .iter()
            .filter(|(known, _)| known != "x")
            .cloned()
            .collect();
        let (first, second) = (self.window(), self.window());
        let one = self.matcher(&outside, Some(("x", ty)));
        let other = self.matcher(&outside, Some(("x", ty)));
        let mut rest = String::new();
        for _ in 0..self.pick(3) {
            let third = self.window();
            let wanted = Some(("x", ty));
            rest += &match self.pick(5) {
                0 => format!(" && {}", self.filter(0, &inner)),
                1 => format!(" && !(formerly {third} ({}))", self.matcher(&inner, None)),
                2 | 3 => format!(
                    " && !(formerly {third} ({}))",
                    self.matcher(&outside, wanted)
                ),
                _ => format!(" && formerly {third} ({})", self.matcher(&outside, wanted)),
            };
        }
        self.wrote.insert("joined");
        let both = format!("formerly {first} ({one}) && formerly {second} ({other}){rest}");
        match self.pick(3) {
            0 if ty == Ty::Long => {
                let op = self.of(&["count", "sum x"]);
                format!("({op} for (x: Long). where ({both})) >= 2")
            }
            0 => format!("(count for (x: {}). where ({both})) >= 2", name_of(ty)),
            _ => format!("exists (x: {}). ({both})", name_of(ty)),
        }
    }

    /// A variable that operators share inside another one, or that is bound around one.
    pub fn sharing(&mut self) -> String {
        self.shared(&Scope::new())
    }

    fn shared(&mut self, scope: &Scope) -> String {
        self.wrote.insert("shared");
        let ty = self.of(&[Ty::Text, Ty::Long, Ty::Clerk]);
        let outside: Scope = scope
            .iter()
            .filter(|(known, _)| known != "x")
            .cloned()
            .collect();
        let (window, head) = (self.window(), self.matcher(&outside, Some(("x", ty))));
        let mut body = match self.pick(4) {
            0 => head,
            1 => format!("previous {window} ({head})"),
            _ => format!("formerly {window} ({head})"),
        };
        for _ in 0..=self.pick(2) {
            body = format!("{body} && {}", self.about(&outside, ty));
        }
        let name = name_of(ty);
        let body = match self.pick(4) {
            0 => {
                let (op, n) = (self.of(&["<", ">=", "=="]), self.pick(3));
                format!("(count for (x: {name}). where ({body})) {op} {n}")
            }
            1 if ty == Ty::Long => {
                let other = self.request_term(Ty::Long);
                format!("(sum x for (x: Long). where ({body})) >= {other}")
            }
            _ => format!("(exists (x: {name}). ({body}))"),
        };
        let (window, head) = (self.window(), self.matcher(&outside, None));
        match self.pick(8) {
            0 | 1 => body,
            2 => format!("formerly {window} ({body})"),
            3 => format!("formerly {window} ({head} && {body})"),
            4 => format!("formerly {window} (!({body}))"),
            5 => format!("({body}) since {window} ({head})"),
            6 => format!("(!({body})) since {window} ({head})"),
            _ => format!("(!({head})) since {window} ({body})"),
        }
    }

    /// Something the past says of `x`.
    fn about(&mut self, outside: &Scope, ty: Ty) -> String {
        let wanted = Some(("x", ty));
        let (one, other) = (self.matcher(outside, wanted), self.matcher(outside, None));
        let (first, second) = (self.window(), self.window());
        match self.pick(10) {
            0 => format!("formerly {first} ({one})"),
            1 => format!("!(formerly {first} ({one}))"),
            2 => format!("((!({one})) since {first} ({other}))"),
            3 => format!("!((!({one})) since {first} ({other}))"),
            4 => format!("((formerly {first} ({one})) since {second} ({other}))"),
            5 => format!("((!formerly {first} ({one})) since {second} ({one}))"),
            6 => {
                let (op, n) = (self.of(&["<", ">=", "=="]), self.pick(3));
                format!(
                    "(count for (t: Timepoint). where formerly {first} ({one} && tp(t))) {op} {n}"
                )
            }
            7 => format!("formerly {first} ({other} && formerly {second} ({one}))"),
            8 => format!("(previous {first} (formerly {second} ({one})))"),
            _ => self.filter(1, &Self::with(outside, "x", ty)),
        }
    }

    /// A matcher that asks, as a rule, for a value of the request.
    fn asking(&mut self) -> String {
        let action = self.of(&["move", "move", "weigh"]);
        let kind = self.of(&["request", "request", "request", "response"]);
        let (field, ty) = self.of(&[
            ("input.crate", Ty::Text),
            ("input.kg", Ty::Long),
            ("callerPrincipal", Ty::Clerk),
        ]);
        let pattern = match self.pick(4) {
            0 => String::new(),
            1 => format!("{field}: {}", self.constant(ty)),
            _ => format!("{field}: {}", self.request_term(ty)),
        };
        format!("Yard::Action::{action:?}::{kind}{{{pattern}}}")
    }

    /// What the past looked like, each part asked by values of its own.
    pub fn nested(&mut self) -> String {
        self.wrote.insert("nested");
        let window = self.window();
        let depth = 1 + self.pick(3);
        match self.pick(6) {
            0..=2 => format!("formerly {window} ({})", self.parts(depth)),
            3 => format!("previous {window} ({})", self.parts(depth)),
            _ => {
                let (left, right) = (self.parts(depth), self.parts(depth - 1));
                format!("({left}) since {window} ({right})")
            }
        }
    }

    fn parts(&mut self, depth: usize) -> String {
        let mut parts = Vec::new();
        if self.pick(4) > 0 {
            parts.push(self.asking());
        }
        for _ in 0..=self.pick(2) {
            parts.push(self.apart(depth));
        }
        parts.join(" && ")
    }

    fn apart(&mut self, depth: usize) -> String {
        let window = self.window();
        let negated = self.of(&["", "!"]);
        if depth == 0 {
            return format!("{negated}{}", self.asking());
        }
        let inner = match self.pick(6) {
            0 | 1 => format!("formerly {window} ({})", self.parts(depth - 1)),
            2 => format!("previous {window} ({})", self.parts(depth - 1)),
            3 => {
                let left = self.apart(depth - 1);
                format!("({left}) since {window} ({})", self.parts(depth - 1))
            }
            4 => {
                let (op, n) = (self.of(&[">=", "<=", "==", "<"]), self.pick(4));
                let counted = self.asking();
                format!(
                    "(count for (t: Timepoint). where formerly {window} ({counted} && tp(t))) {op} {n}"
                )
            }
            _ => self.parts(depth - 1),
        };
        format!("{negated}({inner})")
    }

    /// A `since` whose left side looks back itself.
    fn lasting(&mut self, scope: &Scope) -> String {
        let part = |writer: &mut Self| {
            let (one, other) = match writer.pick(3) {
                0 => (writer.matcher(scope, None), writer.matcher(scope, None)),
                _ => (writer.asking(), writer.asking()),
            };
            let window = writer.window();
            match writer.pick(8) {
                0 | 1 => format!("formerly {window} {one}"),
                2 | 3 => format!("!formerly {window} {one}"),
                4 => format!("!({one} && formerly {window} {other})"),
                5 => format!("!(previous {window} {one})"),
                6 => format!("(previous {window} {one})"),
                _ => format!("!({one})"),
            }
        };
        let mut left = part(self);
        if self.pick(3) == 0 {
            left = format!("{left} && {}", part(self));
        }
        let window = self.window();
        let right = match self.pick(2) {
            0 => self.matcher(scope, None),
            _ => self.asking(),
        };
        self.wrote.insert("lasting");
        format!("({left}) since {window} ({right})")
    }

    /// What happened, compared with the request.
    fn compared(&mut self, scope: &Scope) -> String {
        let ty = self.of(&[Ty::Long, Ty::Long, Ty::Text]);
        let head = self.matcher(scope, Some(("n", ty)));
        let comparison = |writer: &mut Self| {
            let op = match ty {
                Ty::Long => writer.of(&["<", ">", ">=", "<=", "!=", "=="]),
                _ => writer.of(&["!=", "=="]),
            };
            match writer.pick(2) {
                0 => format!("n {op} {}", writer.request_term(ty)),
                _ => format!("{} {op} n", writer.request_term(ty)),
            }
        };
        let mut filter = comparison(self);
        if self.pick(3) == 0 {
            filter = format!("{filter} && {}", comparison(self));
        }
        let window = self.window();
        self.wrote.insert("compared");
        match self.pick(4) {
            0 => format!(
                "exists (n: {}). (formerly {window} {head} && {filter})",
                name_of(ty)
            ),
            1 => format!(
                "exists (n: {}). formerly {window} ({head} && {filter})",
                name_of(ty)
            ),
            2 => format!(
                "(count for (n: {}). where formerly {window} ({head} && {filter})) >= 1",
                name_of(ty)
            ),
            _ => format!(
                "formerly {window} (exists (n: {}). ({head} && {filter}))",
                name_of(ty)
            ),
        }
    }

    /// One thing asked over several windows.
    fn windows(&mut self, scope: &Scope) -> String {
        let (head, other) = (self.matcher(scope, None), self.matcher(scope, None));
        let summed = self.matcher(scope, Some(("k", Ty::Long)));
        let kind = self.pick(5);
        let mut parts = Vec::new();
        for _ in 0..2 + self.pick(2) {
            let (window, least) = (self.window(), self.pick(3));
            let part = match kind {
                0 => format!("formerly {window} {head}"),
                1 => format!("(!({other}) since {window} {head})"),
                2 => format!("previous {window} {head}"),
                3 => format!(
                    "(count for (t: Timepoint). where formerly {window} ({head} && tp(t))) > {least}"
                ),
                _ => format!(
                    "(sum k for (k: Long), (t: Timepoint). where formerly {window} ({summed} && tp(t))) > {least}"
                ),
            };
            let negated = if self.pick(2) == 0 { "!" } else { "" };
            parts.push(format!("{negated}({part})"));
        }
        self.wrote.insert("windows");
        parts.join(" && ")
    }

    fn since(&mut self, left: &str, right: &str) -> String {
        let window = self.window();
        let negated = if self.pick(2) == 0 { "!" } else { "" };
        format!("({negated}({left})) since {window} ({right})")
    }

    /// A condition, perhaps with a filter.
    fn filtered(&mut self, depth: usize, scope: &Scope) -> String {
        let condition = self.condition(depth, scope);
        match self.pick(3) {
            0 => condition,
            1 => format!("({condition}) && {}", self.filter(depth, scope)),
            _ => format!("({condition}) && !({})", self.matcher(scope, None)),
        }
    }

    /// A condition that binds the variable.
    fn binds(&mut self, name: &str, ty: Ty, depth: usize, scope: &Scope) -> String {
        let inner = Self::with(scope, name, ty);
        let wanted = Some((name, ty));
        if ty == Ty::Point {
            let window = self.window();
            return match self.pick(4) {
                0 => format!(
                    "formerly {window} ({} && tp({name}))",
                    self.matcher(scope, None)
                ),
                1 => format!("tp({name})"),
                2 => format!("formerly {window} tp({name})"),
                _ => format!(
                    "previous {window} (tp({name}) && {})",
                    self.matcher(scope, None)
                ),
            };
        }
        match self.pick(if depth == 0 { 3 } else { 9 }) {
            0 => self.matcher(scope, wanted),
            1 => {
                let window = self.window();
                format!("formerly {window} {}", self.matcher(scope, wanted))
            }
            2 => {
                let term = self.request_term(ty);
                format!("{name} == {term}")
            }
            3 => {
                let (window, head) = (self.window(), self.matcher(scope, wanted));
                format!(
                    "formerly {window} ({head} && ({}))",
                    self.condition(depth - 1, &inner)
                )
            }
            4 => {
                let (window, head) = (self.window(), self.matcher(scope, wanted));
                format!(
                    "formerly {window} ({head} && {})",
                    self.filter(depth - 1, &inner)
                )
            }
            5 => {
                let left = self.condition(depth - 1, &inner);
                let right = self.matcher(scope, wanted);
                self.since(&left, &right)
            }
            6 => {
                let (window, term) = (self.window(), self.request_term(ty));
                format!(
                    "formerly {window} ({name} == {term} && {})",
                    self.matcher(&inner, None)
                )
            }
            7 if ty == Ty::Long => {
                let aggregate = self.aggregate(depth - 1, scope);
                match self.pick(2) {
                    0 => format!("{name} == {aggregate}"),
                    _ => {
                        let (window, head) = (self.window(), self.matcher(scope, None));
                        format!("formerly {window} ({head} && {aggregate} == {name})")
                    }
                }
            }
            _ => {
                let window = self.window();
                format!("previous {window} ({})", self.matcher(scope, wanted))
            }
        }
    }

    fn aggregate(&mut self, depth: usize, scope: &Scope) -> String {
        let (window, negated) = (self.window(), self.matcher(scope, None));
        match self.pick(6) {
            0 => {
                let head = self.matcher(scope, None);
                format!("(count for (t: Timepoint). where formerly {window} ({head} && tp(t)))")
            }
            1 => {
                let ty = self.of(&[Ty::Text, Ty::Long, Ty::Decimal, Ty::Clerk]);
                let head = self.matcher(scope, Some(("v", ty)));
                format!(
                    "(count for (v: {}). where formerly {window} {head})",
                    name_of(ty)
                )
            }
            2 => {
                let head = self.matcher(scope, Some(("k", Ty::Long)));
                format!("(sum k for (k: Long). where formerly {window} {head})")
            }
            3 => {
                let head = self.matcher(scope, Some(("k", Ty::Long)));
                format!(
                    "(sum k for (k: Long), (t: Timepoint). where formerly {window} ({head} && tp(t) && !({negated})))"
                )
            }
            4 => {
                let ty = self.of(&[Ty::Text, Ty::Long]);
                let inner = Self::with(scope, "v", ty);
                let binds = self.binds("v", ty, depth.min(1), scope);
                let filter = self.filter(0, &inner);
                format!(
                    "(count for (v: {}). where (({binds}) && {filter}))",
                    name_of(ty)
                )
            }
            _ => {
                let binds = self.binds("v", Ty::Text, depth.min(1), scope);
                let inner = Self::with(scope, "v", Ty::Text);
                let other = self.binds("k", Ty::Long, depth.min(1), &inner);
                format!("(sum k for (v: String), (k: Long). where (({binds}) && ({other})))")
            }
        }
    }

    fn comparison(&mut self, depth: usize, scope: &Scope) -> String {
        let aggregate = self.aggregate(depth, scope);
        let op = self.of(&["<", "<=", ">", ">=", "==", "!="]);
        let other = match self.pick(3) {
            0 => self.pick(5).to_string(),
            1 => self.request_term(Ty::Long),
            _ => self.var(scope, Ty::Long).unwrap_or_else(|| "2".into()),
        };
        match self.pick(2) {
            0 => format!("{aggregate} {op} {other}"),
            _ => format!("{other} {op} {aggregate}"),
        }
    }

    /// A comparison of what is known.
    fn filter(&mut self, depth: usize, scope: &Scope) -> String {
        let chosen = match scope.len() {
            0 => None,
            n => scope.get(self.pick(n)).cloned(),
        };
        let Some((name, ty)) = chosen else {
            let op = self.of(&["!=", "<", "==", ">="]);
            let left = self.request_term(Ty::Long);
            let right = match self.pick(2) {
                0 => self.pick(4).to_string(),
                _ => self.request_term(Ty::Long),
            };
            return format!("{left} {op} {right}");
        };
        if depth > 0 && ty == Ty::Long && self.pick(4) == 3 {
            let op = self.of(&["<", ">=", "==", "!="]);
            return format!("{name} {op} {}", self.aggregate(depth - 1, scope));
        }
        let op = match ty {
            Ty::Long => self.of(&["<", "!=", ">=", "==", "<=", ">"]),
            _ => self.of(&["!=", "=="]),
        };
        let other = match (ty, self.pick(3)) {
            (Ty::Point, _) => self.var(scope, ty),
            (_, 0) => Some(self.request_term(ty)),
            (_, 1) => self.var(scope, ty),
            _ => Some(self.constant(ty)),
        };
        format!("{name} {op} {}", other.unwrap_or_else(|| name.clone()))
    }

    fn var(&mut self, scope: &Scope, ty: Ty) -> Option<String> {
        let fit: Vec<&String> = scope
            .iter()
            .filter(|(_, t)| *t == ty)
            .map(|(name, _)| name)
            .collect();
        match fit.len() {
            0 => None,
            n => fit.get(self.pick(n)).map(|name| (*name).clone()),
        }
    }

    fn request_term(&mut self, ty: Ty) -> String {
        match ty {
            Ty::Long => self.of(&["context.input.kg", "principal.rank"]).into(),
            Ty::Text => self.of(&["context.input.crate", "principal.id"]).into(),
            Ty::Clerk => "principal".into(),
            Ty::Decimal => "context.input.tare".into(),
            Ty::Point => "0".into(),
        }
    }

    fn constant(&mut self, ty: Ty) -> String {
        match ty {
            Ty::Long => (1 + self.pick(3)).to_string(),
            Ty::Text => format!("{:?}", self.of(&["a", LONG, "ann"])),
            Ty::Clerk => format!("Yard::Clerk::{:?}", self.of(&["ann", LONG])),
            Ty::Decimal => format!("decimal({:?})", self.of(&["1.5", "2.0"])),
            Ty::Point => "0".into(),
        }
    }

    /// A matcher; with `wanted`, one that binds this variable.
    fn matcher(&mut self, scope: &Scope, wanted: Option<(&str, Ty)>) -> String {
        let action = self.of(&["move", "move", "move", "weigh", "beep"]);
        let kind = self.of(&["request", "request", "request", "response"]);
        // Only the first two have all fields.
        let action = match wanted {
            Some((_, Ty::Long | Ty::Decimal)) if action == "beep" => "move",
            _ => action,
        };
        let mut patterns = Vec::new();
        let fields: &[(&str, Ty)] = match action {
            "beep" => &[("input.crate", Ty::Text), ("callerPrincipal", Ty::Clerk)],
            _ => &[
                ("input.crate", Ty::Text),
                ("input.kg", Ty::Long),
                ("input.tare", Ty::Decimal),
                ("callerPrincipal", Ty::Clerk),
            ],
        };
        for (field, ty) in fields {
            if let Some((name, wanted)) = wanted
                && wanted == *ty
            {
                patterns.push(format!("{field}: {name}"));
            }
            // Few constraints, so that several events of a window match.
            match self.pick(12) {
                0..=7 => {}
                8 => patterns.push(format!("{field}: *")),
                9 => patterns.push(format!("{field}: {}", self.constant(*ty))),
                10 => patterns.push(format!("{field}: {}", self.request_term(*ty))),
                _ => {
                    if let Some(name) = self.var(scope, *ty) {
                        patterns.push(format!("{field}: {name}"));
                    }
                }
            }
        }
        format!(
            "Yard::Action::{action:?}::{kind}{{{}}}",
            patterns.join(", ")
        )
    }
}

fn name_of(ty: Ty) -> &'static str {
    match ty {
        Ty::Long => "Long",
        Ty::Text => "String",
        Ty::Clerk => "Yard::Clerk",
        Ty::Decimal => "decimal",
        Ty::Point => "Timepoint",
    }
}

/// Long traces for short windows, with gaps, equal stamps, absent fields and (if wanted) steps back.
pub fn traces(steps_back: bool) -> impl Strategy<Value = Vec<Event>> {
    let step = if steps_back {
        prop_oneof![6 => 0i64..3, 2 => -4i64..0, 1 => 5i64..25].boxed()
    } else {
        prop_oneof![8 => 0i64..3, 1 => 5i64..25].boxed()
    };
    let part = |one: u8| prop::sample::select(vec![None, Some(one % 3), Some(1), Some(2)]);
    let input = || (0u8..4, part(0), part(0));
    let event = (step, 0u8..5, 0u8..4, 0u8..5, input(), input(), 0u8..4);
    prop::collection::vec(event, 1..18).prop_map(|steps| {
        let mut time = 100;
        steps
            .into_iter()
            .map(|(step, action, kind, who, logged, asked, rank)| {
                time += step;
                made(time, action, kind, who, logged, asked, rank)
            })
            .collect()
    })
}

type Input = (u8, Option<u8>, Option<u8>);

fn input(action: &str, (name, kg, tare): Input) -> Record {
    let mut fields = Record::new();
    if name > 0 {
        fields.insert(
            "crate".into(),
            ["a", "a", LONG, "ann"][usize::from(name)].into(),
        );
    }
    if action != "beep" {
        if let Some(kg) = kg {
            let kg = if kg == 0 {
                Value::Null
            } else {
                Value::Int(i64::from(kg))
            };
            fields.insert("kg".into(), kg);
        }
        if let Some(tare) = tare {
            let tare = ["2.0", "1.5", "1.50"][usize::from(tare % 3)];
            fields.insert("tare".into(), Value::Decimal(tare.into()));
        }
    }
    fields
}

fn made(time: i64, action: u8, kind: u8, who: u8, logged: Input, asked: Input, rank: u8) -> Event {
    let action = ["move", "move", "move", "weigh", "beep"][usize::from(action % 5)];
    let kind = ["request", "request", "request", "response"][usize::from(kind % 4)];
    let clerk = |name: &str| EntityUid::new("Yard::Clerk", name);
    // Once in a while the logged principal is missing or not the one that asks.
    let (asks, logs) = match who {
        0 | 1 => ("ann", Some("ann")),
        2 => (LONG, Some(LONG)),
        3 => ("ann", Some(LONG)),
        _ => (LONG, None),
    };
    let mut log = record(&[("input", Value::Object(input(action, logged)))]);
    if let Some(name) = logs {
        log.insert("callerPrincipal".into(), clerk(name).into());
        log.insert("sessionId".into(), name.into());
    }
    let mut context = record(&[("input", Value::Object(input(action, asked)))]);
    if rank != 1 {
        context.insert("sessionId".into(), asks.into());
    }
    let mut entities = Vec::new();
    if rank > 0 {
        let attrs = record(&[("rank", i64::from(rank).into())]);
        entities.push(EntityData {
            uid: clerk(asks),
            attrs,
            parents: Vec::new(),
            tags: Record::new(),
        });
    }
    Event {
        time,
        action: EntityUid::new("Yard::Action", action),
        kind: kind.into(),
        logged: log,
        request: Some(RequestPart {
            principal: Some(clerk(asks)),
            resource: Some(EntityUid::new("Yard::Bay", "b")),
            context,
            entities,
        }),
    }
}
