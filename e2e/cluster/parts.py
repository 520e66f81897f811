"""The command lines of the cluster's parts. Pure: `cluster` starts them."""

from __future__ import annotations

from collections.abc import Callable

from e2e.cluster import layout
from e2e.cluster.layout import Layout

ETCD_URL = "http://127.0.0.1:2379"
BUSY = ("--kube-api-qps=200", "--kube-api-burst=400")

BINARIES = (
    "etcd",
    "kube-apiserver",
    "kube-controller-manager",
    "kube-scheduler",
    "kube-proxy",
    "kubelet",
    "kubectl",
)
"""The names that the one binary answers to."""


def etcd(place: Layout) -> list[str]:
    return [
        f"{place.bin}/etcd",
        f"--data-dir={place.root}/etcd",
        f"--listen-client-urls={ETCD_URL}",
        f"--advertise-client-urls={ETCD_URL}",
        "--listen-peer-urls=http://127.0.0.1:2380",
        # The state is thrown away with the cluster.
        "--unsafe-no-fsync",
    ]


def apiserver(place: Layout) -> list[str]:
    pki = place.pki
    return [
        f"{place.bin}/kube-apiserver",
        f"--etcd-servers={ETCD_URL}",
        "--secure-port=6443",
        f"--advertise-address={layout.NODE_IP}",
        f"--service-cluster-ip-range={layout.SERVICE_CIDR}",
        f"--client-ca-file={pki}/ca.crt",
        f"--tls-cert-file={pki}/apiserver.crt",
        f"--tls-private-key-file={pki}/apiserver.key",
        f"--cert-dir={pki}",
        f"--service-account-key-file={pki}/sa.pub",
        f"--service-account-signing-key-file={pki}/sa.key",
        "--service-account-issuer=https://kubernetes.default.svc",
        "--authorization-mode=Node,RBAC",
        "--enable-admission-plugins=NodeRestriction",
        "--allow-privileged=true",
        f"--kubelet-client-certificate={pki}/admin.crt",
        f"--kubelet-client-key={pki}/admin.key",
        f"--kubelet-certificate-authority={pki}/ca.crt",
        "--kubelet-preferred-address-types=InternalIP",
        "--endpoint-reconciler-type=lease",
        "--shutdown-delay-duration=0s",
    ]


def controller_manager(place: Layout) -> list[str]:
    return [
        f"{place.bin}/kube-controller-manager",
        f"--kubeconfig={place.kubeconfig('controller-manager')}",
        f"--authentication-kubeconfig={place.kubeconfig('controller-manager')}",
        f"--authorization-kubeconfig={place.kubeconfig('controller-manager')}",
        f"--service-account-private-key-file={place.pki}/sa.key",
        f"--root-ca-file={place.pki}/ca.crt",
        f"--cert-dir={place.pki}",
        "--use-service-account-credentials",
        "--allocate-node-cidrs=false",
        "--leader-elect=false",
        *BUSY,
    ]


def scheduler(place: Layout) -> list[str]:
    return [
        f"{place.bin}/kube-scheduler",
        f"--kubeconfig={place.kubeconfig('scheduler')}",
        f"--authentication-kubeconfig={place.kubeconfig('scheduler')}",
        f"--authorization-kubeconfig={place.kubeconfig('scheduler')}",
        f"--cert-dir={place.pki}",
        "--leader-elect=false",
        *BUSY,
    ]


def containerd(place: Layout) -> list[str]:
    return ["containerd", "--config", f"{place.root}/containerd.toml"]


def kubelet(place: Layout) -> list[str]:
    return [
        f"{place.bin}/kubelet",
        f"--config={place.root}/kubelet.json",
        f"--kubeconfig={place.kubeconfig('node')}",
        f"--hostname-override={layout.NODE}",
        f"--node-ip={layout.NODE_IP}",
        f"--root-dir={place.root}/kubelet",
        f"--cert-dir={place.pki}",
    ]


def proxy(place: Layout) -> list[str]:
    return [
        f"{place.bin}/kube-proxy",
        f"--kubeconfig={place.kubeconfig('proxy')}",
        f"--hostname-override={layout.NODE}",
        "--proxy-mode=iptables",
        f"--cluster-cidr={layout.POD_CIDR}",
        "--conntrack-max-per-core=0",
    ]


Builder = Callable[[Layout], list[str]]

CONTROL_PLANE: dict[str, Builder] = {
    "etcd": etcd,
    "apiserver": apiserver,
    "controller-manager": controller_manager,
}
NODE: dict[str, Builder] = {
    "containerd": containerd,
    "scheduler": scheduler,
    "kubelet": kubelet,
    "proxy": proxy,
}
ALL: dict[str, Builder] = CONTROL_PLANE | NODE
"""Every part by the name that tests call it."""
