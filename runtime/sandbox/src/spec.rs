//! What is asked for: one process, the paths it may reach, and where its network ends.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::PathBuf;

/// A process to run in a sandbox of its own. Every path is absolute and canonical.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ProcessSpec {
    /// `agent`, `tool.git`: how reports name it.
    pub name: String,
    pub role: Role,
    /// The program's file.
    pub program: PathBuf,
    /// `argv`, the first as the caller spelled it.
    pub argv: Vec<String>,
    /// Working directory.
    pub cwd: PathBuf,
    /// Enterable, and readable only where a grant says so.
    pub workspace: PathBuf,
    /// The whole environment.
    pub env: BTreeMap<String, String>,
    pub grants: Grants,
    /// Files shown in the view under other names, read-only and executable: the shell alias as
    /// `/bin/sh`. Name in the view, then file of the host.
    pub aliases: BTreeMap<PathBuf, PathBuf>,
    /// Loopback listeners made inside the sandbox's own network and handed to the launcher, in order.
    /// Each is announced to the process as an environment variable holding `127.0.0.1:<port>`, and `${NAME}`
    /// in a value of `env` stands for that too.
    pub listeners: Vec<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Role {
    /// The workload: reaches little itself, and the checkpoints over its listeners.
    Agent,
    /// A tool or MCP server: wider files (system programs and libraries), no checkpoint but the network's.
    Leaf,
}

/// The filesystem lists of `box.toml`, expanded.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Grants {
    pub read: Vec<PathBuf>,
    pub write: Vec<PathBuf>,
    pub read_file: Vec<PathBuf>,
    pub write_file: Vec<PathBuf>,
    pub list: Vec<PathBuf>,
    pub metadata: Vec<PathBuf>,
    pub exec: Vec<PathBuf>,
    pub deny: Vec<PathBuf>,
}

/// The environment with the listeners' own variables, and their addresses where other values name them.
pub(crate) fn announce(
    mut env: BTreeMap<String, String>,
    listeners: impl IntoIterator<Item = (String, String)>,
) -> BTreeMap<String, String> {
    for (name, address) in listeners {
        let named = format!("${{{name}}}");
        for value in env.values_mut().filter(|value| value.contains(&named)) {
            *value = value.replace(&named, &address);
        }
        env.insert(name, address);
    }
    env
}

#[cfg(test)]
mod tests {
    use super::announce;

    #[test]
    fn listeners_are_announced_in_their_variables_and_where_values_name_them() {
        let pair = |name: &str, value: &str| (name.to_owned(), value.to_owned());
        let env = [
            pair("HTTP_PROXY", "http://${GATEWAY}"),
            pair("PRICE", "${OTHER} $GATEWAY"),
        ];
        let announced = announce(env.into(), [pair("GATEWAY", "127.0.0.1:4000")]);
        let expected = [
            pair("GATEWAY", "127.0.0.1:4000"),
            pair("HTTP_PROXY", "http://127.0.0.1:4000"),
            pair("PRICE", "${OTHER} $GATEWAY"),
        ];
        assert_eq!(announced, expected.into());
    }
}
