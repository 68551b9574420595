"""Errors of plug-ins."""

from __future__ import annotations

from typing import ClassVar

from consilium_client.errors import ModelError


class PluginError(ModelError):
    """A plug-in is not the one that a task names, or cannot be used."""

    MESSAGES: ClassVar = {
        "PluginMissing": "the plug-in {plugin} is not installed here{found}; compare its wheel with the task"
        " (`consilium plugin digest WHEEL`), and install it by `pip install --no-deps WHEEL`, or leave the task",
        "PluginOther": "the plug-in {plugin} that is installed here has the digest {found}, but the task names"
        " {expected}; install the wheel that the task names, or leave the task",
        "PluginAltered": "the installed files of the plug-in {plugin} are not those of its RECORD: {why}; find out who"
        " changed them, and install its wheel again",
        "PluginMalformed": "{plugin} cannot be used as a plug-in: {why}; tell its author",
        "PluginFailed": "the plug-in {plugin} failed in {step}: {why}; tell its author",
        "PluginElsewhere": "the plug-in {plugin} is computed by a process of its own, and its module cannot leave it;"
        " leave out this command for models of plug-ins",
    }
