//! The broker: takes connections from sandboxes on listeners that were made inside them, and runs what they
//! ask for through a checkpoint. Which sandbox asks is known from the listener, never from what is said.

pub mod frame;
mod session;

pub use session::{Input, Output, Runner, Stop, Stopped, Stream, Streams};

use box_authority::gate::Caller;
use std::net::{Shutdown, TcpListener};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

/// The variable that tells a sandbox where its broker listens.
pub const ADDRESS: &str = "BOX_BROKER";

/// Connections of one sandbox served at once.
const CONNECTIONS: usize = 64;

/// A listener being served.
pub struct Served {
    open: Arc<AtomicUsize>,
}

impl Served {
    /// Waits until no connection is open, but not for ever.
    pub fn wind_up(&self, patience: Duration) {
        let until = Instant::now() + patience;
        while self.open.load(Ordering::Acquire) > 0 && Instant::now() < until {
            std::thread::sleep(Duration::from_millis(5));
        }
    }
}

/// Serves the listener of one sandbox until it is gone.
pub fn serve(
    listener: TcpListener,
    caller: Caller,
    runner: Arc<dyn Runner>,
) -> std::io::Result<Served> {
    let open = Arc::new(AtomicUsize::new(0));
    let served = Served {
        open: Arc::clone(&open),
    };
    std::thread::Builder::new()
        .name("broker".into())
        .spawn(move || {
            for connection in listener.incoming() {
                let Ok(connection) = connection else {
                    // Out of descriptors, or the sandbox's network is gone: do not spin.
                    std::thread::sleep(Duration::from_millis(20));
                    continue;
                };
                let Some(place) = Place::take(&open) else {
                    session::refuse(&connection, "too many commands run at once");
                    continue;
                };
                let (caller, runner) = (caller.clone(), Arc::clone(&runner));
                let thread =
                    std::thread::Builder::new()
                        .name("connection".into())
                        .spawn(move || {
                            session::serve(&connection, &caller, &*runner);
                            let _ = connection.shutdown(Shutdown::Both);
                            drop(place);
                        });
                // Without a thread the connection is dropped, and the alias says so.
                drop(thread);
            }
        })?;
    Ok(served)
}

/// One of the places for connections, given back when dropped.
struct Place(Arc<AtomicUsize>);

impl Place {
    fn take(open: &Arc<AtomicUsize>) -> Option<Place> {
        let taken = open.fetch_update(Ordering::AcqRel, Ordering::Acquire, |n| {
            (n < CONNECTIONS).then_some(n + 1)
        });
        taken.is_ok().then(|| Place(Arc::clone(open)))
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::AcqRel);
    }
}
