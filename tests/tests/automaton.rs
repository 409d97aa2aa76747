//! What the monitor decides is what the table of the language reference says, and what the reference shows
//! by example.

mod automaton {
    pub mod causes;
    pub mod cedar;
    pub mod costs;
    pub mod equivalence;
    pub mod examples;
    pub mod explanations;
    pub mod families;
    pub mod formulas;
    pub mod growth;
    pub mod hooks;
    pub mod rules;
    pub mod snapshots;
    pub mod stage;
    pub mod state;
    pub mod waits;
}
