//! Who asks, for what, and what is known of them.

use super::*;

impl Steps<'_, '_> {
    pub(super) fn parties(&mut self, node: &Json, action: &ActionDecl) -> Parties {
        let (principals, resources) = match &action.applies_to {
            Some(applies) => (applies.principals.clone(), applies.resources.clone()),
            None => Default::default(),
        };
        Parties {
            principal: self.party(node, "principal", action, &principals),
            resource: self.party(node, "resource", action, &resources),
            entities: self.entities(node),
        }
    }

    pub(super) fn setting(&self, node: &Json, key: &str) -> Option<Json> {
        node.get(key)
            .or_else(|| self.reader.defaults.as_ref()?.get(key))
            .cloned()
    }

    pub(super) fn party(
        &mut self,
        node: &Json,
        key: &str,
        action: &ActionDecl,
        types: &[SmolStr],
    ) -> Option<EntityUid> {
        match self.setting(node, key) {
            Some(named) => match named.as_str() {
                Some(text) => self.fill().entity(types, &text.clone(), &named),
                None => {
                    self.refuse(wrong(key, &named, "a string"));
                    None
                }
            },
            None => {
                let plain = Plain {
                    service: self.reader.service,
                };
                if key == "resource" {
                    plain.resource(action)
                } else {
                    plain.principal(action)
                }
            }
        }
    }

    /// `entities = { 'Depot::Clerk::"ann"' = { in = ['Depot::Crew::"day"'], rank = 3 } }`.
    pub(super) fn entities(&mut self, node: &Json) -> Vec<EntityData> {
        let Some(given) = self.setting(node, "entities") else {
            return Vec::new();
        };
        let Some(members) = given.as_object() else {
            self.refuse(wrong("entities", &given, "a table"));
            return Vec::new();
        };
        let mut entities = Vec::new();
        for Member { key, value } in members {
            let uid = written(&key.value);
            let ty = uid.as_ref().and_then(|uid| {
                self.reader
                    .service
                    .actions
                    .entity_types
                    .get(&uid.ty)
                    .cloned()
            });
            let (Some(uid), Some(ty)) = (uid, ty) else {
                let message = format!("`{}` is no entity of the schema", key.value);
                let problem = Diagnostic::error("unknown-entity-type", key.span, message);
                self.refuse(
                    problem.help("write its type and its id: `'Box::Agent::\"self\"' = { … }`"),
                );
                continue;
            };
            let Some(members) = value.as_object() else {
                self.refuse(wrong(&key.value, value, "a table of attributes"));
                continue;
            };
            let (parents, attrs): (Vec<Member>, Vec<Member>) = members
                .iter()
                .cloned()
                .partition(|member| member.key.value == "in");
            let mut above = Vec::new();
            for parent in parents
                .iter()
                .flat_map(|member| match member.value.as_array() {
                    Some(items) => items.to_vec(),
                    None => vec![member.value.clone()],
                })
            {
                match parent.as_str().and_then(|text| written(text)) {
                    Some(parent) => above.push(parent),
                    None => self.refuse(wrong("in", &parent, "entities, as `'Ns::Type::\"id\"'`")),
                }
            }
            let place = format!("`{}`", uid.ty);
            let attrs = self.fill().record(&ty.attrs, &attrs, Record::new(), &place);
            entities.push(EntityData {
                uid,
                attrs,
                parents: above,
                tags: Record::new(),
            });
        }
        entities
    }
}
