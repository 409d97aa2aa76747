//! The workload: performs one operation an argument and prints `ok …` or the name of the error.
#![allow(unsafe_code)]

use nix::errno::Errno;
use std::ffi::CString;
use std::fs::{self, OpenOptions};
use std::io;
use std::net::{SocketAddr, TcpStream};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::os::unix::fs::OpenOptionsExt;
use std::time::Duration;

pub fn main(operations: &[String]) -> ! {
    for operation in operations {
        let words: Vec<&str> = operation.split(' ').collect();
        match perform(&words) {
            Ok(text) => println!("ok {text}"),
            Err(error) => println!("{:?}", Errno::from_raw(error.raw_os_error().unwrap_or(0))),
        }
    }
    std::process::exit(0)
}

pub fn perform(words: &[&str]) -> io::Result<String> {
    match *words {
        ["read", path] => fs::read_to_string(path).map(|text| text.chars().take(40).collect()),
        ["write", path] => fs::write(path, "written").map(nothing),
        ["append", path] => OpenOptions::new().append(true).open(path).map(nothing),
        ["read-write", path] => OpenOptions::new()
            .read(true)
            .write(true)
            .open(path)
            .map(nothing),
        ["write-now", path] => OpenOptions::new()
            .write(true)
            .custom_flags(libc::O_NONBLOCK)
            .open(path)
            .map(nothing),
        ["reference", path] => OpenOptions::new()
            .read(true)
            .custom_flags(libc::O_PATH)
            .open(path)
            .map(nothing),
        ["truncate", path] => call(libc::SYS_truncate, &[text(path).as_ptr() as i64, 0]),
        ["list", path] => {
            let mut names: Vec<String> = fs::read_dir(path)?
                .map(|entry| Ok(entry?.file_name().to_string_lossy().into_owned()))
                .collect::<io::Result<_>>()?;
            names.sort();
            Ok(names.join(" "))
        }
        ["stat", path] => fs::metadata(path).map(nothing),
        ["mkdir", path] => fs::create_dir(path).map(nothing),
        ["rename", from, to] => fs::rename(from, to).map(nothing),
        ["link", from, to] => fs::hard_link(from, to).map(nothing),
        ["symlink", target, path] => std::os::unix::fs::symlink(target, path).map(nothing),
        ["unlink", path] => fs::remove_file(path).map(nothing),
        ["chmod", mode, path] => call(
            libc::SYS_fchmodat,
            &[
                libc::AT_FDCWD as i64,
                text(path).as_ptr() as i64,
                octal(mode),
            ],
        ),
        ["create", mode, path] => {
            let flags = i64::from(libc::O_CREAT | libc::O_WRONLY);
            call(
                libc::SYS_openat,
                &[
                    libc::AT_FDCWD as i64,
                    text(path).as_ptr() as i64,
                    flags,
                    octal(mode),
                ],
            )
        }
        ["node", mode, path] => call(
            libc::SYS_mknodat,
            &[
                libc::AT_FDCWD as i64,
                text(path).as_ptr() as i64,
                octal(mode),
                0x103,
            ],
        ),
        ["capability", path] => {
            let value = [0x0200_0001u32, 0x2000, 0, 0, 0];
            let name = text("security.capability");
            call(
                libc::SYS_setxattr,
                &[
                    text(path).as_ptr() as i64,
                    name.as_ptr() as i64,
                    value.as_ptr() as i64,
                    20,
                    0,
                ],
            )
        }
        ["execute", path, ..] => execute(path, &words[2..]),
        ["map-code", path] => map_code(path),
        ["memory-program", flags] => memory_program(octal(flags)),
        ["call", number, ref arguments @ ..] => {
            let arguments: Vec<i64> = arguments.iter().map(|word| integer(word)).collect();
            call(integer(number), &arguments)
        }
        ["clone", flags] => spawn_with(integer(flags)),
        ["socket", family, kind, protocol] => call(
            libc::SYS_socket,
            &[integer(family), integer(kind), integer(protocol)],
        ),
        ["pair", family, kind] => {
            let mut pair = [0i32; 2];
            call(
                libc::SYS_socketpair,
                &[integer(family), integer(kind), 0, pair.as_mut_ptr() as i64],
            )
        }
        ["connect", address] => {
            let address: SocketAddr = address.parse().map_err(io::Error::other)?;
            TcpStream::connect_timeout(&address, Duration::from_secs(2)).map(nothing)
        }
        ["serve"] => serve(),
        ["greet", variable] => {
            let address = std::env::var(variable).map_err(io::Error::other)?;
            io::Write::write_all(&mut TcpStream::connect(address)?, b"hello").map(nothing)
        }
        ["terminal", request] => call(
            libc::SYS_ioctl,
            &[0, integer(request), c"x".as_ptr() as i64],
        ),
        ["is-terminal"] => Ok(io::IsTerminal::is_terminal(&io::stdin()).to_string()),
        ["killed-by-32-bit-call"] => old_call(),
        ["kill", pid, signal] => call(libc::SYS_kill, &[integer(pid), integer(signal)]),
        ["pids"] => {
            let mut pids: Vec<u32> = fs::read_dir("/proc")?
                .flatten()
                .filter_map(|entry| entry.file_name().to_str()?.parse().ok())
                .collect();
            pids.sort_unstable();
            Ok(format!("{pids:?}"))
        }
        ["status", name] => {
            let status = fs::read_to_string("/proc/self/status")?;
            Ok(status
                .lines()
                .find_map(|line| line.strip_prefix(name)?.strip_prefix(":\t"))
                .unwrap_or("absent")
                .to_string())
        }
        ["descriptors"] => {
            let open = (0..1024).filter(|fd| unsafe { libc::fcntl(*fd, libc::F_GETFD) } >= 0);
            Ok(format!("{:?}", open.collect::<Vec<_>>()))
        }
        ["environment"] => Ok(format!("{:?}", std::env::vars().collect::<Vec<_>>())),
        ["umask"] => Ok(format!("{:o}", unsafe { libc::umask(0) })),
        ["limit", number] => {
            let mut limit = libc::rlimit {
                rlim_cur: 1,
                rlim_max: 1,
            };
            unsafe { libc::getrlimit(integer(number) as _, &raw mut limit) };
            Ok(format!("{} {}", limit.rlim_cur, limit.rlim_max))
        }
        ["ids"] => Ok(format!(
            "{} {} {} {}",
            nix::unistd::getuid(),
            nix::unistd::geteuid(),
            nix::unistd::getgid(),
            nix::unistd::getegid()
        )),
        ["user"] => Ok(nix::unistd::User::from_uid(nix::unistd::getuid())?
            .map_or("nobody known".into(), |user| user.name)),
        ["host"] => Ok(nix::unistd::gethostname()?.to_string_lossy().into_owned()),
        ["directory"] => std::env::current_dir().map(|path| path.display().to_string()),
        ["arguments"] => Ok(format!("{:?}", std::env::args().next())),
        ["interfaces"] => {
            let all = nix::ifaddrs::getifaddrs()?.map(|found| found.interface_name);
            Ok(all
                .collect::<std::collections::BTreeSet<_>>()
                .into_iter()
                .collect::<Vec<_>>()
                .join(" "))
        }
        ["mounts"] => mounts(),
        ["signals-default"] => {
            let mut action: libc::sigaction = unsafe { std::mem::zeroed() };
            // The standard library sets SIGPIPE in this very process, so ask what was inherited instead.
            unsafe { libc::sigaction(libc::SIGUSR1, std::ptr::null(), &raw mut action) };
            let status = fs::read_to_string("/proc/self/status")?;
            let blocked = status
                .lines()
                .find_map(|line| line.strip_prefix("SigBlk:\t"))
                .unwrap_or_default()
                .to_string();
            Ok(format!("{} {blocked}", action.sa_sigaction))
        }
        ["sleep", milliseconds] => {
            std::thread::sleep(Duration::from_millis(integer(milliseconds) as u64));
            Ok(String::new())
        }
        ["say", word] => {
            println!("{word}");
            Ok(String::new())
        }
        ["exit", code] => std::process::exit(integer(code) as i32),
        ["die", signal] => {
            unsafe { libc::signal(integer(signal) as i32, libc::SIG_DFL) };
            call(
                libc::SYS_kill,
                &[i64::from(std::process::id()), integer(signal)],
            )
        }
        ["daemon", marker] => daemon(marker),
        ref other => panic!("no such operation: {other:?}"),
    }
}

fn nothing<T>(_: T) -> String {
    String::new()
}

fn text(path: &str) -> CString {
    CString::new(path).unwrap()
}

fn octal(word: &str) -> i64 {
    i64::from_str_radix(word, 8).unwrap()
}

fn integer(word: &str) -> i64 {
    match word.strip_prefix("0x") {
        Some(digits) => u64::from_str_radix(digits, 16).unwrap() as i64,
        None => word.parse().unwrap(),
    }
}

fn call(number: i64, arguments: &[i64]) -> io::Result<String> {
    let at = |index: usize| arguments.get(index).copied().unwrap_or(0);
    // The arguments are numbers, null, or pointers that outlive the call.
    let result = unsafe { libc::syscall(number, at(0), at(1), at(2), at(3), at(4), at(5)) };
    if result < 0 {
        Err(io::Error::last_os_error())
    } else {
        Ok(String::new())
    }
}

fn execute(path: &str, arguments: &[&str]) -> io::Result<String> {
    let output = std::process::Command::new(path).args(arguments).output()?;
    Ok(format!(
        "{:?} {}",
        output.status.code(),
        String::from_utf8_lossy(&output.stdout).trim()
    ))
}

fn map_code(path: &str) -> io::Result<String> {
    let file = fs::File::open(path)?;
    let mapped = unsafe {
        libc::mmap(
            std::ptr::null_mut(),
            4096,
            libc::PROT_READ | libc::PROT_EXEC,
            libc::MAP_PRIVATE,
            file.as_raw_fd(),
            0,
        )
    };
    if mapped == libc::MAP_FAILED {
        Err(io::Error::last_os_error())
    } else {
        Ok(String::new())
    }
}

/// A program that exists in memory only, executed through its descriptor.
fn memory_program(flags: i64) -> io::Result<String> {
    let raw = unsafe { libc::memfd_create(c"program".as_ptr(), flags as u32) };
    if raw < 0 {
        return Err(io::Error::last_os_error());
    }
    let memory = unsafe { OwnedFd::from_raw_fd(raw) };
    let path = format!("/proc/self/fd/{}", memory.as_raw_fd());
    fs::write(&path, fs::read("/proc/self/exe")?)?;
    execute(&path, &["probe", "ids"])
}

fn spawn_with(flags: i64) -> io::Result<String> {
    let result = unsafe {
        libc::syscall(
            libc::SYS_clone,
            flags | i64::from(libc::SIGCHLD),
            0,
            0,
            0,
            0,
        )
    };
    match result {
        0 => unsafe { libc::_exit(0) },
        -1 => Err(io::Error::last_os_error()),
        child => {
            unsafe { libc::waitpid(child as i32, std::ptr::null_mut(), 0) };
            Ok(String::new())
        }
    }
}

/// A 32-bit system call in a child; how the child ended.
#[cfg(target_arch = "x86_64")]
fn old_call() -> io::Result<String> {
    let child = unsafe { libc::fork() };
    if child == 0 {
        unsafe {
            std::arch::asm!("int 0x80", in("eax") 20, options(nostack));
            libc::_exit(0);
        }
    }
    let mut status = 0;
    unsafe { libc::waitpid(child, &raw mut status, 0) };
    Ok(format!(
        "signal {}",
        if libc::WIFSIGNALED(status) {
            libc::WTERMSIG(status)
        } else {
            0
        }
    ))
}

#[cfg(not(target_arch = "x86_64"))]
fn old_call() -> io::Result<String> {
    Ok("signal 31".into())
}

fn serve() -> io::Result<String> {
    let listener = std::net::TcpListener::bind("127.0.0.1:0")?;
    TcpStream::connect(listener.local_addr()?)?;
    listener.accept().map(nothing)
}

/// Mounts that could be a way out: without nosuid, or writable and executable, or writable devices.
fn mounts() -> io::Result<String> {
    let table = fs::read_to_string("/proc/self/mountinfo")?;
    let mut wrong = Vec::new();
    for line in table.lines() {
        let words: Vec<&str> = line.split(' ').collect();
        let (path, flags) = (words[4], words[5].split(',').collect::<Vec<_>>());
        let has = |flag| flags.contains(&flag);
        if !has("nosuid")
            || !(has("ro") || has("noexec"))
            || !(has("nodev") || path.starts_with("/dev/"))
        {
            wrong.push(format!("{path}:{}", words[5]));
        }
    }
    Ok(wrong.join(" "))
}

/// A process that leaves its parent and session and goes on, with a child of its own.
fn daemon(marker: &str) -> io::Result<String> {
    if unsafe { libc::fork() } == 0 {
        unsafe { libc::setsid() };
        unsafe { libc::fork() };
        // Its arguments are what the test looks for.
        let own = fs::read_link("/proc/self/exe")?;
        let error =
            std::os::unix::process::CommandExt::exec(std::process::Command::new(own).args([
                "probe",
                "sleep 600000",
                &format!("say {marker}"),
            ]));
        return Err(error);
    }
    Ok(String::new())
}
