"""The cluster that carries a fleet: Ray, with a token always.

What Ray would do by itself is turned off where a fleet has to decide. It retries no task, since a
retry begins from the last backup and on another device; and a task is pinned to the host of its
device, since only the head knows which devices are quarantined or drained. The resource of a class
of devices bounds what several fleets ask of a host.

Attempts report to an actor on the head's own host: one on another host would take its callers along
when that is lost. It answers each attempt but the last one at a unit with "end". That is a
courtesy, and not what exactness rests on: two attempts at one unit find the same, and one result of
them is taken. Slurm and Kubernetes are where Ray may run.
"""
