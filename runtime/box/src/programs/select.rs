//! Which sandbox a program of the host runs in, once policy has permitted it.

use crate::config::{BoxConfig, Process};
use box_sandbox::spec::Grants;
use std::path::Path;

/// The table whose lists and environment a program gets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Choice<'c> {
    Tool {
        label: &'c str,
        tool: &'c Process,
    },
    /// No table names it, and the agent may execute it.
    AgentExec,
    Refused(String),
}

/// The choice for `program`, which is canonical, with the arguments after `argv[0]`.
pub fn choose<'c>(config: &'c BoxConfig, program: &Path, arguments: &[String]) -> Choice<'c> {
    let named = || {
        config
            .tools
            .iter()
            .filter(|(_, tool)| tool.program == program)
    };
    let fits =
        named().filter(|(_, tool)| arguments.starts_with(tool.argv.get(1..).unwrap_or_default()));
    if let Some((label, tool)) = fits.max_by_key(|(_, tool)| tool.argv.len()) {
        return Choice::Tool { label, tool };
    }
    let shown = program.display();
    let forms: Vec<String> = named()
        .map(|(label, tool)| format!("[tool.{label}] `{}`", tool.argv.join(" ")))
        .collect();
    if !forms.is_empty() {
        let forms = forms.join(", ");
        return Choice::Refused(format!("only with other arguments: {forms}"));
    }
    let covers = |entry: &std::path::PathBuf| program.starts_with(entry);
    let Grants { exec, deny, .. } = &config.agent.grants;
    if exec.iter().any(covers) && !deny.iter().any(covers) {
        return Choice::AgentExec;
    }
    Choice::Refused(format!(
        "add a [tool.<name>] table with `command = [\"{shown}\"]`"
    ))
}

/// The lists a program under an agent `exec` entry runs with: the agent's, but for those only an agent can
/// have. What it loses is reach, never protection.
pub fn leaf_grants(agent: &Grants) -> Grants {
    Grants {
        exec: Vec::new(),
        metadata: Vec::new(),
        ..agent.clone()
    }
}

/// The workspace of a program, and the directory it starts in: where the shell is, if the program reaches
/// that at all, else its workspace.
pub fn places<'p>(process: &'p Process, agent: &'p Path, cwd: &'p Path) -> (&'p Path, &'p Path) {
    let workspace = process.workspace.as_deref().unwrap_or(agent);
    let Grants {
        read, write, list, ..
    } = &process.grants;
    let listed = [read, write, list]
        .into_iter()
        .flatten()
        .any(|entry| cwd.starts_with(entry));
    (
        workspace,
        if listed || cwd.starts_with(workspace) {
            cwd
        } else {
            workspace
        },
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;
    use std::path::PathBuf;

    fn process(name: &str, program: &str, argv: &[&str]) -> Process {
        Process {
            name: name.into(),
            program: program.into(),
            argv: argv.iter().map(ToString::to_string).collect(),
            workspace: None,
            env: BTreeMap::new(),
            pass_env: Vec::new(),
            grants: Grants::default(),
        }
    }

    fn config() -> BoxConfig {
        let mut agent = process("agent", "/opt/agent", &["agent"]);
        agent.workspace = Some("/home/ann/project".into());
        agent.grants.exec = vec!["/opt/tools".into(), "/usr/bin/jq".into()];
        agent.grants.deny = vec!["/opt/tools/secret".into()];
        let tools = [
            ("git", process("tool.git", "/usr/bin/git", &["git"])),
            (
                "log",
                process(
                    "tool.log",
                    "/usr/bin/git",
                    &["/usr/bin/git", "log", "--oneline"],
                ),
            ),
            (
                "test",
                process("tool.test", "/usr/bin/npm", &["npm", "test"]),
            ),
            (
                "lint",
                process("tool.lint", "/usr/bin/npm", &["npm", "run", "lint"]),
            ),
        ];
        BoxConfig {
            name: "x".into(),
            file: "/b/box.toml".into(),
            box_dir: "/state/x".into(),
            policy: None,
            agent,
            tools: tools
                .into_iter()
                .map(|(label, tool)| (label.to_owned(), tool))
                .collect(),
            egress: BTreeMap::new(),
            mcp: BTreeMap::new(),
            telemetry: crate::config::Telemetry::default(),
            gateway: crate::config::GatewayTable::default(),
            keep_history: 0,
            not_yet: Vec::new(),
        }
    }

    #[test]
    fn the_longest_command_wins() {
        let config = config();
        let choice = |line: &str| {
            let mut words = line.split(' ');
            let program = PathBuf::from(words.next().unwrap());
            let arguments: Vec<String> = words.map(str::to_owned).collect();
            match choose(&config, &program, &arguments) {
                Choice::Tool { label, .. } => format!("[{line}] tool {label}"),
                Choice::AgentExec => format!("[{line}] as the agent"),
                Choice::Refused(reason) => format!("[{line}] {reason}"),
            }
        };
        let lines = [
            "/usr/bin/git push",
            "/usr/bin/git log",
            "/usr/bin/git log --oneline -3",
            "/usr/bin/npm test",
            "/usr/bin/npm test -- unit",
            "/usr/bin/npm publish",
            "/usr/bin/npm",
            "/usr/bin/jq .",
            "/usr/bin/jqx",
            "/opt/tools/build/make all",
            "/opt/tools/secret/key",
            "/usr/bin/curl example.net",
        ];
        let report: Vec<String> = lines.iter().map(|line| choice(line)).collect();
        insta::assert_snapshot!("choices", report.join("\n"));
    }

    #[test]
    fn a_program_works_where_it_can_reach() {
        let mut tool = process("tool.git", "/usr/bin/git", &["git"]);
        let agent = Path::new("/home/ann/project");
        let (source, other) = (
            Path::new("/home/ann/project/src"),
            Path::new("/home/ann/other/x"),
        );
        assert_eq!(places(&tool, agent, source), (agent, source));
        assert_eq!(places(&tool, agent, other), (agent, agent));
        tool.grants.read = vec!["/home/ann/other".into()];
        assert_eq!(places(&tool, agent, other), (agent, other));
        let repository = Path::new("/srv/repo");
        tool.workspace = Some(repository.into());
        assert_eq!(places(&tool, agent, source), (repository, repository));
        assert_eq!(
            places(&tool, agent, Path::new("/srv/repo/src")),
            (repository, Path::new("/srv/repo/src"))
        );
    }
}
