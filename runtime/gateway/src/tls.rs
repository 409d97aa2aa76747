//! Both ends of TLS: a certificate authority of this run for clients inside, verified roots for servers outside.

use crate::authority::Host;
use crate::edges::{Clock, Random};
use rcgen::{
    BasicConstraints, CertificateParams, DistinguishedName, DnType, ExtendedKeyUsagePurpose, IsCa,
    Issuer, KeyPair, KeyUsagePurpose, SanType, SerialNumber,
};
use rustls::client::ClientConfig;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer, ServerName};
use rustls::server::{ClientHello, ResolvesServerCert, ServerConfig};
use rustls::sign::{CertifiedKey, SigningKey};
use rustls::{RootCertStore, crypto};
use std::collections::HashMap;
use std::fmt::{Debug, Formatter};
use std::net::IpAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, SystemTime};
use thiserror::Error;
use time::OffsetDateTime;

#[derive(Debug, Error)]
pub enum TlsFault {
    #[error("a certificate cannot be made: {0}")]
    Certificate(#[from] rcgen::Error),
    #[error("TLS cannot be set up: {0}")]
    Setup(#[from] rustls::Error),
    #[error("a root of the configuration is not a PEM certificate")]
    Root,
    #[error("no randomness for a certificate: {0}")]
    Random(#[from] std::io::Error),
}

const HOUR: Duration = Duration::from_secs(3600);
const CA_LIFE: Duration = Duration::from_secs(30 * 24 * 3600);
const LEAF_LIFE: Duration = Duration::from_secs(6 * 24 * 3600);
/// Leaves kept. A client that names many hosts makes the gateway mint again, at a tenth of a millisecond each.
const LEAVES: usize = 256;

/// The run's certificate authority. Its key is made here and goes nowhere.
pub struct CertificateAuthority {
    issuer: Issuer<'static, KeyPair>,
    pem: String,
    /// One key for all leaves.
    leaf_key: KeyPair,
    signer: Arc<dyn SigningKey>,
    leaves: Mutex<HashMap<Host, (Arc<CertifiedKey>, SystemTime)>>,
}

impl Debug for CertificateAuthority {
    fn fmt(&self, f: &mut Formatter<'_>) -> std::fmt::Result {
        f.write_str("CertificateAuthority(..)")
    }
}

fn serial(random: &dyn Random) -> std::io::Result<SerialNumber> {
    let mut bytes = [0_u8; 16];
    random.fill(&mut bytes)?;
    // Positive, and of one length.
    if let Some(first) = bytes.first_mut() {
        *first = *first & 0x7f | 0x40;
    }
    Ok(SerialNumber::from_slice(&bytes))
}

fn validity(params: &mut CertificateParams, now: SystemTime, life: Duration) {
    params.not_before = OffsetDateTime::from(now - HOUR);
    params.not_after = OffsetDateTime::from(now + life);
}

impl CertificateAuthority {
    pub fn new(clock: &dyn Clock, random: &dyn Random) -> Result<CertificateAuthority, TlsFault> {
        let key = KeyPair::generate_for(&rcgen::PKCS_ECDSA_P256_SHA256)?;
        let mut params = CertificateParams::new(Vec::<String>::new())?;
        let serial_number = serial(random)?;
        let mark: String = serial_number
            .to_bytes()
            .iter()
            .take(4)
            .map(|byte| format!("{byte:02x}"))
            .collect();
        let mut name = DistinguishedName::new();
        name.push(DnType::OrganizationName, "Box");
        name.push(
            DnType::CommonName,
            format!("Box gateway of one run, {mark}"),
        );
        params.distinguished_name = name;
        params.serial_number = Some(serial_number);
        params.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
        params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
        validity(&mut params, clock.now(), CA_LIFE);
        let pem = params.self_signed(&key)?.pem();
        let leaf_key = KeyPair::generate_for(&rcgen::PKCS_ECDSA_P256_SHA256)?;
        let signer = crypto::ring::sign::any_ecdsa_type(&PrivateKeyDer::Pkcs8(
            PrivatePkcs8KeyDer::from(leaf_key.serialize_der()),
        ))?;
        Ok(CertificateAuthority {
            issuer: Issuer::new(params, key),
            pem,
            leaf_key,
            signer,
            leaves: Mutex::default(),
        })
    }

    /// The certificate, for programs inside to trust. Never the key.
    pub fn pem(&self) -> &str {
        &self.pem
    }

    fn leaf(
        &self,
        host: &Host,
        clock: &dyn Clock,
        random: &dyn Random,
    ) -> Result<Arc<CertifiedKey>, TlsFault> {
        let now = clock.now();
        let mut leaves = self.leaves.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((leaf, until)) = leaves.get(host)
            && now < *until
        {
            return Ok(Arc::clone(leaf));
        }
        let mut params = CertificateParams::new(Vec::<String>::new())?;
        params.subject_alt_names = vec![match host {
            Host::Name(name) => SanType::DnsName(name.as_str().try_into()?),
            Host::Ip(ip) => SanType::IpAddress(*ip),
        }];
        let mut name = DistinguishedName::new();
        name.push(DnType::OrganizationName, "Box");
        let shown = host.text();
        // The field's own limit.
        if shown.len() <= 64 {
            name.push(DnType::CommonName, shown.as_str());
        }
        params.distinguished_name = name;
        params.serial_number = Some(serial(random)?);
        params.use_authority_key_identifier_extension = true;
        params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
        validity(&mut params, now, LEAF_LIFE);
        let certificate = params.signed_by(&self.leaf_key, &self.issuer)?;
        let leaf = Arc::new(CertifiedKey::new(
            vec![certificate.der().clone()],
            Arc::clone(&self.signer),
        ));
        if leaves.len() >= LEAVES {
            leaves.clear();
        }
        leaves.insert(host.clone(), (Arc::clone(&leaf), now + LEAF_LIFE / 2));
        Ok(leaf)
    }

    /// What a client inside a tunnel to `host` is served: its leaf, if the client asks for that name.
    pub fn server(
        &self,
        host: &Host,
        clock: &dyn Clock,
        random: &dyn Random,
    ) -> Result<Arc<ServerConfig>, TlsFault> {
        let leaf = self.leaf(host, clock, random)?;
        let mut config =
            ServerConfig::builder_with_provider(Arc::new(crypto::ring::default_provider()))
                .with_safe_default_protocol_versions()?
                .with_no_client_auth()
                .with_cert_resolver(Arc::new(OneName {
                    host: host.clone(),
                    leaf,
                }));
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        Ok(Arc::new(config))
    }
}

/// Serves one name: the client's SNI must be the tunnel's host, and may be absent only for an address.
#[derive(Debug)]
struct OneName {
    host: Host,
    leaf: Arc<CertifiedKey>,
}

impl ResolvesServerCert for OneName {
    fn resolve(&self, hello: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        let agrees = match (hello.server_name(), &self.host) {
            (Some(name), host) => Host::parse(name).as_ref() == Ok(host),
            (None, Host::Ip(_)) => true,
            (None, Host::Name(_)) => false,
        };
        agrees.then(|| Arc::clone(&self.leaf))
    }
}

/// The client side: public roots and those of the configuration. Nothing turns verification off.
pub fn client(extra_roots: &[String]) -> Result<Arc<ClientConfig>, TlsFault> {
    let mut roots = RootCertStore {
        roots: webpki_roots::TLS_SERVER_ROOTS.to_vec(),
    };
    for text in extra_roots {
        let mut found = 0;
        for certificate in CertificateDer::pem_slice_iter(text.as_bytes()) {
            roots.add(certificate.map_err(|_| TlsFault::Root)?)?;
            found += 1;
        }
        if found == 0 {
            return Err(TlsFault::Root);
        }
    }
    let mut config =
        ClientConfig::builder_with_provider(Arc::new(crypto::ring::default_provider()))
            .with_safe_default_protocol_versions()?
            .with_root_certificates(roots)
            .with_no_client_auth();
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(Arc::new(config))
}

/// The name a server's certificate must carry.
pub fn server_name(host: &Host) -> Option<ServerName<'static>> {
    match host {
        Host::Name(name) => ServerName::try_from(name.to_string()).ok(),
        Host::Ip(IpAddr::V4(ip)) => Some(ServerName::IpAddress((*ip).into())),
        Host::Ip(IpAddr::V6(ip)) => Some(ServerName::IpAddress((*ip).into())),
    }
}

#[cfg(test)]
mod tests {
    use super::{CertificateAuthority, client};
    use crate::authority::Host;
    use crate::edges::System;

    #[test]
    fn the_certificate_comes_without_its_key() {
        let authority = CertificateAuthority::new(&System, &System).unwrap();
        assert!(authority.pem().contains("BEGIN CERTIFICATE"));
        assert!(!authority.pem().contains("PRIVATE"));
        assert_eq!(format!("{authority:?}"), "CertificateAuthority(..)");
    }

    #[test]
    fn leaves_are_kept_and_bounded() {
        let authority = CertificateAuthority::new(&System, &System).unwrap();
        let leaf = |host: &str| {
            authority
                .leaf(&Host::parse(host).unwrap(), &System, &System)
                .unwrap()
        };
        assert_eq!(leaf("a.test").cert, leaf("a.test").cert);
        assert_ne!(leaf("a.test").cert, leaf("b.test").cert);
        for number in 0..600 {
            leaf(&format!("h{number}.test"));
        }
        assert!(authority.leaves.lock().unwrap().len() <= super::LEAVES);
    }

    #[test]
    fn roots_must_be_certificates() {
        assert!(client(&["nonsense".into()]).is_err());
        let authority = CertificateAuthority::new(&System, &System).unwrap();
        assert!(client(&[authority.pem().to_owned()]).is_ok());
    }
}
