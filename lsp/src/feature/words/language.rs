//! The words of the language itself.

/// A meaning, and how it is written.
pub struct Word {
    pub meaning: &'static str,
    pub example: &'static str,
}

macro_rules! words {
    ($(#[$about:meta])* $name:ident { $($word:literal => $meaning:literal, $example:literal;)* }) => {
        $(#[$about])*
        pub fn $name(word: &str) -> Option<Word> {
            let (meaning, example) = match word {
                $($word => ($meaning, $example),)*
                _ => return None,
            };
            Some(Word { meaning, example })
        }
    };
}

words! {
    /// The parts of `appliesTo`.
    applies_to {
        "principal" => "The types of those who may ask for the action.",
            "principal: [Clerk]";
        "resource" => "The types of what it may be asked of.",
            "resource: [Bay]";
        "context" => "Everything else a request says: a record, or the name of one.",
            "context: { input: MoveIn, output?: MoveOut }";
    }
}

words! {
    /// Words with a meaning in policies and schemas.
    keyword {
        "permit" => "Lets an action happen if its head and all its conditions hold and no `forbid` does. What no rule permits is denied.",
            "permit (principal, action == Box::Action::\"fs:read\", resource);";
        "forbid" => "Denies an action wherever its head and all its conditions hold, whatever else permits it.",
            "forbid (principal, action == Box::Action::\"shell:spawn\", resource) when { … };";
        "when" => "The rule applies only where this holds. Several clauses must all hold.",
            "when { context.input.port == 443 }";
        "unless" => "The rule applies only where this does not hold.",
            "unless { context.input.path like \"/tmp/*\" }";
        "guardrails" => "Decoration behind `when` and `unless`; it changes nothing.",
            "when guardrails { … }";
        "temporal" => "A condition about what happened so far, the event being decided included. It may stand as a whole clause, or inside an expression.",
            "when temporal { formerly within 1h Box::Action::\"fs:read\"::response{} }";
        "formerly" => "True if the condition held at some event of the window, **the one being decided included**. Both ends of the window count.",
            "formerly within 15m Box::Action::\"shell:spawn\"::response{ output.status: 0 }";
        "previous" => "True if the condition held at the event directly before this one, and that event is within the window.",
            "previous within 1m Box::Action::\"fs:read\"::request{}";
        "since" => "`L since within W R`: R held at some event of the window, and L has held at every event after it, up to and including now. The useful left side is a negated one: nothing of the kind since then.",
            "!Box::Action::\"fs:write\"::response{} since within 15m Box::Action::\"shell:spawn\"::response{ output.status: 0 }";
        "within" => "How far back an operator looks: an amount with `s`, `m`, `h` or `d`. Both ends count. An event schema may set the longest window; without it that is 24 hours.",
            "within 15m";
        "exists" => "True if some value of the type makes the condition true. The variable is bound by a field of an event that happened, or by `==`.",
            "exists (h: String). (formerly within 1h Box::Action::\"http:request\"::request{ input.host: h })";
        "count" => "How many different rows of values of the variables make the condition true. To count events, count time points and bind them with `tp`.",
            "(count for (t: Timepoint). where (formerly within 1h (M{} && tp(t)))) <= 3";
        "sum" => "The sum of a variable over the different rows that make the condition true. Two events with the same amount are one row, unless a time point tells them apart.",
            "(sum n for (n: Long), (t: Timepoint). where (formerly within 1h (M{ input.body_bytes: n } && tp(t)))) <= 1000000";
        "for" => "The variables that `count` and `sum` range over, each with its type.",
            "count for (t: Timepoint). where …";
        "where" => "The condition that the rows of `count` and `sum` fulfil.",
            "count for (t: Timepoint). where (formerly within 1h (M{} && tp(t)))";
        "tp" => "`tp(t)` binds `t` to the time point of the event at hand: each event has its own, so it tells events apart that are alike.",
            "formerly within 1h (M{} && tp(t))";
        "let" => "Temporal conditions have no `let`; a value gets a name with `exists (n: Long). (… == n && …)`, or with the macro `bind`.",
            "bind(n, count_within(1h, M{}), n < 3)";
        "def" => "Defines a macro: `def temporal` for conditions and counts, `def cedar` for expressions. Parameters are written `?name`, variables that are new in each call `$name`.",
            "def temporal seen(?span, ?what) { formerly within ?span ?what };";
        "cedar" => "Behind `def`: the macro stands for an expression.",
            "def cedar https(?port) { ?port == 443 };";
        "if" => "`if A then B else C`: B where A holds, else C. Only the branch taken is looked at.",
            "if context.input has arg1 then context.input.arg1 == \"push\" else false";
        "then" => "The value of an `if` whose test holds.", "if A then B else C";
        "else" => "The value of an `if` whose test does not hold.", "if A then B else C";
        "has" => "True if a record has the field, or an entity the attribute. An optional field must be tested so before it is read. `has a.b` tests every step.",
            "context.input has arg1 && context.input.arg1 == \"push\"";
        "like" => "Matches a whole string against a pattern, in which `*` stands for any text; a star itself is `\\*`.",
            "context.input.path like \"~/work/*\"";
        "is" => "Tests the type of an entity; `is T in E` also that it is in E.",
            "principal is Box::Agent";
        "in" => "True if an entity is the other one, or below it; of an action: in the group, or one of the list.",
            "action in [Box::Action::\"fs:read\", Box::Action::\"fs:write\"]";
        "namespace" => "Puts a name in front of everything declared between its braces.", "namespace Depot { … }";
        "entity" => "Declares a type of entities, with the types they can be in, and their attributes.",
            "entity Clerk in [Crew] = { rank: Long, nick?: String };";
        "action" => "Declares an action: who may do it, to what, and what is known about each request.",
            "action \"move\" appliesTo { principal: [Clerk], resource: [Bay], context: { input: MoveIn } };";
        "type" => "Gives a type a name.", "type MoveIn = { crate: String, kg?: Long };";
        "tags" => "The type of the tags of an entity, which are read with `getTag`.", "entity Bay tags String;";
        "enum" => "The only entities of a type.", "entity Mode enum [\"read\", \"write\"];";
        "appliesTo" => "The types of principals and resources an action is for, and its context.",
            "appliesTo { principal: [Clerk], resource: [Bay], context: {} }";
        "attributes" => "Older word for the attributes of an entity.", "entity Clerk = { rank: Long };";
        "Set" => "A set of values of one type.", "tags: Set<String>";
        "max_window" => "The longest window that policies may look back; 24 hours without it.", "max_window = 7d";
        "decision" => "Events of this kind are decided: policies say whether they may go on.",
            "decision event <A>::request { ...inputs(A) }";
        "event" => "Declares a kind of event for every action, with its fields.",
            "event <A>::response { ...inputs(A), ...outputs(A) }";
        "pin" => "Narrows every predicate over this event to those where the field equals the value in the request being decided: each principal sees its own past only.",
            "pin callerPrincipal: principalType(A) = principal";
    }
}

words! {
    /// Signs.
    operator {
        "&&" => "Both hold. In a temporal condition order counts: what binds a variable stands before what tests it.", "A && B";
        "||" => "One of them holds, or both. Temporal conditions have none: write `!(!A && !B)`, or two rules.", "A || B";
        "!" => "Does not hold.", "!(context.input has arg1)";
        "==" => "The same value. Values of different types are never equal.", "context.input.method == \"GET\"";
        "!=" => "Not the same value. In a temporal condition a field that is absent is not unequal either.", "context.input.port != 443";
        "<" => "Less; for numbers, points in time and durations.", "context.input.body_bytes < 1000";
        "<=" => "Less or equal.", "context.input.body_bytes <= 1000";
        ">" => "Greater.", "context.input.body_bytes > 1000";
        ">=" => "Greater or equal.", "context.input.body_bytes >= 1000";
        "+" => "The sum of two numbers; one that does not fit 64 bits makes the rule count as not applying.", "a + b";
        "-" => "The difference of two numbers, or the number with its sign turned.", "a - b";
        "*" => "The product of two numbers; as the value of a field of a predicate: present, whatever it is.", "M{ input.arg1: * }";
        "..." => "Puts all fields of a group here.", "...inputs(A)";
        "@" => "A note on a rule: `@id` names it, `@description` is told to whoever is denied, `@allow` silences a warning.", "@id(\"push_gate\")";
        "::" => "Joins a namespace, a type, an id and a kind of event.", "Box::Action::\"fs:read\"::request{}";
    }
}

words! {
    /// Methods of values.
    method {
        "contains" => "Whether a set has the element.", "[\"GET\", \"HEAD\"].contains(context.input.method)";
        "containsAll" => "Whether a set has every element of another.", "a.containsAll(b)";
        "containsAny" => "Whether a set has some element of another.", "a.containsAny(b)";
        "isEmpty" => "Whether a set has no element.", "a.isEmpty()";
        "hasTag" => "Whether an entity has the tag.", "principal.hasTag(\"team\")";
        "getTag" => "The tag of an entity; test first with `hasTag`.", "principal.getTag(\"team\")";
        "lessThan" => "Whether a decimal is less than another.", "a.lessThan(decimal(\"1.5\"))";
        "lessThanOrEqual" => "Whether a decimal is at most another.", "a.lessThanOrEqual(decimal(\"1.5\"))";
        "greaterThan" => "Whether a decimal is greater than another.", "a.greaterThan(decimal(\"1.5\"))";
        "greaterThanOrEqual" => "Whether a decimal is at least another.", "a.greaterThanOrEqual(decimal(\"1.5\"))";
        "isIpv4" => "Whether an address is one of version 4.", "a.isIpv4()";
        "isIpv6" => "Whether an address is one of version 6.", "a.isIpv6()";
        "isLoopback" => "Whether an address is of this machine.", "a.isLoopback()";
        "isMulticast" => "Whether an address is one of a group of receivers.", "a.isMulticast()";
        "isInRange" => "Whether an address is in a range.", "a.isInRange(ip(\"10.0.0.0/8\"))";
        "offset" => "A point in time, so much later.", "t.offset(duration(\"1h\"))";
        "durationSince" => "How long after another point in time.", "t.durationSince(u)";
        "toDate" => "The day of a point in time.", "t.toDate()";
        "toTime" => "How long after its midnight a point in time is.", "t.toTime()";
        "toMilliseconds" => "A duration in milliseconds.", "d.toMilliseconds()";
        "toSeconds" => "A duration in whole seconds.", "d.toSeconds()";
        "toMinutes" => "A duration in whole minutes.", "d.toMinutes()";
        "toHours" => "A duration in whole hours.", "d.toHours()";
        "toDays" => "A duration in whole days.", "d.toDays()";
    }
}

words! {
    /// Functions that make values.
    constructor {
        "decimal" => "A number with up to four digits behind the point, from a literal.", "decimal(\"1.5\")";
        "datetime" => "A point in time, from a literal.", "datetime(\"2026-01-31T09:00:00Z\")";
        "duration" => "A length of time, from a literal.", "duration(\"1h30m\")";
        "ip" => "An address or a range of addresses, from a literal.", "ip(\"10.0.0.0/8\")";
    }
}

words! {
    /// Words behind `@`.
    annotation {
        "id" => "The name of the rule in verdicts, tests and reports.", "@id(\"push_gate\")";
        "description" => "What an agent is told when this rule denies; of a permit, what it is for.", "@description(\"Run the tests, then push.\")";
        "allow" => "Says nothing of this code about this rule.", "@allow(\"self-match\")";
    }
}

words! {
    /// What stands for a group of fields in an event schema.
    selector {
        "inputs" => "All fields of the input of an action, under `input`.", "...inputs(A)";
        "outputs" => "All fields of the output of an action, under `output`; they may be absent.", "...outputs(A)";
        "principalType" => "The types of principal an action is for.", "callerPrincipal: principalType(A)";
        "resourceType" => "The types of resource an action is for.", "callerResource: resourceType(A)";
    }
}

words! {
    /// Types that need no declaration.
    type_name {
        "Bool" => "`true` or `false`.", "intercepted: Bool";
        "Boolean" => "`true` or `false`.", "intercepted: Boolean";
        "Long" => "A whole number of 64 bits with a sign.", "port: Long";
        "String" => "A text.", "host: String";
        "decimal" => "A number with up to four digits behind the point.", "amount: decimal";
        "ipaddr" => "An address, or a range of them.", "ip: ipaddr";
        "datetime" => "A point in time.", "at: datetime";
        "duration" => "A length of time.", "age: duration";
        "Timepoint" => "The place of an event in the history: no two events share one.", "count for (t: Timepoint). where …";
    }
}

words! {
    /// Keys of a test file.
    test_key {
        "policy" => "The policy to test, or a list of them; without it the one of the same name, or the only one beside this file.", "policy = \"policy.dw\"";
        "policy-schema" => "The action schema, if it is not a box's own.", "policy-schema = \"depot.cedarschema\"";
        "event-schema" => "The event schema, if it is not the usual one.", "event-schema = \"depot.dwschema\"";
        "macros" => "A macro library instead of the built-in one.", "macros = \"macros.dw\"";
        "providers" => "Declarations of information providers.", "providers = \"providers.json\"";
        "defaults" => "What every event has, unless it says otherwise.", "defaults = { principal = \"Depot::Clerk::\\\"ann\\\"\" }";
        "test" => "One test: what happens, and what should be decided.", "[[test]]";
        "name" => "What the policy should do.", "name = \"push waits for the tests\"";
        "description" => "More about the test.", "description = \"…\"";
        "events" => "What happens, in order.", "events = [{ command = \"git push\", expect = \"deny\" }]";
        "cases" => "A table: the events run once for each row, with `${word}` replaced by what the row says.", "cases = [{ verb = \"log\", expect = \"allow\" }]";
        "at" => "When, after the event before (`+5m`); without it at the same time.", "at = \"+5m\"";
        "action" => "What is done: an action of the schema.", "action = \"fs:read\"";
        "kind" => "Which kind of event; without it the kind that is decided.", "kind = \"response\"";
        "command" => "A command line of the box's shell, in place of action and input.", "command = \"git push\"";
        "input" => "The input of the action; what is not said is filled in plainly.", "input = { path = \"/tmp/a\" }";
        "output" => "The output of the action, recorded if it was permitted.", "output = { result = \"completed\" }";
        "status" => "The exit status or the status of a reply, recorded if it was permitted.", "status = 0";
        "context" => "The context of the request, where it is not the input.", "context = { … }";
        "logged" => "Further fields of the recorded event.", "logged = { sessionId = \"s1\" }";
        "principal" => "Who does it.", "principal = \"Depot::Clerk::\\\"ann\\\"\"";
        "resource" => "What it is done to.", "resource = \"Depot::Bay::\\\"b1\\\"\"";
        "entities" => "Attributes and parents of entities.", "entities = [{ … }]";
        "times" => "How often the event happens.", "times = 60";
        "every" => "How far apart the repeated events are.", "every = \"1s\"";
        "expect" => "What should be decided: `allow` or `deny`.", "expect = \"deny\"";
        "by" => "The rules that should decide, by `@id`; an empty list where no rule permits.", "by = \"push_gate\"";
        "says" => "What the explanation of the denial should contain.", "says = \"none seen yet\"";
    }
}
