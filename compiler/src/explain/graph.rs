//! The network of a policy as a picture: events → matchers → cells → leaves → rules.

use super::cost::{named, operator};
use super::words;
use crate::diagnostic::printable;
use crate::monitor::{CellOutline, FieldTest, MatcherOutline, Outline, Policy};
use petgraph::dot::{Config, Dot, RankDir};
use petgraph::graph::{DiGraph, NodeIndex};
use petgraph::visit::EdgeRef;
use std::collections::BTreeMap;
use std::fmt::{self, Write};

/// A network to draw.
pub struct Graph(Network);

/// Nothing is written on its edges.
type Network = DiGraph<Vertex, &'static str>;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Event,
    Matcher,
    Cell,
    Leaf,
    Rule,
}

struct Vertex {
    kind: Kind,
    /// Lines, without control characters.
    label: Vec<String>,
}

impl Graph {
    /// `names` has a name for each rule.
    pub fn new(policy: &Policy, names: &[String]) -> Graph {
        let outline = policy.outline();
        let mut graph = Network::new();
        let mut events = BTreeMap::new();
        let mut matchers = Vec::new();
        for matcher in &outline.matchers {
            let event = &matcher.event;
            let name = format!("{}::{}", event.action, event.kind);
            let from = *events
                .entry(name)
                .or_insert_with_key(|name| add(&mut graph, Kind::Event, vec![name.clone()]));
            let to = add(&mut graph, Kind::Matcher, matcher_label(matcher));
            graph.add_edge(from, to, "");
            matchers.push(to);
        }
        let cells: Vec<NodeIndex> = outline
            .cells
            .iter()
            .enumerate()
            .map(|(number, cell)| add(&mut graph, Kind::Cell, cell_label(number, cell)))
            .collect();
        let link = |graph: &mut Network, from: &[NodeIndex], number: usize, to| {
            if let Some(from) = from.get(number) {
                graph.add_edge(*from, to, "");
            }
        };
        for (cell, to) in outline.cells.iter().zip(&cells) {
            for number in &cell.matchers {
                link(&mut graph, &matchers, *number, *to);
            }
            for number in &cell.cells {
                link(&mut graph, &cells, *number, *to);
            }
        }
        let leaves: Vec<NodeIndex> = (0..outline.leaves.len())
            .map(|number| add(&mut graph, Kind::Leaf, vec![format!("leaf {number}")]))
            .collect();
        for (leaf, to) in outline.leaves.iter().zip(&leaves) {
            for number in &leaf.matchers {
                link(&mut graph, &matchers, *number, *to);
            }
            for number in &leaf.cells {
                link(&mut graph, &cells, *number, *to);
            }
        }
        rules(&mut graph, &outline, &leaves, names);
        Graph(graph)
    }

    /// For Graphviz.
    pub fn dot(&self) -> String {
        let config = [Config::EdgeNoLabel, Config::RankDir(RankDir::LR)];
        let shape = |_, (_, vertex): (NodeIndex, &Vertex)| {
            let shape = match vertex.kind {
                Kind::Event => "ellipse",
                Kind::Matcher => "box",
                Kind::Cell => "cylinder",
                Kind::Leaf => "diamond",
                Kind::Rule => "box3d",
            };
            format!("shape = {shape}")
        };
        let dot = Dot::with_attr_getters(&self.0, &config, &|_, _| String::new(), &shape);
        format!("{dot}")
    }

    /// For Mermaid.
    pub fn mermaid(&self) -> String {
        let mut text = "flowchart LR\n".to_owned();
        for (number, vertex) in self.0.node_weights().enumerate() {
            let label: Vec<String> = vertex.label.iter().map(|line| entities(line)).collect();
            let (open, close) = match vertex.kind {
                Kind::Event => ("([", "])"),
                Kind::Matcher => ("[", "]"),
                Kind::Cell => ("[(", ")]"),
                Kind::Leaf => ("{", "}"),
                Kind::Rule => ("[[", "]]"),
            };
            _ = writeln!(text, "  n{number}{open}\"{}\"{close}", label.join("<br>"));
        }
        for edge in self.0.edge_references() {
            let (from, to) = (edge.source().index(), edge.target().index());
            _ = writeln!(text, "  n{from} --> n{to}");
        }
        text
    }
}

fn add(graph: &mut Network, kind: Kind, label: Vec<String>) -> NodeIndex {
    let label = label
        .iter()
        .map(|line| printable(line).replace('\n', "\\n"))
        .collect();
    graph.add_node(Vertex { kind, label })
}

fn rules(graph: &mut Network, outline: &Outline, leaves: &[NodeIndex], names: &[String]) {
    for number in 0..outline.rules {
        let mut label = vec![format!("rule {number}")];
        label.extend(names.get(number).cloned());
        let rule = add(graph, Kind::Rule, label);
        for (leaf, from) in outline.leaves.iter().zip(leaves) {
            if leaf.rules.contains(&number) {
                graph.add_edge(*from, rule, "");
            }
        }
    }
}

fn matcher_label(matcher: &MatcherOutline) -> Vec<String> {
    if matcher.fields.is_empty() {
        return vec!["any".to_owned()];
    }
    let fields = matcher.fields.iter();
    fields
        .map(|(field, test)| match test {
            FieldTest::Equals(value) => format!("{field}: {value}"),
            FieldTest::Taken => format!("{field}: ?"),
            FieldTest::Present => format!("{field}: _"),
            FieldTest::Never => format!("{field}: never"),
        })
        .collect()
}

fn cell_label(number: usize, cell: &CellOutline) -> Vec<String> {
    let mut label = vec![
        format!("cell {number}"),
        format!(
            "{} over {}",
            operator(cell.operator),
            words::span(cell.window)
        ),
    ];
    if !cell.keys.is_empty() {
        label.push(format!("by {}", named(&cell.keys).replace('`', "")));
    }
    label
}

impl fmt::Display for Vertex {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.label.join("\n"))
    }
}

/// What Mermaid would read as more than text, as its numbered entities.
fn entities(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '"' | '#' | '&' | '<' | '>' | '`' | ';' | '\\' => _ = write!(out, "#{};", u32::from(c)),
            c => out.push(c),
        }
    }
    out
}
