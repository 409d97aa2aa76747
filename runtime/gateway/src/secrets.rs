//! Secrets, where they are read from, and what must never print them.

use smol_str::SmolStr;
use std::fmt::{Debug, Formatter};
use std::path::{Path, PathBuf};
use thiserror::Error;
use zeroize::Zeroizing;

/// A secret value: wiped when dropped, absent from `Debug`.
#[derive(Clone)]
pub struct Secret(Zeroizing<String>);

impl Secret {
    /// Refuses what would break a header or says nothing. `from` names the place in the fault.
    pub fn new(value: String, from: &str) -> Result<Secret, SecretFault> {
        let value = Zeroizing::new(value);
        if value.trim().is_empty() {
            return Err(SecretFault::Blank(from.into()));
        }
        if value.chars().any(char::is_control) {
            return Err(SecretFault::Control(from.into()));
        }
        Ok(Secret(value))
    }

    pub fn expose(&self) -> &str {
        &self.0
    }
}

impl Debug for Secret {
    fn fmt(&self, f: &mut Formatter<'_>) -> std::fmt::Result {
        f.write_str("Secret(..)")
    }
}

/// Keys a request is signed with.
#[derive(Clone, Debug)]
pub struct AwsKeys {
    pub access_key_id: String,
    pub secret_access_key: Secret,
    pub session_token: Option<Secret>,
}

/// `secret.ref`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SecretRef {
    Environment(SmolStr),
    File(PathBuf),
    AwsProfile(SmolStr),
}

/// Why a secret cannot be had. Says where, never what.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum SecretFault {
    #[error("credential variable {0} is not set, or holds only whitespace")]
    Unset(SmolStr),
    #[error("{0} holds only whitespace")]
    Blank(String),
    #[error("{0} holds a control character")]
    Control(String),
    #[error("{path} cannot be read: {kind}")]
    Unreadable {
        path: String,
        kind: std::io::ErrorKind,
    },
    #[error("AWS profile {0} is in neither the credentials nor the config file")]
    NoProfile(SmolStr),
    #[error("AWS profile {profile} has no {key}")]
    NoKey { profile: SmolStr, key: &'static str },
    #[error("AWS profile {profile} uses `{key}`; only static keys are read")]
    NotStatic { profile: SmolStr, key: String },
}

/// Where real values come from. Every one is read outside the sandbox.
pub trait SecretSource: Send + Sync {
    fn environment(&self, name: &str) -> Result<Secret, SecretFault>;
    fn file(&self, path: &Path) -> Result<Secret, SecretFault>;
    fn aws_profile(&self, name: &str) -> Result<AwsKeys, SecretFault>;
}

/// The operator's own environment and files.
#[derive(Clone, Debug)]
pub struct HostSecrets {
    /// The AWS credentials file, then the config file.
    pub aws_files: [PathBuf; 2],
}

impl HostSecrets {
    /// Where `AWS_SHARED_CREDENTIALS_FILE` and `AWS_CONFIG_FILE` point, or the usual files under `home`.
    pub fn new(home: &Path) -> HostSecrets {
        let file = |variable: &str, usual: &str| {
            std::env::var_os(variable)
                .map(PathBuf::from)
                .unwrap_or_else(|| home.join(".aws").join(usual))
        };
        HostSecrets {
            aws_files: [
                file("AWS_SHARED_CREDENTIALS_FILE", "credentials"),
                file("AWS_CONFIG_FILE", "config"),
            ],
        }
    }
}

impl SecretSource for HostSecrets {
    fn environment(&self, name: &str) -> Result<Secret, SecretFault> {
        match std::env::var(name) {
            Ok(value) if !value.trim().is_empty() => {
                Secret::new(value, &format!("credential variable {name}"))
            }
            Ok(_) | Err(std::env::VarError::NotPresent) => Err(SecretFault::Unset(name.into())),
            Err(std::env::VarError::NotUnicode(_)) => {
                Err(SecretFault::Control(format!("credential variable {name}")))
            }
        }
    }

    fn file(&self, path: &Path) -> Result<Secret, SecretFault> {
        let place = path.display().to_string();
        let mut text = std::fs::read_to_string(path).map_err(|fault| SecretFault::Unreadable {
            path: place.clone(),
            kind: fault.kind(),
        })?;
        // Editors end a file with a line end; it is no part of the secret.
        if text.ends_with('\n') {
            text.pop();
            if text.ends_with('\r') {
                text.pop();
            }
        }
        Secret::new(text, &place)
    }

    fn aws_profile(&self, name: &str) -> Result<AwsKeys, SecretFault> {
        let mut entries = Vec::new();
        let mut found = false;
        for (place, config) in self.aws_files.iter().zip([false, true]) {
            match std::fs::read_to_string(place) {
                Ok(text) => {
                    let text = Zeroizing::new(text);
                    if let Some(of_profile) = profile_entries(&text, name, config) {
                        found = true;
                        entries.extend(of_profile);
                    }
                }
                Err(fault) if fault.kind() == std::io::ErrorKind::NotFound => {}
                Err(fault) => {
                    return Err(SecretFault::Unreadable {
                        path: place.display().to_string(),
                        kind: fault.kind(),
                    });
                }
            }
        }
        if !found {
            return Err(SecretFault::NoProfile(name.into()));
        }
        static_keys(&entries, name)
    }
}

/// The entries of one profile of an AWS file. In the config file a profile's section is `[profile NAME]`.
fn profile_entries(
    text: &str,
    name: &str,
    config: bool,
) -> Option<Vec<(String, Zeroizing<String>)>> {
    let mut found = None;
    let mut inside = false;
    for line in text.lines() {
        let trimmed = line.trim();
        if trimmed.is_empty() || trimmed.starts_with(['#', ';']) {
            continue;
        }
        if let Some(section) = trimmed
            .strip_prefix('[')
            .and_then(|rest| rest.split(']').next())
        {
            let section = section.trim();
            let profile = if config && section != "default" {
                section.strip_prefix("profile ").map(str::trim)
            } else {
                Some(section)
            };
            inside = profile == Some(name);
            if inside {
                found.get_or_insert_with(Vec::new);
            }
        } else if inside
            && !line.starts_with([' ', '\t'])
            && let Some((key, value)) = trimmed.split_once('=')
            && let Some(entries) = &mut found
        {
            entries.push((
                key.trim().to_ascii_lowercase(),
                Zeroizing::new(value.trim().to_owned()),
            ));
        }
    }
    found
}

fn static_keys(
    entries: &[(String, Zeroizing<String>)],
    profile: &str,
) -> Result<AwsKeys, SecretFault> {
    let dynamic = |key: &str| {
        key.starts_with("sso_")
            || matches!(
                key,
                "role_arn" | "source_profile" | "web_identity_token_file" | "credential_process"
            )
    };
    if let Some((key, _)) = entries.iter().find(|(key, _)| dynamic(key)) {
        return Err(SecretFault::NotStatic {
            profile: profile.into(),
            key: key.clone(),
        });
    }
    let value = |key: &str| {
        entries
            .iter()
            .find(|(name, _)| name == key)
            .map(|(_, value)| value.as_str())
    };
    let need = |key: &'static str| {
        value(key).ok_or(SecretFault::NoKey {
            profile: profile.into(),
            key,
        })
    };
    let place = |key: &str| format!("{key} of AWS profile {profile}");
    Ok(AwsKeys {
        access_key_id: Secret::new(
            need("aws_access_key_id")?.to_owned(),
            &place("aws_access_key_id"),
        )?
        .expose()
        .to_owned(),
        secret_access_key: Secret::new(
            need("aws_secret_access_key")?.to_owned(),
            &place("aws_secret_access_key"),
        )?,
        session_token: match value("aws_session_token") {
            Some(token) => Some(Secret::new(token.to_owned(), &place("aws_session_token"))?),
            None => None,
        },
    })
}

#[cfg(test)]
mod tests {
    use super::{HostSecrets, Secret, SecretFault, SecretSource};

    fn home(credentials: &str, config: &str) -> (tempfile::TempDir, HostSecrets) {
        let dir = tempfile::tempdir().unwrap();
        let files = [dir.path().join("credentials"), dir.path().join("config")];
        std::fs::write(&files[0], credentials).unwrap();
        std::fs::write(&files[1], config).unwrap();
        (dir, HostSecrets { aws_files: files })
    }

    #[test]
    fn static_keys_of_a_profile() {
        let (_dir, secrets) = home(
            "# mine\n[default]\naws_access_key_id = A\naws_secret_access_key = S\n\n[work]\naws_access_key_id=AKID\naws_secret_access_key = k/e=y\naws_session_token = t\n",
            "[profile work]\nregion = eu-west-1\ns3 =\n  role_arn = not-a-key\n[profile sso]\nsso_start_url = https://x\n[profile role]\nrole_arn = r\n",
        );
        let keys = secrets.aws_profile("work").unwrap();
        assert_eq!(
            (keys.access_key_id.as_str(), keys.secret_access_key.expose()),
            ("AKID", "k/e=y")
        );
        assert_eq!(keys.session_token.unwrap().expose(), "t");
        assert_eq!(secrets.aws_profile("default").unwrap().access_key_id, "A");
        assert_eq!(
            secrets.aws_profile("none").unwrap_err(),
            SecretFault::NoProfile("none".into())
        );
        insta::assert_snapshot!(secrets.aws_profile("sso").unwrap_err(), @"AWS profile sso uses `sso_start_url`; only static keys are read");
        insta::assert_snapshot!(secrets.aws_profile("role").unwrap_err(), @"AWS profile role uses `role_arn`; only static keys are read");
    }

    #[test]
    fn files_lose_one_line_end() {
        let dir = tempfile::tempdir().unwrap();
        let place = dir.path().join("token");
        let (_home, secrets) = home("", "");
        std::fs::write(&place, "tok en\r\n").unwrap();
        assert_eq!(secrets.file(&place).unwrap().expose(), "tok en");
        std::fs::write(&place, "two\nlines\n").unwrap();
        assert!(matches!(secrets.file(&place), Err(SecretFault::Control(_))));
        std::fs::write(&place, " \n").unwrap();
        assert!(matches!(secrets.file(&place), Err(SecretFault::Blank(_))));
        assert!(matches!(
            secrets.file(&dir.path().join("none")),
            Err(SecretFault::Unreadable { .. })
        ));
    }

    #[test]
    fn never_printed() {
        let secret = Secret::new("hunter2hunter2".into(), "X").unwrap();
        assert!(!format!("{secret:?}").contains("hunter"));
        let fault = Secret::new("hunter2\r\nx: y".into(), "X").unwrap_err();
        assert!(!format!("{fault} {fault:?}").contains("hunter"));
    }
}
