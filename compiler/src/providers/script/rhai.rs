//! Scripts in Rhai.

use super::{
    Base, MAX_CALLS, MAX_ELEMENTS, MAX_NESTING, MAX_OPERATIONS, MAX_STRING, Script, ScriptError,
    Stage,
};
use crate::value::{Record, Value};
use regex::{Regex, RegexBuilder};
use rhai::packages::{
    BasicArrayPackage, BasicMapPackage, BasicMathPackage, BitFieldPackage, CorePackage,
    LogicPackage, MoreStringPackage, Package,
};
use rhai::{AST, Dynamic, Engine, EvalAltResult, Scope};
use smol_str::SmolStr;
use std::collections::HashMap;
use std::sync::{Arc, LazyLock, Mutex, PoisonError};

/// Bytes of a compiled pattern.
const MAX_PATTERN: usize = 1 << 20;
/// Compiled patterns that are kept.
const KEPT_PATTERNS: usize = 64;
/// Nesting of expressions.
const MAX_EXPRESSION: usize = 64;
/// The same inside a function.
const MAX_EXPRESSION_OF_FUNCTION: usize = 32;

/// The stack that the deepest script allowed needs, with much to spare. Only what is used of it takes memory.
const STACK: usize = 64 << 20;

/// One for all scripts: it holds nothing that belongs to a script or a run.
static ENGINE: LazyLock<Engine> = LazyLock::new(engine);

pub(super) fn compile(text: &str) -> Result<Arc<dyn Script>, ScriptError> {
    let ast = on_own_stack(|| {
        ENGINE.compile(text).map_err(|error| ScriptError::Syntax {
            why: error.to_string(),
        })
    })?;
    Ok(Arc::new(Compiled { ast }))
}

/// Rhai walks trees by recursion, and its caller's stack may be small.
fn on_own_stack<T: Send>(
    work: impl FnOnce() -> Result<T, ScriptError> + Send,
) -> Result<T, ScriptError> {
    let failed = |why: &str| ScriptError::Failed {
        why: why.to_owned(),
    };
    std::thread::scope(|scope| {
        let thread = std::thread::Builder::new().stack_size(STACK);
        let running = thread
            .spawn_scoped(scope, work)
            .map_err(|_| failed("there is no thread to run its script on"))?;
        running
            .join()
            .unwrap_or_else(|_| Err(failed("its script broke what runs it")))
    })
}

/// Without the packages that tell the time. Nothing resolves an `import`, what would run another text is
/// no word at all, and waiting fails.
fn engine() -> Engine {
    let mut engine = Engine::new_raw();
    CorePackage::new().register_into_engine(&mut engine);
    LogicPackage::new().register_into_engine(&mut engine);
    BasicMathPackage::new().register_into_engine(&mut engine);
    BasicArrayPackage::new().register_into_engine(&mut engine);
    BasicMapPackage::new().register_into_engine(&mut engine);
    BitFieldPackage::new().register_into_engine(&mut engine);
    MoreStringPackage::new().register_into_engine(&mut engine);
    for word in ["eval", "import", "export"] {
        engine.disable_symbol(word);
    }
    // One of the core package; this one is found first.
    engine.register_fn("sleep", |_: i64| no_waiting());
    engine.register_fn("sleep", |_: f64| no_waiting());
    engine
        .set_max_operations(MAX_OPERATIONS)
        .set_max_call_levels(MAX_CALLS)
        .set_max_string_size(MAX_STRING)
        .set_max_array_size(MAX_ELEMENTS)
        .set_max_map_size(MAX_ELEMENTS)
        .set_max_modules(0)
        .set_max_expr_depths(MAX_EXPRESSION, MAX_EXPRESSION_OF_FUNCTION)
        .on_print(|_| {})
        .on_debug(|_, _, _| {});
    engine
        .register_fn("regex_is_match", |pattern: &str, text: &str| {
            pattern_of(pattern).is_some_and(|pattern| pattern.is_match(text))
        })
        .register_fn("regex_find", |pattern: &str, text: &str| {
            pattern_of(pattern)
                .and_then(|pattern| Some(pattern.find(text)?.as_str().to_owned()))
                .unwrap_or_default()
        })
        .register_fn("regex_count", |pattern: &str, text: &str| {
            let found = pattern_of(pattern).map_or(0, |pattern| pattern.find_iter(text).count());
            i64::try_from(found).unwrap_or(i64::MAX)
        });
    engine
}

fn no_waiting() -> Result<(), Box<EvalAltResult>> {
    Err("a script may not wait".into())
}

/// The pattern, compiled; nothing for a bad one. A script tends to ask the same ones at every decision.
fn pattern_of(pattern: &str) -> Option<Regex> {
    static PATTERNS: LazyLock<Mutex<HashMap<String, Option<Regex>>>> =
        LazyLock::new(Mutex::default);
    let mut patterns = PATTERNS.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(known) = patterns.get(pattern) {
        return known.clone();
    }
    let compiled = RegexBuilder::new(pattern)
        .size_limit(MAX_PATTERN)
        .dfa_size_limit(MAX_PATTERN)
        .build()
        .ok();
    if patterns.len() >= KEPT_PATTERNS {
        patterns.clear();
    }
    patterns.insert(pattern.to_owned(), compiled.clone());
    compiled
}

#[derive(Debug)]
struct Compiled {
    ast: AST,
}

impl Script for Compiled {
    fn run(&self, base: Base, stages: &[Stage<'_>]) -> Result<Value, ScriptError> {
        on_own_stack(|| {
            let mut value = match base {
                Base::Given(value) => dynamic(value),
                Base::Evaluate(args) => {
                    self.call("evaluate", args.into_iter().map(dynamic).collect())?
                }
            };
            for stage in stages {
                let own = stage.args.iter().cloned().map(dynamic);
                value = self.call(stage.function, [value].into_iter().chain(own).collect())?;
            }
            plain(value, 0)
        })
    }

    fn has(&self, function: &str, takes: usize) -> bool {
        self.ast
            .iter_functions()
            .any(|found| found.name == function && found.params.len() == takes)
    }
}

impl Compiled {
    fn call(&self, function: &str, args: Vec<Dynamic>) -> Result<Dynamic, ScriptError> {
        let takes = args.len();
        if !self.has(function, takes) {
            return Err(ScriptError::NoFunction {
                name: function.into(),
                takes,
            });
        }
        ENGINE
            .call_fn::<Dynamic>(&mut Scope::new(), &self.ast, function, args)
            .map_err(|error| failed(&error))
    }
}

fn failed(error: &EvalAltResult) -> ScriptError {
    let mut inner = error;
    while let EvalAltResult::ErrorInFunctionCall(_, _, within, _) = inner {
        inner = within;
    }
    match inner {
        EvalAltResult::ErrorTooManyOperations(_) => ScriptError::TooLong,
        EvalAltResult::ErrorStackOverflow(_) => ScriptError::TooDeep,
        EvalAltResult::ErrorDataTooLarge(..) => ScriptError::TooLarge,
        other => ScriptError::Failed {
            why: other.to_string(),
        },
    }
}

fn dynamic(value: Value) -> Dynamic {
    match value {
        Value::Null => Dynamic::UNIT,
        Value::Bool(value) => value.into(),
        Value::Int(number) => number.into(),
        Value::String(text) => text.as_str().into(),
        Value::Decimal(text) => match text.parse() {
            Ok(decimal) => Dynamic::from_decimal(decimal),
            Err(_) => text.as_str().into(),
        },
        Value::Entity(uid) => uid.to_string().into(),
        Value::Array(items) => items
            .into_iter()
            .map(dynamic)
            .collect::<rhai::Array>()
            .into(),
        Value::Object(fields) => fields
            .into_iter()
            .map(|(name, value)| (name.as_str().into(), dynamic(value)))
            .collect::<rhai::Map>()
            .into(),
    }
}

fn plain(value: Dynamic, depth: usize) -> Result<Value, ScriptError> {
    if depth > MAX_NESTING {
        return Err(ScriptError::TooLarge);
    }
    let value = value.flatten();
    if value.is_unit() {
        return Ok(Value::Null);
    }
    if let Ok(truth) = value.as_bool() {
        return Ok(Value::Bool(truth));
    }
    if let Ok(number) = value.as_int() {
        return Ok(Value::Int(number));
    }
    if let Ok(decimal) = value.as_decimal() {
        return Ok(Value::Decimal(written(&decimal.to_string())));
    }
    if value.is_string() {
        return Ok(Value::str(value.into_string().unwrap_or_default()));
    }
    if value.is_array() {
        let items = value.into_array().unwrap_or_default();
        fits(items.len())?;
        let items = items.into_iter().map(|item| plain(item, depth + 1));
        return Ok(Value::Array(items.collect::<Result<_, _>>()?));
    }
    let kind = value.type_name();
    let Some(map) = value.try_cast::<rhai::Map>() else {
        return Err(ScriptError::NoValue {
            kind: kind.to_owned(),
        });
    };
    fits(map.len())?;
    let mut fields = Record::new();
    for (name, value) in map {
        fields.insert(SmolStr::new(name), plain(value, depth + 1)?);
    }
    Ok(Value::Object(fields))
}

/// Rhai does not count what is put into a map by its key.
fn fits(elements: usize) -> Result<(), ScriptError> {
    if elements > MAX_ELEMENTS {
        return Err(ScriptError::TooLarge);
    }
    Ok(())
}

/// As decimals of the language are written: with one to four digits behind the dot, if so many are enough.
fn written(decimal: &str) -> SmolStr {
    let Some((whole, fraction)) = decimal.split_once('.') else {
        return format!("{decimal}.0").into();
    };
    let mut fraction = fraction;
    while fraction.len() > 4
        && let Some(shorter) = fraction.strip_suffix('0')
    {
        fraction = shorter;
    }
    format!("{whole}.{fraction}").into()
}

#[cfg(test)]
mod tests;
