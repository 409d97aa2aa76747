//! `dogwood-lsp`: the language server, over standard input and output.

use dogwood_lsp::disk::OnDisk;
use dogwood_lsp::server;
use lsp_server::Connection;
use std::process::ExitCode;
use std::sync::Arc;

fn main() -> ExitCode {
    if std::env::args()
        .nth(1)
        .is_some_and(|arg| arg == "--version" || arg == "-V")
    {
        println!("dogwood-lsp {}", env!("CARGO_PKG_VERSION"));
        return ExitCode::SUCCESS;
    }
    let (connection, threads) = Connection::stdio();
    let served = server::run(&connection, Arc::new(OnDisk));
    drop(connection);
    let ended = served.and_then(|()| threads.join().map_err(server::ServerError::from));
    match ended {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("dogwood-lsp: {error}");
            ExitCode::FAILURE
        }
    }
}
