"""A certificate authority for one test."""

import ssl
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID


class Authority:
    """`ca`: its own certificate, by which clients know it. `cert` and `key`: of a server at 127.0.0.1 and localhost,
    good for so many days."""

    def __init__(self, folder: Path, days: float = 1) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.ca, self.cert, self.key = (folder / name for name in ("ca.pem", "server.pem", "server.key"))
        own_key = ec.generate_private_key(ec.SECP256R1())
        own = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, f"tests in {folder.name}")])
        constraint = x509.BasicConstraints(ca=True, path_length=0)
        signed = _builder(own, own, own_key.public_key(), days).add_extension(constraint, critical=True)
        self.ca.write_bytes(signed.sign(own_key, hashes.SHA256()).public_bytes(serialization.Encoding.PEM))
        key = ec.generate_private_key(ec.SECP256R1())
        name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "localhost")])
        names = [x509.DNSName("localhost"), x509.IPAddress(ip_address("127.0.0.1"))]
        named = x509.SubjectAlternativeName(names)
        signed = _builder(name, own, key.public_key(), days).add_extension(named, critical=False)
        self.cert.write_bytes(signed.sign(own_key, hashes.SHA256()).public_bytes(serialization.Encoding.PEM))
        self.key.write_bytes(
            key.private_bytes(
                serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
            )
        )
        self.key.chmod(0o600)

    def trusted(self) -> ssl.SSLContext:
        return ssl.create_default_context(cafile=self.ca)

    def served(self) -> ssl.SSLContext:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(self.cert, self.key)
        return context


def _builder(
    name: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePublicKey, days: float
) -> x509.CertificateBuilder:
    now = datetime.now(UTC)
    return (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(issuer)
        .public_key(key)
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=days))
    )
