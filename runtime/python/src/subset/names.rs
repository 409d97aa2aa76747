//! What a script binds: a name of its own hides whatever the interpreter lacks under it.

use ruff_python_ast::visitor::{Visitor, walk_except_handler, walk_expr, walk_stmt};
use ruff_python_ast::{self as ast, Expr, Stmt};
use std::collections::{HashMap, HashSet};

/// A name an import binds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Imported {
    /// The statement that binds just this name.
    pub(super) import: String,
    pub(super) module: String,
    /// `from module import member`.
    pub(super) member: Option<String>,
}

/// The names of one script, wherever in it they are bound.
#[derive(Default)]
pub(super) struct Names {
    /// By anything but an import.
    pub(super) bound: HashSet<String>,
    /// By imports, and by nothing else.
    pub(super) imported: HashMap<String, Imported>,
    pub(super) paths: HashSet<String>,
    pub(super) open_files: HashSet<String>,
    /// Methods of the script's own classes.
    pub(super) methods: HashSet<String>,
}

impl Names {
    pub(super) fn of(body: &[Stmt]) -> Self {
        let mut names = Self::default();
        names.visit_body(body);
        let bound = &names.bound;
        names.imported.retain(|name, _| !bound.contains(name));
        names
    }

    pub(super) fn is_bound(&self, name: &str) -> bool {
        self.bound.contains(name) || self.imported.contains_key(name)
    }

    /// Whether the expression is a path, as far as its spelling shows.
    pub(super) fn is_path(&self, expr: &Expr) -> bool {
        match expr {
            Expr::Name(name) => self.paths.contains(name.id.as_str()),
            Expr::Call(call) => self.is_path_class(&call.func),
            Expr::BinOp(op) => {
                op.op == ast::Operator::Div && (self.is_path(&op.left) || self.is_path(&op.right))
            }
            Expr::Attribute(attribute) => {
                attribute.attr.as_str() == "parent" && self.is_path(&attribute.value)
            }
            _ => false,
        }
    }

    pub(super) fn is_path_class(&self, expr: &Expr) -> bool {
        let is = |name: &str, member: Option<&str>| {
            self.imported.get(name).is_some_and(|imported| {
                imported.module == "pathlib" && imported.member.as_deref() == member
            })
        };
        match expr {
            Expr::Name(name) => is(name.id.as_str(), Some("Path")),
            Expr::Attribute(attribute) => match attribute.value.as_ref() {
                Expr::Name(module) => attribute.attr.as_str() == "Path" && is(&module.id, None),
                _ => false,
            },
            _ => false,
        }
    }

    /// A call that opens a file.
    pub(super) fn opens(&self, expr: &Expr) -> bool {
        let Expr::Call(call) = expr else { return false };
        match call.func.as_ref() {
            Expr::Name(name) => name.id.as_str() == "open" && !self.is_bound("open"),
            Expr::Attribute(attribute) => {
                attribute.attr.as_str() == "open" && self.is_path(&attribute.value)
            }
            _ => false,
        }
    }

    fn assigned(&mut self, target: &Expr, value: &Expr) {
        let Expr::Name(name) = target else { return };
        if self.is_path(value) {
            self.paths.insert(name.id.to_string());
        }
        if self.opens(value) {
            self.open_files.insert(name.id.to_string());
        }
    }

    fn import(&mut self, alias: &ast::Alias, module: String, member: Option<String>) {
        let what = match &member {
            Some(member) => format!("from {module} import {member}"),
            None => format!("import {module}"),
        };
        let (name, import) = match &alias.asname {
            Some(name) => (name.to_string(), format!("{what} as {name}")),
            // `import a.b` binds `a`.
            None => {
                let name = alias.name.split('.').next().unwrap_or_default();
                (name.to_owned(), what)
            }
        };
        let imported = Imported {
            import,
            module,
            member,
        };
        self.imported.insert(name, imported);
    }
}

impl<'a> Visitor<'a> for Names {
    fn visit_stmt(&mut self, stmt: &'a Stmt) {
        match stmt {
            Stmt::FunctionDef(function) => {
                self.bound.insert(function.name.to_string());
                for parameter in function.parameters.iter() {
                    self.bound.insert(parameter.name().to_string());
                }
            }
            Stmt::ClassDef(class) => {
                self.bound.insert(class.name.to_string());
                let methods = class.body.iter().filter_map(|stmt| match stmt {
                    Stmt::FunctionDef(function) => Some(function.name.to_string()),
                    _ => None,
                });
                self.methods.extend(methods);
            }
            Stmt::Import(import) => {
                for alias in &import.names {
                    self.import(alias, alias.name.to_string(), None);
                }
            }
            Stmt::ImportFrom(import) => {
                let module = import.module.as_ref().map(ToString::to_string);
                for alias in &import.names {
                    let member = alias.name.to_string();
                    self.import(alias, module.clone().unwrap_or_default(), Some(member));
                }
            }
            Stmt::Assign(assign) => {
                for target in &assign.targets {
                    self.assigned(target, &assign.value);
                }
            }
            Stmt::AnnAssign(assign) => {
                if let Some(value) = &assign.value {
                    self.assigned(&assign.target, value);
                }
            }
            Stmt::With(with) => {
                for item in &with.items {
                    if let Some(target) = &item.optional_vars {
                        self.assigned(target, &item.context_expr);
                    }
                }
            }
            Stmt::For(each) => {
                if let (Expr::Name(name), Expr::Call(call)) =
                    (each.target.as_ref(), each.iter.as_ref())
                    && let Expr::Attribute(attribute) = call.func.as_ref()
                    && attribute.attr.as_str() == "iterdir"
                {
                    self.paths.insert(name.id.to_string());
                }
            }
            _ => {}
        }
        walk_stmt(self, stmt);
    }

    fn visit_expr(&mut self, expr: &'a Expr) {
        match expr {
            Expr::Name(name) if name.ctx != ast::ExprContext::Load => {
                self.bound.insert(name.id.to_string());
            }
            Expr::Lambda(lambda) => {
                for parameter in lambda.parameters.iter().flat_map(|it| it.iter()) {
                    self.bound.insert(parameter.name().to_string());
                }
            }
            _ => {}
        }
        walk_expr(self, expr);
    }

    fn visit_except_handler(&mut self, handler: &'a ast::ExceptHandler) {
        let ast::ExceptHandler::ExceptHandler(inner) = handler;
        if let Some(name) = &inner.name {
            self.bound.insert(name.to_string());
        }
        walk_except_handler(self, handler);
    }
}
