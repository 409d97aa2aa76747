//! The records of an event: what is written of them, and what the schema adds.

use super::*;

impl Steps<'_, '_> {
    pub(super) fn part<'n>(&mut self, node: &'n Json, key: &str) -> Option<&'n [Member]> {
        let part = node.get(key)?;
        if part.as_object().is_none() {
            self.refuse(wrong(key, part, "a table"));
        }
        part.as_object()
    }

    /// The record type of a part of the context.
    pub(super) fn record_type(action: &ActionDecl, part: &str) -> Option<RecordType> {
        let context = &action.applies_to.as_ref()?.context;
        match &context.attrs.get(part)?.ty {
            Type::Record(record) => Some(record.clone()),
            _ => None,
        }
    }

    pub(super) fn fill(&mut self) -> Fill<'_> {
        Fill {
            plain: Plain {
                service: self.reader.service,
            },
            problems: &mut self.reader.problems,
        }
    }

    pub(super) fn input(&mut self, node: &Json, action: &ActionDecl) -> (Record, Option<String>) {
        let given = self.part(node, "input").unwrap_or_default();
        let ty = Self::record_type(action, "input").unwrap_or_default();
        let mut under = Record::new();
        let mut line = None;
        if let Some(command) = node.get("command") {
            match command.as_str().map(|text| (text, command::input(text))) {
                Some((text, Ok(fields))) if ty.attrs.contains_key("command") => {
                    under = fields;
                    line = Some(text.to_string());
                }
                Some((_, Ok(_))) => {
                    let message = format!("`{}` takes no command line", action.uid.id);
                    self.refuse(Diagnostic::error(
                        "unknown-attribute",
                        command.span,
                        message,
                    ));
                }
                Some((_, Err(fault))) => {
                    let message = match fault {
                        CommandFault::Empty => "this command line is empty",
                        CommandFault::Quotes => "a quote of this command line is not closed",
                    };
                    self.refuse(Diagnostic::error("wrong-shape", command.span, message));
                }
                None => self.refuse(wrong("command", command, "a string")),
            }
        }
        let place = format!("the input of `{}`", action.uid.id);
        (self.fill().record(&ty, given, under, &place), line)
    }

    pub(super) fn output(&mut self, node: &Json, action: &ActionDecl) -> Option<Record> {
        let ty = Self::record_type(action, "output");
        let mut given = self.part(node, "output").map(<[Member]>::to_vec);
        if let Some(status) = node.get("status") {
            given.get_or_insert_default().push(Member {
                key: crate::grammar::ast::Str {
                    value: "status".into(),
                    span: status.span,
                },
                value: status.clone(),
            });
        }
        let given = given?;
        let place = format!("the output of `{}`", action.uid.id);
        Some(
            self.fill()
                .record(&ty.unwrap_or_default(), &given, Record::new(), &place),
        )
    }

    pub(super) fn context(&mut self, node: &Json, action: &ActionDecl, input: &Record) -> Record {
        let given = self.part(node, "context").unwrap_or_default().to_vec();
        let mut ty = action
            .applies_to
            .as_ref()
            .map(|applies| applies.context.clone())
            .unwrap_or_default();
        let has_input = ty.attrs.remove("input").is_some();
        ty.attrs.remove("output");
        let mut context = self
            .fill()
            .record(&ty, &given, Record::new(), "the context");
        if has_input {
            context.insert("input".into(), Value::Object(input.clone()));
        }
        context
    }

    /// The logged record of an event, field by field as the event schema derives it.
    pub(super) fn logged(
        &mut self,
        node: &Json,
        action: &ActionDecl,
        kind: &SmolStr,
        input: &Record,
        output: Option<&Record>,
        parties: &Parties,
    ) -> Record {
        let id = EventId {
            action: action.uid.clone(),
            kind: kind.clone(),
        };
        let service = self.reader.service;
        let Some(derived) = service.events.events.get(&id) else {
            return Record::new();
        };
        let given = self.part(node, "logged").unwrap_or_default().to_vec();
        let mut groups = Record::from([("input".into(), Value::Object(input.clone()))]);
        if let Some(output) = output {
            groups.insert("output".into(), Value::Object(output.clone()));
        }
        let mut logged = Plain { service }.logged(
            &id,
            &groups,
            parties.principal.as_ref(),
            parties.resource.as_ref(),
            &format!("r{}", self.requests),
        );
        for member in given {
            match untyped(&member.value) {
                Some(value)
                    if derived
                        .fields
                        .contains_key(std::slice::from_ref(&member.key.value))
                        || derived
                            .groups
                            .contains(std::slice::from_ref(&member.key.value)) =>
                {
                    logged.insert(member.key.value.clone(), value);
                }
                Some(_) => {
                    let message = format!(
                        "a `{kind}` of `{}` has no `{}`",
                        action.uid.id, member.key.value
                    );
                    self.refuse(Diagnostic::error("unknown-field", member.key.span, message));
                }
                None => {
                    let problem = wrong(&member.key.value, &member.value, "a value");
                    self.refuse(problem);
                }
            }
        }
        logged
    }
}

/// A value of a field without a type; an entity is written as `Ns::Type::"id"`.
fn untyped(node: &Json) -> Option<Value> {
    Some(match &node.kind {
        JsonKind::Bool(yes) => Value::Bool(*yes),
        JsonKind::Number(digits) => Value::Int(digits.parse().ok()?),
        JsonKind::String(text) => match written(text) {
            Some(uid) => Value::Entity(uid),
            None => Value::String(text.clone()),
        },
        JsonKind::Array(items) => Value::Array(items.iter().map(untyped).collect::<Option<_>>()?),
        JsonKind::Object(members) => {
            let fields = members
                .iter()
                .map(|member| Some((member.key.value.clone(), untyped(&member.value)?)));
            Value::Object(fields.collect::<Option<_>>()?)
        }
        JsonKind::Null => return None,
    })
}
