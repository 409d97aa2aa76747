//! Random schemas and traces over them, as text.

use crate::random::Random;
use std::fmt::Write;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ty {
    Text,
    Long,
    Bool,
    Decimal,
    Clerk,
    Color,
    /// Never bound to a variable.
    Texts,
    Moment,
}

impl Ty {
    pub const FIELDS: [Ty; 7] = [
        Ty::Text,
        Ty::Long,
        Ty::Bool,
        Ty::Decimal,
        Ty::Clerk,
        Ty::Color,
        Ty::Texts,
    ];

    pub fn in_schema(self) -> &'static str {
        match self {
            Ty::Text => "String",
            Ty::Long => "Long",
            Ty::Bool => "Bool",
            Ty::Decimal => "decimal",
            Ty::Clerk => "Clerk",
            Ty::Color => "Color",
            Ty::Texts => "Set<String>",
            Ty::Moment => "Timepoint",
        }
    }

    /// As a binder names it.
    pub fn in_policy(self, ns: &str, random: &mut Random) -> String {
        match self {
            Ty::Clerk | Ty::Color if random.chance(80) => format!("{ns}::{}", self.in_schema()),
            Ty::Bool if random.chance(30) => "Boolean".to_owned(),
            _ => self.in_schema().to_owned(),
        }
    }
}

pub struct Attr {
    /// Below `context`, and in the logged record.
    pub path: Vec<String>,
    pub ty: Ty,
    pub required: bool,
}

pub struct Action {
    pub name: String,
    pub inputs: Vec<Attr>,
    pub drones: bool,
    pub grouped: bool,
}

pub struct World {
    pub ns: String,
    pub actions: Vec<Action>,
    pub schema: String,
    pub events: String,
    /// The deciding kind first.
    pub kinds: Vec<&'static str>,
    /// Every event is pinned, so the history is parted.
    pub parted: bool,
    /// `context.sessionId` exists.
    pub session: bool,
    pub longest: i64,
}

const NAMES: [&str; 3] = ["move", "weigh", "a \\\"b\\\""];

impl World {
    pub fn new(random: &mut Random) -> World {
        let ns = (*random.pick(&["Depot", "Acme::Depot"])).to_owned();
        let style = random.below(7);
        let session = style == 2;
        let count = 1 + random.below(3);
        let mut actions = Vec::new();
        for name in NAMES.iter().take(count) {
            let mut inputs = Vec::new();
            for at in 0..1 + random.below(4) {
                let ty = *random.pick(&Ty::FIELDS);
                let mut path = vec!["input".to_owned()];
                if random.chance(15) {
                    path.push("deep".to_owned());
                }
                path.push(format!("f{at}"));
                inputs.push(Attr {
                    path,
                    ty,
                    required: random.chance(60),
                });
            }
            actions.push(Action {
                name: (*name).to_owned(),
                inputs,
                drones: random.chance(30),
                grouped: random.chance(60),
            });
        }
        let mut world = World {
            ns,
            actions,
            schema: String::new(),
            events: String::new(),
            kinds: vec!["request", "response", "error"],
            parted: (1..=3).contains(&style),
            session,
            longest: 24 * 3600,
        };
        world.schema = world.action_schema();
        world.events = world.event_schema(style, random);
        world
    }

    fn action_schema(&self) -> String {
        let mut text = format!(
            "namespace {} {{\n  entity Crew;\n  entity Clerk in [Crew] = {{ rank: Long, nick?: String, home: Bay }};\n  entity Drone = {{ rank: Long }};\n  entity Bay = {{ size?: Long }};\n  entity Color enum [\"red\", \"green\"];\n  action Any;\n",
            self.ns
        );
        for action in &self.actions {
            let field = |attr: &Attr| {
                let optional = if attr.required { "" } else { "?" };
                let name = attr.path.last().map_or("", String::as_str);
                format!("{name}{optional}: {}", attr.ty.in_schema())
            };
            let (deep, flat): (Vec<&Attr>, Vec<&Attr>) =
                action.inputs.iter().partition(|attr| attr.path.len() == 3);
            let mut fields: Vec<String> = flat.into_iter().map(field).collect();
            if !deep.is_empty() {
                let deep: Vec<String> = deep.into_iter().map(field).collect();
                fields.push(format!("deep: {{ {} }}", deep.join(", ")));
            }
            let group = if action.grouped { " in [Any]" } else { "" };
            let principals = if action.drones {
                "Clerk, Drone"
            } else {
                "Clerk"
            };
            let session = if self.session {
                ", sessionId: String"
            } else {
                ""
            };
            _ = writeln!(
                text,
                "  action \"{}\"{group} appliesTo {{ principal: [{principals}], resource: [Bay], context: {{ input: {{ {} }}, output?: {{ ok: Bool, n?: Long }}{session} }} }};",
                action.name,
                fields.join(", ")
            );
        }
        text.push_str("}\n");
        text
    }

    fn event_schema(&mut self, style: usize, random: &mut Random) -> String {
        let mut principal = "callerPrincipal: principalType(A)".to_owned();
        let mut session = "sessionId: String".to_owned();
        let mut resource = "callerResource: resourceType(A)".to_owned();
        let mut partial = false;
        match style {
            1 => principal = "pin callerPrincipal: principalType(A) = principal".to_owned(),
            2 => session = "pin sessionId: String = context.sessionId".to_owned(),
            3 => resource = "pin callerResource: resourceType(A) = resource".to_owned(),
            4 => partial = true,
            5 => self.kinds = vec!["attempt", "outcome", "error"],
            6 => self.longest = 100,
            _ => {}
        }
        let cap = match self.longest {
            100 => "max_window = 100s\n",
            _ => "",
        };
        let mut text = cap.to_owned();
        // One kind at least stays without the pin, or it would part the history after all.
        let spared = random.below(3);
        for (at, kind) in self.kinds.iter().enumerate() {
            let decision = if at == 0 { "decision " } else { "" };
            let outputs = if at == 1 { "...outputs(A), " } else { "" };
            let pinned = match partial && at != spared && random.chance(60) {
                true => "pin callerPrincipal: principalType(A) = principal",
                false => principal.as_str(),
            };
            _ = writeln!(
                text,
                "{decision}event <A>::{kind} {{ ...inputs(A), {outputs}{pinned}, {resource}, {session} }}"
            );
        }
        text
    }

    /// A value as a trace writes it.
    pub fn value(&self, ty: Ty, random: &mut Random) -> String {
        match ty {
            Ty::Text => format!("{:?}", random.pick(&["a", "b", "c"])),
            Ty::Long | Ty::Moment => random.between(-1, 4).to_string(),
            Ty::Bool => random.chance(50).to_string(),
            Ty::Decimal => (*random.pick(&["1.0", "1.5", "1.50", "2.25"])).to_owned(),
            Ty::Clerk => format!("{}::Clerk::\"{}\"", self.ns, random.pick(&["ann", "bob"])),
            Ty::Color => format!("{}::Color::\"{}\"", self.ns, random.pick(&["red", "green"])),
            Ty::Texts => match random.below(3) {
                0 => "[]".to_owned(),
                1 => "[\"a\"]".to_owned(),
                _ => "[\"a\", \"b\"]".to_owned(),
            },
        }
    }

    /// The inputs of an event; with `nulls`, null now and then.
    fn inputs(&self, action: &Action, nulls: bool, random: &mut Random) -> String {
        let mut flat = Vec::new();
        let mut deep = Vec::new();
        let mut nested = false;
        for attr in &action.inputs {
            nested |= attr.path.len() == 3;
            if !attr.required && random.chance(40) {
                continue;
            }
            let name = attr.path.last().map_or("", String::as_str);
            let value = match nulls && random.chance(6) {
                true => "null".to_owned(),
                false => self.value(attr.ty, random),
            };
            let pair = format!("{name}: {value}");
            match attr.path.len() {
                3 => deep.push(pair),
                _ => flat.push(pair),
            }
        }
        if nested {
            flat.push(format!("deep: {{ {} }}", deep.join(", ")));
        }
        format!("{{ {} }}", flat.join(", "))
    }

    pub fn trace(&self, random: &mut Random) -> String {
        let mut text = String::new();
        let mut now = random.between(0, 50);
        let ordered = random.chance(50);
        for _ in 0..2 + random.below(9) {
            now += match ordered {
                true => random.between(1, 20),
                false => random.between(-12, 18),
            };
            let action = random.pick(&self.actions);
            let decided = random.chance(65);
            let kind = match decided {
                true => self.kinds[0],
                false => self.kinds[1 + random.below(self.kinds.len() - 1)],
            };
            let asked = self.inputs(action, false, random);
            let drone = action.drones && random.chance(30);
            let who = match drone {
                true => format!("{}::Drone::\"d1\"", self.ns),
                false => format!("{}::Clerk::\"{}\"", self.ns, random.pick(&["ann", "bob"])),
            };
            let bay = format!("{}::Bay::\"{}\"", self.ns, random.pick(&["b1", "b2"]));
            let session = *random.pick(&["s1", "s2"]);
            let mut line = format!("@{now}");
            if decided {
                if random.chance(97) {
                    _ = write!(line, " scope(principal: {who}, resource: {bay})");
                }
                if random.chance(70) {
                    _ = write!(
                        line,
                        " entities({})",
                        self.entities(&who, &bay, drone, random)
                    );
                }
                let with = match self.session {
                    true => format!(", sessionId: {session:?}"),
                    false => String::new(),
                };
                _ = write!(line, " request_context(input: {asked}{with})");
            }
            // What is logged is mostly what was asked for.
            let input = match random.chance(75) {
                true => asked,
                false => self.inputs(action, true, random),
            };
            _ = write!(
                line,
                " {}::Action::\"{}\"::{kind}(input: {input}",
                self.ns, action.name
            );
            if kind == self.kinds[1] {
                _ = write!(line, ", output: {{ ok: {} }}", random.chance(60));
            }
            // See `a_request_without_its_key` for requests that lack what the history is parted by.
            if random.chance(93) || decided && self.parted {
                _ = write!(line, ", callerPrincipal: {who}");
            }
            _ = writeln!(line, ", callerResource: {bay}, sessionId: {session:?})");
            text.push_str(&line);
        }
        text
    }

    fn entities(&self, who: &str, bay: &str, drone: bool, random: &mut Random) -> String {
        let mut attrs = vec![format!("rank: {}", random.between(0, 3))];
        if !drone {
            attrs.push(format!("home: {bay}"));
            if random.chance(50) {
                attrs.push(format!("nick: {:?}", random.pick(&["a", "b"])));
            }
        }
        let parents = match !drone && random.chance(50) {
            true => format!(" in [{}::Crew::\"c1\"]", self.ns),
            false => String::new(),
        };
        let size = match random.chance(50) {
            true => format!("size: {}", random.between(0, 3)),
            false => String::new(),
        };
        format!(
            "{who}: {{ {} }}{parents}, {bay}: {{ {size} }}",
            attrs.join(", ")
        )
    }
}
