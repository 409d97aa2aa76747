//! Random policies over a world, as text. Most are well-formed; a few have one thing wrong.

use crate::random::Random;
use crate::world::{Action, Attr, Ty, World};

/// A variable a condition may read.
#[derive(Clone)]
struct Bound {
    name: String,
    ty: Ty,
}

pub struct Writer<'a> {
    pub world: &'a World,
    pub random: &'a mut Random,
    /// The actions the rule decides, where it names them.
    pub target: Option<&'a Action>,
    pub clerks_only: bool,
}

/// Stands for a variable until its type is known.
const NEW: &str = "NEW";

/// A policy file: perhaps macros, then rules.
pub fn policy(world: &World, random: &mut Random) -> String {
    let mut text = String::new();
    let mut writer = Writer {
        world,
        random,
        target: None,
        clerks_only: false,
    };
    let macros = writer.random.chance(35);
    if macros {
        text.push_str(&writer.macros());
    }
    for _ in 0..1 + writer.random.below(3) {
        text.push_str(&writer.rule(macros));
    }
    text
}

impl<'a> Writer<'a> {
    fn macros(&mut self) -> String {
        let kind = self.world.kinds[0];
        let name = format!(
            "{}::Action::\"{}\"",
            self.world.ns, self.world.actions[0].name
        );
        format!(
            "def cedar between(?low, ?it, ?high) {{ ?low <= ?it && ?it < ?high }};\ndef temporal seen(?w, ?s) {{ formerly within ?w (?s{{ callerPrincipal: principal }}) }};\ndef temporal strictly(?w, ?s) {{ exists ($now: Timepoint). (tp($now) && exists ($then: Timepoint). (formerly within ?w (?s && tp($then)) && $then != $now)) }};\ndef temporal often(?w, ?n) {{ (count for ($t: Timepoint). where formerly within ?w ({name}::{kind}{{}} && tp($t))) >= ?n }};\ndef temporal times(?w, ?s) {{ count for ($t: Timepoint). where formerly within ?w (?s && tp($t)) }};\ndef cedar outside(?low, ?it, ?high) {{ !(?low <= ?it && ?it < ?high) }};\n"
        )
    }

    fn rule(&mut self, macros: bool) -> String {
        let effect = if self.random.chance(60) {
            "permit"
        } else {
            "forbid"
        };
        let ns = &self.world.ns;
        let action = self.random.pick(&self.world.actions);
        self.target = None;
        let mut heads = Vec::new();
        self.clerks_only = !action.drones;
        match self.random.below(9) {
            0 => {
                heads.push(format!("principal == {ns}::Clerk::\"ann\""));
                self.clerks_only = true;
            }
            1 => {
                heads.push(format!("principal is {ns}::Clerk"));
                self.clerks_only = true;
            }
            2 => {
                heads.push(format!("principal is {ns}::Clerk in {ns}::Crew::\"c1\""));
                self.clerks_only = true;
            }
            3 => {
                heads.push(format!("principal in {ns}::Crew::\"c1\""));
                self.clerks_only = true;
            }
            4 => {
                heads.push(format!("principal in {ns}::Crew::\"c2\""));
                self.clerks_only = true;
            }
            5 => {}
            _ => heads.push("principal".to_owned()),
        }
        match self.random.weighted(&[70, 10, 10, 10, 5, 5]) {
            0 => {
                heads.push(format!("action == {ns}::Action::\"{}\"", action.name));
                self.target = Some(action);
            }
            1 => {
                heads.push(format!("action in {ns}::Action::\"Any\""));
                self.clerks_only &= self.world.actions.iter().all(|a| !a.drones);
            }
            2 => {
                heads.push(format!("action in [{ns}::Action::\"{}\"]", action.name));
                self.target = Some(action);
            }
            3 => {
                heads.push(format!("action in {ns}::Action::\"All\""));
                self.clerks_only &= self.world.actions.iter().all(|a| !a.drones);
            }
            4 => {
                let other = self.random.pick(&self.world.actions);
                heads.push(format!(
                    "action in [{ns}::Action::\"{}\", {ns}::Action::\"{}\"]",
                    action.name, other.name
                ));
                self.clerks_only &= !other.drones;
            }
            _ => self.clerks_only &= self.world.actions.iter().all(|a| !a.drones),
        }
        match self.random.below(4) {
            0 => heads.push(format!("resource == {ns}::Bay::\"b1\"")),
            1 => heads.push(format!("resource is {ns}::Bay")),
            2 => {}
            _ => heads.push("resource".to_owned()),
        }
        if self.random.chance(10) {
            heads.reverse();
        }
        let mut text = match self.random.chance(30) {
            true => format!("@id(\"r{}\")\n", self.random.below(100)),
            false => String::new(),
        };
        text += &format!("{effect} ({})", heads.join(", "));
        for _ in 0..self.random.weighted(&[20, 60, 20]) {
            let word = if self.random.chance(80) {
                "when"
            } else {
                "unless"
            };
            let body = match self.random.weighted(&[50, 35, 15]) {
                0 => format!("temporal {{ {} }}", self.leaf(macros)),
                1 => format!("{{ {} }}", self.guard(2, macros)),
                _ => {
                    let guard = self.guard(1, macros);
                    let leaf = self.leaf(macros);
                    let op = if self.random.chance(50) { "&&" } else { "||" };
                    let not = if self.random.chance(30) { "!" } else { "" };
                    format!("{{ {guard} {op} {not}temporal {{ {leaf} }} }}")
                }
            };
            text += &format!("\n{word} {body}");
        }
        text + ";\n"
    }

    pub fn comparison(&mut self) -> &'static str {
        ["<", "<=", ">", ">=", "==", "!="][self.random.below(6)]
    }

    // --------------------------------------------------------------------------------- temporal

    fn leaf(&mut self, macros: bool) -> String {
        if macros && self.random.chance(40) {
            let window = self.window();
            let event = self.predicate(None, &[], false).0;
            let (binding, ty) = self.predicate_binding("x", &[]);
            return match self.random.below(7) {
                4 => format!("times({window}, {event}) <= {}", self.random.between(0, 3)),
                5 => format!(
                    "bind(n, count_within({window}, {event}), n {} {})",
                    self.comparison(),
                    self.random.between(0, 3)
                ),
                6 if ty == Some(Ty::Long) => format!(
                    "sum_within(x, {window}, {binding}) <= {}",
                    self.random.between(0, 5)
                ),
                6 if ty == Some(Ty::Text) => format!(
                    "count_distinct_within(x, {window}, {binding}) < {}",
                    self.random.between(0, 3)
                ),
                0 => format!("seen({window}, {event})"),
                1 => format!("strictly({window}, {event})"),
                2 => format!("often({window}, {})", self.random.between(0, 3)),
                _ => format!(
                    "count_within({window}, {event}) <= {}",
                    self.random.between(0, 3)
                ),
            };
        }
        let parts = 1 + self.random.weighted(&[75, 25]);
        let parts: Vec<String> = (0..parts).map(|_| self.cond(3, &[])).collect();
        parts.join(" && ")
    }

    fn window(&mut self) -> String {
        if self.random.chance(1) {
            return (*self.random.pick(&["0s", "2d"])).to_owned();
        }
        (*self.random.pick(&["1s", "5s", "10s", "20s", "1m", "1h"])).to_owned()
    }

    /// A condition that looks at events and binds nothing outside.
    fn cond(&mut self, depth: usize, bound: &[Bound]) -> String {
        if depth == 0 {
            return self.predicate(None, bound, false).0;
        }
        match self.random.weighted(&[16, 14, 20, 8, 14, 24, 12]) {
            0 => self.predicate(None, bound, false).0,
            1 => format!("!({})", self.cond(depth - 1, bound)),
            2 => format!(
                "formerly within {} ({})",
                self.window(),
                self.cond(depth - 1, bound)
            ),
            3 => format!(
                "previous within {} ({})",
                self.window(),
                self.cond(depth - 1, bound)
            ),
            4 => {
                let left = self.cond(depth - 1, bound);
                let not = if self.random.chance(70) { "!" } else { "" };
                format!(
                    "({not}({left}) since within {} ({}))",
                    self.window(),
                    self.cond(depth - 1, bound)
                )
            }
            5 => self.exists(depth, bound),
            _ => self.counted(depth, bound),
        }
    }

    fn exists(&mut self, depth: usize, bound: &[Bound]) -> String {
        let (binder, ty) = self.binder(depth, NEW, bound);
        let fresh = self.variable(ty);
        let binder = binder.replace(NEW, &fresh);
        let mut inner: Vec<Bound> = bound.iter().filter(|b| b.name != fresh).cloned().collect();
        inner.push(Bound {
            name: fresh.clone(),
            ty,
        });
        let mut parts = vec![binder];
        for _ in 0..1 + self.random.below(2) {
            let part = match self.random.weighted(&[35, 30, 35]) {
                0 => self.compare(&inner),
                1 => self.predicate(Some(&inner), &inner, true).0,
                _ => self.cond(depth - 1, &inner),
            };
            parts.push(part);
        }
        // Out of order now and then: a filter before its binder.
        if self.random.chance(4) {
            parts.reverse();
        }
        let ty = ty.in_policy(&self.world.ns, self.random);
        format!("(exists ({fresh}: {ty}). ({}))", parts.join(" && "))
    }

    /// A name for a variable of this type. The reference mixes up two variables of one name and different
    /// types in one block, see `one_name_with_two_types`.
    fn variable(&mut self, ty: Ty) -> String {
        let letter = match ty {
            Ty::Text | Ty::Date | Ty::Span | Ty::Ip => 's',
            Ty::Long => 'n',
            Ty::Bool => 'b',
            Ty::Decimal => 'd',
            Ty::Clerk => 'c',
            Ty::Color => 'k',
            Ty::Texts | Ty::Longs | Ty::Clerks => 'l',
            Ty::Moment => 't',
        };
        format!("{letter}{}", self.random.below(3))
    }

    /// A condition that binds a variable, and its type.
    fn binder(&mut self, depth: usize, name: &str, bound: &[Bound]) -> (String, Ty) {
        match self.random.weighted(&[45, 20, 10, 10, 15]) {
            1 => {
                let window = self.window();
                let event = self.predicate(None, bound, false).0;
                (
                    format!("formerly within {window} ({event} && tp({name}))"),
                    Ty::Moment,
                )
            }
            2 => (format!("tp({name})"), Ty::Moment),
            3 if depth > 0 => (
                format!("{} == {name}", self.aggregate(depth - 1, bound)),
                Ty::Long,
            ),
            4 => {
                if let Some(action) = self.target {
                    let attr = self.random.pick(&action.inputs);
                    if !attr.ty.is_set() {
                        let path = attr.path.join(".");
                        return (format!("{name} == context.{path}"), attr.ty.bound());
                    }
                }
                (format!("tp({name})"), Ty::Moment)
            }
            _ => {
                let (event, ty) = self.predicate_binding(name, bound);
                let Some(ty) = ty else {
                    return (format!("tp({name})"), Ty::Moment);
                };
                let window = self.window();
                let text = match self.random.below(5) {
                    0 => event,
                    1 => format!("previous within {window} {event}"),
                    2 => {
                        let left = self.predicate(None, bound, false).0;
                        format!("(!{left} since within {window} {event})")
                    }
                    _ => format!("formerly within {window} {event}"),
                };
                (text, ty)
            }
        }
    }

    fn aggregate(&mut self, depth: usize, bound: &[Bound]) -> String {
        let moment = self.variable(Ty::Moment);
        let window = self.window();
        let (event, ty) = self.predicate_binding(NEW, bound);
        let name = self.variable(ty.unwrap_or(Ty::Moment));
        let event = event.replace(NEW, &name);
        let inner: Vec<Bound> = bound.iter().filter(|b| b.name != name).cloned().collect();
        let extra = match depth > 0 && self.random.chance(25) {
            true => format!(" && {}", self.cond(depth - 1, &inner)),
            false => String::new(),
        };
        let sum = ty == Some(Ty::Long) && self.random.chance(60);
        match ty {
            Some(ty) => {
                let ty = ty.in_policy(&self.world.ns, self.random);
                let (list, with) = match self.random.chance(50) {
                    true => (
                        format!(", ({moment}: Timepoint)"),
                        format!(" && tp({moment})"),
                    ),
                    false => (String::new(), String::new()),
                };
                let op = if sum {
                    format!("sum {name}")
                } else {
                    "count".to_owned()
                };
                format!(
                    "({op} for ({name}: {ty}){list}. where formerly within {window} ({event}{extra}{with}))"
                )
            }
            None => format!(
                "(count for ({moment}: Timepoint). where formerly within {window} ({event}{extra} && tp({moment})))"
            ),
        }
    }

    fn counted(&mut self, depth: usize, bound: &[Bound]) -> String {
        let aggregate = self.aggregate(depth - 1, bound);
        let op = self.comparison();
        let number = self.random.between(0, 4);
        match self.random.chance(25) {
            true => format!("{number} {op} {aggregate}"),
            false => format!("{aggregate} {op} {number}"),
        }
    }

    /// A comparison over the variables.
    fn compare(&mut self, bound: &[Bound]) -> String {
        let left = self.random.pick(bound).clone();
        let op = match left.ty == Ty::Long {
            true => self.comparison(),
            false => ["==", "!="][self.random.below(2)],
        };
        let same: Vec<&Bound> = bound.iter().filter(|b| b.ty == left.ty).collect();
        if left.ty == Ty::Moment || self.random.chance(25) {
            let right = self.random.pick(&same).name.clone();
            return format!("{} {op} {right}", left.name);
        }
        let right = self.term(left.ty, &[]);
        format!("{} {op} {right}", left.name)
    }

    /// A predicate; with `some` it may name variables.
    fn predicate(&mut self, some: Option<&[Bound]>, bound: &[Bound], sure: bool) -> (String, ()) {
        let bound = some.unwrap_or(bound);
        let action = self.random.pick(&self.world.actions);
        let mut fields = Vec::new();
        let wanted = if sure { 2 } else { 1 };
        for attr in &action.inputs {
            if fields.len() < wanted && self.random.chance(45) {
                fields.push(self.field(attr, bound));
            }
        }
        self.injected(&mut fields, bound);
        (self.event(action, &fields, None), ())
    }

    fn injected(&mut self, fields: &mut Vec<String>, bound: &[Bound]) {
        match self.random.below(14) {
            0 => fields.push("callerPrincipal: principal".to_owned()),
            1 => fields.push("callerResource: resource".to_owned()),
            2 => fields.push("sessionId: \"s1\"".to_owned()),
            3 => fields.push("callerPrincipal: *".to_owned()),
            4 => {
                if let Some(clerk) = bound.iter().find(|b| b.ty == Ty::Clerk) {
                    fields.push(format!("callerPrincipal: {}", clerk.name));
                }
            }
            _ => {}
        }
    }

    fn field(&mut self, attr: &Attr, bound: &[Bound]) -> String {
        // There are no literal sets.
        let term = match attr.ty {
            ty if ty.is_set() => self.set_term(ty),
            ty => self.term(ty, bound),
        };
        // Wrong now and then.
        let path = match self.random.chance(1) {
            true => "input.nothing".to_owned(),
            false => attr.path.join("."),
        };
        format!("{path}: {term}")
    }

    fn set_term(&mut self, ty: Ty) -> String {
        let sets = |action: &Action| -> Vec<String> {
            let sets = action.inputs.iter().filter(|attr| attr.ty == ty);
            sets.map(|attr| attr.path.join(".")).collect()
        };
        match self.target.map(sets) {
            Some(sets) if !sets.is_empty() => format!("context.{}", self.random.pick(&sets)),
            _ => "*".to_owned(),
        }
    }

    fn predicate_binding(&mut self, name: &str, bound: &[Bound]) -> (String, Option<Ty>) {
        let action = self.random.pick(&self.world.actions);
        let bindable: Vec<&Attr> = action
            .inputs
            .iter()
            .filter(|attr| !attr.ty.is_set())
            .collect();
        if bindable.is_empty() {
            return (self.event(action, &[], None), None);
        }
        let attr = *self.random.pick(&bindable);
        let mut fields = vec![format!("{}: {name}", attr.path.join("."))];
        let other = *self.random.pick(&bindable);
        if self.random.chance(30) && !std::ptr::eq(other, attr) {
            fields.push(self.field(other, bound));
        }
        if self.random.chance(20) {
            fields.reverse();
        }
        (self.event(action, &fields, None), Some(attr.ty.bound()))
    }

    fn event(&mut self, action: &Action, fields: &[String], kind: Option<&str>) -> String {
        let kind = kind.unwrap_or_else(|| match self.random.weighted(&[65, 25, 10]) {
            at if at < self.world.kinds.len() => self.world.kinds[at],
            _ => self.world.kinds[0],
        });
        let kind = if self.random.chance(1) {
            "unknown"
        } else {
            kind
        };
        let mut fields = fields.to_vec();
        if kind == self.world.kinds[1] && self.random.chance(25) {
            fields.push("output.ok: true".to_owned());
        }
        format!(
            "{}::Action::\"{}\"::{kind}{{ {} }}",
            self.world.ns,
            action.name,
            fields.join(", ")
        )
    }

    fn term(&mut self, ty: Ty, bound: &[Bound]) -> String {
        // Of another type now and then.
        let ty = match self.random.chance(2) {
            true => *self.random.pick(&[Ty::Text, Ty::Long, Ty::Bool]),
            false => ty,
        };
        let same: Vec<&Bound> = bound.iter().filter(|b| b.ty == ty.bound()).collect();
        if !same.is_empty() && self.random.chance(60) {
            return self.random.pick(&same).name.clone();
        }
        if self.random.chance(12) && !bound.is_empty() {
            return (*self.random.pick(&["*", "_"])).to_owned();
        }
        if let Some(action) = self.target
            && self.random.chance(40)
        {
            let same: Vec<&Attr> = action.inputs.iter().filter(|attr| attr.ty == ty).collect();
            if !same.is_empty() {
                return format!("context.{}", self.random.pick(&same).path.join("."));
            }
        }
        let ns = &self.world.ns;
        match ty {
            Ty::Long if self.random.chance(20) => "principal.rank".to_owned(),
            Ty::Long if self.random.chance(10) => "resource.size".to_owned(),
            Ty::Text if self.random.chance(15) => "principal.id".to_owned(),
            Ty::Text if self.random.chance(10) && self.clerks_only => "principal.nick".to_owned(),
            Ty::Clerk if self.random.chance(40) && self.clerks_only => "principal".to_owned(),
            Ty::Decimal => format!(
                "decimal(\"{}\")",
                self.random.pick(&["1.5", "1.50", "2.25"])
            ),
            Ty::Text => format!("{:?}", self.random.pick(&["a", "b", "c"])),
            Ty::Long | Ty::Moment => self.random.between(-1, 4).to_string(),
            Ty::Bool => self.random.chance(50).to_string(),
            Ty::Clerk => format!("{ns}::Clerk::\"{}\"", self.random.pick(&["ann", "bob"])),
            Ty::Color => format!("{ns}::Color::\"{}\"", self.random.pick(&["red", "green"])),
            Ty::Date | Ty::Span | Ty::Ip => self.world.value(ty, self.random),
            Ty::Texts | Ty::Longs | Ty::Clerks => "[\"a\"]".to_owned(),
        }
    }
}
