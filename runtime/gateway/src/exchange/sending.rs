//! The connection to the server, and the request on it.

use super::message::Leaves;
use super::{Exchange, Upstream};
use crate::body::{Body, Sightings};
use crate::connect;
use crate::reply::{Refusal, UpstreamFault};
use crate::tls::server_name;
use http::{Request, Response};
use hyper::client::conn::http1::{self, SendRequest};
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::time::timeout;

impl Exchange<'_> {
    /// Sends it on a connection that is or can be opened. Before the first byte is out, failure is certain;
    /// after it, the permits are dropped, which records that nobody knows.
    pub(super) async fn send(
        &mut self,
        request: Request<Body>,
        leaves: Leaves,
        sightings: &Sightings,
        target: &str,
    ) -> Result<(Response<Body>, Leaves), Refusal> {
        let mut request = request;
        let mut fresh = !matches!(self.upstream, Upstream::Open(..));
        loop {
            let mut sender = match self.sender(target).await {
                Ok(sender) => sender,
                Err(refusal) => {
                    leaves.failed().await;
                    return Err(refusal);
                }
            };
            let fault =
                match timeout(self.core.limits.reply, sender.try_send_request(request)).await {
                    Ok(Ok(reply)) => {
                        *self.upstream = Upstream::Open(self.origin.authority.clone(), sender);
                        return Ok((reply.map(crate::body::incoming), leaves));
                    }
                    Err(_) => UpstreamFault::Slow,
                    Ok(Err(mut fault)) => match fault.take_message() {
                        // An idle connection the server had closed.
                        Some(unsent) if !fresh => {
                            fresh = true;
                            request = unsent;
                            *self.upstream = Upstream::None;
                            continue;
                        }
                        Some(_) => {
                            leaves.failed().await;
                            return Err(self
                                .broken(target, UpstreamFault::Broken(fault.error().to_string())));
                        }
                        None => UpstreamFault::Broken(fault.error().to_string()),
                    },
                };
            drop(leaves);
            if sightings.seen().leak {
                return Err(self.leak("the body".into()));
            }
            return Err(self.broken(target, fault));
        }
    }

    async fn sender(&mut self, target: &str) -> Result<SendRequest<Body>, Refusal> {
        if !self.upstream.serves(&self.origin.authority) {
            self.dial().await?;
        }
        match std::mem::take(self.upstream) {
            Upstream::Open(at, mut sender) => {
                if sender.ready().await.is_ok() {
                    return Ok(sender);
                }
                *self.upstream = Upstream::None;
                let stream = connect::open(self.core, self.caller, &at).await?;
                self.handshake(stream, target).await
            }
            Upstream::Dialled(_, stream) => self.handshake(stream, target).await,
            Upstream::None => Err(self.broken(target, UpstreamFault::Dial("no connection".into()))),
        }
    }

    async fn handshake(
        &self,
        stream: TcpStream,
        target: &str,
    ) -> Result<SendRequest<Body>, Refusal> {
        if !self.origin.tls {
            return self.speak(stream, target).await;
        }
        let tls = |text: String| self.broken(target, UpstreamFault::Tls(text));
        let name = server_name(&self.origin.authority.host)
            .ok_or_else(|| tls("the host is no server name".into()))?;
        match timeout(
            self.core.limits.handshake,
            self.core.upstream.connect(name, stream),
        )
        .await
        {
            Ok(Ok(stream)) => self.speak(stream, target).await,
            Ok(Err(fault)) => Err(tls(fault.to_string())),
            Err(_) => Err(tls("no answer in time".into())),
        }
    }

    async fn speak(
        &self,
        stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
        target: &str,
    ) -> Result<SendRequest<Body>, Refusal> {
        let (sender, connection) = http1::Builder::new()
            .max_buf_size(256 * 1024)
            .handshake(TokioIo::new(stream))
            .await
            .map_err(|fault| self.broken(target, UpstreamFault::Broken(fault.to_string())))?;
        // Its faults come out at the sender.
        tokio::spawn(async move {
            let _ = connection.await;
        });
        Ok(sender)
    }
}
