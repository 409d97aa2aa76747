//! The broker: takes connections from sandboxes on listeners that were made inside them, and runs what they
//! ask for through a checkpoint. Which sandbox asks is known from the listener, never from what is said.

pub mod frame;
mod session;

pub use session::{Input, Output, Runner, Stop, Stopped, Stream, Streams};

use box_authority::gate::Caller;
use std::net::{Shutdown, TcpListener};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// The variable that tells a sandbox where its broker listens.
pub const ADDRESS: &str = "BOX_BROKER";

/// Connections of one sandbox served at once.
const CONNECTIONS: usize = 64;

/// Serves the listener of one sandbox until it is gone.
pub fn serve(
    listener: TcpListener,
    caller: Caller,
    runner: Arc<dyn Runner>,
) -> std::io::Result<()> {
    let open = Arc::new(AtomicUsize::new(0));
    std::thread::Builder::new()
        .name("broker".into())
        .spawn(move || {
            for connection in listener.incoming() {
                let Ok(connection) = connection else {
                    // Out of descriptors, or the sandbox's network is gone: do not spin.
                    std::thread::sleep(std::time::Duration::from_millis(20));
                    continue;
                };
                let Some(place) = Place::take(&open) else {
                    session::refuse(&connection, "too many commands run at once");
                    continue;
                };
                let (caller, runner) = (caller.clone(), Arc::clone(&runner));
                let served =
                    std::thread::Builder::new()
                        .name("connection".into())
                        .spawn(move || {
                            session::serve(&connection, &caller, &*runner);
                            let _ = connection.shutdown(Shutdown::Both);
                            drop(place);
                        });
                // Without a thread the connection is dropped, and the alias says so.
                drop(served);
            }
        })?;
    Ok(())
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
