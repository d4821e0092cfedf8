"""A certificate authority of the test's own."""

from __future__ import annotations

import ipaddress
import ssl
from datetime import UTC, datetime, timedelta
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from context_builder.engines.engine import LOOPBACK


class Authority:
    """Signs one certificate, for this machine's loopback address. ``ca`` is the authority's own, in PEM."""

    def __init__(self, folder: Path) -> None:
        self.ca = folder / "ca.pem"
        self._server = folder / "server.pem"
        ca_key, key = (ec.generate_private_key(ec.SECP256R1()) for _ in range(2))
        name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "Test authority")])
        ca = _certificate(name, name, ca_key).add_extension(
            x509.BasicConstraints(ca=True, path_length=0), critical=True
        )
        self.ca.write_bytes(ca.sign(ca_key, hashes.SHA256()).public_bytes(serialization.Encoding.PEM))
        here = x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address(LOOPBACK))])
        subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, LOOPBACK)])
        signed = _certificate(subject, name, key).add_extension(here, critical=False).sign(ca_key, hashes.SHA256())
        private = key.private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        )
        self._server.write_bytes(private + signed.public_bytes(serialization.Encoding.PEM))

    @property
    def server_pem(self) -> bytes:
        """The signed certificate and its private key."""
        return self._server.read_bytes()

    @property
    def certificate(self) -> Path:
        """The file of both, which a client may show as well."""
        return self._server

    def context(self, *, wants_certificate: bool = False) -> ssl.SSLContext:
        """What a server uses that has the signed certificate, and perhaps wants one of each client."""
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(self._server)
        if wants_certificate:
            context.load_verify_locations(self.ca)
            context.verify_mode = ssl.CERT_REQUIRED
        return context


def _certificate(subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePrivateKey) -> x509.CertificateBuilder:
    now = datetime.now(UTC)
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=1))
    )
