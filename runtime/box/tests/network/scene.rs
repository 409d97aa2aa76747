//! A box in a scratch folder, whose names lead to servers of the test.

use std::path::PathBuf;
use std::process::{Command, Output, Stdio};

pub struct Scene {
    scratch: tempfile::TempDir,
}

/// Everything is permitted but what `forbids` says.
pub fn policy(forbids: &str) -> String {
    format!("@id(\"all\")\npermit (principal, action, resource);\n{forbids}\n")
}

impl Scene {
    /// `names` all lead to one port of loopback, and `root` is the authority of their certificates.
    pub fn new(names: &[&str], port: u16, root: &str, policy: &str, tables: &str) -> Scene {
        let scene = Scene {
            scratch: tempfile::tempdir().unwrap(),
        };
        for folder in ["project", "box"] {
            std::fs::create_dir(scene.path(folder)).unwrap();
        }
        scene.write("box/root.pem", root);
        scene.write("box/policy.dw", policy);
        let hosts: Vec<String> = names
            .iter()
            .map(|name| format!("\"{name}\" = \"127.0.0.1:{port}\""))
            .collect();
        let lifted: Vec<String> = names.iter().map(|name| format!("\"{name}:443\"")).collect();
        scene.write(
            "box/box.toml",
            &format!(
                r#"
name = "clients"
policy = "policy.dw"
[agent]
command = ["/bin/sh", "-c"]
workspace = "../project"
[agent.filesystem]
read = ["~/project"]
exec = ["/usr/bin/cat", "/usr/bin/grep"]
[tool.curl]
command = ["curl"]
[gateway]
allow_private = [{}]
hosts = {{ {} }}
ca_files = ["root.pem"]
{tables}
"#,
                lifted.join(", "),
                hosts.join(", "),
            ),
        );
        scene
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.scratch.path().canonicalize().unwrap().join(name)
    }

    pub fn write(&self, name: &str, text: &str) {
        std::fs::write(self.path(name), text).unwrap();
    }

    /// The program `box` with nothing in its environment but what it needs.
    pub fn run(&self, words: &[&str]) -> Output {
        let home = self.path("");
        Command::new(env!("CARGO_BIN_EXE_box"))
            .args(words)
            .current_dir(self.path("project"))
            .env_clear()
            .env("HOME", home.display().to_string().trim_end_matches('/'))
            .env("PATH", "/usr/bin:/bin")
            .env("API_KEY", "the-real-value-0123456789")
            .stdin(Stdio::null())
            .output()
            .unwrap()
    }

    /// What the agent prints that runs `script`.
    pub fn agent(&self, script: &str) -> String {
        let config = self.path("box/box.toml").display().to_string();
        let output = self.run(&["run", "--config", &config, "--", script]);
        let told = String::from_utf8_lossy(&output.stderr);
        let told = told
            .split_once("starting workload\n")
            .map_or(&*told, |(_, told)| told);
        let said = String::from_utf8_lossy(&output.stdout);
        let home = self.path("").display().to_string();
        format!("{said}{told}").replace(home.trim_end_matches('/'), "HOME")
    }

    /// Everything the box wrote down.
    pub fn written(&self) -> String {
        let mut text = String::new();
        let mut folders = vec![self.path(".local")];
        while let Some(folder) = folders.pop() {
            for entry in std::fs::read_dir(folder).unwrap().flatten() {
                if entry.path().is_dir() {
                    folders.push(entry.path());
                } else if let Ok(bytes) = std::fs::read(entry.path()) {
                    text.push_str(&String::from_utf8_lossy(&bytes));
                }
            }
        }
        text
    }
}
