use super::*;
use crate::host::fake::Fake;

fn paths(names: &[&str]) -> Vec<PathBuf> {
    names.iter().map(PathBuf::from).collect()
}

fn shown(grants: &Grants, role: Role, host: &Host) -> String {
    let refused = check_grants(grants, role, host);
    let lines: Vec<String> = refused
        .iter()
        .map(|refusal| refusal.sentence("agent"))
        .collect();
    lines.join("\n")
}

fn host() -> Host {
    Fake::merged_usr()
        .file("/w/src/main.rs")
        .file("/w/secret/key")
        .directory("/w/out")
        .link("/w/link", "src")
        .fifo("/w/pipe")
        .program("/w/run", 0o755, &[])
        .file("/home/me/.aws/credentials")
        .file("/home/me/.cargo/credentials.toml")
        .directory("/home/me/code")
        .host(7)
}

#[test]
fn shape_refusals() {
    let grants = Grants {
        read: paths(&[
            "relative",
            "/w/*",
            "/w/../etc",
            "/w/src",
            "/w/src",
            "/w/a\u{7}b",
        ]),
        ..Grants::default()
    };
    insta::assert_snapshot!(shown(&grants, Role::Agent, &host()));
}

#[test]
fn host_refusals() {
    let grants = Grants {
        read: paths(&[
            "/w/none",
            "/w/link",
            "/w/link/main.rs",
            "/w//src/",
            "/w/pipe",
        ]),
        write: paths(&["/w", "/w/out"]),
        read_file: paths(&["/w/src"]),
        list: paths(&["/w/src/main.rs"]),
        exec: paths(&["/w/src/main.rs", "/usr/bin/su"]),
        deny: paths(&["/w/secret", "/w/absent"]),
        ..Grants::default()
    };
    insta::assert_snapshot!(shown(&grants, Role::Agent, &host()));
}

#[test]
fn reach_refusals() {
    let grants = Grants {
        read: paths(&[
            "/",
            "/usr",
            "/w/secret/key",
            "/home/me",
            "/proc",
            "/dev/kvm",
            "/dev/shm",
        ]),
        write: paths(&["/usr/lib", "/home"]),
        list: paths(&["/home/me/.aws", "/tmp"]),
        deny: paths(&["/w/secret"]),
        ..Grants::default()
    };
    insta::assert_snapshot!(shown(&grants, Role::Agent, &host()));
}

#[test]
fn a_tool_has_fewer_lists_and_a_kernel_without_landlock_fewer_still() {
    let grants = Grants {
        list: paths(&["/w/src"]),
        metadata: paths(&["/w/out"]),
        exec: paths(&["/w/run"]),
        ..Grants::default()
    };
    let mut host = host();
    host.landlock = 0;
    insta::assert_snapshot!(shown(&grants, Role::Leaf, &host));
}

#[test]
fn what_is_fine() {
    let grants = Grants {
        read: paths(&[
            "/w/src",
            "/usr/lib",
            "/dev/null",
            "/home/me/.aws/credentials",
            "/home/me/code",
        ]),
        write: paths(&["/w/out"]),
        read_file: paths(&["/home/me/.cargo/credentials.toml"]),
        exec: paths(&["/w/run"]),
        deny: paths(&["/w/secret"]),
        ..Grants::default()
    };
    let host = host();
    assert_eq!(check_grants(&grants, Role::Agent, &host), []);
    let exposed: Vec<_> = exposures(&grants, &host.homes)
        .into_iter()
        .map(|found| (found.list, found.store))
        .collect();
    assert_eq!(
        exposed,
        [
            (List::Read, PathBuf::from("/home/me/.aws")),
            (
                List::ReadFile,
                PathBuf::from("/home/me/.cargo/credentials.toml")
            ),
        ]
    );
}
