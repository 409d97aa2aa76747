//! Random schemas and traces over them, as text.

use crate::providers;
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
    Date,
    Span,
    Ip,
    Texts,
    Longs,
    Clerks,
    Moment,
}

impl Ty {
    pub const FIELDS: [Ty; 14] = [
        Ty::Text,
        Ty::Text,
        Ty::Long,
        Ty::Long,
        Ty::Bool,
        Ty::Decimal,
        Ty::Clerk,
        Ty::Color,
        Ty::Date,
        Ty::Span,
        Ty::Ip,
        Ty::Texts,
        Ty::Longs,
        Ty::Clerks,
    ];

    /// Sets are never bound to a variable, and there are no literals of them in temporal blocks.
    pub fn is_set(self) -> bool {
        matches!(self, Ty::Texts | Ty::Longs | Ty::Clerks)
    }

    /// As temporal blocks see it: what traces have no values for is text there.
    pub fn bound(self) -> Ty {
        match self {
            Ty::Date | Ty::Span | Ty::Ip => Ty::Text,
            other => other,
        }
    }

    pub fn in_schema(self) -> &'static str {
        match self {
            Ty::Text => "String",
            Ty::Long => "Long",
            Ty::Bool => "Bool",
            Ty::Decimal => "decimal",
            Ty::Clerk => "Clerk",
            Ty::Color => "Color",
            Ty::Date => "datetime",
            Ty::Span => "duration",
            Ty::Ip => "ipaddr",
            Ty::Texts => "Set<String>",
            Ty::Longs => "Set<Long>",
            Ty::Clerks => "Set<Clerk>",
            Ty::Moment => "Timepoint",
        }
    }

    /// As a binder names it.
    pub fn in_policy(self, ns: &str, random: &mut Random) -> String {
        match self {
            Ty::Clerk | Ty::Color if random.chance(80) => format!("{ns}::{}", self.in_schema()),
            Ty::Bool if random.chance(30) => "Boolean".to_owned(),
            Ty::Date | Ty::Span | Ty::Ip => "String".to_owned(),
            _ => self.in_schema().to_owned(),
        }
    }
}

pub struct Attr {
    /// Below `context`, and in the logged record: `input`, perhaps groups, a name.
    pub path: Vec<String>,
    pub ty: Ty,
    pub required: bool,
}

pub struct Action {
    pub name: String,
    pub inputs: Vec<Attr>,
    pub drones: bool,
    pub grouped: bool,
    /// Groups of inputs that may be absent.
    pub optional: Vec<&'static str>,
}

impl Action {
    /// Of a path below `input`, the part that `has` must ask for, if any: `deep.f1`.
    pub fn asked_for(&self, attr: &Attr) -> bool {
        !attr.required
            || attr
                .path
                .iter()
                .any(|group| self.optional.contains(&group.as_str()))
    }
}

pub struct World {
    pub ns: String,
    pub actions: Vec<Action>,
    pub schema: String,
    pub events: String,
    /// The declarations of information providers, if there are any.
    pub providers: Option<String>,
    /// The deciding kind first.
    pub kinds: Vec<&'static str>,
    /// Every event is pinned, so the history is parted.
    pub parted: bool,
    /// `context.sessionId` exists.
    pub session: bool,
    /// Clerks have tags.
    pub tags: bool,
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
            for at in 0..1 + random.below(5) {
                let mut path = vec!["input".to_owned()];
                let groups = random.weighted(&[75, 15, 10]);
                path.extend(
                    ["deep", "inner"]
                        .iter()
                        .take(groups)
                        .map(ToString::to_string),
                );
                path.push(format!("f{at}"));
                inputs.push(Attr {
                    path,
                    ty: *random.pick(&Ty::FIELDS),
                    required: random.chance(60),
                });
            }
            let groups = ["deep", "inner"].into_iter();
            actions.push(Action {
                name: (*name).to_owned(),
                inputs,
                drones: random.chance(30),
                grouped: random.chance(60),
                optional: groups.filter(|_| random.chance(40)).collect(),
            });
        }
        let mut world = World {
            ns,
            actions,
            schema: String::new(),
            events: String::new(),
            providers: random.chance(60).then(|| providers::declarations(random)),
            kinds: vec!["request", "response", "error"],
            parted: (1..=3).contains(&style),
            session,
            tags: random.chance(40),
            longest: 24 * 3600,
        };
        world.schema = world.action_schema(random);
        world.events = world.event_schema(style, random);
        world
    }

    fn action_schema(&self, random: &mut Random) -> String {
        let tags = if self.tags { " tags String" } else { "" };
        let mut text = format!(
            "namespace {} {{\n  entity Crew in [Crew];\n  entity Clerk in [Crew] = {{ rank: Long, nick?: String, home: Bay, level?: decimal }}{tags};\n  entity Drone = {{ rank: Long }};\n  entity Bay = {{ size?: Long, dims?: {{ w: Long, h?: Long }} }};\n  entity Color enum [\"red\", \"green\"];\n  action All;\n  action Any in [All];\n",
            self.ns
        );
        for (at, action) in self.actions.iter().enumerate() {
            let fields: Vec<Field> = action
                .inputs
                .iter()
                .map(|attr| {
                    let mark = |name: &String, optional: bool| {
                        format!("{name}{}", if optional { "?" } else { "" })
                    };
                    let (name, groups) = attr.path.split_last().expect("a path");
                    let mut path: Vec<String> = groups
                        .iter()
                        .skip(1)
                        .map(|group| mark(group, action.optional.contains(&group.as_str())))
                        .collect();
                    path.push(mark(name, !attr.required));
                    (path, attr.ty.in_schema().to_owned())
                })
                .collect();
            let record = nested(&fields);
            // Spelled out, or under a name.
            let input = match random.chance(30) {
                true => {
                    _ = writeln!(text, "  type In{at} = {record};");
                    format!("In{at}")
                }
                false => record,
            };
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
                "  action \"{}\"{group} appliesTo {{ principal: [{principals}], resource: [Bay], context: {{ input: {input}, output?: {{ ok: Bool, n?: Long }}{session} }} }};",
                action.name,
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
            // Traces have no such values; a decision that reads one fails.
            Ty::Date => format!("{:?}", random.pick(&["2024-10-15", "2025-01-01T00:00:00Z"])),
            Ty::Span => format!("{:?}", random.pick(&["1h", "90s"])),
            Ty::Ip => format!("{:?}", random.pick(&["10.0.0.1", "::1"])),
            Ty::Texts => (*random.pick(&["[]", "[\"a\"]", "[\"a\", \"b\"]"])).to_owned(),
            Ty::Longs => (*random.pick(&["[]", "[1]", "[3, 1]", "[1, 1]"])).to_owned(),
            Ty::Clerks => match random.chance(40) {
                true => "[]".to_owned(),
                false => format!("[{}]", self.value(Ty::Clerk, random)),
            },
        }
    }

    /// The inputs of an event; with `nulls`, null now and then.
    fn inputs(&self, action: &Action, nulls: bool, random: &mut Random) -> String {
        let mut fields: Vec<Field> = Vec::new();
        let absent: Vec<&str> = ["deep", "inner"]
            .into_iter()
            .filter(|group| action.optional.contains(group) && random.chance(35))
            .collect();
        for attr in &action.inputs {
            let path: Vec<String> = attr.path.iter().skip(1).cloned().collect();
            let cut = path
                .iter()
                .position(|group| absent.contains(&group.as_str()));
            if cut.is_some_and(|cut| cut == 0) {
                continue;
            }
            let given = cut.is_none() && (attr.required || random.chance(60));
            let value = match nulls && random.chance(6) {
                true => "null".to_owned(),
                false => self.value(attr.ty, random),
            };
            if given {
                fields.push((path, value));
            } else {
                // The groups above it are there all the same.
                let groups = cut.unwrap_or(path.len() - 1);
                fields.push((path[..groups].to_vec(), String::new()));
            }
        }
        nested(&fields)
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
            // See `a_request_without_its_key` for requests that lack what the history is parted by, and
            // `providers_are_asked_about_the_request` for ones without a logged principal.
            if random.chance(93) || decided && (self.parted || self.providers.is_some()) {
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
            if random.chance(30) {
                attrs.push(format!("level: {}", self.value(Ty::Decimal, random)));
            }
        }
        let parents = match !drone && random.chance(50) {
            true => format!(" in [{}::Crew::\"c1\"]", self.ns),
            false => String::new(),
        };
        let mut of_bay = Vec::new();
        if random.chance(50) {
            of_bay.push(format!("size: {}", random.between(0, 3)));
        }
        if random.chance(40) {
            let height = if random.chance(50) { ", h: 2" } else { "" };
            of_bay.push(format!("dims: {{ w: {}{height} }}", random.between(0, 3)));
        }
        let crew = match random.chance(40) {
            true => format!(", {0}::Crew::\"c1\": {{}} in [{0}::Crew::\"c2\"]", self.ns),
            false => String::new(),
        };
        format!(
            "{who}: {{ {} }}{parents}, {bay}: {{ {} }}{crew}",
            attrs.join(", "),
            of_bay.join(", ")
        )
    }
}

/// A field of a record: where it is below, and its type or value. One without either is a group that may
/// be empty.
type Field = (Vec<String>, String);

/// A record of these fields, with the groups they are in.
fn nested(fields: &[Field]) -> String {
    let mut parts = Vec::new();
    let mut groups: Vec<(String, Vec<Field>)> = Vec::new();
    for (path, text) in fields {
        match path.as_slice() {
            [] => {}
            [name] if !text.is_empty() => parts.push(format!("{name}: {text}")),
            [group, rest @ ..] => {
                let field = (rest.to_vec(), text.clone());
                match groups.iter_mut().find(|(name, _)| name == group) {
                    Some((_, fields)) => fields.push(field),
                    None => groups.push((group.clone(), vec![field])),
                }
            }
        }
    }
    parts.extend(
        groups
            .iter()
            .map(|(name, fields)| format!("{name}: {}", nested(fields))),
    );
    format!("{{ {} }}", parts.join(", "))
}
