"""Plug-ins: models whose code a node's owner has installed as a wheel, where a graph of operators does not suffice.

A task and a policy name a plug-in by the digest of its RECORD (`record`). Its files are held against it before any of
its code runs (`installed`). Only a process without keys, data files and network imports it (`computing`, `building`),
which the system holds to its limits first (`landlock`). `contract` is the test suite for a plug-in's author.
"""
