"""The files that the parts read, as text. Pure: `cluster` writes them."""

from __future__ import annotations

import json
from pathlib import Path

from e2e.cluster import layout
from e2e.cluster.layout import Layout

USERS = ("admin", "node", "controller-manager", "scheduler", "proxy")
"""Each has a certificate and a kubeconfig of its name."""


def control_plane_files(place: Layout) -> dict[Path, str]:
    return {place.kubeconfig(user): kubeconfig(place, user) for user in USERS}


def node_files(place: Layout, cni_folder: Path) -> dict[Path, str]:
    return {
        place.root / "containerd.toml": containerd(place, cni_folder),
        place.root / "kubelet.json": kubelet(place),
        place.cni / "10-bridge.conflist": bridge(place),
    }


def kubeconfig(place: Layout, user: str) -> str:
    cluster = {
        "server": layout.SERVER,
        "certificate-authority": str(place.pki / "ca.crt"),
    }
    credentials = {
        "client-certificate": str(place.pki / f"{user}.crt"),
        "client-key": str(place.pki / f"{user}.key"),
    }
    name = place.full_name
    return _json(
        {
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [{"name": name, "cluster": cluster}],
            "users": [{"name": user, "user": credentials}],
            "contexts": [{"name": name, "context": {"cluster": name, "user": user}}],
            "current-context": name,
        }
    )


def containerd(place: Layout, cni_folder: Path) -> str:
    """containerd with everything below the state folder, network namespaces included."""
    return f"""\
version = 2
root = "{place.root}/containerd"
state = "{place.root}/containerd-state"
[grpc]
  address = "{place.containerd_socket}"
[plugins."io.containerd.internal.v1.opt"]
  path = "{place.root}/containerd-opt"
[plugins."io.containerd.grpc.v1.cri"]
  sandbox_image = "{layout.PAUSE_IMAGE}"
  netns_mounts_under_state_dir = true
  # Lowering it needs CAP_SYS_RESOURCE, which a sandboxed root may not have.
  restrict_oom_score_adj = true
  [plugins."io.containerd.grpc.v1.cri".cni]
    bin_dir = "{cni_folder}"
    conf_dir = "{place.cni}"
  [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]
    runtime_type = "io.containerd.runc.v2"
    [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc.options]
      Root = "{place.root}/runc"
"""


def kubelet(place: Layout) -> str:
    return _json(
        {
            "apiVersion": "kubelet.config.k8s.io/v1beta1",
            "kind": "KubeletConfiguration",
            "failCgroupV1": False,
            "cgroupDriver": "cgroupfs",
            "cgroupRoot": f"/{place.full_name}",
            "authentication": {
                "anonymous": {"enabled": False},
                "webhook": {"enabled": True},
                "x509": {"clientCAFile": str(place.pki / "ca.crt")},
            },
            "authorization": {"mode": "Webhook"},
            "clusterDomain": "cluster.local",
            "clusterDNS": [layout.DNS_IP],
            "resolvConf": "",
            "containerRuntimeEndpoint": f"unix://{place.containerd_socket}",
            "podLogsDir": str(place.root / "pod-logs"),
            "volumePluginDir": str(place.root / "volume-plugins"),
            "tlsCertFile": str(place.pki / "kubelet.crt"),
            "tlsPrivateKeyFile": str(place.pki / "kubelet.key"),
            # A full disk of the developer's must not evict the tests' Pods.
            "evictionHard": {
                "memory.available": "100Mi",
                "nodefs.available": "0%",
                "imagefs.available": "0%",
            },
            "imageGCHighThresholdPercent": 100,
            "maxPods": 110,
            "oomScoreAdj": 0,
            "serializeImagePulls": False,
            "registryPullQPS": 0,
            "kubeAPIQPS": 200,
            "kubeAPIBurst": 400,
            "failSwapOn": False,
        }
    )


def bridge(place: Layout) -> str:
    """The Pods' network. Its name is the cluster's, so that its traces can be told apart."""
    ipam = {
        "type": "host-local",
        "dataDir": str(place.root / "cni-addresses"),
        "ranges": [[{"subnet": layout.POD_CIDR}]],
        "routes": [{"dst": "0.0.0.0/0"}],
    }
    plugins = [
        {
            "type": "bridge",
            "bridge": "cni0",
            "isGateway": True,
            "ipMasq": False,
            "hairpinMode": True,
            "ipam": ipam,
        },
        {"type": "portmap", "capabilities": {"portMappings": True}},
    ]
    return _json({"cniVersion": "0.4.0", "name": place.full_name, "plugins": plugins})


def _json(value: object) -> str:
    return json.dumps(value, indent=1)
