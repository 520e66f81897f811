"""Worker Pods and Jobs on a real cluster, made by an operator that runs in it."""
