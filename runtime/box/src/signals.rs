//! Signals that `box run` passes on to its workload.

use nix::sys::signal::{SIGHUP, SIGINT, SIGKILL, SIGTERM, SigSet, Signal};
use std::time::Duration;

/// Between asking a workload to end and ending it.
const GRACE: Duration = Duration::from_secs(1);

/// The signals, held back from every thread that starts after this.
pub struct Signals(SigSet);

impl Signals {
    /// Call before any thread is started.
    pub fn hold() -> nix::Result<Signals> {
        let mut signals = SigSet::empty();
        for signal in [SIGINT, SIGTERM, SIGHUP] {
            signals.add(signal);
        }
        signals.thread_block()?;
        Ok(Signals(signals))
    }

    /// Passes them on from now on: `INT` as it is, `TERM` and `HUP` as `TERM`, then `KILL` after a second.
    pub fn forward(self, send: impl Fn(Signal) + Send + 'static) -> std::io::Result<()> {
        let pass_on = move || {
            while let Ok(signal) = self.0.wait() {
                if signal == SIGINT {
                    send(SIGINT);
                } else {
                    send(SIGTERM);
                    std::thread::sleep(GRACE);
                    send(SIGKILL);
                }
            }
        };
        std::thread::Builder::new()
            .name("signals".into())
            .spawn(pass_on)
            .map(drop)
    }
}
