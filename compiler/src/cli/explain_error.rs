//! `dogwood explain-error`: what a code in a message means.

use super::{Failure, Outcome, print};
use clap::Args;
use dogwood_compiler::diagnostic::{codes, pages};

#[derive(Args)]
pub struct ExplainError {
    /// The word in brackets behind `error` or `warning`; without it, all codes.
    #[arg(value_name = "CODE")]
    code: Option<String>,
}

impl ExplainError {
    pub fn run(self) -> Result<Outcome, Failure> {
        let Some(code) = self.code else {
            let all: String = codes::CODES
                .iter()
                .map(|(code, text)| format!("{code}: {text}\n"))
                .collect();
            return print(&all).map(|()| Outcome::Accepted);
        };
        let code = code.trim_matches(|c| c == '[' || c == ']');
        match codes::meaning(code) {
            Some(text) => {
                let page = pages::page(code).map_or(String::new(), |page| format!("\n{page}"));
                print(&format!("{code}: {text}\n{page}")).map(|()| Outcome::Accepted)
            }
            None => Err(Failure::NoSuchCode {
                code: code.to_owned(),
                nearest: codes::nearest(code),
            }),
        }
    }
}
