//! Typing of functions and methods.

use super::attributes::key;
use super::ty::Ty;
use super::{Capabilities, Guard, Place, Typed};
use crate::automaton::parse_decimal;
use crate::check::problem::Problem;
use crate::eval::extension::{IpNet, parse_datetime, parse_duration};
use crate::nearest::nearest;
use crate::schema::Extension;
use dogwood_grammar::Span;
use dogwood_grammar::ast::{Expr, ExprKind, Ident, Name};
use smol_str::{SmolStr, format_smolstr};

const METHODS: [&str; 25] = [
    "contains",
    "containsAll",
    "containsAny",
    "isEmpty",
    "hasTag",
    "getTag",
    "isIpv4",
    "isIpv6",
    "isLoopback",
    "isMulticast",
    "isInRange",
    "lessThan",
    "lessThanOrEqual",
    "greaterThan",
    "greaterThanOrEqual",
    "offset",
    "durationSince",
    "toDate",
    "toTime",
    "toMilliseconds",
    "toSeconds",
    "toMinutes",
    "toHours",
    "toDays",
    "in",
];

/// Whether the language has a method of that name.
pub(crate) fn is_method(name: &str) -> bool {
    METHODS.contains(&name)
}

impl<'s> Guard<'_, 's> {
    /// `decimal("1.5")` and its like.
    pub(super) fn call(
        &mut self,
        name: &Name,
        args: &[Expr],
        caps: &Capabilities,
        place: Place<'_, 's>,
    ) -> Ty<'s> {
        let text = name.text();
        let (ty, parse): (Extension, fn(&str) -> bool) = match text.as_str() {
            "decimal" => (Extension::Decimal, |text| parse_decimal(text).is_some()),
            "ip" => (Extension::IpAddr, |text| IpNet::parse(text).is_some()),
            "datetime" => (Extension::Datetime, |text| parse_datetime(text).is_some()),
            "duration" => (Extension::Duration, |text| parse_duration(text).is_some()),
            // Said when macros were written out.
            _ => return Ty::Unknown,
        };
        let function: &'static str = match ty {
            Extension::Decimal => "decimal",
            Extension::IpAddr => "ip",
            Extension::Datetime => "datetime",
            Extension::Duration => "duration",
        };
        for arg in args {
            match &arg.kind {
                ExprKind::Str(text) if !parse(text) => {
                    let problem = Problem::BadLiteral {
                        function,
                        text: text.clone(),
                    };
                    self.report.add(arg.span, problem);
                }
                ExprKind::Str(_) | ExprKind::Error => {}
                _ => match self.expr(arg, caps, place).0 {
                    Ty::Str | Ty::Unknown => {
                        self.report.add(arg.span, Problem::NotLiteral { function });
                    }
                    other => self.expected("a String", &other, arg.span),
                },
            }
        }
        Ty::Ext(ty)
    }

    pub(super) fn method(
        &mut self,
        span: Span,
        target: &Expr,
        name: &Ident,
        args: &[Expr],
        caps: &Capabilities,
        place: Place<'_, 's>,
    ) -> Typed<'s> {
        let (of, _) = self.expr(target, caps, place);
        let mut typed = Vec::new();
        for arg in args {
            typed.push((self.expr(arg, caps, place).0, arg.span));
        }
        let arg = typed.first().cloned().unwrap_or((Ty::Unknown, span));
        let none = Capabilities::new;
        use Extension::{Datetime, Decimal, Duration, IpAddr};
        let ty = match name.text.as_str() {
            "contains" => {
                self.contains(&of, target.span, &arg);
                Ty::Bool(None)
            }
            "containsAll" | "containsAny" => {
                self.sets(span, &of, target.span, &arg);
                Ty::Bool(None)
            }
            "isEmpty" => {
                if !matches!(of, Ty::Set(_) | Ty::Unknown) {
                    self.expected("a set", &of, target.span);
                }
                Ty::Bool(None)
            }
            "hasTag" => return self.has_tag(span, target, &of, args, &arg, caps),
            "getTag" => {
                (
                    self.get_tag(name, target, &of, args, &arg, caps, place),
                    none(),
                )
                    .0
            }
            "isIpv4" | "isIpv6" | "isLoopback" | "isMulticast" => {
                self.want(&of, Ty::Ext(IpAddr), "an ipaddr", target.span);
                Ty::Bool(None)
            }
            "isInRange" => {
                self.want(&of, Ty::Ext(IpAddr), "an ipaddr", target.span);
                self.want(&arg.0, Ty::Ext(IpAddr), "an ipaddr", arg.1);
                Ty::Bool(None)
            }
            "lessThan" | "lessThanOrEqual" | "greaterThan" | "greaterThanOrEqual" => {
                self.want(&of, Ty::Ext(Decimal), "a decimal", target.span);
                self.want(&arg.0, Ty::Ext(Decimal), "a decimal", arg.1);
                Ty::Bool(None)
            }
            "offset" => {
                self.want(&of, Ty::Ext(Datetime), "a datetime", target.span);
                self.want(&arg.0, Ty::Ext(Duration), "a duration", arg.1);
                Ty::Ext(Datetime)
            }
            "durationSince" => {
                self.want(&of, Ty::Ext(Datetime), "a datetime", target.span);
                self.want(&arg.0, Ty::Ext(Datetime), "a datetime", arg.1);
                Ty::Ext(Duration)
            }
            "toDate" => {
                self.want(&of, Ty::Ext(Datetime), "a datetime", target.span);
                Ty::Ext(Datetime)
            }
            "toTime" => {
                self.want(&of, Ty::Ext(Datetime), "a datetime", target.span);
                Ty::Ext(Duration)
            }
            "toMilliseconds" | "toSeconds" | "toMinutes" | "toHours" | "toDays" => {
                self.want(&of, Ty::Ext(Duration), "a duration", target.span);
                Ty::Long
            }
            other => {
                // Methods of an unknown provider are its own affair.
                if of != Ty::Unknown {
                    let known: Vec<SmolStr> = METHODS.iter().map(SmolStr::new).collect();
                    let nearest = nearest(other, &known);
                    self.report.add(
                        name.span,
                        Problem::UnknownMethod {
                            name: name.text.clone(),
                            nearest,
                        },
                    );
                }
                Ty::Unknown
            }
        };
        (ty, none())
    }

    fn want(&mut self, found: &Ty<'s>, wanted: Ty<'s>, name: &'static str, span: Span) {
        if *found != wanted && *found != Ty::Unknown {
            self.expected(name, found, span);
        }
    }

    fn contains(&mut self, of: &Ty<'s>, span: Span, arg: &(Ty<'s>, Span)) {
        match of {
            Ty::Unknown => {}
            Ty::Set(element) => {
                if element.join(&arg.0).is_none() {
                    let (left, right) = (element.name(), arg.0.name());
                    let what = "the elements and what is looked for";
                    self.report
                        .add(arg.1, Problem::Incompatible { what, left, right });
                }
            }
            other => self.expected("a set", other, span),
        }
    }

    fn sets(&mut self, whole: Span, of: &Ty<'s>, span: Span, arg: &(Ty<'s>, Span)) {
        let is_set = |ty: &Ty| matches!(ty, Ty::Set(_) | Ty::Unknown);
        if !is_set(of) {
            self.expected("a set", of, span);
        } else if !is_set(&arg.0) {
            self.expected("a set", &arg.0, arg.1);
        } else if of.join(&arg.0).is_none() {
            let (left, right) = (of.name(), arg.0.name());
            self.report.add(
                whole,
                Problem::Incompatible {
                    what: "the two sets",
                    left,
                    right,
                },
            );
        }
    }

    fn tags(&mut self, of: &Ty<'s>, span: Span, arg: &(Ty<'s>, Span)) -> Option<Option<Ty<'s>>> {
        self.want(&arg.0, Ty::Str, "a String", arg.1);
        match of {
            Ty::Unknown => None,
            Ty::Entity(name) => {
                let entity = self.schema.entity_types.get(name);
                Some(entity.and_then(|entity| entity.tags.as_ref()).map(Ty::of))
            }
            other => {
                self.expected("an entity", other, span);
                None
            }
        }
    }

    fn has_tag(
        &mut self,
        span: Span,
        target: &Expr,
        of: &Ty<'s>,
        args: &[Expr],
        arg: &(Ty<'s>, Span),
        caps: &Capabilities,
    ) -> Typed<'s> {
        match self.tags(of, target.span, arg) {
            None => (Ty::Bool(None), Capabilities::new()),
            Some(None) => {
                let of = of.name();
                self.tested(span, false, || Problem::NeverTagged { of });
                (Ty::Bool(Some(false)), Capabilities::new())
            }
            Some(Some(_)) => {
                self.tested(span, true, || Problem::NeverApplies);
                match tag_key(target, args) {
                    Some(cap) if caps.contains(&cap) => (Ty::Bool(Some(true)), Capabilities::new()),
                    cap => (Ty::Bool(None), cap.into_iter().collect()),
                }
            }
        }
    }

    #[allow(clippy::too_many_arguments)]
    fn get_tag(
        &mut self,
        name: &Ident,
        target: &Expr,
        of: &Ty<'s>,
        args: &[Expr],
        arg: &(Ty<'s>, Span),
        caps: &Capabilities,
        place: Place<'_, 's>,
    ) -> Ty<'s> {
        match self.tags(of, target.span, arg) {
            None => Ty::Unknown,
            Some(None) => {
                self.report
                    .add(name.span, Problem::NoTags { of: of.name() });
                Ty::Unknown
            }
            Some(Some(ty)) => {
                if !tag_key(target, args).is_some_and(|cap| caps.contains(&cap)) {
                    let tag = args.first().and_then(key);
                    let test = |(target, tag)| format!("{target}.hasTag({tag})");
                    let problem = Problem::UnguardedTag {
                        guard: key(target).zip(tag).map(test),
                        condition: place.condition,
                    };
                    self.report.add(name.span.to(arg.1), problem);
                }
                ty
            }
        }
    }
}

fn tag_key(target: &Expr, args: &[Expr]) -> Option<SmolStr> {
    let tag = args.first().and_then(key)?;
    Some(format_smolstr!("{} hasTag {tag}", key(target)?))
}
