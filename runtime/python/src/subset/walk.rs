//! One pass over the script, statement by statement.

use super::Finding;
use super::advice::{self, BUILTINS, SPECIAL};
use super::ask::Known;
use super::names::Names;
use ruff_python_ast::visitor::{Visitor, walk_comprehension, walk_expr, walk_stmt};
use ruff_python_ast::{self as ast, Expr, Stmt};
use ruff_text_size::Ranged;

const NO_GENERATORS: &str = "gather the values in a list and return it";

pub(super) fn walk(body: &[Stmt]) -> Vec<Finding> {
    let mut walk = Walk {
        names: Names::of(body),
        known: Known::default(),
        guarded: false,
        findings: Vec::new(),
    };
    walk.visit_body(body);
    walk.findings
}

struct Walk {
    names: Names,
    known: Known,
    /// Inside a `try` that catches a failed import, or where only type checkers look.
    guarded: bool,
    findings: Vec<Finding>,
}

impl Walk {
    fn found(
        &mut self,
        place: &impl Ranged,
        code: &'static str,
        what: impl Into<String>,
        instead: impl Into<String>,
    ) {
        let finding = Finding::at(place, code, what.into(), instead);
        self.findings.push(finding);
    }

    fn class(&mut self, class: &ast::StmtClassDef) {
        if let Some(arguments) = &class.arguments
            && !(arguments.args.is_empty() && arguments.keywords.is_empty())
        {
            let name = &class.name;
            let only_object = matches!(&*arguments.args, [Expr::Name(base)] if base.id == "object");
            let instead = if only_object {
                format!("write `class {name}:`")
            } else {
                "write a plain class with all its methods; raise a built-in exception such as ValueError \
                 with a message that tells them apart"
                    .to_owned()
            };
            self.found(
                arguments.as_ref(),
                "class-base",
                "classes with bases are not available",
                instead,
            );
        }
        for stmt in &class.body {
            let Stmt::FunctionDef(method) = stmt else {
                continue;
            };
            if let Some(decorator) = method.decorator_list.first() {
                self.found(
                    decorator,
                    "method-decorator",
                    "decorators of methods are not available",
                    "write a plain method and call it, or a function beside the class",
                );
            }
            let name = method.name.as_str();
            let special = name.starts_with("__") && name.ends_with("__") && name.len() > 4;
            if special && !SPECIAL.contains(&name) {
                self.found(
                    &method.name,
                    "special-method",
                    format!("`{name}` is never called here"),
                    "give the method an ordinary name and call it",
                );
            }
        }
    }

    fn import(&mut self, import: &ast::StmtImport) {
        for alias in &import.names {
            self.module(alias, alias.name.as_str());
        }
    }

    fn module(&mut self, place: &impl Ranged, module: &str) -> bool {
        if self.guarded || self.known.module(module) {
            return true;
        }
        let what = format!("there is no module `{module}`");
        self.found(place, "no-module", what, advice::module(module));
        false
    }

    fn import_from(&mut self, import: &ast::StmtImportFrom) {
        if import.level > 0 {
            self.found(
                import,
                "relative-import",
                "relative imports are not available",
                "put the code into the one script",
            );
            return;
        }
        let Some(module) = &import.module else { return };
        if module.as_str() == "__future__" || !self.module(module, module.as_str()) {
            return;
        }
        for alias in &import.names {
            let name = alias.name.as_str();
            if name == "*" {
                self.found(
                    alias,
                    "wildcard-import",
                    "`import *` is not available",
                    "name what you need",
                );
            } else if !self.guarded && !self.known.member(module.as_str(), name) {
                let what = format!("`{module}` has no `{name}`");
                let instead = advice::member(module.as_str(), name);
                self.found(alias, "no-member", what, instead);
            }
        }
    }

    fn name(&mut self, name: &ast::ExprName) {
        if self.names.is_bound(&name.id) {
            return;
        }
        let id = name.id.as_str();
        if let Some((_, instead)) = BUILTINS.iter().find(|(missing, _)| *missing == id)
            && !self.known.builtin(id)
        {
            let what = format!("there is no builtin `{id}`");
            self.found(name, "no-builtin", what, *instead);
        }
    }

    fn attribute(&mut self, attribute: &ast::ExprAttribute) {
        let name = attribute.attr.as_str();
        let path = self.names.is_path(&attribute.value);
        if (path && !self.known.path_method(name)) || self.is_method_of_path_class(attribute) {
            let what = format!("paths have no `{name}`");
            let instead = advice::path_method(name);
            self.found(&attribute.attr, "no-path-method", what, instead);
            return;
        }
        let Expr::Name(owner) = attribute.value.as_ref() else {
            return;
        };
        let Some(imported) = self.names.imported.get(owner.id.as_str()).cloned() else {
            return;
        };
        let exists = match &imported.member {
            None => self.known.module(&imported.module),
            Some(member) => self.known.member(&imported.module, member),
        };
        if !exists || self.known.attribute(&imported.import, &owner.id, name) {
            return;
        }
        let owner = match &imported.member {
            None => imported.module,
            Some(member) => format!("{}.{member}", imported.module),
        };
        let what = format!("`{owner}` has no `{name}`");
        self.found(
            &attribute.attr,
            "no-member",
            what,
            advice::member(&owner, name),
        );
    }

    /// `Path.cwd`.
    fn is_method_of_path_class(&self, attribute: &ast::ExprAttribute) -> bool {
        self.names.is_path_class(&attribute.value)
            && matches!(attribute.attr.as_str(), "cwd" | "home")
    }

    fn call(&mut self, call: &ast::ExprCall) {
        let Expr::Name(name) = call.func.as_ref() else {
            return;
        };
        if self.names.is_bound(&name.id) {
            return;
        }
        match name.id.as_str() {
            "print" => {
                let file = keyword(call, "file").filter(|it| !it.value.is_none_literal_expr());
                if let Some(file) = file {
                    self.found(
                        file,
                        "print-file",
                        "`print` writes to standard output only",
                        "leave `file=` out; to write to a file use `f.write(text + \"\\n\")`",
                    );
                }
            }
            "open" => self.open(call),
            "next" => {
                if let Some(Expr::Generator(generator)) = call.arguments.args.first() {
                    self.found(
                        generator,
                        "next-of-generator",
                        "a generator expression is a list here, which `next` does not take",
                        "use `next(iter([… for … in …]), default)`",
                    );
                }
            }
            "SystemExit" => {
                if let Some(Expr::NumberLiteral(status)) = call.arguments.args.first() {
                    self.found(
                        status,
                        "exit-status",
                        "exceptions take text only",
                        "call the builtin `exit(status)`",
                    );
                }
            }
            _ => {}
        }
    }

    fn open(&mut self, call: &ast::ExprCall) {
        for name in ["newline", "errors", "buffering", "opener", "closefd"] {
            if let Some(option) = keyword(call, name) {
                let what = format!("`open` has no `{name}=`");
                let instead = "leave it out: text is UTF-8, and lines end in \\n";
                self.found(option, "open-option", what, instead);
            }
        }
        let mode = call
            .arguments
            .args
            .get(1)
            .or_else(|| keyword(call, "mode").map(|it| &it.value));
        if let Some(Expr::StringLiteral(mode)) = mode
            && mode.value.chars().any(|c| c == '+' || c == 'x')
        {
            self.found(
                mode,
                "open-mode",
                "files are opened to read, to write or to append, not two at once",
                "read the content, close, and write it again; use `Path.exists()` in place of \"x\"",
            );
        }
    }

    /// `for line in file`.
    fn iterated(&mut self, iter: &Expr) {
        let named =
            matches!(iter, Expr::Name(name) if self.names.open_files.contains(name.id.as_str()));
        if named || self.names.opens(iter) {
            self.found(
                iter,
                "file-iteration",
                "a file cannot be looped over",
                "loop over `f.read().splitlines()`, or `f.readlines()`",
            );
        }
    }

    fn guarded(&mut self, body: &[Stmt]) {
        let before = std::mem::replace(&mut self.guarded, true);
        self.visit_body(body);
        self.guarded = before;
    }
}

fn keyword<'c>(call: &'c ast::ExprCall, name: &str) -> Option<&'c ast::Keyword> {
    let is = |keyword: &&ast::Keyword| keyword.arg.as_ref().is_some_and(|arg| arg.as_str() == name);
    call.arguments.keywords.iter().find(is)
}

fn catches_imports(stmt: &ast::StmtTry) -> bool {
    let catching = |expr: &Expr| {
        matches!(expr, Expr::Name(name) if matches!(
            name.id.as_str(),
            "ImportError" | "ModuleNotFoundError" | "Exception" | "BaseException"
        ))
    };
    stmt.handlers.iter().any(|handler| {
        let ast::ExceptHandler::ExceptHandler(handler) = handler;
        match handler.type_.as_deref() {
            None => true,
            Some(Expr::Tuple(tuple)) => tuple.elts.iter().any(catching),
            Some(expr) => catching(expr),
        }
    })
}

fn is_type_checking(test: &Expr) -> bool {
    match test {
        Expr::Name(name) => name.id.as_str() == "TYPE_CHECKING",
        Expr::Attribute(attribute) => attribute.attr.as_str() == "TYPE_CHECKING",
        _ => false,
    }
}

impl<'a> Visitor<'a> for Walk {
    fn visit_stmt(&mut self, stmt: &'a Stmt) {
        match stmt {
            Stmt::Delete(delete) => self.found(
                delete,
                "del",
                "`del` is not available",
                "use `d.pop(key)`, `items.pop(index)`, or bind the name to None",
            ),
            Stmt::Match(it) => self.found(
                it,
                "match",
                "`match` is not available",
                "use if, elif and else",
            ),
            Stmt::TypeAlias(alias) => self.found(
                alias,
                "type-alias",
                "`type` aliases are not available",
                "leave the alias out, or write `Name = …`",
            ),
            Stmt::ClassDef(class) => self.class(class),
            Stmt::Import(import) => self.import(import),
            Stmt::ImportFrom(import) => self.import_from(import),
            Stmt::For(each) => {
                if each.is_async {
                    let instead = "await a list and loop over it";
                    self.found(each, "async-for", "`async for` is not available", instead);
                }
                self.iterated(&each.iter);
            }
            Stmt::With(with) if with.is_async => self.found(
                with,
                "async-with",
                "`async with` is not available",
                "use `with`, or call what it calls yourself",
            ),
            Stmt::Try(it) => {
                if it.is_star {
                    let instead = "use `except`";
                    self.found(it, "except-star", "`except*` is not available", instead);
                }
                if catches_imports(it) {
                    self.guarded(&it.body);
                    for handler in &it.handlers {
                        self.visit_except_handler(handler);
                    }
                    self.visit_body(&it.orelse);
                    self.visit_body(&it.finalbody);
                    return;
                }
            }
            Stmt::If(it) if is_type_checking(&it.test) => {
                self.guarded(&it.body);
                for clause in &it.elif_else_clauses {
                    self.visit_elif_else_clause(clause);
                }
                return;
            }
            _ => {}
        }
        walk_stmt(self, stmt);
    }

    /// Never evaluated for its effect.
    fn visit_annotation(&mut self, _: &'a Expr) {}

    fn visit_expr(&mut self, expr: &'a Expr) {
        match expr {
            Expr::Yield(it) => {
                let what = "generators (`yield`) are not available";
                self.found(it, "generator", what, NO_GENERATORS);
            }
            Expr::YieldFrom(it) => {
                let what = "generators (`yield from`) are not available";
                self.found(it, "generator", what, NO_GENERATORS);
            }
            Expr::Name(name) if name.ctx == ast::ExprContext::Load => self.name(name),
            Expr::Attribute(attribute) => self.attribute(attribute),
            Expr::Call(call) => self.call(call),
            Expr::BinOp(op) => match (op.op, op.left.as_ref()) {
                (
                    ast::Operator::Mod,
                    Expr::StringLiteral(_) | Expr::FString(_) | Expr::BytesLiteral(_),
                ) => self.found(
                    op,
                    "percent-format",
                    "`%` does not format text here",
                    "use an f-string, or `\"{}\".format(value)`",
                ),
                (ast::Operator::MatMult, _) => self.found(
                    op,
                    "matrix-product",
                    "`@` between values is not available",
                    "use `sum(a * b for a, b in zip(row, column))`",
                ),
                _ => {}
            },
            Expr::NumberLiteral(number) if number.value.is_complex() => self.found(
                number,
                "complex-number",
                "complex numbers are not available",
                "keep the two parts in a tuple",
            ),
            Expr::TString(it) => self.found(
                it,
                "template-string",
                "template strings are not available",
                "use an f-string",
            ),
            _ => {}
        }
        walk_expr(self, expr);
    }

    fn visit_comprehension(&mut self, comprehension: &'a ast::Comprehension) {
        if comprehension.is_async {
            self.found(
                comprehension,
                "async-for",
                "`async for` is not available",
                "await a list and loop over it",
            );
        }
        self.iterated(&comprehension.iter);
        walk_comprehension(self, comprehension);
    }
}
