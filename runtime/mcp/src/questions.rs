//! What a server asks its client: requests of its own, and questions inside the results of other requests.

use crate::frame::Id;
use serde_json::Value;
use smol_str::SmolStr;
use std::collections::{BTreeMap, VecDeque};

/// Requests of the server without a reply, and questions that may still be answered, at most of each.
const MAX_OPEN: usize = 1024;
const MAX_QUESTIONS: usize = 256;

/// Everything a server of one connection may still be answered.
#[derive(Debug, Default)]
pub struct Questions {
    /// By their ids.
    requests: BTreeMap<Id, SmolStr>,
    /// Names of questions inside results, and their methods. Oldest first.
    named: VecDeque<(String, SmolStr)>,
}

impl Questions {
    /// A request of the server, on its way to the client. What is wrong with it, if it cannot be told from another.
    pub fn asked(&mut self, id: &Id, method: &SmolStr) -> Result<(), &'static str> {
        if self.requests.contains_key(id) {
            return Err("the id is in use");
        }
        if self.requests.len() >= MAX_OPEN {
            return Err("too many requests are waiting for their replies");
        }
        self.requests.insert(id.clone(), method.clone());
        Ok(())
    }

    /// The method of the request that a reply answers. One is answered once.
    pub fn answered(&mut self, id: &Id) -> Option<SmolStr> {
        self.requests.remove(id)
    }

    /// No request waits any more.
    pub fn gone(&mut self) {
        self.requests.clear();
    }

    /// Questions that a result asks back, which a later request may answer in its parameters.
    pub fn remember(&mut self, result: &Value) {
        let Some(asked) = result.get("inputRequests").and_then(Value::as_object) else {
            return;
        };
        for (name, question) in asked.iter().take(MAX_QUESTIONS) {
            // One without a method is answered under a name no rule permits by accident.
            let method = question
                .get("method")
                .and_then(Value::as_str)
                .unwrap_or("(question)");
            if self.named.len() >= MAX_QUESTIONS {
                self.named.pop_front();
            }
            self.named.push_back((name.clone(), method.into()));
        }
    }

    /// The method of a question inside a result. The latest of a name is meant.
    pub fn method(&self, name: &str) -> Option<&SmolStr> {
        let named = self.named.iter().rev();
        let mut methods = named.filter_map(|(key, method)| (key == name).then_some(method));
        methods.next()
    }
}

#[cfg(test)]
mod tests {
    use super::{MAX_OPEN, MAX_QUESTIONS, Questions};
    use crate::frame::Id;
    use serde_json::json;

    #[test]
    fn a_request_is_answered_once_and_only_so_many_wait() {
        let mut questions = Questions::default();
        for n in 0..MAX_OPEN {
            let id = Id::Number(i64::try_from(n).unwrap());
            assert_eq!(questions.asked(&id, &"roots/list".into()), Ok(()));
        }
        let refused = "too many requests are waiting for their replies";
        let one = Id::Number(-1);
        assert_eq!(questions.asked(&one, &"ping".into()), Err(refused));
        let none = Id::Number(0);
        assert_eq!(
            questions.asked(&none, &"ping".into()),
            Err("the id is in use")
        );
        assert_eq!(questions.answered(&none).as_deref(), Some("roots/list"));
        assert_eq!(questions.answered(&none), None);
        assert_eq!(questions.asked(&one, &"ping".into()), Ok(()));
    }

    #[test]
    fn the_latest_question_of_a_name_is_meant_and_only_so_many_are_kept() {
        let mut questions = Questions::default();
        questions.remember(&json!({"inputRequests": {"q": {"method": "roots/list"}}}));
        questions.remember(&json!({"inputRequests": {"q": {}}}));
        assert_eq!(
            questions.method("q").map(|m| m.as_str()),
            Some("(question)")
        );
        for n in 0..MAX_QUESTIONS {
            questions.remember(&json!({"inputRequests": {n.to_string(): {"method": "m"}}}));
        }
        assert_eq!(questions.method("q"), None);
        assert_eq!(questions.named.len(), MAX_QUESTIONS);
    }
}
