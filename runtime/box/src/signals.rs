//! Signals that `box run` passes on to its workload, and the one that is for itself.

use nix::sys::signal::{SIGHUP, SIGINT, SIGKILL, SIGTERM, SIGUSR1, SigSet, Signal};
use std::sync::mpsc::sync_channel;
use std::time::Duration;

/// Between asking a workload to end and ending it.
const GRACE: Duration = Duration::from_secs(1);

/// The signals, held back from every thread that starts after this.
pub struct Signals(SigSet);

impl Signals {
    /// Call before any thread is started.
    pub fn hold() -> nix::Result<Signals> {
        let mut signals = SigSet::empty();
        for signal in [SIGINT, SIGTERM, SIGHUP, SIGUSR1] {
            signals.add(signal);
        }
        signals.thread_block()?;
        Ok(Signals(signals))
    }

    /// Passes them on from now on: `INT` as it is, `TERM` and `HUP` as `TERM`, then `KILL` after a second.
    /// `USR1` asks for a reload. What is asked for while one is under way is done once, behind it.
    pub fn forward(
        self,
        send: impl Fn(Signal) + Send + 'static,
        reload: impl Fn() + Send + 'static,
    ) -> std::io::Result<()> {
        let (ask, asked) = sync_channel(1);
        std::thread::Builder::new()
            .name("reload".into())
            .spawn(move || asked.iter().for_each(|()| reload()))?;
        let pass_on = move || {
            while let Ok(signal) = self.0.wait() {
                match signal {
                    SIGINT => send(SIGINT),
                    SIGUSR1 => {
                        let _ = ask.try_send(());
                    }
                    _ => {
                        send(SIGTERM);
                        std::thread::sleep(GRACE);
                        send(SIGKILL);
                    }
                }
            }
        };
        std::thread::Builder::new()
            .name("signals".into())
            .spawn(pass_on)
            .map(drop)
    }
}
