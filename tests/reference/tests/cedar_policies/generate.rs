//! Random rules of a small library: every operator, guards that fit and guards that do not, a few
//! expressions of the wrong type.

pub const LIBRARY: &str = r#"
namespace Library {
  entity Group;
  entity Role enum ["reader", "writer"];
  entity User in [Group] = {
    name: String, age?: Long, role: Role, home: { city: String, zip?: String }, friends: Set<User>, ok?: Bool
  } tags String;
  entity Robot = { name: String, serial: Long };
  entity Shelf;
  entity Book in [Shelf] = { title: String, price: decimal, due?: datetime, owner: User };
  action Reading;
  action read, browse in [Reading] appliesTo {
    principal: [User, Robot], resource: [Book], context: { from?: ipaddr, at: datetime, count: Long }
  };
  action lend appliesTo { principal: [User], resource: [Book, Shelf], context: { span: duration, note?: { text?: String } } };
}
"#;

/// A sequence of numbers that looks random and is the same for the same seed.
pub struct Random(u64);

impl From<u64> for Random {
    /// Zero would stay zero.
    fn from(seed: u64) -> Random {
        Random(seed.max(1))
    }
}

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    pub fn below(&mut self, limit: usize) -> usize {
        (self.next() % limit as u64) as usize
    }

    pub fn pick<'a>(&mut self, all: &[&'a str]) -> &'a str {
        all[self.below(all.len())]
    }
}

/// The type a random expression shall have; a few have another.
#[derive(Clone, Copy, PartialEq)]
enum T {
    B,
    L,
    S,
    U,
    E,
    Role,
    Dec,
    Dt,
    Dur,
    Ip,
    SetU,
    SetL,
    Rec,
}
const ALL: [T; 13] = [
    T::B,
    T::L,
    T::S,
    T::U,
    T::E,
    T::Role,
    T::Dec,
    T::Dt,
    T::Dur,
    T::Ip,
    T::SetU,
    T::SetL,
    T::Rec,
];

/// A test that guards optional attributes and tags.
fn has(r: &mut Random) -> String {
    r.pick(&[
        "principal has age",
        "principal has ok",
        "resource has due",
        "context has from",
        "context has note",
        "context has note.text",
        "principal.home has zip",
        "principal has home.zip",
        "principal has name",
        "context has count",
        "resource.owner has age",
        "principal has nothing",
        "principal has serial",
        "principal.hasTag(\"a\")",
        "resource.hasTag(\"a\")",
        "principal.hasTag(principal.name)",
        "principal is Library::User",
        "principal is Library::Robot",
        "resource is Library::Book",
        "action == Library::Action::\"read\"",
        "action in Library::Action::\"Reading\"",
        "action in [Library::Action::\"lend\"]",
        "principal has home",
        "{a: 1} has a",
        "true",
        "false",
    ])
    .to_owned()
}

/// An expression, at most `d` operators deep.
fn g(r: &mut Random, t: T, d: usize) -> String {
    let t = if r.below(60) == 0 {
        ALL[r.below(ALL.len())]
    } else {
        t
    };
    if d > 0 && r.below(8) == 0 && t != T::B {
        return format!(
            "(if {} then {} else {})",
            g(r, T::B, d - 1),
            g(r, t, d - 1),
            g(r, t, d - 1)
        );
    }
    let d1 = d.saturating_sub(1);
    match t {
        T::B => {
            if d == 0 {
                return has(r);
            }
            match r.below(22) {
                0 | 1 => format!("({} && {})", g(r, T::B, d1), g(r, T::B, d1)),
                2 => format!("({} || {})", g(r, T::B, d1), g(r, T::B, d1)),
                3 => format!("!({})", g(r, T::B, d1)),
                4 => format!(
                    "(if {} then {} else {})",
                    g(r, T::B, d1),
                    g(r, T::B, d1),
                    g(r, T::B, d1)
                ),
                5 | 6 => {
                    let t = ALL[r.below(ALL.len())];
                    let op = r.pick(&["==", "!="]);
                    format!("{} {op} {}", g(r, t, d1), g(r, t, d1))
                }
                7 => {
                    let op = r.pick(&["<", "<=", ">", ">="]);
                    format!("{} {op} {}", g(r, T::L, d1), g(r, T::L, d1))
                }
                8 => {
                    let t = [T::Dt, T::Dur][r.below(2)];
                    format!("{} < {}", g(r, t, d1), g(r, t, d1))
                }
                9 => format!("({}) like \"a*\"", g(r, T::S, d1)),
                10 => format!("{}.contains({})", g(r, T::SetL, d1), g(r, T::L, d1)),
                11 => format!("{}.contains({})", g(r, T::SetU, d1), g(r, T::U, d1)),
                12 => {
                    let m = r.pick(&["containsAll", "containsAny"]);
                    let t = [T::SetL, T::SetU][r.below(2)];
                    format!("{}.{m}({})", g(r, t, d1), g(r, t, d1))
                }
                13 => format!(
                    "{} in {}",
                    g(r, T::E, d1),
                    r.pick(&[
                        "Library::Group::\"g\"",
                        "Library::Shelf::\"s\"",
                        "[Library::Group::\"g\", Library::Group::\"h\"]",
                        "[Library::Group::\"g\", Library::Shelf::\"h\"]",
                        "principal",
                        "resource",
                        "Library::Action::\"Reading\""
                    ])
                ),
                14 => format!("{}.lessThan({})", g(r, T::Dec, d1), g(r, T::Dec, d1)),
                15 => format!("{}.isLoopback()", g(r, T::Ip, d1)),
                16 => {
                    let t = [T::SetL, T::SetU][r.below(2)];
                    format!("{}.isEmpty()", g(r, t, d1))
                }
                17 => format!(
                    "{} is {}",
                    g(r, T::E, d1),
                    r.pick(&[
                        "Library::User",
                        "Library::Robot",
                        "Library::Book",
                        "Library::Group in Library::Group::\"x\"",
                        "Library::User in Library::Group::\"x\""
                    ])
                ),
                18 => r.pick(&["principal.ok", "resource.owner.ok"]).to_owned(),
                _ => format!("({} && {})", has(r), g(r, T::B, d1)),
            }
        }
        T::L => match r.below(9) {
            0 => "1".into(),
            1 => "principal.age".into(),
            2 => "context.count".into(),
            3 => "principal.serial".into(),
            4 if d > 0 => format!("({} + {})", g(r, T::L, d1), g(r, T::L, d1)),
            5 if d > 0 => format!("({} * {})", g(r, T::L, d1), g(r, T::L, d1)),
            6 if d > 0 => format!("{}.toHours()", g(r, T::Dur, d1)),
            7 => "resource.owner.age".into(),
            _ => "{a: 1, b: \"x\"}.a".into(),
        },
        T::S => r
            .pick(&[
                "\"a\"",
                "principal.name",
                "principal.home.city",
                "principal.home.zip",
                "resource.title",
                "principal.getTag(\"a\")",
                "principal.getTag(principal.name)",
                "context.note.text",
                "resource.owner.name",
                "resource.owner.getTag(\"a\")",
            ])
            .into(),
        T::U => r
            .pick(&["principal", "Library::User::\"u\"", "resource.owner"])
            .into(),
        T::E => r
            .pick(&[
                "principal",
                "resource",
                "Library::User::\"u\"",
                "Library::Robot::\"u\"",
                "Library::Group::\"g\"",
                "Library::Nope::\"g\"",
                "action",
                "Library::Action::\"read\"",
                "resource.owner",
                "Library::Role::\"reader\"",
            ])
            .into(),
        T::Role => r
            .pick(&[
                "principal.role",
                "Library::Role::\"reader\"",
                "Library::Role::\"raeder\"",
                "resource.owner.role",
                "Library::Role::\"writer\"",
            ])
            .into(),
        T::Dec => r
            .pick(&[
                "decimal(\"1.5\")",
                "resource.price",
                "decimal(\"1\")",
                "decimal(\"0.0001\")",
            ])
            .into(),
        T::Dt => match r.below(6) {
            0 => "context.at".into(),
            1 => "resource.due".into(),
            2 if d > 0 => format!("{}.offset({})", g(r, T::Dt, d1), g(r, T::Dur, d1)),
            3 => "datetime(\"2024-02-30\")".into(),
            _ => "datetime(\"2024-01-01T00:00:00Z\")".into(),
        },
        T::Dur => match r.below(5) {
            0 => "context.span".into(),
            1 if d > 0 => format!("{}.durationSince({})", g(r, T::Dt, d1), g(r, T::Dt, d1)),
            2 => "duration(\"1h\")".into(),
            3 => "duration(\"1d1h1ms\")".into(),
            _ => "duration(\"2s\")".into(),
        },
        T::Ip => r
            .pick(&["context.from", "ip(\"10.0.0.0/8\")", "ip(\"::1\")"])
            .into(),
        T::SetU => match r.below(4) {
            0 => "principal.friends".into(),
            1 => "resource.owner.friends".into(),
            2 => "[Library::User::\"a\", principal]".into(),
            _ => "[principal, resource.owner]".into(),
        },
        T::SetL => match r.below(4) {
            0 => "[1, 2]".into(),
            1 if d > 0 => format!("[{}, {}]", g(r, T::L, d1), g(r, T::L, d1)),
            2 => "[]".into(),
            _ => "[context.count]".into(),
        },
        T::Rec => r
            .pick(&[
                "{a: 1}",
                "{a: context.count}",
                "principal.home",
                "resource.owner.home",
                "{a: true}",
                "{a: false}",
                "context",
            ])
            .into(),
    }
}

const HEADS: [&str; 11] = [
    "principal, action, resource",
    "principal is Library::User, action, resource",
    "principal, action == Library::Action::\"lend\", resource",
    "principal, action in Library::Action::\"Reading\", resource",
    "principal is Library::Robot, action == Library::Action::\"lend\", resource",
    "principal in Library::Group::\"g\", action, resource is Library::Book",
    "principal == Library::User::\"u\", action in [Library::Action::\"read\", Library::Action::\"lend\"], resource in Library::Shelf::\"s\"",
    "principal, action == Library::Action::\"Reading\", resource",
    "principal is Library::User in Library::Group::\"g\", action, resource",
    "principal, action == Library::Action::\"nope\", resource",
    "principal == Library::Book::\"b\", action, resource",
];

/// A rule with one or two clauses.
pub fn rule(r: &mut Random) -> String {
    let head = match r.below(4) {
        0 => HEADS[r.below(HEADS.len())],
        _ => HEADS[[0, 1, 2, 3, 5][r.below(5)]],
    };
    let effect = r.pick(&["permit", "permit", "forbid"]);
    let mut text = format!("{effect} ({head})");
    for _ in 0..1 + r.below(2) {
        let depth = 1 + r.below(3);
        let word = r.pick(&["when", "when", "unless"]);
        text.push_str(&format!(" {word} {{ {} }}", g(r, T::B, depth)));
    }
    text.push(';');
    text
}
