//! Turns the grammars (`src/*.lalrpop`) into parsers.

fn main() -> Result<(), Box<dyn std::error::Error>> {
    lalrpop::Configuration::new()
        .emit_rerun_directives(true)
        .process_dir("src")?;
    Ok(())
}
