"""The certificates of one cluster: an authority that lives as long as it, and its users."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from e2e.cluster import layout, run

DAYS = "30"
CURVE = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes")


@dataclass(frozen=True, slots=True)
class Certificate:
    name: str
    subject: str
    extensions: str


def _client(name: str, subject: str) -> Certificate:
    return Certificate(name, subject, "extendedKeyUsage=clientAuth\n")


def _server(name: str, addresses: str) -> Certificate:
    return Certificate(
        name, f"/CN={name}", f"extendedKeyUsage=serverAuth\nsubjectAltName={addresses}\n"
    )


CERTIFICATES = (
    _server(
        "apiserver",
        f"IP:127.0.0.1,IP:{layout.NODE_IP},IP:{layout.KUBERNETES_IP},DNS:localhost,"
        "DNS:kubernetes,DNS:kubernetes.default,DNS:kubernetes.default.svc,"
        "DNS:kubernetes.default.svc.cluster.local",
    ),
    _server("kubelet", f"IP:{layout.NODE_IP},DNS:{layout.NODE}"),
    _client("admin", "/O=system:masters/CN=admin"),
    _client("node", f"/O=system:nodes/CN=system:node:{layout.NODE}"),
    _client("controller-manager", "/CN=system:kube-controller-manager"),
    _client("scheduler", "/CN=system:kube-scheduler"),
    _client("proxy", "/CN=system:kube-proxy"),
)


def create(folder: Path) -> None:
    """Make the authority, every certificate, and the key that signs service account tokens."""
    folder.mkdir(mode=0o700)
    _openssl(
        folder, "req", "-x509", *CURVE, "-keyout", "ca.key", "-out", "ca.crt",
        "-days", DAYS, "-subj", "/CN=noetl-e2e",
    )  # fmt: skip
    for certificate in CERTIFICATES:
        _issue(folder, certificate)
    _openssl(
        folder, "genpkey", "-algorithm", "EC", "-pkeyopt", "ec_paramgen_curve:P-256",
        "-out", "sa.key",
    )  # fmt: skip
    _openssl(folder, "pkey", "-in", "sa.key", "-pubout", "-out", "sa.pub")


def _issue(folder: Path, certificate: Certificate) -> None:
    name = certificate.name
    (folder / f"{name}.ext").write_text(certificate.extensions)
    _openssl(
        folder, "req", *CURVE, "-keyout", f"{name}.key", "-out", f"{name}.csr",
        "-subj", certificate.subject,
    )  # fmt: skip
    _openssl(
        folder, "x509", "-req", "-in", f"{name}.csr", "-CA", "ca.crt", "-CAkey", "ca.key",
        "-CAcreateserial", "-out", f"{name}.crt", "-days", DAYS, "-extfile", f"{name}.ext",
    )  # fmt: skip


def _openssl(folder: Path, *args: str) -> None:
    run.command(["openssl", *args], cwd=folder)
