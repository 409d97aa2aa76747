//! Random conditions of plain Cedar, among them calls of information providers.

use crate::policy::Writer;
use crate::providers;
use crate::random::Random;
use crate::world::{Action, Attr, Ty};

impl Writer<'_> {
    pub fn guard(&mut self, depth: usize, macros: bool) -> String {
        if depth > 0 && self.random.chance(50) {
            let left = self.guard(depth - 1, macros);
            let right = self.guard(depth - 1, macros);
            return match self.random.below(4) {
                0 => format!("({left}) || ({right})"),
                1 => format!("!({left})"),
                2 => format!("if {left} then {right} else {}", self.random.chance(50)),
                _ => format!("({left}) && ({right})"),
            };
        }
        let ns = self.world.ns.clone();
        if let Some(action) = self.target
            && self.random.chance(50)
        {
            let attr = self.random.pick(&action.inputs);
            let path = format!("context.{}", attr.path.join("."));
            let test = self.test(attr.ty, &path, macros);
            return self.guarded(action, attr, &test);
        }
        if self.world.providers.is_some() && self.random.chance(50) {
            return self.provided();
        }
        if self.random.chance(30) {
            return self.literal();
        }
        match self.random.below(15) {
            0 => format!(
                "principal.rank {} {}",
                self.comparison(),
                self.random.between(0, 3)
            ),
            1 if self.clerks_only => "principal has nick && principal.nick like \"a*\"".to_owned(),
            2 if self.clerks_only => format!("principal in {ns}::Crew::\"c1\""),
            3 if self.clerks_only => "principal.home == resource".to_owned(),
            4 => format!("resource == {ns}::Bay::\"b1\""),
            5 => "resource has size && resource.size + 1 > 1".to_owned(),
            6 => format!("principal is {ns}::Clerk && principal.rank - 2 < 1"),
            7 => "resource has dims.h && resource.dims.h > 1".to_owned(),
            8 if self.clerks_only => {
                "principal has level && principal.level.lessThan(decimal(\"1.5\"))".to_owned()
            }
            9 | 14 if self.clerks_only => self.tagged(),
            10 => format!("principal is {ns}::Clerk in {ns}::Crew::\"c2\""),
            11 if self.clerks_only => {
                format!("principal in [{ns}::Crew::\"c2\", {ns}::Crew::\"c3\"]")
            }
            12 if self.clerks_only => {
                "{who: principal.home, n: principal.rank} == {n: 2, who: resource}".to_owned()
            }
            13 => "1 + principal.rank < 3 == true".to_owned(),
            _ => "context has input".to_owned(),
        }
    }

    /// A test of an attribute behind what makes sure that it is there; forgotten now and then.
    fn guarded(&mut self, action: &Action, attr: &Attr, test: &str) -> String {
        let (first, below) = attr.path.split_first().expect("a path");
        if !action.asked_for(attr) || self.random.chance(4) {
            return test.to_owned();
        }
        if self.random.chance(50) {
            return format!("context.{first} has {} && {test}", below.join("."));
        }
        let mut above = format!("context.{first}");
        let mut parts = Vec::new();
        for name in below {
            parts.push(format!("{above} has {name}"));
            above = format!("{above}.{name}");
        }
        format!("{} && {test}", parts.join(" && "))
    }

    /// A test of a tag, also where there are none.
    fn tagged(&mut self) -> String {
        let tag = *self.random.pick(&["team", "shift"]);
        let asked = match self.random.chance(90) {
            true => tag,
            false => "other",
        };
        match self.random.below(3) {
            0 => format!("principal.hasTag(\"{tag}\")"),
            1 => format!("!principal.hasTag(\"{tag}\")"),
            _ => format!("principal.hasTag(\"{asked}\") && principal.getTag(\"{tag}\") == \"a\""),
        }
    }

    /// A test of literals: everything the extension types can do.
    fn literal(&mut self) -> String {
        let op = self.comparison();
        let random = &mut *self.random;
        let date = |text: &str| format!("datetime(\"{text}\")");
        let span = |text: &str| format!("duration(\"{text}\")");
        let ip = |text: &str| format!("ip(\"{text}\")");
        let dates = [
            "2024-10-15",
            "2024-10-15T11:35:00Z",
            "2024-10-15T11:35:00.123Z",
            "2024-10-15T11:35:00+0130",
            "2024-10-15T11:35:00.500-0800",
            "1969-12-31",
            "0001-01-01",
            "2024-02-29",
        ];
        let spans = ["1h", "-3d2h", "1ms", "90s", "1d2h3m4s5ms", "0s", "-1ms"];
        let ips = [
            "10.0.0.1",
            "10.0.0.0/8",
            "127.0.0.1",
            "224.0.0.1",
            "::1",
            "ff02::1",
            "2001:db8::/32",
            "192.168.1.7/24",
        ];
        let wrong = [
            "datetime(\"2024-13-01\") == datetime(\"2024-10-15\")",
            "datetime(\"2024-2-1\") == datetime(\"2024-10-15\")",
            "datetime(\"2023-02-29\") == datetime(\"2024-10-15\")",
            "datetime(\"2024-10-15T24:00:00Z\") == datetime(\"2024-10-15\")",
            "ip(\"300.1.1.1\").isIpv4()",
            "ip(\"10.0.0.1/33\").isIpv4()",
            "ip(\"010.0.0.1\").isIpv4()",
            "duration(\"1s1h\") == duration(\"1h\")",
            "duration(\"\") == duration(\"1h\")",
            "duration(\"1.5h\") == duration(\"1h\")",
            "decimal(\"1\").lessThan(decimal(\"2.0\"))",
            "decimal(\"1.23456\").lessThan(decimal(\"2.0\"))",
            "datetime(\"2024-10-15\") < duration(\"1h\")",
            "ip(\"::1\") < ip(\"::2\")",
        ];
        match random.below(16) {
            0 => format!(
                "{} {op} {}",
                date(pick(random, &dates)),
                date(pick(random, &dates))
            ),
            1 => format!(
                "{}.offset({}) {op} {}",
                date(pick(random, &dates)),
                span(pick(random, &spans)),
                date(pick(random, &dates))
            ),
            2 => format!(
                "{}.durationSince({}) {op} {}",
                date(pick(random, &dates)),
                date(pick(random, &dates)),
                span(pick(random, &spans))
            ),
            3 => format!(
                "{}.toDate() {op} {}",
                date(pick(random, &dates)),
                date(pick(random, &dates))
            ),
            4 => format!(
                "{}.toTime() {op} {}",
                date(pick(random, &dates)),
                span(pick(random, &spans))
            ),
            5 => format!(
                "{} {op} {}",
                span(pick(random, &spans)),
                span(pick(random, &spans))
            ),
            6 | 7 => {
                let units = [
                    "toMilliseconds",
                    "toSeconds",
                    "toMinutes",
                    "toHours",
                    "toDays",
                ];
                let unit = pick(random, &units);
                format!(
                    "{}.{unit}() {op} {}",
                    span(pick(random, &spans)),
                    random.between(-3, 30)
                )
            }
            8 | 9 => {
                let test = pick(random, &["isIpv4", "isIpv6", "isLoopback", "isMulticast"]);
                format!("{}.{test}()", ip(pick(random, &ips)))
            }
            10 => format!(
                "{}.isInRange({})",
                ip(pick(random, &ips)),
                ip(pick(random, &ips))
            ),
            11 => {
                let test = pick(
                    random,
                    &[
                        "lessThan",
                        "lessThanOrEqual",
                        "greaterThan",
                        "greaterThanOrEqual",
                    ],
                );
                let some = ["1.5", "1.50", "-0.0001", "2.25"];
                format!(
                    "decimal(\"{}\").{test}(decimal(\"{}\"))",
                    pick(random, &some),
                    pick(random, &some)
                )
            }
            12 => format!("[1, 2, {}].containsAll([2, 1])", random.between(1, 3)),
            13 => format!(
                "{{a: {{b: [\"x\"]}}, \"c d\": {}}}[\"c d\"] {op} 1",
                random.between(0, 2)
            ),
            14 => format!(
                "{{a: 1}} has a && {{a: {{b: 1}}}} has a.b && !({{a: 1}} has z) == {}",
                random.chance(50)
            ),
            _ => match random.chance(20) {
                true => (*random.pick(&wrong)).to_owned(),
                false => format!("{} == {}", ip(pick(random, &ips)), ip(pick(random, &ips))),
            },
        }
    }

    // -------------------------------------------------------------------------------- providers

    /// A test of what a provider says.
    fn provided(&mut self) -> String {
        let provider = self.random.pick(&providers::ALL);
        let mut args: Vec<String> = provider.takes.iter().map(|ty| self.argument(*ty)).collect();
        if self.random.chance(2) {
            args.pop();
        }
        let name = if self.random.chance(2) {
            "Risk::Unknown"
        } else {
            provider.name
        };
        let call = format!("{name}({})", args.join(", "));
        // The last one of some is wrong.
        let test = *self.random.pick(provider.tests);
        test.replace("{}", &call)
    }

    fn argument(&mut self, ty: Ty) -> String {
        if let Some(action) = self.target
            && self.random.chance(60)
        {
            let same: Vec<&Attr> = action.inputs.iter().filter(|attr| attr.ty == ty).collect();
            if !same.is_empty() {
                return format!("context.{}", self.random.pick(&same).path.join("."));
            }
        }
        match ty {
            Ty::Long if self.random.chance(20) => "principal.rank".to_owned(),
            Ty::Text if self.clerks_only && self.random.chance(20) => "principal.nick".to_owned(),
            Ty::Long => self.random.between(-1, 4).to_string(),
            Ty::Bool => self.random.chance(50).to_string(),
            Ty::Decimal => "decimal(\"1.5\")".to_owned(),
            Ty::Texts => "[\"a\", \"b\"]".to_owned(),
            Ty::Longs => "[1, 3]".to_owned(),
            _ => format!("{:?}", self.random.pick(&["a", "cc", "q"])),
        }
    }

    fn test(&mut self, ty: Ty, path: &str, macros: bool) -> String {
        let ns = self.world.ns.clone();
        match ty {
            Ty::Text => match self.random.below(4) {
                0 => format!("{path} like \"*{}\"", self.random.pick(&["a", "b", ""])),
                1 => format!("[\"a\", \"b\"].contains({path})"),
                2 => format!("{path} != \"a\""),
                _ => format!("{path} == \"a\""),
            },
            Ty::Long | Ty::Moment if macros && self.random.chance(60) => {
                let test = *self.random.pick(&["between", "outside"]);
                format!("{test}(0, {path}, {})", self.random.between(1, 4))
            }
            Ty::Long | Ty::Moment => match self.random.below(3) {
                0 => format!("{path} * 2 - 1 >= {}", self.random.between(-2, 4)),
                1 => format!("-{path} < 0"),
                _ => format!(
                    "{path} {} {}",
                    self.comparison(),
                    self.random.between(-1, 4)
                ),
            },
            Ty::Bool => path.to_owned(),
            Ty::Decimal => format!(
                "{path}.{}(decimal(\"1.5\"))",
                self.random.pick(&["lessThan", "greaterThanOrEqual"])
            ),
            Ty::Clerk => match self.random.below(3) {
                0 => format!("{path} == principal"),
                1 => format!("{path} in {ns}::Crew::\"c1\""),
                _ => format!("{path}.rank > 1"),
            },
            Ty::Color => format!("{path} == {ns}::Color::\"red\""),
            Ty::Date => {
                let op = self.comparison();
                let test = *self.random.pick(&[
                    " {op} datetime(\"2024-10-15\")",
                    ".offset(duration(\"1h\")) {op} datetime(\"2024-10-15T01:00:00Z\")",
                    ".toDate() {op} datetime(\"2024-10-15\")",
                    ".toTime() {op} duration(\"0s\")",
                    ".durationSince(datetime(\"2024-01-01\")).toDays() {op} 3",
                ]);
                format!("{path}{}", test.replace("{op}", op))
            }
            Ty::Span => {
                let op = self.comparison();
                let test = *self
                    .random
                    .pick(&[" {op} duration(\"1h\")", ".toMinutes() {op} 60"]);
                format!("{path}{}", test.replace("{op}", op))
            }
            Ty::Ip => {
                let test = *self.random.pick(&[
                    ".isInRange(ip(\"10.0.0.0/8\"))",
                    ".isIpv6()",
                    ".isLoopback()",
                    " == ip(\"10.0.0.1\")",
                ]);
                format!("{path}{test}")
            }
            Ty::Longs => match self.random.below(3) {
                0 => format!("{path}.contains({})", self.random.between(0, 3)),
                1 => format!("{path} == [1]"),
                _ => format!("[1, 2, 3].containsAll({path})"),
            },
            Ty::Clerks => match self.random.below(3) {
                0 => format!("{path}.contains({ns}::Clerk::\"ann\")"),
                1 => format!("principal in {path}"),
                _ => format!("{path}.isEmpty()"),
            },
            Ty::Texts => match self.random.below(3) {
                0 => format!("{path}.contains(\"a\")"),
                1 => format!("{path}.isEmpty()"),
                _ => format!("{path}.containsAny([\"b\", \"c\"])"),
            },
        }
    }
}

fn pick(random: &mut Random, all: &[&'static str]) -> &'static str {
    let picked: &&str = random.pick(all);
    picked
}
