//! What every connection of a gateway shares, and how it asks the authority.

use crate::addresses::Lifts;
use crate::config::Limits;
use crate::edges::{Edges, Notice};
use crate::hosts::Hosts;
use crate::routes::Routes;
use crate::scrub::Needles;
use crate::tls::CertificateAuthority;
use box_authority::action::{Action, Outcome};
use box_authority::denial::{Denial, DenyCause};
use box_authority::gate::{Caller, Gate, Permit};
use std::sync::Arc;
use tokio_rustls::TlsConnector;

pub struct Core {
    pub gate: Arc<dyn Gate>,
    pub edges: Edges,
    pub routes: Arc<Routes>,
    /// Secrets that must not stand in what a sandbox sends.
    pub secrets: Arc<Needles>,
    pub lifts: Lifts,
    pub hosts: Hosts,
    pub authority: CertificateAuthority,
    pub upstream: TlsConnector,
    pub limits: Limits,
}

/// A permit, given back without stalling the run time: the authority waits for its disk.
pub struct Leave(Option<Box<dyn Permit>>);

impl Leave {
    pub async fn complete(mut self, outcome: Outcome) {
        if let Some(permit) = self.0.take() {
            // The outcome is on record before the answer goes out. A panic in there is the authority's.
            let _ = tokio::task::spawn_blocking(move || permit.complete(outcome)).await;
        }
    }
}

impl Drop for Leave {
    fn drop(&mut self) {
        if let Some(permit) = self.0.take() {
            match tokio::runtime::Handle::try_current() {
                Ok(runtime) => drop(runtime.spawn_blocking(move || drop(permit))),
                Err(_) => drop(permit),
            }
        }
    }
}

impl Core {
    pub async fn decide(&self, caller: &Caller, action: Action) -> Result<Leave, Denial> {
        let (gate, caller) = (Arc::clone(&self.gate), caller.clone());
        let (name, target) = (action.name().into(), action.target());
        match tokio::task::spawn_blocking(move || gate.decide(&caller, action)).await {
            Ok(verdict) => verdict.map(|permit| Leave(Some(permit))),
            Err(fault) => Err(Denial {
                action: name,
                target,
                cause: DenyCause::Fault(fault.to_string()),
            }),
        }
    }

    pub fn notice(&self, caller: &Caller, notice: Notice) {
        self.edges.watch.notice(caller, notice);
    }
}
